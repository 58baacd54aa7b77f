package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"flexid/verify/compare"
)

func TestCompareRelation(t *testing.T) {
	const novak = `"firma":"code:NOVAK","firma@ref":"/c/demo/adresar/5.json","firma@showAs":"NOVAK: Novák"`
	for _, tt := range []struct {
		name, sent, found string
		want              string
		asked             string // what the resolver was asked; "" = not at all
	}{
		{"same code", `"firma":"code:NOVAK"`, novak, "equal", ""},
		{"code in other case and blanks", `"firma":" code:novak "`, novak, "equal", ""},
		{"Flexi id", `"firma":"5"`, novak, "equal", ""},
		{"Flexi id as number", `"firma":5`, novak, "equal", ""},
		{"Flexi id with zeros before it", `"firma":"005"`, novak, "equal", ""},
		{"other Flexi id", `"firma":"6"`, novak, "differ", ""},
		{"Flexi id shown bare", `"firma":"5"`, `"firma":"5"`, "equal", ""},
		{"Flexi id without ref", `"firma":"5"`, `"firma":"code:NOVAK"`, "equal", "adresar 5 code:NOVAK"},
		{"external id of the same", `"firma":"ext:S:1"`, novak, "equal", "adresar ext:S:1 5"},
		{"external id of another", `"firma":"ext:S:2"`, novak, "differ", "adresar ext:S:2 5"},
		{"unknown external id", `"firma":"ext:S:9"`, novak, "skipped", "adresar ext:S:9 5"},
		{"tax number of the same", `"firma":"in:28019920"`, novak, "equal", "adresar in:28019920 5"},
		{"renamed partner", `"firma":"code:NOVAK-OLD"`, novak, "equal", "adresar code:NOVAK-OLD 5"},
		{"other partner", `"firma":"code:SVOBODA"`, novak, "differ", "adresar code:SVOBODA 5"},
		{"unknown code", `"firma":"code:GONE"`, novak, "skipped", "adresar code:GONE 5"},
		{"a code of digits is no Flexi id", `"firma":"code:5"`, novak, "skipped", "adresar code:5 5"},
		{"no partner shown", `"firma":"code:NOVAK"`, `"firma":""`, "differ", ""},
		{"no partner as list", `"firma":"code:NOVAK"`, `"firma":[]`, "differ", ""},
		{"left out as allowed", `"firma":"code:NOVAK","firma@if-not-found":"null"`, `"firma":""`, "skipped", ""},
		{"allowed but another", `"firma":"6","firma@if-not-found":"null"`, novak, "differ", ""},
		{"evidence from the answer", `"stredisko":"ext:S:1"`,
			`"stredisko":"code:X","stredisko@ref":"/v2/c/demo/adresar/5"`, "equal", "adresar ext:S:1 5"},
		{"by its looks", `"stredisko":"code:x"`, `"stredisko":"code:X"`, "equal", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			known := &same{evidence: "adresar", records: []string{"5 code:NOVAK code:NOVAK-OLD ext:S:1 in:28019920", "6 ext:S:2 code:SVOBODA"}}
			r := mustCompare(t, compare.Comparer{Props: props(), Resolve: known}, "{"+tt.sent+"}", "{"+tt.found+"}")
			if got := verdict(r); got != tt.want {
				t.Errorf("%s, want %s (%+v)", got, tt.want, r)
			}
			var asked []string
			if tt.asked != "" {
				asked = []string{tt.asked}
			}
			if !slices.Equal(known.asked, asked) {
				t.Errorf("asked %q, want %q", known.asked, asked)
			}
		})
	}
}

func TestCompareRelationWithoutResolver(t *testing.T) {
	r := mustCompare(t, compare.Comparer{Props: props()},
		`{"firma":"ext:X:1","mena":"code:EUR"}`, `{"firma":"code:A","mena":"code:CZK","mena@ref":"/c/x/mena/31.json"}`)
	want := []string{"firma: ext:X:1 could not be resolved", "mena: code:EUR could not be resolved"}
	if !slices.Equal(r.Skipped, want) || len(r.Differ) > 0 {
		t.Errorf("got %+v, want skipped %q", r, want)
	}
}

// resolverFunc is a Resolver made of a function.
type resolverFunc func(context.Context) (bool, bool)

func (f resolverFunc) Same(ctx context.Context, _, _, _ string) (bool, bool) { return f(ctx) }

// A resolver that ran out of time says "not known"; that must not read as "nothing differs".
func TestCompareCutShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := compare.Comparer{Props: props(), Resolve: resolverFunc(func(context.Context) (bool, bool) {
		cancel()
		return false, false
	})}
	r, err := c.Compare(ctx, json.RawMessage(`{"firma":"ext:S:1"}`), record(t, `{"firma":"code:A"}`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v; want context.Canceled", r, err)
	}
}

func TestCompareLabels(t *testing.T) {
	for _, tt := range []struct{ name, sent, found, want string }{
		{"same in other order", `"stitky":"A,B"`, `"stitky":"B, A"`, "equal"},
		{"added to what is there", `"stitky":"A"`, `"stitky":"VIP,A"`, "equal"},
		{"missing", `"stitky":"A,C"`, `"stitky":"A,B"`, "differ"},
		{"case and prefix", `"stitky":"code:vip"`, `"stitky":"VIP"`, "equal"},
		{"as a list", `"stitky":["A","B"]`, `"stitky":"A,B"`, "equal"},
		{"replaced", `"stitky":"A","stitky@removeAll":"true"`, `"stitky":"A"`, "equal"},
		{"not replaced", `"stitky":"A","stitky@removeAll":true`, `"stitky":"A,B"`, "differ"},
		{"removeAll false", `"stitky":"A","stitky@removeAll":"false"`, `"stitky":"A,B"`, "equal"},
		{"all removed", `"stitky@removeAll":"true"`, `"stitky":""`, "equal"},
		{"not removed", `"stitky@removeAll":"true"`, `"stitky":"A"`, "differ"},
		{"nothing added", `"stitky":""`, `"stitky":"A"`, "equal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := mustCompare(t, compare.Comparer{Props: props()}, "{"+tt.sent+"}", "{"+tt.found+"}")
			if got := verdict(r); got != tt.want {
				t.Errorf("%s, want %s (%+v)", got, tt.want, r)
			}
		})
	}
}
