package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// answer is a 2xx.
type answer struct {
	status   int
	document *Document // nil: the body is empty
	again    bool
}

// body of an answer about a document.
type shownDocument struct {
	Document string          `json:"document"` // as `flexid docs show` takes it
	EventID  string          `json:"event_id"`
	Again    bool            `json:"again,omitempty"`   // the delivery was in the inbox before
	Outcome  json.RawMessage `json:"outcome,omitempty"` // with ?wait: what became of it
}

// keep stores a delivery and says which document it is about. Nothing is stored that will not be understood later.
func (c *call) keep(d Delivery) (answer, error) {
	d.Source = c.source.name
	if d.ID == "" {
		d.ours = c.o.NewID()
	}
	document, err := c.o.Reader.Read(&d)
	if err != nil {
		return answer{}, refuse(http.StatusUnprocessableEntity, reasonContent, err.Error())
	}
	fresh, same, err := c.store(&d)
	switch {
	case err != nil:
		return answer{}, err
	case !fresh && same:
		c.metrics.duplicates.WithLabelValues(d.Source).Inc()
	case !fresh:
		return answer{}, c.clash(d)
	}
	return answer{status: c.source.rules.Accepted, document: &document, again: !fresh}, nil
}

// store asks the sink. Every failure is a 503, also one that may have stored the delivery: the sender repeats it, and the
// repetition is recognised. Only what the sink never takes for its size is a 413: it would be repeated for ever.
func (c *call) store(d *Delivery) (fresh, same bool, err error) {
	// The sender's going away does not end it: half of the deliveries would then be unknown for no gain.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), storeTimeout)
	defer cancel()
	begun := c.o.Now()
	fresh, same, err = c.o.Sink.Store(ctx, d.Source, d.place(), d.Header(), d.Body)
	c.metrics.stored.Observe(c.o.Now().Sub(begun).Seconds())
	if err == nil {
		return fresh, same, nil
	}
	var never interface{ TooLarge() bool }
	if errors.As(err, &never) && never.TooLarge() {
		c.metrics.failures.WithLabelValues("too_large").Inc()
		refusal := tooLarge()
		refusal.Detail, refusal.Err = "the delivery is larger than the store takes", err
		return false, false, refusal
	}
	reason := "error"
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "timeout"
	}
	c.metrics.failures.WithLabelValues(reason).Inc()
	return false, false, &Refusal{Status: http.StatusServiceUnavailable, Reason: reasonStore, Retry: retryAfter,
		Detail: "the delivery could not be stored: send it again", Err: err}
}

// clash refuses an id that came before with other content. Where the sender will not send it under another id, it is kept
// first, marked so that it has no effect, for a person to see.
func (c *call) clash(d Delivery) error {
	c.metrics.clashes.WithLabelValues(d.Source).Inc()
	const detail = "this id was used before for another delivery: send a change under an id of its own"
	if c.source.rules.Quarantine {
		sum := sha256.Sum256(d.Body)
		digest := hex.EncodeToString(sum[:])
		d.Problem = "the id " + shown(d.ID) + " came before with another body: one of the two deliveries is not what its sender meant"
		d.ID, d.ours = "", "clash "+d.ID+" "+digest
		if _, _, err := c.store(&d); err != nil {
			return err
		}
	}
	return refuse(c.source.rules.Clash, reasonClash, detail)
}

// send writes the answer, after the outcome if that was asked for.
func (a answer) send(c *call) {
	if a.document == nil {
		c.w.WriteHeader(a.status)
		return
	}
	out := shownDocument{Document: a.document.Address, EventID: a.document.EventID, Again: a.again}
	if outcome, over := c.outcome(*a.document); over {
		a.status, out.Outcome = http.StatusOK, outcome
	}
	c.w.Header().Set("Location", a.document.Path)
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(a.status)
	// The delivery is stored; a sender that went away finds that out by sending it again.
	_ = json.NewEncoder(c.w).Encode(out)
}

// outcome waits for what was asked for. The place of the delivery is free by now: who waits must not keep others out.
func (c *call) outcome(d Document) (json.RawMessage, bool) {
	if c.wait == 0 || c.o.Waiter == nil || !take(c.waits) {
		return nil, false
	}
	defer func() { <-c.waits }()
	_ = c.control.SetWriteDeadline(time.Now().Add(c.wait + writeTimeout))
	ctx, cancel := context.WithTimeout(c.r.Context(), c.wait) // it also ends with the server
	defer cancel()
	return c.o.Waiter.Wait(ctx, d)
}
