package flexi

import (
	"encoding/json"
	"strings"
	"testing"
)

func record(t testing.TB, s string) Record {
	t.Helper()
	var r Record
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecord(t *testing.T) {
	r := record(t, `{"id":["805","ext:SHOP:1"],"external-ids":["ext:FLEXID:k1","code:X"],"sumCelkem":350.0,"storno":false,"popis":null,
		"mena":"code:CZK","mena@ref":"/c/x/mena/31.json","firma":"","stat":"7","banka@ref":"/v2/c/x/banka/9?detail=full"}`)
	if r.ID() != "805" || strings.Join(r.ExternalIDs(), " ") != "ext:FLEXID:k1 code:X ext:SHOP:1" {
		t.Errorf("id %s, others %v", r.ID(), r.ExternalIDs())
	}
	if !r.HasExternalID(testExt) || r.HasExternalID("ext:FLEXID:k2") {
		t.Error("whose record it is")
	}
	for field, want := range map[string]string{"sumCelkem": "350.0", "storno": "false", "popis": "", "id": "", "nothing": "", "mena": "code:CZK"} {
		if got := r.Text(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
	if !r.Has("popis") || r.Has("nothing") {
		t.Error("null and absent are told apart")
	}
	for field, want := range map[string][2]string{"mena": {"code:CZK", "31"}, "firma": {"", ""}, "stat": {"7", "7"}, "banka": {"", "9"}, "nothing": {"", ""}} {
		if code, id := r.Ref(field); code != want[0] || id != want[1] {
			t.Errorf("%s: %q, %q; want %v", field, code, id, want)
		}
	}
	if id := record(t, `{"id":805}`).ID(); id != "805" {
		t.Errorf("native id: %q", id)
	}
	if id := record(t, `{"id":"code:X"}`).ID(); id != "" {
		t.Errorf("a code as id: %q", id)
	}
}

func TestRecordRows(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want string
	}{
		"list":             {`{"rows":[{"kod":"a"},{"kod":"b"}]}`, "a b"},
		"one object":       {`{"rows":{"kod":"a","nazev":"x"}}`, "a"},
		"object, one key":  {`{"rows":{"kod":"a"}}`, "a"},
		"wrapped list":     {`{"rows":{"faktura-vydana-polozka":[{"kod":"a"},{"kod":"b"}]}}`, "a b"},
		"wrapped object":   {`{"rows":{"faktura-vydana-polozka":{"kod":"a"}}}`, "a"},
		"empty list":       {`{"rows":[]}`, ""},
		"empty text":       {`{"rows":""}`, ""},
		"null":             {`{"rows":null}`, ""},
		"absent":           {`{}`, ""},
		"not only records": {`{"rows":["x",{"kod":"a"}]}`, "a"},
	} {
		var got []string
		for _, r := range record(t, tc.body).Rows("rows") {
			got = append(got, r.Text("kod"))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

func TestDecodeEnvelopeShapes(t *testing.T) {
	cases := []struct {
		name, body    string
		ok            bool
		said, success bool
		created       int64
		ids           string
		words         string
	}{
		{"as documented", okBody, true, true, true, 1, "805", ""},
		{"native values", `{"winstrom":{"success":true,"stats":{"created":1},"results":[{"id":805}]}}`, true, true, true, 1, "805", ""},
		{"ok as a word", `{"winstrom":{"success":"ok","stats":[{"created":"2"}],"results":{"result":{"id":"1"}}}}`, true, true, true, 2, "1", ""},
		{"failed as a word", `{"winstrom":{"success":"failed","results":"","errors":[{"message@messageCode":"validace.notNull","message":"m"}]}}`,
			true, true, false, 0, "", "m (validace.notNull)"},
		{"success unreadable", `{"winstrom":{"success":"perhaps"}}`, true, false, false, 0, "", ""},
		{"counters with an exponent", `{"winstrom":{"success":"true","stats":{"created":"1E0"}}}`, true, true, true, 1, "", ""},
		{"winstrom as a list", `{"winstrom":[{"success":"true"}]}`, true, true, true, 0, "", ""},
		{"error as text", `{"winstrom":{"success":false,"results":[{"error":"m"}]}}`, true, true, false, 0, "", "m"},
		{"errors as one object", `{"winstrom":{"success":false,"results":{"errors":{"error":{"message":"m","@for":"kod"}}}}}`, true, true, false, 0, "", "kod: m"},
		{"old code", `{"winstrom":{"success":false,"message":"m","message@messageCode":"importNotAllowed"}}`, true, true, false, 0, "", "m (importNotAllowed)"},
		{"byte order mark", bom + okBody, true, true, true, 1, "805", ""},
		{"a list's envelope", `{"winstrom":{"@version":"1.0","banka":[]}}`, false, false, false, 0, "", ""},
		{"another root", `{"companies":{}}`, false, false, false, 0, "", ""},
		{"two envelopes", okBody + okBody, false, false, false, 0, "", ""},
		{"page", htmlBody, false, false, false, 0, "", ""},
		{"empty winstrom", `{"winstrom":""}`, false, false, false, 0, "", ""},
		{"two in a list", `{"winstrom":[{"success":true},{"success":false}]}`, false, false, false, 0, "", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			env, ok := decodeEnvelope([]byte(tc.body))
			var ids, words []string
			for _, r := range env.results {
				if r.id != "" {
					ids = append(ids, r.id)
				}
			}
			for _, m := range env.all() {
				words = append(words, m.String())
			}
			if ok != tc.ok || env.said != tc.said || env.success != tc.success || env.stats["created"] != tc.created ||
				strings.Join(ids, " ") != tc.ids || strings.Join(words, "; ") != tc.words {
				t.Errorf("ok %v, %+v, words %v", ok, env, words)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{okBody, errorsBody, existsBody, emptyList, `{"winstrom":{"changes":[{"@evidence":"a","@in-version":"1"}],"next":"2"}}`,
		`{"properties":{"property":{"propertyName":"kod","values":{"value":{"@key":"x"}}}}}`, `{"a":[[{"b":null}]]}`, "\xef\xbb\xbf{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := []byte(s)
		_, _ = decodeEnvelope(b)
		_, _ = DecodeChanges(b)
		_, _ = decodeProperties(b)
		_, _ = decodeEvidences(b)
		_, _ = pickCompany(b, "demo")
		_ = statusObject(b)
		page, err := decodePage(Query{Evidence: "banka"}, b)
		if err == nil && page.RowCount >= 0 && page.RowCount != len(page.Records) {
			t.Errorf("%d rows for a count of %d", len(page.Records), page.RowCount)
		}
		for _, r := range page.Records {
			_, _ = r.Ref("firma")
			_ = r.ExternalIDs()
			_ = r.Rows("polozkyFaktury")
			if id := r.ID(); id != "" && !isDigits(id) {
				t.Errorf("id %q", id)
			}
		}
	})
}
