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

	mu    sync.Mutex
	fatal string
}

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, v ...any) {
	l.log.Warn().Str("part", "nats").Msg(line(format, v))
}

func (l *logger) Errorf(format string, v ...any) {
	l.log.Error().Str("part", "nats").Msg(line(format, v))
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
