package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
)

// FuzzSingleNames: what is let through reads the same for a reader that takes the last name and one that takes the first.
func FuzzSingleNames(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":2}`, `[{"a":{"a":1}},{"a":2}]`, `{"a":[{"b":1,"b":2}]}`, `{"\u0061":1,"a":2}`, `]`, `{"a"`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) || singleNames(body) != nil {
			return
		}
		// As many names as are read must be kept: a name that is kept once and read twice hides a value.
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var kept any
		if err := d.Decode(&kept); err != nil {
			t.Skip()
		}
		if read, left := names(body), values(kept); read != left {
			t.Errorf("%d names are read and %d kept in %q", read, left, body)
		}
	})
}

// names counts the names of all objects by their colons outside strings.
func names(body []byte) (n int) {
	inString, escaped := false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case c == ':' && !inString:
			n++
		}
	}
	return n
}

func values(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += 1 + values(e)
		}
	case []any:
		for _, e := range v {
			n += values(e)
		}
	}
	return n
}

// FuzzStandard: whatever stands in the headers, only the signature of the golden vector opens, and the rest is a 400 or 401.
func FuzzStandard(f *testing.F) {
	f.Add("msg_1", "1767882819", good, order)
	f.Add("msg_1", "1767882819", "v1, v1a,x v1,"+good, order)
	f.Add("", "+0", "v1", "")
	k, err := newKind(Source{Kind: "standard", Secret: shared, PreviousSecret: public})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, at, signature, body string) {
		r := &Request{Header: webhookHeaders(id, at, signature), Body: []byte(body), Now: signedAt}
		err := k.Verify(r)
		var refusal *Refusal
		switch {
		case err == nil:
			if id != "msg_1" || at != "1767882819" || body != order {
				t.Errorf("opened by %q %q %q %q", id, at, signature, body)
			}
		case !errors.As(err, &refusal) || refusal.Status != http.StatusUnauthorized && refusal.Status != http.StatusBadRequest:
			t.Errorf("%v", err)
		}
	})
}

// FuzzPing: what needs no proof never holds a change.
func FuzzPing(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"winstrom":{"changes":[]}}`, `{"winstrom":{"changes":{"change":{"@evidence":"a","@in-version":"1"}}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if (&hook{}).Ping(&Request{Body: body}) && bytes.Contains(body, []byte("@in-version")) && bytes.Contains(body, []byte("@evidence")) {
			var doc struct {
				Winstrom struct{ Changes []json.RawMessage }
			}
			if json.Unmarshal(body, &doc) == nil && len(doc.Winstrom.Changes) > 0 {
				t.Errorf("taken without proof: %q", body)
			}
		}
	})
}
