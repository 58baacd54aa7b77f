package main

import (
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"none", nil, 0},
		{"one", []float64{3}, 3},
		{"odd, not in order", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 3, 2}, 2.5},
		{"one is far off", []float64{10, 11, 1000, 12, 9}, 11},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(tc.values)
			if got := median(tc.values); got != tc.want || len(tc.values) != before {
				t.Errorf("%v", got)
			}
		})
	}
	values := []float64{3, 1, 2}
	median(values)
	if values[0] != 3 {
		t.Error("the figures were put into another order: rounds would not be told apart")
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.004: "0.00", 1.234: "1.23", 9.949: "9.95", 9.96: "10.0", 99.44: "99.4", 99.5: "100", 999.6: "1000",
		9999.4: "9999", 9999.6: "10,000", 12_345.6: "12,346", 1_000_000: "1000,000"} {
		if got := short(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	var tab table
	for _, v := range []float64{150, 100, 200} {
		tab.add("documents/s", "flexid", v, true)
	}
	tab.add("documents/s", "limit", 300, true)
	tab.add("processor", "flexid", 6.6, false)
	tab.add("processor", "limit", 0.6, false)
	tab.write(&b)
	want := "\n| | flexid | peer | limit | of the peer | of the limit |\n|---|---|---|---|---|---|\n" +
		"| documents/s | 150 (100–200) | – | 300 |  | 0.50 |\n| processor | 6.60 | – | 0.60 |  |  |\n"
	if b.String() != want {
		t.Errorf("%s\nwant%s", b.String(), want)
	}
}

func TestFigures(t *testing.T) {
	begun := time.Now()
	f := moment{begun, time.Second, 10}.to(moment{begun.Add(2 * time.Second), 1500 * time.Millisecond, 310}, 200)
	if f.rate() != 100 || f.processorEach() != 2.5 || f.syncsEach() != 1.5 {
		t.Errorf("%v: %v/s, %v ms, %v syncs", f, f.rate(), f.processorEach(), f.syncsEach())
	}
}

func TestSingles(t *testing.T) {
	for name, tc := range map[string]struct {
		load    load
		n, want int
	}{
		"no time at all":        {load{atOnce: 4}, 10_000, 10_000},
		"16 at once, 20 ms":     {load{fixed: 20 * time.Millisecond, atOnce: 16}, 10_000, 10_000},
		"more than 20 s":        {load{fixed: 20 * time.Millisecond, atOnce: 16}, 100_000, 16_000},
		"time for the document": {load{fixed: 100 * time.Millisecond, each: 2 * time.Millisecond, pack: 20, atOnce: 4}, 10_000, 784},
	} {
		if got := tc.load.singles(tc.n); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestProcessorTime: the name of a program may hold what else separates the fields.
func TestProcessorTime(t *testing.T) {
	for name, tc := range map[string]struct {
		stat string
		want time.Duration
		ok   bool
	}{
		"usual":               {"12 (flexid) S 1 12 1 0 -1 4194560 900 0 3 0 250 50 0 0 20 0 9 0 100", 3 * time.Second, true},
		"a name with blanks":  {"12 (a (b) c) S 1 12 1 0 -1 4194560 900 0 3 0 1 2 7 8 20 0 9", 30 * time.Millisecond, true},
		"cut off":             {"12 (flexid) S 1 12", 0, false},
		"not a number":        {"12 (flexid) S 1 12 1 0 -1 4194560 900 0 3 0 x 50 0 0", 0, false},
		"nothing, it is gone": {"", 0, false},
	} {
		if got, err := processorTime(tc.stat); got != tc.want && tc.ok || (err == nil) != tc.ok {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestMemoryLine(t *testing.T) {
	const status = "Name:\tflexid\nVmPeak:\t 1 kB\nVmHWM:\t   61000 kB\nVmRSS:\t   50172 kB\nRssAnon:\t 7 kB\n"
	if got, err := memoryLine(status, "VmRSS"); got != 50172 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := memoryLine(status, "VmHWM"); got != 61000 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := memoryLine(status, "Anon"); err == nil {
		t.Error("the end of a name is no name")
	}
}

// TestCountSyncs: a call that another thread's interrupts stands in two lines.
func TestCountSyncs(t *testing.T) {
	const trace = `101 fsync(9)                             = 0
102 fsync(11 <unfinished ...>
101 fdatasync(9)                         = 0
102 <... fsync resumed>)                 = 0
103 fsync(12)                            = -1 EIO (Input/output error)
103 +++ exited with 0 +++
102 fsy`
	if n := countSyncs([]byte(trace)); n != 4 {
		t.Errorf("%d syncs", n)
	}
}
