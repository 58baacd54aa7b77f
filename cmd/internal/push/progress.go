package push

import (
	"fmt"
	"strings"
	"time"
)

// Meter says in one line how far a run is. It is for one goroutine.
type Meter struct {
	Spool *Spool
	Now   func() time.Time

	marks []mark // of the last minute
}

type mark struct {
	at   time.Time
	done int
}

// window is what the rate is an average of: over a shorter one the time left jumps about with every packed write.
const window = time.Minute

// Line is the line now; trouble stands at its end.
func (m *Meter) Line(trouble string) string {
	counts, open := m.Spool.Counts()
	total := m.Spool.Len()
	done := total - open
	now := m.Now()
	m.marks = append(m.marks, mark{now, done})
	for len(m.marks) > 2 && now.Sub(m.marks[1].at) >= window {
		m.marks = m.marks[1:]
	}
	parts := []string{fmt.Sprintf("%d of %d published, %d done", total-counts[Unsent], total, done)}
	for o := Rejected; o < numOutcomes; o++ {
		if n := counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if rate := m.rate(); rate > 0 && open > 0 {
		parts = append(parts, fmt.Sprintf("%s/s", number(rate)), "about "+left(float64(open)/rate)+" left")
	}
	if trouble != "" {
		parts = append(parts, trouble)
	}
	return strings.Join(parts, ", ")
}

// rate is events that ended, a second.
func (m *Meter) rate() float64 {
	first, last := m.marks[0], m.marks[len(m.marks)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.done-first.done) / took
}

func number(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

func left(seconds float64) string {
	switch {
	case seconds < 90:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 90*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}
