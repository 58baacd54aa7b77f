package flexi

import (
	"errors"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	cases := []struct {
		name string
		f    Filter
		want string // "" with err: an error
	}{
		{"all", Filter{}, ""},
		{"equal", Eq("kod", "FV-1"), `(kod='FV-1')`},
		{"single quote", Eq("kod", "O'Neil"), `(kod="O'Neil")`},
		{"double quote", Eq("kod", `5" disk`), `(kod='5" disk')`},
		{"both quotes", Eq("kod", `5" O'N`), `(kod='5" O\'N')`},
		{"back-slash", Eq("kod", `a\`), `(kod='a\\')`},
		{"parentheses and words", Eq("kod", "1) or (id>0"), `(kod='1) or (id>0')`},
		{"id", IDEq("17"), `(id=17)`},
		{"external id", ExtEq(testExt), `(id='ext:FLEXID:k1')`},
		{"or", Or(IDEq("17"), ExtEq(testExt), Eq("kod", "x")), `(id=17 or id='ext:FLEXID:k1' or kod='x')`},
		{"or of one", Or(IDEq("17")), `(id=17)`},
		{"pair inside or", Or(IDEq("17"), And(Eq("cisDosle", "a"), Eq("firma", "code:B"))), `(id=17 or (cisDosle='a' and firma='code:B'))`},
		{"and of nothing", And(), ""},
		{"and with all", And(Filter{}, IDEq("17")), `(id=17)`},
		{"two groups", And(Or(IDEq("1"), IDEq("2")), Or(IDEq("3"), IDEq("4"))), `((id=1 or id=2) and (id=3 or id=4))`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.f.String(); got != tc.want || tc.f.Err() != nil {
				t.Errorf("%s, %v; want %s", got, tc.f.Err(), tc.want)
			}
		})
	}
	for name, f := range map[string]Filter{
		"field with a blank": Eq("kod or id", "x"), "no field": Eq("", "x"), "not UTF-8": Eq("kod", "\xff"),
		"id that is none": IDEq("1 or 1=1"), "empty id": IDEq(""), "negative id": IDEq("-1"), "code as id": IDEq("code:X"),
		"id beyond any": IDEq("1234567890123456789"), "broken external id": ExtEq("ext:F:a' or '"), "no alternatives": Or(),
		"everything as alternative": Or(IDEq("1"), Filter{}), "error inside": And(IDEq("1"), IDEq("x")),
	} {
		t.Run(name, func(t *testing.T) {
			if f.Err() == nil {
				t.Fatalf("no error, but %q", f)
			}
			if _, err := testClient(t, "http://erp.test").List(t.Context(), Query{Evidence: "banka", Filter: f}); OutcomeOf(err) != Rejected {
				t.Errorf("List: %v", err)
			}
		})
	}
}

// parseEq reads one comparison the way a lexer with back-slash escapes does, and reports what is left behind it.
func parseEq(s string) (field, value, rest string, err error) {
	field, s, ok := strings.Cut(s, "=")
	if !ok || s == "" {
		return "", "", "", errors.New("no comparison")
	}
	end := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == end:
			return field, b.String(), s[i+1:], nil
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", "", errors.New("a string without an end")
}

// Whatever the value is, the filter is one comparison with exactly that value.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"FV-1", `'`, `"`, `\`, `'"`, `\'`, `\"'`, `' or 1=1 or kod='`, "a\nb", "", `\\`, "č"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		flt := Eq("kod", value)
		if flt.Err() != nil {
			return
		}
		s := flt.String()
		inside, ok := strings.CutPrefix(s, "(")
		if !ok {
			t.Fatalf("%q", s)
		}
		field, got, rest, err := parseEq(inside)
		if err != nil || field != "kod" || got != value || rest != ")" {
			t.Errorf("%q became %q: value %q, rest %q, %v", value, s, got, rest, err)
		}
		if !strings.ContainsAny(value, `\`) && !(strings.Contains(value, "'") && strings.Contains(value, `"`)) && strings.Contains(s, `\`) {
			t.Errorf("%q was escaped without need: %q", value, s)
		}
	})
}
