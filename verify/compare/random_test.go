package compare_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/verify/compare"
)

// value is one generated value: as a sender writes it, as Flexi v1 shows it, and another one as Flexi would show that.
type value struct {
	sent          any
	shown         string
	other         string
	ref, otherRef string // field@ref of shown and of other
}

func randomValue(r *rand.Rand, p flexi.Property) value {
	n := r.IntN(1_000_000)
	switch p.Type {
	case "numeric":
		text := fmt.Sprintf("%d.%02d", n, r.IntN(100))
		v := value{sent: text, shown: text + "0", other: fmt.Sprintf("%d.5", n+1)}
		if r.IntN(2) == 0 {
			v.sent = json.Number(text)
		}
		return v
	case "integer":
		return value{sent: n, shown: fmt.Sprint(n), other: fmt.Sprint(n + 1)}
	case "logic":
		b := n%2 == 0
		return value{sent: b, shown: fmt.Sprint(b), other: fmt.Sprint(!b)}
	case "date":
		d := time.Date(2000, 1, 1+n%9000, 0, 0, 0, 0, time.UTC)
		return value{sent: d.Format(time.DateOnly), shown: d.Format(time.DateOnly) + "+01:00",
			other: d.AddDate(0, 0, 1).Format(time.DateOnly) + "+01:00"}
	case "datetime":
		d := time.Date(2000, 1, 1, 0, 0, n, r.IntN(1000)*1e6, time.FixedZone("", 3600))
		const shown = "2006-01-02T15:04:05.000-07:00"
		return value{sent: d.UTC().Format(time.RFC3339Nano), shown: d.Format(shown), other: d.Add(time.Millisecond).Format(shown)}
	case "relation":
		v := value{sent: fmt.Sprintf("code:k%d", n), shown: fmt.Sprintf("code:K%d", n), other: fmt.Sprintf("code:L%d", n)}
		v.ref, v.otherRef = fmt.Sprintf("/c/x/e/%d.json", n), fmt.Sprintf("/c/x/e/%d.json", n+1)
		if r.IntN(2) == 0 {
			v.sent = fmt.Sprint(n)
		}
		return v
	}
	text := fmt.Sprintf("x%dž", n)
	v := value{sent: " " + text + "\r\n", shown: text, other: text + "y"}
	if p.UpperCase {
		v.shown = fmt.Sprintf("X%dŽ", n)
	}
	return v
}

// generated is a document in both forms.
type generated struct {
	sent  map[string]any
	found map[string]any
	vals  map[string]value
}

func generate(r *rand.Rand, p *flexi.Properties) generated {
	g := generated{map[string]any{}, map[string]any{}, map[string]value{}}
	for name, prop := range p.ByName {
		if r.IntN(4) == 0 {
			continue
		}
		v := randomValue(r, prop)
		g.vals[name], g.sent[name], g.found[name] = v, v.sent, v.shown
		if v.ref != "" {
			g.found[name+"@ref"] = v.ref
		}
	}
	return g
}

// change makes one field of the record another one.
func (g generated) change(r *rand.Rand) (field string) {
	var names []string
	for name := range g.vals {
		names = append(names, name)
	}
	slices.Sort(names)
	field = names[r.IntN(len(names))]
	v := g.vals[field]
	g.found[field] = v.other
	if v.ref != "" {
		g.found[field+"@ref"] = v.otherRef
	}
	return field
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A random document is equal to itself as Flexi shows it; after one change exactly that field is named.
func TestCompareRandomDocuments(t *testing.T) {
	different := resolverFunc(func(context.Context) (bool, bool) { return false, true })
	c := withItems()
	c.Resolve = different
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		doc := generate(r, c.Props)
		var rows []generated
		var sentRows, foundRows []any
		for i := range 1 + r.IntN(4) {
			row := generate(r, itemProps())
			row.found["id"], row.found["cisRad"] = fmt.Sprint(900+i), fmt.Sprint(i+1)
			rows, sentRows, foundRows = append(rows, row), append(sentRows, row.sent), append(foundRows, row.found)
		}
		r.Shuffle(len(foundRows), func(i, j int) { foundRows[i], foundRows[j] = foundRows[j], foundRows[i] })
		doc.sent["polozkyFaktury"], doc.found["polozkyFaktury"] = sentRows, foundRows

		sent := string(marshal(t, doc.sent))
		if got := mustCompare(t, c, sent, string(marshal(t, doc.found))); !got.Shown() {
			t.Fatalf("seed %d: %s is not shown by %s: %+v", seed, sent, marshal(t, doc.found), got)
		}
		fields, err := compare.Fields(json.RawMessage(sent))
		if err != nil {
			t.Fatal(err)
		}
		was := c.Image(fields, record(t, string(marshal(t, doc.found))))

		at, target := "", doc
		if i := r.IntN(len(rows) + 1); i < len(rows) && len(rows[i].vals) > 0 || len(doc.vals) == 0 {
			i = min(i, len(rows)-1)
			if len(rows[i].vals) == 0 {
				continue
			}
			at, target = fmt.Sprintf("polozkyFaktury[%d].", i), rows[i]
		}
		name := target.change(r)
		want := at + name
		got := mustCompare(t, c, sent, string(marshal(t, doc.found)))
		if named := append(fieldsOf(got.Differ), fieldsOf(got.Noted)...); !slices.Equal(named, []string{want}) {
			t.Fatalf("seed %d: changed %s, named %q (%+v)", seed, want, named, got)
		}
		now := c.Image(fields, record(t, string(marshal(t, doc.found))))
		for _, f := range keys(was) {
			if changed := f == name && at == "" || f == "polozkyFaktury" && at != ""; (was[f] != now[f]) != changed {
				t.Fatalf("seed %d: changed %s, image of %s: %q, then %q", seed, want, f, was[f], now[f])
			}
		}
	}
}
