package embedded

import (
	"fmt"
	"strings"
	"sync"

	"github.com/rs/zerolog"
)

// logger passes the server's warnings and errors on. Its fatal ones do not end the process: Start returns the first.
type logger struct {
	log zerolog.Logger

	mu     sync.Mutex
	fatal  string
	broken string // the first write that the disk did not take
}

// afterFullDisk is true of the server as it is: a stream that once failed to write stays shut until a start.
const afterFullDisk = "make room on the disk that holds FLEXID_STATE_DIR, then restart flexid: the NATS server in it does not " +
	"write to that stream again before; what it had acknowledged is kept"

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, v ...any) {
	l.log.Warn().Str("part", "nats").Msg(line(format, v))
}

func (l *logger) Errorf(format string, v ...any) {
	text := line(format, v)
	event := l.log.Error().Str("part", "nats")
	if l.breaks(text) {
		event.Str("remedy", afterFullDisk)
	}
	event.Msg(text)
}

// breaks notes the first failed write and says whether this is it.
func (l *logger) breaks(text string) bool {
	lower := strings.ToLower(text)
	if !strings.Contains(lower, "critical write error") && !strings.Contains(lower, "no space left on device") {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.broken == ""
	if first {
		l.broken = text
	}
	return first
}

func (l *logger) brokenBy() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

func (l *logger) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == "" {
		l.fatal = line(format, v)
	}
	l.log.Error().Str("part", "nats").Msg(line(format, v))
}

func (l *logger) firstFatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func line(format string, v []any) string { return strings.TrimSpace(fmt.Sprintf(format, v...)) }
