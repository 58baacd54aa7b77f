package daemon

import (
	"net/http"
	"testing"

	"flexid/flexi/flexitest"
)

// TestProfilesOverTheSetting: the daemon serves its profiles where it was told to, by the setting and the state directory's token.
func TestProfilesOverTheSetting(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		want     int
	}{
		"as delivered": {nil, http.StatusNotFound},
		"off":          {[]string{"FLEXID_HTTP_PPROF=false"}, http.StatusNotFound},
		"on":           {[]string{"FLEXID_HTTP_PPROF=true"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, settings(t, startERP(t, flexitest.Options{}), t.TempDir(), c.settings...))
			if code, _ := r.do(http.MethodGet, "/debug/pprof/goroutine", ""); code != c.want {
				t.Errorf("%d, want %d", code, c.want)
			}
			resp, err := http.Get(r.info.HTTP + "/debug/pprof/goroutine")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				t.Error("profiles without the token")
			}
		})
	}
}
