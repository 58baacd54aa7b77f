package read_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"flexid/batch"
	"flexid/batch/read"
)

// all reads everything into "line evidence raw" or "line ! problem".
func all(t *testing.T, r io.Reader, name, format string) (got []string) {
	t.Helper()
	for e, err := range read.Events(r, name, format) {
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d %s %s", e.Line, e.Evidence, e.Raw)
		if e.Problem != "" {
			text = fmt.Sprintf("%d ! %s", e.Line, e.Problem)
		}
		got = append(got, text)
	}
	return got
}

func TestForms(t *testing.T) {
	for _, tc := range []struct {
		name, file, format, text string
		want                     []string // a part of each
	}{
		{"nothing", "", "", "", nil},
		{"white space", "", "", " \n\t\n", nil},
		{"one line", "", "", `{"a":1}`, []string{`1  {"a":1}`}},
		{"lines", "", "", "{\"a\":1}\n\n  {\"a\":2}\r\n{\"a\":3}", []string{`1  {"a":1}`, `3  {"a":2}`, `4  {"a":3}`}},
		{"byte order mark", "", "", "\xef\xbb\xbf{\"a\":1}\n{\"a\":2}\n", []string{`1  {"a":1}`, `2  {"a":2}`}},
		{"a broken line among good ones", "", "", "{\"a\":1}\n{\"a\":\n{\"a\":3}\n", []string{`1  {"a":1}`, `2  {"a":`, `3  {"a":3}`}},
		{"a broken first line, by extension", "x.NDJSON", "", "{\"a\"\n{\"a\":2}\n", []string{`1  {"a"`, `2  {"a":2}`}},
		{"a broken first line, as told", "x.json", read.NDJSON, "{\"a\"\n{\"a\":2}\n", []string{`1  {"a"`, `2  {"a":2}`}},
		{"object over lines", "", "", "\n{\n \"a\": 1\n}\n", []string{"2  {\n \"a\": 1\n}"}},
		{"objects over lines", "", "", "{\n\"a\":1}\n\n{\"a\":\n2}", []string{"1  {\n\"a\":1}", "4  {\"a\":\n2}"}},
		{"list", "", "", "[\n{\"a\":\"]}\\\"\"},\n\n{\"a\":[1,{}]}\n]\n", []string{`2  {"a":"]}\""}`, `4  {"a":[1,{}]}`}},
		{"list in one line", "", "", `[{"a":1},{"a":2}]`, []string{`1  {"a":1}`, `1  {"a":2}`}},
		{"empty list", "", "", "[ ]", nil},
		{"list of what is no event", "", "", "[1,\"x\",[2],null]", []string{"1  1", `1  "x"`, "1  [2]", "1  null"}},
		{"list that does not end", "", "", "[{\"a\":1},\n", []string{`{"a":1}`, "2 ! the file ends inside the list"}},
		{"element that does not end", "", "", "[{\"a\":1},\n{\"a\":\n", []string{`{"a":1}`, "2 ! a bracket of the event that begins here is not closed; seen in line 3"}},
		{"quotation mark that is not closed", "", "", "[\n{\"a\":\"x}\n]", []string{"2 ! a quotation mark"}},
		{"missing comma", "", "", "[{\"a\":1}\n{\"a\":2}]", []string{`{"a":1}`, "2 ! '{' stands after an event"}},
		{"comma too many", "", "", "[{\"a\":1},]", []string{`{"a":1}`, "1 ! a comma"}},
		{"two commas", "", "", "[{\"a\":1},,{}]", []string{`{"a":1}`, "1 ! ',' stands"}},
		{"more after the list", "", "", "[{\"a\":1}]\n{}", []string{`{"a":1}`, "2 ! the file goes on"}},
		{"envelope", "", "", "{\n\"winstrom\": {\"@version\":\"1.0\",\n\"banka\":[{\"kod\":\"A\"},\n{\"kod\":\"B\"}],\"adresar\":{\"kod\":\"C\"}}}",
			[]string{`3 banka {"kod":"A"}`, `4 banka {"kod":"B"}`, `4 adresar {"kod":"C"}`}},
		{"empty envelope", "", "", `{"winstrom":{}}`, nil},
		{"envelope with an action", "", "", `{"winstrom":{"@action":"x","banka":[]}}`, []string{`1 ! the envelope has "@action"`}},
		{"envelope with a word", "", "", `{"winstrom":{"banka":"x"}}`, []string{`1 ! beside "banka"`}},
		{"envelope that does not end", "", "", `{"winstrom":{"banka":[{}]`, []string{"1 banka {}", "1 ! the file ends after banka"}},
		{"more after the envelope", "", "", `{"winstrom":{"banka":[]}} {}`, []string{"1 ! the file goes on after the envelope"}},
		{"no JSON", "", "", "kod;castka\nA;1\n", []string{"1 ! the file is a table (CSV)"}},
		{"UTF-16", "", "", "\xff\xfe{\x00", []string{"1 ! the file is UTF-16"}},
		{"a minus that never ends", "", "", `{"winstrom":{"@version":}}`, []string{"1 ! a bracket"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{"at once": strings.NewReader(tc.text), "byte by byte": iotest.OneByteReader(strings.NewReader(tc.text))} {
				got := all(t, r, tc.file, tc.format)
				if len(got) != len(tc.want) {
					t.Fatalf("%s: %q, want %q", how, got, tc.want)
				}
				for i, want := range tc.want {
					if !strings.Contains(got[i], want) {
						t.Errorf("%s: %q, want %q", how, got[i], want)
					}
				}
			}
		})
	}
}

func TestTooLong(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 2*batch.MaxEvent) + `"}`
	for name, text := range map[string]string{"line": "{\"a\":1}\n" + long + "\n{\"a\":3}\n", "list": "[{\"a\":1},\n" + long + ",\n{\"a\":3}]"} {
		t.Run(name, func(t *testing.T) {
			got := all(t, strings.NewReader(text), "", "")
			if len(got) != 3 || !strings.HasPrefix(got[1], "2 ! the ") || !strings.Contains(got[1], "524288") || got[2] != `3  {"a":3}` {
				t.Errorf("%.300q", got)
			}
		})
	}
}

func TestALongLineComesFirst(t *testing.T) {
	got := all(t, strings.NewReader(`{"a":"`+strings.Repeat("x", 2*batch.MaxEvent)+"\"}\n{\"a\":2}\n"), "x.ndjson", "")
	if len(got) != 2 || !strings.Contains(got[0], "524288") || got[1] != `2  {"a":2}` {
		t.Errorf("%.300q", got)
	}
}

// endless is a reader that never ends; reading all of it would not end either.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	e.n += copy(p, strings.Repeat("{\"a\":1}\n", 1+len(p)/8)[:len(p)])
	return len(p), nil
}

func TestReadsNoMoreThanIsAsked(t *testing.T) {
	r, n := &endless{}, 0
	for range read.Events(r, "", "") {
		if n++; n == 1000 {
			break
		}
	}
	if r.n > 2*batch.MaxEvent {
		t.Errorf("%d bytes were read for %d events", r.n, n)
	}
}

func TestReadErrorEndsTheFile(t *testing.T) {
	broken := errors.New("the disk is broken")
	for name, text := range map[string]string{"lines": "{\"a\":1}\n{\"a\":2}\n", "list": "[{\"a\":1},", "envelope": `{"winstrom":{"banka":[{}`, "object": "{\n"} {
		t.Run(name, func(t *testing.T) {
			// The head is peeked, so the fault must come after it.
			r := io.MultiReader(strings.NewReader(text+strings.Repeat(" ", batch.MaxEvent+8<<10)), iotest.ErrReader(broken))
			var last error
			for _, err := range read.Events(r, "", "") {
				last = err
			}
			if !errors.Is(last, broken) {
				t.Errorf("got %v", last)
			}
		})
	}
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"{\"a\":1}\n{\"b\":2}\n", `[{"a":1},{"b":"\\\""}]`, `{"winstrom":{"@version":"1.0","banka":[{"kod":"A"}]}}`, "{\n\"a\":\n1}", "[,", "\xef\xbb\xbf[]"} {
		f.Add(seed, "")
		f.Add(seed, read.JSON)
	}
	f.Fuzz(func(t *testing.T, text, format string) {
		last := 0
		for e, err := range read.Events(strings.NewReader(text), "", format) {
			if err != nil {
				t.Fatal(err)
			}
			if (e.Problem == "") == (len(e.Raw) == 0) {
				t.Fatalf("neither event nor problem, or both: %+v", e)
			}
			if e.Line < last || e.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("line %d after line %d", e.Line, last)
			}
			if !strings.Contains(text, string(e.Raw)) {
				t.Fatalf("%q is not in the file", e.Raw)
			}
			last = e.Line
		}
	})
}
