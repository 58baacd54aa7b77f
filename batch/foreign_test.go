package batch_test

import (
	"os"
	"strings"
	"testing"

	"flexid/batch"
	"flexid/flexi"
)

func TestOtherFormat(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"an object", `{"kod":"A;B;C"}`, ""},
		{"lines", "{\"a\":1}\n{\"a\":2}", ""},
		{"a list", "[1;2]", ""},
		{"nothing", "", ""},
		{"white space", " \n", ""},
		{"a word", "true", ""},
		{"a number", "12,5", ""},
		{"half an object", `{"kod"`, ""},
		{"XML", "\ufeff<?xml version=\"1.0\"?>\n<winstrom/>", "XML"},
		{"ISDOC", `<?xml version="1.0"?><Invoice xmlns="http://isdoc.cz/namespace/2013">`, "ISDOC"},
		{"a web page", "<!DOCTYPE html><html>", "web page"},
		{"a table with semicolons", "kod;varSym\nA;1\n", "table"},
		{"a table in quotes", "\"kod\";\"varSym\"\n\"A\";\"1\"\n", "table"},
		{"a table with tabs and a mark", "\ufeffkod\tvarSym\nA\t1\n", "table"},
		{"a table of one line", "kod;varSym", "table"},
		{"a column called true", "true story;x\na;b\n", ""},
		{"prose", "Dobrý den\n", ""},
		{"a zip", "PK\x03\x04xx", "zip"},
		{"a PDF", "%PDF-1.7", "PDF"},
		{"UTF-16", "\xff\xfe{\x00", "UTF-16"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := batch.OtherFormat([]byte(tc.text))
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzOtherFormat(f *testing.F) {
	f.Add([]byte("kod;varSym\nA;1"))
	f.Add([]byte("<?xml"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if what := batch.OtherFormat(text); what != "" && strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
			t.Errorf("an object is taken for %s", what)
		}
		batch.Decoder{}.DecodeFileEvent(text, "faktura-vydana")
	})
}

// TestByteOrderMark: one mark at the very beginning is no content, in a message and in a delivery.
func TestByteOrderMark(t *testing.T) {
	body, err := os.ReadFile("../../shared/data/cases/door-bom/body.json")
	if err != nil {
		t.Skip("the shared cases are not here: ", err)
	}
	plain := strings.TrimPrefix(string(body), "\ufeff")
	if plain == string(body) {
		t.Fatal("the case has no byte order mark")
	}
	for _, tc := range []struct {
		name          string
		with, without batch.Message
	}{
		{"message", message(invoice, string(body)), message(invoice, plain)},
		{"delivery of a document", message("flexi.in.shop.x", string(body), "Flexid-Evidence", "faktura-vydana"),
			message("flexi.in.shop.x", plain, "Flexid-Evidence", "faktura-vydana")},
		{"signed event", message("flexi.in.shop.x", "\ufeff"+`{"evidence":"faktura-vydana","document":`+plain+`}`),
			message("flexi.in.shop.x", `{"evidence":"faktura-vydana","document":`+plain+`}`)},
		{"CloudEvent", message(invoice, "\ufeff"+`{"specversion":"1.0","type":"x.create","source":"s","id":"1","data":`+plain+`}`),
			message(invoice, `{"specversion":"1.0","type":"x.create","source":"s","id":"1","data":`+plain+`}`)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			with, without := decoder.Decode(tc.with), decoder.Decode(tc.without)
			if with.Problem != "" || with.Key != "BOM-1" || flexi.Digest(with.Body) != flexi.Digest(without.Body) {
				t.Errorf("%+v", with)
			}
		})
	}
}

// TestWrongEncoding: what a Czech export really writes is refused in words that an accountant can follow.
func TestWrongEncoding(t *testing.T) {
	read := func(t *testing.T, name string) []byte {
		text, err := os.ReadFile("../../shared/data/cases/wrong-encoding/" + name)
		if err != nil {
			t.Skip("the shared cases are not here: ", err)
		}
		return text
	}
	for name, want := range map[string][]string{
		"cp1250.ndjson": {"Windows-1250", `"popis"`, "Příliš", "save it as UTF-8"},
		"envelope.xml":  {"XML", "does not read", "NDJSON"},
		"table.csv":     {"table (CSV)", "NDJSON"},
	} {
		t.Run(name, func(t *testing.T) {
			e := decoder.DecodeFileEvent(read(t, name), "faktura-vydana")
			for _, part := range want {
				if !strings.Contains(e.Problem, part) {
					t.Errorf("%s\ndoes not say %s", e.Problem, part)
				}
			}
		})
	}
	t.Run("an encoding that is no Windows-1250", func(t *testing.T) {
		e := decoder.DecodeFileEvent([]byte("{\"popis\":\"a\x81b\"}"), "faktura-vydana")
		if !strings.Contains(e.Problem, "not UTF-8: byte 12 in field \"popis\"") || strings.Contains(e.Problem, "1250") {
			t.Error(e.Problem)
		}
	})
}
