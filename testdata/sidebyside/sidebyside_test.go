package sidebyside

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"flexid/flexi/flexitest"
)

// row is one line of the table; a part that a layer has not is "-".
type row struct {
	name                   string
	twice, total, half, ok string
	duplicates             [3]string
	wronged                string
	peak, early, endless   string
}

func (r row) cells() string {
	return strings.Join([]string{r.name, r.twice, r.total, r.half, r.ok, r.duplicates[0], r.duplicates[1], r.duplicates[2],
		r.wronged, r.peak, r.early, r.endless}, "\t")
}

const heading = "\tA 503,503,200\tA 100% 500\tA 50% 500\tok at 50%\tdup: 500 after commit\tdup: lost answer\tdup: late commit" +
	"\tsaved, told failed\therd peak of 200\tearly\tendless Retry-After"

// TestSideBySide prints the table. What it asserts is flexid's part of it; of the peers it only asserts that the scripts
// reached them, so that a new version of one changes the table and not the result.
func TestSideBySide(t *testing.T) {
	var rows []row
	for _, p := range peers() {
		t.Run(p.name, func(t *testing.T) { rows = append(rows, ofPeer(t, p)) })
	}
	t.Run("flexid, reads", func(t *testing.T) { rows = append(rows, ofReads(t)) })
	documents := row{name: "flexid, documents"}
	var costs strings.Builder
	t.Run("flexid, documents, scripts", func(t *testing.T) { ofScripts(t, &documents, &costs) })
	t.Run("flexid, documents, troubles", func(t *testing.T) { ofTroubles(t, &documents, &costs) })
	t.Run("flexid, documents, refusals", func(t *testing.T) { ofRefusals(t, &documents) })
	rows = append(rows, documents)

	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, heading)
	for _, r := range rows {
		fmt.Fprintln(w, r.cells())
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf(legend, calls, every, b.String(), costs.String())
}

const legend = `counted at the server, in virtual time
A       requests by calls, of %d calls, one every %s; of documents: writes on the wire by claimed sends
dup     second records by 1,000 documents, the first send of every twentieth struck
ok      calls that succeeded; documents that were confirmed without a person
herd    most requests within 50 ms after 200 callers were refused together with Retry-After: 2; early: sooner than asked
endless requests of one call within 10 min at 429 with Retry-After: 9300000000

%s
what flexid's documents cost, looks and read-backs in "all requests":

%s`

func percent(x float64) string { return fmt.Sprintf("%.0f%%", 100*x) }

func fixed(x float64) string { return fmt.Sprintf("%.2f", x) }

func ofPeer(t *testing.T, p peer) row {
	c := p.caller()
	twice, _ := amplification(t, c, twice503)
	total, _ := amplification(t, c, always500)
	half, ok := amplification(t, c, half500)
	r := row{name: p.name, twice: fixed(twice), total: fixed(total), half: fixed(half), ok: percent(ok)}
	wronged := 0
	for i, tr := range troubles() {
		got := sent(t, p, tr)
		if got.struck == 0 || got.missing > 0 {
			t.Errorf("%s: struck %d, missing %d", tr.name, got.struck, got.missing)
		}
		r.duplicates[i] = fmt.Sprint(got.duplicates)
		wronged += got.wronged
	}
	r.wronged, r.endless = fmt.Sprint(wronged), fmt.Sprint(endless(t, c))
	r.peak, r.early = stampedeOf(t, c).show()
	return r
}

// show is the columns of a stampede; who never comes back is no herd.
func (s stampede) show() (peak, early string) {
	if s.back == 0 {
		return "not retried", "-"
	}
	peak = fmt.Sprint(s.peak)
	if s.back < herd {
		peak += fmt.Sprintf(" (%d back)", s.back)
	}
	return peak, fmt.Sprint(s.early)
}

// The bounds of the table for flexid.
const (
	mostInOutage = 1.1
	mostAtHalf   = 1.2
	mostPeak     = 12
)

func ofReads(t *testing.T) row {
	c := reader(t, 7)
	twice, _ := amplification(t, c, twice503)
	total, _ := amplification(t, c, always500)
	half, ok := amplification(t, c, half500)
	if total > mostInOutage || half > mostAtHalf {
		t.Errorf("reads amplify: %v in an outage, %v at half", total, half)
	}
	worst := worstOf(5, func(seed uint64) stampede { return stampedeOf(t, reader(t, seed)) })
	if worst.early > 0 || worst.peak > mostPeak || worst.back < herd { // few that come back are no proof of a small herd
		t.Errorf("reads after a refusal: %+v", worst)
	}
	r := row{
		name: "flexid, reads", twice: fixed(twice), total: fixed(total), half: fixed(half), ok: percent(ok),
		duplicates: [3]string{"-", "-", "-"}, wronged: "-", endless: "1",
	}
	if n := endless(t, c); n != 1 {
		t.Errorf("%d reads at an endless Retry-After", n)
		r.endless = fmt.Sprint(n)
	}
	r.peak, r.early = worst.show()
	return r
}

// worstOf is the worst of several seeds.
func worstOf(seeds uint64, of func(seed uint64) stampede) stampede {
	worst := stampede{back: herd}
	for seed := range seeds {
		s := of(seed)
		worst = stampede{min(worst.back, s.back), max(worst.peak, s.peak), max(worst.early, s.early)}
	}
	return worst
}

func note(b *strings.Builder, what string, c cost) { fmt.Fprintf(b, "  %-28s %s\n", what, c) }

// ofScripts fills in the amplification of documents.
func ofScripts(t *testing.T, r *row, b *strings.Builder) {
	twice := costOf(t, 40, func(s *flexitest.Server) {
		s.OnWrite(1, nil, flexitest.Fault{Kind: flexitest.ServerError, Status: 503})
		s.OnWrite(2, nil, flexitest.Fault{Kind: flexitest.ServerError, Status: 503})
	})
	into, whole := outage(t, documents)
	half := costOf(t, 200, func(s *flexitest.Server) {
		s.Probability(0.5, flexitest.Fault{Kind: flexitest.ServerError, Status: 500})
	})
	for _, c := range []cost{twice, into, whole, half} {
		if c.writes != c.calls {
			t.Errorf("%d writes on the wire for %d claimed sends", c.writes, c.calls)
		}
	}
	if whole.parked > 0 {
		t.Errorf("%d documents parked by an outage", whole.parked)
	}
	r.twice, r.total, r.half = fixed(twice.amplification()), fixed(into.amplification()), fixed(half.amplification())
	r.ok = percent(float64(half.documents-half.parked) / float64(half.documents))
	note(b, "healthy", costOf(t, documents, nil))
	note(b, "503, 503, 200 each", twice)
	note(b, "500 for 10 min, during it", into)
	note(b, "500 for 10 min, in all", whole)
	note(b, "500 with chance 1/2", half)
}

// ofTroubles fills in the duplicates of documents.
func ofTroubles(t *testing.T, r *row, b *strings.Builder) {
	wronged := 0
	for i, tr := range troubles() {
		got, paid := through(t, tr)
		if got.struck == 0 || got.duplicates > 0 || got.missing > 0 || got.wronged > 0 {
			t.Errorf("%s: %+v", tr.name, got)
		}
		r.duplicates[i] = fmt.Sprint(got.duplicates)
		wronged += got.wronged
		note(b, tr.name, paid)
	}
	r.wronged = fmt.Sprint(wronged)
}

// ofRefusals fills in what refused documents do.
func ofRefusals(t *testing.T, r *row) {
	s := worstOf(3, func(seed uint64) stampede { return stampedeOfEngine(t, seed) })
	if s.early > 0 || s.peak > mostPeak || s.back < herd {
		t.Errorf("documents after a refusal: %+v", s)
	}
	r.peak, r.early = s.show()
	r.endless = fmt.Sprint(endlessOfEngine(t))
}
