package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// moment is what a process has used up to it.
type moment struct {
	at        time.Time
	processor time.Duration
	syncs     int
}

// figures are what a number of documents took.
type figures struct {
	documents       int
	took, processor time.Duration
	syncs           int
	fake            time.Duration // processor time of the fake Flexi, which shares the machine
}

func (m moment) to(end moment, documents int) figures {
	return figures{documents: documents, took: end.at.Sub(m.at), processor: end.processor - m.processor, syncs: end.syncs - m.syncs}
}

func (f figures) rate() float64 { return float64(f.documents) / f.took.Seconds() }

// processorEach is in milliseconds.
func (f figures) processorEach() float64 {
	return f.processor.Seconds() * 1000 / float64(f.documents)
}

func (f figures) syncsEach() float64 { return float64(f.syncs) / float64(f.documents) }

func (f figures) String() string {
	text := fmt.Sprintf("%d in %v, %s/s, processor %s ms each", f.documents, f.took.Round(time.Millisecond), short(f.rate()), short(f.processorEach()))
	if f.fake > 0 {
		text += fmt.Sprintf(", the fake %s ms", short(f.fake.Seconds()*1000/float64(f.documents)))
	}
	if f.syncs > 0 {
		text += fmt.Sprintf(", syncs %s each", short(f.syncsEach()))
	}
	return text
}

// table holds every figure of every round.
type table struct {
	rows    []string // in the order in which they came
	ratios  map[string]bool
	samples map[[2]string][]float64 // by row and program
}

// add notes a figure; ratio says that flexid's is to be compared with the others'.
func (t *table) add(row, program string, value float64, ratio bool) {
	if t.samples == nil {
		t.samples, t.ratios = map[[2]string][]float64{}, map[string]bool{}
	}
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	t.ratios[row] = ratio
	at := [2]string{row, program}
	t.samples[at] = append(t.samples[at], value)
}

// write writes medians, with least and most where there are several.
func (t *table) write(w io.Writer) {
	fmt.Fprint(w, "\n| | flexid | peer | limit | of the peer | of the limit |\n|---|---|---|---|---|---|\n")
	for _, row := range t.rows {
		cells := []string{row}
		for _, program := range []string{"flexid", "peer", "limit"} {
			cells = append(cells, spread(t.samples[[2]string{row, program}]))
		}
		own := t.samples[[2]string{row, "flexid"}]
		for _, program := range []string{"peer", "limit"} {
			cell, other := "", t.samples[[2]string{row, program}]
			if t.ratios[row] && len(own) > 0 && len(other) > 0 {
				cell = fmt.Sprintf("%.2f", median(own)/median(other))
			}
			cells = append(cells, cell)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}

func spread(values []float64) string {
	switch len(values) {
	case 0:
		return "–"
	case 1:
		return short(values[0])
	}
	return fmt.Sprintf("%s (%s–%s)", short(median(values)), short(slices.Min(values)), short(slices.Max(values)))
}

// median of an even number is the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// short has the digits that a figure is good for.
func short(v float64) string {
	switch {
	case v >= 9999.5:
		return fmt.Sprintf("%.0f,%03.0f", float64(int(v+0.5)/1000), float64(int(v+0.5)%1000))
	case v >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
