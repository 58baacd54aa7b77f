package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flexid/flexi"
	"flexid/verify/compare"
)

// published reads the field lists that a real server published.
func published(t *testing.T) map[string]*flexi.Properties {
	t.Helper()
	const dir = "../../../shared/data/flexi-properties"
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("published metadata are not here: ../shared/data/flexi-properties")
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*flexi.Properties{}
	for _, file := range files {
		evidence, isJSON := strings.CutSuffix(file.Name(), ".json")
		if !isJSON || evidence == "EvidenceFullList" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[evidence] = publishedFields(t, evidence, raw)
	}
	return all
}

func publishedFields(t *testing.T, evidence string, raw []byte) *flexi.Properties {
	t.Helper()
	var fields map[string]struct {
		Type           string `json:"type"`
		IsUpperCase    string `json:"isUpperCase"`
		FkEvidencePath string `json:"fkEvidencePath"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatalf("%s: %v", evidence, err)
	}
	p := properties(evidence)
	for name, f := range fields {
		p.ByName[name] = flexi.Property{Name: name, Type: f.Type, UpperCase: f.IsUpperCase == "true", RefEvidence: f.FkEvidencePath}
	}
	return p
}

// Every published field, of every evidence: shown as sent is equal, shown as another is named.
func TestCompareEveryPublishedField(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for evidence, p := range published(t) {
		c := compare.Comparer{Props: p, Resolve: resolverFunc(func(context.Context) (bool, bool) { return false, true })}
		for name, prop := range p.ByName {
			if name == "id" || name == "external-ids" {
				continue
			}
			v := randomValue(r, prop)
			sent := string(marshal(t, map[string]any{name: v.sent}))
			found := string(marshal(t, map[string]any{name: v.shown, name + "@ref": v.ref}))
			other := string(marshal(t, map[string]any{name: v.other, name + "@ref": v.otherRef}))
			if got := mustCompare(t, c, sent, found); !got.Shown() {
				t.Errorf("%s: %s is not shown by %s: %+v", evidence, sent, found, got)
			}
			got := mustCompare(t, c, sent, other)
			if named := append(fieldsOf(got.Differ), fieldsOf(got.Noted)...); !slices.Equal(named, []string{name}) {
				t.Errorf("%s: %s against %s names %q (%+v)", evidence, sent, other, named, got)
			}
		}
	}
}

// What a machine reads decides; only prose is noted. The list is written down once more: a field that a server newly
// publishes must be looked at by someone.
func TestPublishedFreeTexts(t *testing.T) {
	deciding := []string{
		"baleniEan1", "baleniEan2", "baleniEan3", "baleniEan4", "baleniEan5", "bic", "branchId", "buc", "cisDodak", "cisDosle",
		"cisObj", "cisSml", "cisSouhrnne", "dic", "eanKod", "email", "faEanKod", "iban", "ic", "inKodSled", "katastrUzemi",
		"kod", "kodPlu", "kodPojistovny", "kontaktEmail", "parcela", "rodCis", "source", "specSym", "stavy", "stitky", "uuid",
		"varSym", "vatId", "vypisCisDokl", "www", "zatrid",
	}
	for evidence, p := range published(t) {
		for name, prop := range p.ByName {
			if prop.Type != "string" {
				continue
			}
			r := mustCompare(t, compare.Comparer{Props: p}, `{"`+name+`":"a"}`, `{"`+name+`":"b"}`)
			if got, want := len(r.Differ) == 1, slices.Contains(deciding, name); got != want {
				t.Errorf("%s.%s decides: %v, want %v", evidence, name, got, want)
			}
		}
	}
}
