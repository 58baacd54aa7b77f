package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"flexid/cmd/internal/push"

	"golang.org/x/term"
)

// progress writes how far something is: over one line of a terminal, else a plain line from time to time.
type progress struct {
	w        io.Writer
	terminal bool
	text     func(trouble string) string // called by one goroutine

	mu     sync.Mutex // over w and reason
	reason string
	quiet  bool

	quit chan struct{}
	done sync.WaitGroup
}

const (
	progressOnTerminal = 500 * time.Millisecond
	progressElsewhere  = 10 * time.Second
)

func (p *program) startProgress(quiet bool, text func(trouble string) string) *progress {
	pr := &progress{w: p.err, text: text, quiet: quiet, quit: make(chan struct{})}
	pr.terminal = !quiet && isTerminal(p.err) && p.lookup("TERM") != "dumb"
	switch {
	case quiet:
	case pr.terminal:
		pr.done.Go(func() { pr.every(progressOnTerminal) })
	default:
		pr.done.Go(func() { pr.every(progressElsewhere) })
	}
	return pr
}

func (pr *progress) every(pause time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	pr.text("") // a rate counts from here
	for {
		select {
		case <-tick.C:
			pr.mu.Lock()
			pr.show(clean(pr.text(pr.reason)))
			pr.mu.Unlock()
		case <-pr.quit:
			return
		}
	}
}

// checked counts what the first pass has been through.
func checked(spool *push.Spool) func(string) string {
	return func(string) string { return fmt.Sprintf("%d documents checked", spool.Len()) }
}

// trouble says why nothing goes on; "" = it does.
func (pr *progress) trouble(text string) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if text != "" && text != pr.reason && !pr.quiet && !pr.terminal {
		pr.show(clean(text)) // the next line of progress is far
	}
	pr.reason = text
}

// show keeps to one line of a terminal: a longer text would scroll at every step.
func (pr *progress) show(line string) {
	if !pr.terminal {
		_, _ = io.WriteString(pr.w, line+"\n")
		return
	}
	text := []rune(line)
	if f, ok := pr.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 1 && len(text) >= width {
			text = text[:width-1]
		}
	}
	_, _ = io.WriteString(pr.w, erased+string(text))
}

const erased = "\r\x1b[K"

// say writes a line that stays.
func (pr *progress) say(line string) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.terminal {
		line = erased + line
	}
	_, _ = io.WriteString(pr.w, line+"\n")
}

// stop ends the writing.
func (pr *progress) stop() {
	close(pr.quit)
	pr.done.Wait()
	if pr.terminal {
		_, _ = io.WriteString(pr.w, erased)
	}
}
