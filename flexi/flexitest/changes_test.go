package flexitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func loaded(version, global int) string {
	return fmt.Sprintf(`{"winstrom":{"@globalVersion":"%d","changes":[{"@evidence":"adresar","@in-version":"%d","@operation":"update",
		"@timestamp":"2021-03-12 23:59:55.58","id":"4435","external-ids":["code:TEST5"]}],"next":"none"}}`, global, version)
}

func TestLoadChanges(t *testing.T) {
	c := pipe(t, Options{})
	if err := c.s.LoadChanges([]byte(loaded(5000, 5002))); err != nil {
		t.Fatal(err)
	}
	list := c.do(http.MethodGet, "/c/firma/changes.json?start=5000", "")
	equal(t, "version of all", list.text("@globalVersion"), "5002")
	equal(t, "as it was loaded", fmt.Sprint(list.records("changes")),
		"[map[@evidence:adresar @in-version:5000 @operation:update @timestamp:2021-03-12 23:59:55.58 external-ids:[code:TEST5] id:4435]]")
	c.must(c.post("adresar", `"id":"ext:S:1","kod":"P1","nazev":"První"`))
	own := c.do(http.MethodGet, "/c/firma/changes.json?start=5001", "").records("changes")
	equal(t, "own writes go on above", fmt.Sprintf("%d %v", len(own), own[0]["@in-version"]), "1 5003")
	for name, body := range map[string]string{
		"a version that the log has had": loaded(5000, 6000), "a version above that of all": loaded(7000, 6000), "no JSON": "<winstrom/>",
		"no version of all": `{"winstrom":{"changes":[]}}`, "no id": strings.Replace(loaded(7000, 7000), "4435", "", 1),
		"no version": strings.Replace(loaded(7000, 8000), `"7000"`, `""`, 1),
	} {
		if err := c.s.LoadChanges([]byte(body)); err == nil || c.s.GlobalVersion() != 5003 {
			t.Errorf("%s: %v, version %d", name, err, c.s.GlobalVersion())
		}
	}
	c.do(http.MethodPost, "/c/firma/changes/disable.json", "")
	if err := c.s.LoadChanges([]byte(loaded(7000, 7000))); err == nil {
		t.Error("loaded into a log that is switched off")
	}
}

// TestLoadRealHooks: what is read from the log is what the hooks carried, whatever the size of a page.
func TestLoadRealHooks(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/flexi-hooks/*.json")
	if len(files) == 0 {
		t.Skip("../shared/data/flexi-hooks is not there")
	}
	c := pipe(t, Options{})
	start := c.s.GlobalVersion() + 1
	var want []map[string]any
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.s.LoadChanges(body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var hook struct {
			Winstrom struct{ Changes []map[string]any }
		}
		if err := json.Unmarshal(body, &hook); err != nil {
			t.Fatal(err)
		}
		want = append(want, hook.Winstrom.Changes...)
	}
	var got []map[string]any
	for next, pages := fmt.Sprint(start), 0; next != "none" && pages < 100; pages++ {
		page := c.do(http.MethodGet, "/c/firma/changes.json?limit=50&start="+next, "")
		got, next = append(got, page.records("changes")...), page.text("next")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d changes were read, %d were loaded", len(got), len(want))
	}
}
