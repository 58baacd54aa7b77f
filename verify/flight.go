package verify

import (
	"context"
	"fmt"
	"time"
)

// flight is a read that several documents wait for. It is made once, and counted by admission once: fifty documents of an evidence
// whose fields cannot be read are one failure, not fifty.
type flight struct {
	done  chan struct{}
	begun time.Time
	err   error
	slow  bool // it was reported that it takes long
}

// Those who come later wait this long for a read that is under way, then go on with something else: they hold a worker that
// documents of other evidences need. One that takes longer than flightSlow is reported as a failure.
const (
	flightWait = time.Second
	flightSlow = 5 * time.Second
)

// busyError says that the answer to somebody else's question has to be waited for.
type busyError struct{ what string }

func (e *busyError) Error() string { return "the " + e.what + " are being read" }

// once makes a read unless it is under way, and reports to admission how it ended. evidence is what it is blamed on.
func (mc *metadataCache) once(ctx context.Context, what, evidence string, read func() error) error {
	mc.mu.Lock()
	f := mc.flights[what]
	if f == nil {
		f = &flight{done: make(chan struct{}), begun: mc.now()}
		mc.flights[what] = f
		mc.mu.Unlock()
		f.err = read()
		mc.mu.Lock()
		delete(mc.flights, what)
		mc.mu.Unlock()
		close(f.done)
		mc.readEnded(evidence, aboutFields, f.err)
		return f.err
	}
	took := mc.now().Sub(f.begun)
	slow := took >= flightSlow && !f.slow
	f.slow = f.slow || slow
	mc.mu.Unlock()
	if slow {
		mc.readEnded(evidence, aboutFields, fmt.Errorf("reading the %s: no answer for %s", what, took.Round(time.Second)))
	}
	t := time.NewTimer(max(flightWait-took, 0))
	defer t.Stop()
	select {
	case <-f.done:
		return f.err
	case <-t.C:
		return &busyError{what}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isAiling is the error of records of an evidence that could not be read a moment ago. Whoever asks next would only wait for the
// same.
func (mc *metadataCache) isAiling(evidence string) error {
	mc.mu.Lock()
	defer mc.mu.Unlock()
	if at, ok := mc.ailing[evidence]; ok && mc.now().Sub(at) < keepAiling {
		return fmt.Errorf("the records of %s could not be read a moment ago", evidence)
	}
	return nil
}

// unlistedError is an evidence that Flexi is known to have and does not show our user now.
type unlistedError struct{ evidence string }

func (e *unlistedError) Error() string {
	return "Flexi's list of evidences lacks " + e.evidence + " for our user"
}
