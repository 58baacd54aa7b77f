package flexi

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestPrepare(t *testing.T) {
	cases := []struct {
		name string
		w    Write
		want string // inside the winstrom
	}{
		{"create", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt, Body: []byte(`{"kod":"B1","suma":10.50}`)}}},
			`{"@version":"1.0","banka":[{"@update":"fail","id":["ext:FLEXID:k1"],"kod":"B1","suma":10.50}]}`},
		{"create with identifiers of others", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt,
			Body: []byte(`{"id":["ext:SHOP:1","ext:CRM:2"]}`)}}},
			`{"@version":"1.0","banka":[{"@update":"fail","id":["ext:FLEXID:k1","ext:SHOP:1","ext:CRM:2"]}]}`},
		{"update", Write{Evidence: "banka", Op: Update, Docs: []Doc{{Ext: testExt, FlexiID: "7", Body: []byte(`{"popis":"<&>"}`)}}},
			`{"@version":"1.0","banka":[{"@create":"fail","id":"7","popis":"<&>"}]}`},
		{"update replaces rows", Write{Evidence: "faktura-vydana", Op: Update, Docs: []Doc{{FlexiID: "7",
			Body: []byte(`{"polozkyFaktury":[{"nazev":"x"}],"skladovePolozky":{"x":[]},"id":"ext:SHOP:1"}`)}}},
			`{"@version":"1.0","faktura-vydana":[{"@create":"fail","id":"7","polozkyFaktury":[{"nazev":"x"}],` +
				`"polozkyFaktury@removeAll":"true","skladovePolozky":{"x":[]},"skladovePolozky@removeAll":"true"}]}`},
		{"storno", Write{Evidence: "banka", Op: Storno, Docs: []Doc{{Ext: testExt, FlexiID: "7"}}},
			`{"@version":"1.0","banka":[{"@action":"storno","@create":"fail","id":"7"}]}`},
		{"delete", Write{Evidence: "banka", Op: Delete, Docs: []Doc{{Ext: testExt, FlexiID: "7"}}},
			`{"@version":"1.0","banka":[{"@action":"delete","@create":"fail","id":"7"}]}`},
		{"attach", Write{Evidence: "banka", Op: Attach, Docs: []Doc{{Ext: testExt, FlexiID: "7"}}},
			`{"@version":"1.0","banka":[{"@create":"fail","id":["7","ext:FLEXID:k1"]}]}`},
		{"group", Write{Evidence: "banka", Op: Delete, Docs: []Doc{{FlexiID: "7"}, {FlexiID: "8"}}},
			`{"@version":"1.0","banka":[{"@action":"delete","@create":"fail","id":"7"},{"@action":"delete","@create":"fail","id":"8"}]}`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Prepare(tc.w)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(p.Body()), `{"winstrom":`+tc.want+`}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	body := json.RawMessage(`{"kod":"B1"}`)
	cases := []struct {
		name string
		w    Write
		says string
	}{
		{"upsert", Write{Evidence: "banka", Op: Upsert, Docs: []Doc{{Ext: testExt, FlexiID: "1", Body: body}}}, "upsert"},
		{"no operation", Write{Evidence: "banka", Docs: []Doc{{Ext: testExt, FlexiID: "1", Body: body}}}, "operation"},
		{"no document", Write{Evidence: "banka", Op: Create}, "no document"},
		{"no evidence", Write{Op: Create, Docs: []Doc{{Ext: testExt, Body: body}}}, "evidence"},
		{"a path as evidence", Write{Evidence: "banka/1", Op: Create, Docs: []Doc{{Ext: testExt, Body: body}}}, "evidence"},
		{"create without external id", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Body: body}}}, "external id"},
		{"create without body", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt}}}, "JSON"},
		{"update without Flexi id", Write{Evidence: "banka", Op: Update, Docs: []Doc{{Ext: testExt, Body: body}}}, "Flexi id"},
		{"update by code", Write{Evidence: "banka", Op: Update, Docs: []Doc{{FlexiID: "code:B1", Body: body}}}, "Flexi id"},
		{"delete without Flexi id", Write{Evidence: "banka", Op: Delete, Docs: []Doc{{Ext: testExt}}}, "Flexi id"},
		{"delete with fields", Write{Evidence: "banka", Op: Delete, Docs: []Doc{{FlexiID: "1", Body: body}}}, "no fields"},
		{"attach with fields", Write{Evidence: "banka", Op: Attach, Docs: []Doc{{Ext: testExt, FlexiID: "1", Body: body}}}, "no fields"},
		{"attach without external id", Write{Evidence: "banka", Op: Attach, Docs: []Doc{{FlexiID: "1"}}}, "external id"},
		{"an attribute", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt, Body: []byte(`{"@update":"ok"}`)}}}, "@update"},
		{"our own id in the body", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt, Body: []byte(`{"id":"ext:FLEXID:z"}`)}}}, "belongs"},
		{"number too long", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt, Body: []byte(`{"kod":"123456789012345678901"}`)}}}, "20"},
		{"one document twice", Write{Evidence: "banka", Op: Delete, Docs: []Doc{{FlexiID: "1"}, {FlexiID: "1"}}}, "twice"},
		{"one external id twice", Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: testExt, Body: body}, {Ext: testExt, Body: body}}}, "twice"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Prepare(tc.w)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want one about %q", err, tc.says)
			}
			if len(p.Body()) != 0 {
				t.Error("a body in spite of it")
			}
		})
	}
}

// What Prepare did not make cannot be sent.
func TestSendNeedsPrepare(t *testing.T) {
	s := startRaw(t, answering(201, "", okBody))
	if r := send(t, testClient(t, s.url()), Prepared{}, permit("a1")); r.Outcome != NotSent {
		t.Errorf("%s", r.Outcome)
	}
	if _, bytes, _ := s.seen(); bytes != 0 {
		t.Errorf("%d bytes", bytes)
	}
}

func TestItemsField(t *testing.T) {
	body := `{"polozkyFaktury":[],"polozkyDokladu":{"x":[]},"skladovePolozky":[],"bezPolozek":"true","kontakty":[],` +
		`"polozkyFaktury@removeAll":"true","polozkyText":"x"}`
	got := strings.Join(ItemsField([]byte(body)), " ")
	if want := "polozkyDokladu polozkyFaktury skladovePolozky"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if ItemsField([]byte(`[]`)) != nil {
		t.Error("rows in a list")
	}
}

func TestExternalID(t *testing.T) {
	hashed := NewExternalID("FLEXID", "", "a key, with [brackets]")
	cases := []struct {
		name string
		got  ExternalID
		want string
	}{
		{"plain", NewExternalID("FLEXID", "", "FV-1/2024"), "ext:FLEXID:FV-1/2024"},
		{"with a source", NewExternalID("FLEXID", "shop", "42"), "ext:FLEXID.shop:42"},
		{"odd characters", hashed, "ext:FLEXID:h-" + hashed.Key()[2:]},
	}
	for _, tc := range cases {
		if string(tc.got) != tc.want || !tc.got.Valid() {
			t.Errorf("%s: %s (valid %v), want %s", tc.name, tc.got, tc.got.Valid(), tc.want)
		}
	}
	if len(hashed.Key()) != 42 || hashed != NewExternalID("FLEXID", "", "a key, with [brackets]") {
		t.Errorf("hash %s", hashed)
	}
	if NewExternalID("FLEXID", "", hashed.Key()) == hashed {
		t.Error("a key that looks like a hash takes the place of the hashed key")
	}
	if long := strings.Repeat("x", 61); NewExternalID("F", "", long).Key() == long {
		t.Error("a long key was not hashed")
	}
	if e := NewExternalID("FLEXID", "shop", "42"); e.System() != "FLEXID.shop" || e.Key() != "42" || !e.Of("flexid") || e.Of("FLEX") {
		t.Errorf("%s: system %s, key %s", e, e.System(), e.Key())
	}
	for _, bad := range []ExternalID{"", "ext:", "ext:F:", "ext::x", "F:x", "ext:F:a:b", "ext:F:a b", "ext:F]:a", "ext:.F:a"} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}
}

func FuzzExternalID(f *testing.F) {
	f.Add("FV-1", "h-")
	f.Add("a b", "a  b")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := NewExternalID("FLEXID", "", a), NewExternalID("FLEXID", "", b)
		if !x.Valid() || x.System() != "FLEXID" {
			t.Errorf("%q became %q", a, x)
		}
		if (a == b) != (x == y) {
			t.Errorf("%q and %q became %q and %q", a, b, x, y)
		}
	})
}

// asEncoded is the request as a library writes it whose maps have sorted keys: what Prepare and Join write must be the same, byte for
// byte.
func asEncoded(t *testing.T, w Write) []byte {
	t.Helper()
	var records []map[string]json.RawMessage
	for _, d := range w.Docs {
		rec := map[string]json.RawMessage{}
		if err := json.Unmarshal(d.Body, &rec); err != nil {
			t.Fatal(err)
		}
		ids := []string{string(d.Ext)}
		for _, e := range elements(rec["id"]) {
			ids = append(ids, text(e))
		}
		rec["id"], rec["@update"] = encoded(t, ids), json.RawMessage(`"fail"`)
		records = append(records, rec)
	}
	return encoded(t, map[string]any{"winstrom": map[string]any{"@version": "1.0", w.Evidence: records}})
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// sharedObjects are the JSON objects in the files of ../shared/data that are no larger than documents mostly are, those within others
// too, as they are written there.
func sharedObjects(t *testing.T) (all []json.RawMessage) {
	t.Helper()
	const dir = "../../shared/data"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("../shared/data is not here")
	}
	var collect func(raw json.RawMessage)
	collect = func(raw json.RawMessage) {
		var list []json.RawMessage
		if m := map[string]json.RawMessage{}; json.Unmarshal(raw, &m) == nil && m != nil {
			if len(raw) <= 8<<10 {
				all = append(all, raw)
			}
			for _, in := range m {
				collect(in)
			}
		} else if json.Unmarshal(raw, &list) == nil {
			for _, in := range list {
				collect(in)
			}
		}
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "json") {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(file, []byte(bom))))
		for {
			var raw json.RawMessage
			if d.Decode(&raw) != nil { // its end, or one that is spoilt on purpose
				return nil
			}
			collect(raw)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEnvelopeIsAsEncoded(t *testing.T) {
	bodies := []json.RawMessage{
		[]byte(`{}`),
		[]byte(" {\t\"b\" : 1.50 ,\n\"a\":[ 1, {\"y\":null, \"x\":true} ] } "),
		[]byte(`{"popis":"<&> \u2028 \u00e1 \/ á ` + "\u2028" + `","<&>":1e5,"k\u006fd2":-0}`),
		[]byte(`{"id":["ext:SHOP:1","ext:SHOP:<2>"],"id2":"\ud800"}`),
	}
	allowed := strings.NewReplacer(`"id"`, `"idOf"`, `"external-ids"`, `"ids"`, `"winstrom"`, `"all"`, "@", "_", `"kod"`, `"code"`)
	for _, body := range sharedObjects(t) {
		bodies = append(bodies, json.RawMessage(allowed.Replace(string(body))))
	}
	var one []Prepared
	whole := Write{Evidence: "banka", Op: Create}
	for _, body := range bodies {
		w := Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: ExternalID("ext:FLEXID:k" + strconv.Itoa(len(one))), Body: body}}}
		p, err := Prepare(w)
		if err != nil {
			continue // it must not be sent
		}
		if want := asEncoded(t, w); !bytes.Equal(p.Body(), want) {
			t.Errorf("of %s\ngot  %s\nwant %s", body, p.Body(), want)
		}
		one, whole.Docs = append(one, p), append(whole.Docs, w.Docs...)
	}
	if len(one) < 2000 {
		t.Errorf("only %d documents of %d could be prepared", len(one), len(bodies))
	}
	joint, err := Join(one)
	if err != nil {
		t.Fatal(err)
	}
	together, err := Prepare(whole)
	if err != nil {
		t.Fatal(err)
	}
	want := asEncoded(t, whole)
	if !bytes.Equal(joint.Body(), want) || !bytes.Equal(together.Body(), want) {
		t.Errorf("%d documents in one request differ from what was wanted", len(one))
	}
	for i, p := range one {
		if want := asEncoded(t, p.Write()); !bytes.Equal(p.Body(), want) {
			t.Errorf("request %d was changed when it was joined with others", i)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	create := func(evidence, key, other string) Prepared {
		t.Helper()
		p, err := Prepare(Write{Evidence: evidence, Op: Create, Docs: []Doc{{Ext: ExternalID("ext:FLEXID:" + key), Body: []byte(`{"id":"ext:SHOP:` + other + `"}`)}}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	gone, err := Prepare(Write{Evidence: "banka", Op: Delete, Docs: []Doc{{FlexiID: "7"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		requests []Prepared
		says     string
	}{
		{"none", nil, "no request"},
		{"one that was not prepared", []Prepared{create("banka", "a", "1"), {}}, "does not go"},
		{"only such", []Prepared{{}}, "does not go"},
		{"another evidence", []Prepared{create("banka", "a", "1"), create("pokladni-pohyb", "b", "2")}, "does not go"},
		{"another operation", []Prepared{create("banka", "a", "1"), gone}, "does not go"},
		{"our identifier twice", []Prepared{create("banka", "a", "1"), create("banka", "a", "2")}, "document 2: ext:FLEXID:a is there twice"},
		{"another's identifier twice", []Prepared{create("banka", "a", "1"), create("banka", "b", "2"), create("banka", "c", "1")}, "document 3: ext:SHOP:1 is there twice"},
		{"one record twice", []Prepared{gone, gone}, "7 is there twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Join(tc.requests)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v, want one about %q", err, tc.says)
			}
			if len(p.Body()) != 0 {
				t.Errorf("it wrote %s", p.Body())
			}
		})
	}
}
