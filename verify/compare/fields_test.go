package compare_test

import (
	"encoding/json"
	"slices"
	"testing"

	"flexid/verify/compare"
)

func TestFields(t *testing.T) {
	for _, tt := range []struct {
		name, sent   string
		asked, plain []string
	}{
		{"sorted", `{"varSym":"1","kod":"A"}`, []string{"kod", "varSym"}, []string{"kod", "varSym"}},
		{"no identifiers, no attributes", `{"id":"ext:S:1","external-ids":[],"@action":"x","firma":"5","firma@if-not-found":"null"}`,
			[]string{"firma"}, []string{"firma"}},
		{"union of row fields", `{"polozkyFaktury":[{"nazev":"A","id":"ext:S:1"},{"cenaMj":1,"cenik@if-not-found":"null"}]}`,
			[]string{"polozkyFaktury(cenaMj,cisRad,id,nazev)"}, []string{"polozkyFaktury"}},
		{"wrapped rows", `{"polozkyFaktury":{"faktura-vydana-polozka":[{"nazev":"A"}]}}`,
			[]string{"polozkyFaktury(cisRad,id,nazev)"}, []string{"polozkyFaktury"}},
		{"no rows", `{"skladovePolozky":[]}`, []string{"skladovePolozky(cisRad,id)"}, []string{"skladovePolozky"}},
		{"rows removed", `{"polozkyFaktury@removeAll":"true"}`, []string{"polozkyFaktury(cisRad,id)"}, []string{"polozkyFaktury"}},
		{"labels are no rows", `{"stitky":["A"]}`, []string{"stitky"}, []string{"stitky"}},
		{"a name that would break out of the query", `{"kod),id(":"A","polozkyFaktury":[{"a,b":1,"c":1}],"":1}`,
			[]string{"polozkyFaktury(c,cisRad,id)"}, []string{"polozkyFaktury"}},
		{"empty", `{}`, nil, nil},
		{"no body: storno, delete", ``, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked, err := compare.Fields(json.RawMessage(tt.sent))
			if err != nil || !slices.Equal(asked, tt.asked) {
				t.Errorf("Fields = %q, %v; want %q", asked, err, tt.asked)
			}
			plain, err := compare.FieldNames(json.RawMessage(tt.sent))
			if err != nil || !slices.Equal(plain, tt.plain) {
				t.Errorf("FieldNames = %q, %v; want %q", plain, err, tt.plain)
			}
		})
	}
	if got, err := compare.Fields(json.RawMessage(`[]`)); err == nil {
		t.Errorf("Fields of a list = %q, want an error", got)
	}
}
