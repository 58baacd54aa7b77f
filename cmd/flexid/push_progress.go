package main

import (
	"io"
	"os"
	"sync"
	"time"

	"flexid/cmd/internal/push"

	"golang.org/x/term"
)

// progress writes how far a push is: over one line of a terminal, else a plain line from time to time.
type progress struct {
	w     io.Writer
	meter push.Meter

	mu     sync.Mutex
	reason string

	quit chan struct{}
	done sync.WaitGroup
}

const (
	progressOnTerminal = 500 * time.Millisecond
	progressElsewhere  = 10 * time.Second
)

func (p *program) startProgress(spool *push.Spool, quiet bool) *progress {
	pr := &progress{w: p.err, meter: push.Meter{Spool: spool, Now: time.Now}, quit: make(chan struct{})}
	switch {
	case quiet:
	case isTerminal(p.err) && p.lookup("TERM") != "dumb":
		pr.done.Go(func() { pr.every(progressOnTerminal, pr.overwrite, pr.erase) })
	default:
		pr.done.Go(func() { pr.every(progressElsewhere, pr.line, func() {}) })
	}
	return pr
}

func (pr *progress) every(pause time.Duration, show, end func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	pr.meter.Line("") // the rate counts from here
	for {
		select {
		case <-tick.C:
			show()
		case <-pr.quit:
			end()
			return
		}
	}
}

// trouble says why nothing goes on; "" = it does.
func (pr *progress) trouble(text string) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.reason = text
}

func (pr *progress) text() string {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	return clean(pr.meter.Line(pr.reason))
}

func (pr *progress) line() { _, _ = io.WriteString(pr.w, pr.text()+"\n") }

// overwrite keeps to one line of the terminal: a longer text would scroll at every step.
func (pr *progress) overwrite() {
	text := []rune(pr.text())
	if f, ok := pr.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 && len(text) >= width {
			text = text[:width-1]
		}
	}
	_, _ = io.WriteString(pr.w, "\r\x1b[K"+string(text))
}

func (pr *progress) erase() { _, _ = io.WriteString(pr.w, "\r\x1b[K") }

// stop ends the writing.
func (pr *progress) stop() {
	close(pr.quit)
	pr.done.Wait()
}
