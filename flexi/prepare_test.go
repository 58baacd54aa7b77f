package flexi

import (
	"encoding/json"
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
