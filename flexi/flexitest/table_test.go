package flexitest

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

// manner is the test of one mode at the wire: with the mode on, in virtual time.
type manner func(t *testing.T, c *client)

// TestEveryModeShows: each mode is switched on and must be seen at the wire, here or in the test that is named.
func TestEveryModeShows(t *testing.T) {
	tests, elsewhere := wireTests(), shownElsewhere()
	functions := testFunctions(t)
	seen := map[string]bool{}
	for _, m := range Modes() {
		t.Run(m.Name, func(t *testing.T) {
			switch here, there := tests[m.Name], elsewhere[m.Name]; {
			case seen[m.Name] || m.Does == "" || !strings.HasSuffix(m.Does, ".") || m.Unknown < 0 || m.Unknown > 24:
				t.Fatalf("twice, or not described: %+v", m)
			case here != nil:
				synctest.Test(t, func(t *testing.T) {
					c := pipe(t, Options{})
					m.On(c.s)
					here(t, c)
				})
			case there == "" || !functions[there]:
				t.Errorf("no test shows what it does (%q)", there)
			default:
				s := New(Options{})
				m.On(s) // must not panic
				s.Close()
			}
			seen[m.Name] = true
		})
	}
	for name := range tests {
		if !seen[name] {
			t.Errorf("a test of %q, which is no mode", name)
		}
	}
}

// TestEveryModeIsDocumented: whoever uses the fake reads the package comment.
func TestEveryModeIsDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Modes() {
		if !regexp.MustCompile(`[\s,(]` + regexp.QuoteMeta(m.Name) + `[\s,.;)]`).Match(text) {
			t.Errorf("doc.go does not name %s", m.Name)
		}
	}
}

// TestEverySwitchIsInTheTable: a manner that can be switched on and is in no mode would be tried by nobody else.
func TestEverySwitchIsInTheTable(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("table.go")
	if err != nil {
		t.Fatal(err)
	}
	setter := regexp.MustCompile(`(?m)^func \(s \*Server\) ([A-Z]\w*)\([^)]*\) \{[^}]*?(?:s\.setMode|s\.opt\.ConcurrencyLimit)`)
	habits := regexp.MustCompile(`(?m)^\t([A-Z]\w*)\s+Habit = "`)
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range setter.FindAllStringSubmatch(string(src), -1) {
			if !notAMode(m[1]) && !strings.Contains(string(table), "s."+m[1]+"(") {
				t.Errorf("%s: Server.%s is in no mode of table.go", name, m[1])
			}
		}
		for _, m := range habits.FindAllStringSubmatch(string(src), -1) {
			if !strings.Contains(string(table), m[1]) {
				t.Errorf("%s: habit %s is in no mode of table.go", name, m[1])
			}
		}
	}
}

// notAMode: what needs a test's own function, what ends another, and what a person does.
func notAMode(setter string) bool {
	switch setter {
	case "HideWhen", "UnlockPeriods", "Turn":
		return true
	}
	return false
}

func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(src), -1) {
			out[m[1]] = true
		}
	}
	return out
}

// shownElsewhere names the tests of modes that have one of their own.
func shownElsewhere() map[string]string {
	return map[string]string{
		"answer-500-done": "TestFaultsAtTheWire", "answer-500-undone": "TestFaultsAtTheWire", "answer-502-done": "TestFaultsAtTheWire",
		"answer-503-done": "TestFaultsAtTheWire", "answer-lost": "TestFaultsAtTheWire", "commits-late": "TestLateCommit",
		"stale-role": "TestStaleRoleLastsUntilLogout", "no-licence": "TestLicenceAndRights", "no-right": "TestLicenceAndRights",
		"reads-empty": "TestLies", "reads-some": "TestLies", "reads-no-ids": "TestLies", "shows-late": "TestLies",
		"no-fence": "TestBrokenFences", "no-external-ids": "TestBrokenFences", "used-numbers-refused": "TestWhichRecord",
		"slow": "TestDownForAWhile", "down-a-while": "TestDownForAWhile", "period-locked": "TestGuardedDocuments",
		"column-read-only": "TestFieldsOnUpdate", "no-request-ids": "TestOddAnswers", "nameless-errors": "TestOneTransaction",
		"writes-sick": "TestOnePartIsSick", "records-sick": "TestOnePartIsSick", "metadata-sick": "TestOnePartIsSick",
		"evidence-list-sick": "TestOnePartIsSick", "import-refused": "TestImportRefused", "import-disallowed": "TestImportRefused",
		"evidence-hidden": "TestHiddenEvidence", "evidence-hidden-from-stale": "TestHiddenEvidence", "bare-refusals": "TestBareRefusals",
		"stale-no-import": "TestStaleSays", "updated-beside": "TestOddAnswers", "no-stats": "TestOddAnswers", "request-ids-upper-case": "TestOddAnswers",
		"body-limit-ignored": "TestDeafToParameters", "body-count-ignored": "TestDeafToParameters", "limit-ignored": "TestDeafToParameters",
		"count-ignored": "TestDeafToParameters", "version-ignored": "TestDeafToParameters", "unknown-ext-refused": "TestRefusedFilters",
		"value-refused": "TestRefusedFilters", "external-ids-empty": "TestShownExternalIDs", "external-ids-hidden": "TestShownExternalIDs",
		"answers-limited": "TestRefusedFilters", "records-padded": "TestRefusedFilters",
	}
}

// wireTests are the tests of the modes of this package's own table; they stand with the group they belong to.
func wireTests() map[string]manner {
	all := map[string]manner{}
	for _, group := range []map[string]manner{answerTests(), travelTests(), admissionTests(), writeTests(), readTests()} {
		for name, test := range group {
			all[name] = test
		}
	}
	return all
}

// twice makes a record and tries to make it again behind its fence.
func (c *client) twice() (first, second reply) {
	c.t.Helper()
	first = c.post("faktura-vydana", invoice("ext:S:1", "FV-1"))
	return first, c.post("faktura-vydana", invoice("ext:S:1", "FV-1"))
}

func (c *client) count() int { return len(c.s.Records("faktura-vydana")) }

const query = "/c/firma/faktura-vydana/query.json"

func (c *client) ask(members string) []map[string]any {
	c.t.Helper()
	r := c.do(http.MethodPost, query+"?auth=http", `{"winstrom":{`+members+`}}`)
	if r.status != http.StatusOK {
		c.t.Fatalf("status %d: %s", r.status, r.body)
	}
	return r.records("faktura-vydana")
}
