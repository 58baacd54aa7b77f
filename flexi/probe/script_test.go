package probe

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestParseScript(t *testing.T) {
	cases := []struct {
		name, text string
		want       []step
	}{
		{"one status", "200", []step{{status: 200, times: 1}}},
		{"several, with blanks", "503, 503 ,200", []step{{status: 503, times: 1}, {status: 503, times: 1}, {status: 200, times: 1}}},
		{"for ever", "500*", []step{{status: 500}}},
		{"three times", "500*3,200", []step{{status: 500, times: 3}, {status: 200, times: 1}}},
		{"wait in seconds", "429:2", []step{{status: 429, retryAfter: "2", times: 1}}},
		{"wait that overflows", "503:9300000000*", []step{{status: 503, retryAfter: "9300000000"}}},
		{"done nevertheless", "commit500", []step{{status: 500, commit: true, times: 1}}},
		{"done and reset", "commitreset*2", []step{{kind: reset, commit: true, times: 2}}},
		{"words", "stale,html,half,close,silence", []step{
			{kind: stale, status: 400, times: 1}, {kind: html, status: 200, times: 1}, {kind: half, status: 200, times: 1},
			{kind: hangUp, times: 1}, {kind: silence, times: 1},
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseScript(tc.text)
			if err != nil || !reflect.DeepEqual(got.steps, tc.want) || got.String() != tc.text {
				t.Errorf("%+v, %v; want %+v", got.steps, err, tc.want)
			}
		})
	}
}

func TestParseScriptRefuses(t *testing.T) {
	cases := []struct{ name, text string }{
		{"nothing", ""},
		{"an empty step", "503,,200"},
		{"an unknown word", "explode"},
		{"an informational status", "100"},
		{"no status", "600"},
		{"a sign", "+200"},
		{"never", "500*0"},
		{"too often", "500*1000001"},
		{"a wait without a value", "429:"},
		{"a wait without an answer", "reset:2"},
		{"a second header", "429:2\r\nX: y"},
		{"something after for ever", "500*,200"},
		{"only commit", "commit"},
		{"a huge list", strings.Repeat("200,", maxSteps) + "200"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseScript(tc.text)
			var se *ScriptError
			if !errors.As(err, &se) || se.Why == "" {
				t.Errorf("%q: %v", tc.text, err)
			}
		})
	}
}

// FuzzParseScript: whatever is accepted stays in bounds and cannot smuggle a line into the answer's head.
func FuzzParseScript(f *testing.F) {
	for _, s := range []string{"503,503,200", "500*", "429:2*3", "commitreset,half,html,stale,silence,close", "*", ":", "commit", "429:\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseScript(text)
		if err != nil {
			var se *ScriptError
			if !errors.As(err, &se) {
				t.Fatalf("%q: %T", text, err)
			}
			return
		}
		if len(s.steps) == 0 || len(s.steps) > maxSteps {
			t.Fatalf("%q: %d steps", text, len(s.steps))
		}
		for i, st := range s.steps {
			switch {
			case st.times < 0 || st.times > maxTimes || st.times == 0 && i < len(s.steps)-1:
				t.Fatalf("%q: step %d happens %d times", text, i, st.times)
			case st.status != 0 && (st.status < 200 || st.status > 599):
				t.Fatalf("%q: status %d", text, st.status)
			case strings.ContainsAny(st.retryAfter, "\r\n"):
				t.Fatalf("%q: a line break in a header", text)
			}
		}
	})
}
