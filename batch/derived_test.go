package batch_test

import (
	"strings"
	"testing"
	"time"

	"flexid/batch"
)

// TestDerivedKeys: by every way in, an event says whether its key was given or made from the document's number, and a payable's
// number makes a key only with the year.
func TestDerivedKeys(t *testing.T) {
	const body = `{"firma":"code:A","cisDosle":"1","datVyst":"2026-01-14"}`
	const bare = `{"firma":"code:A","cisDosle":"1"}`
	d := decoder
	for name, e := range map[string]struct {
		key, problem string
		derived      bool
		got          batch.Message
		file         string
	}{
		"message":                        {key: "code:A/2026/1", derived: true, got: message("flexi.push.faktura-prijata", body)},
		"message, key in the subject":    {key: "K", got: message("flexi.push.faktura-prijata.K", body)},
		"message, key in a header":       {key: "K", got: message("flexi.push.faktura-prijata", body, "Flexid-Key", "K")},
		"message without a day":          {problem: "datVyst", got: message("flexi.push.faktura-prijata", bare)},
		"message without a day, key":     {key: "K", got: message("flexi.push.faktura-prijata.K", bare)},
		"delivery of a document":         {key: "code:A/2026/1", derived: true, got: message("flexi.in.shop.h1", body, "Flexid-Evidence", "faktura-prijata")},
		"delivery of a document, key":    {key: "K", got: message("flexi.in.shop.h1", body, "Flexid-Evidence", "faktura-prijata", "Flexid-Key", "K")},
		"delivery of an event":           {key: "code:A/2026/1", derived: true, got: message("flexi.in.shop.h1", `{"evidence":"faktura-prijata","document":`+body+`}`)},
		"delivery of an event, key":      {key: "K", got: message("flexi.in.shop.h1", `{"evidence":"faktura-prijata","key":"K","document":`+body+`}`)},
		"delivery of an event, no day":   {problem: "datVyst", got: message("flexi.in.shop.h1", `{"evidence":"faktura-prijata","document":`+bare+`}`)},
		"line of a file":                 {key: "code:A/2026/1", derived: true, file: `{"evidence":"faktura-prijata","document":` + body + `}`},
		"line of a file, key":            {key: "K", file: `{"evidence":"faktura-prijata","key":"K","document":` + body + `}`},
		"line of a file, no day":         {problem: "datVyst", file: `{"evidence":"faktura-prijata","document":` + bare + `}`},
		"line of a file, other evidence": {key: "FV-1", derived: true, file: `{"evidence":"faktura-vydana","document":{"kod":"fv-1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			e.got.Time = time.Unix(1, 0)
			got := d.Decode(e.got)
			if e.file != "" {
				got = d.DecodeFileEvent([]byte(e.file), "")
			}
			if e.problem != "" {
				if !containsAll(got.Problem, e.problem, "key") {
					t.Fatalf("problem %q", got.Problem)
				}
				return
			}
			if got.Problem != "" || got.Key != e.key || got.Derived != e.derived {
				t.Errorf("key %q, derived %v, problem %q", got.Key, got.Derived, got.Problem)
			}
		})
	}
}

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
