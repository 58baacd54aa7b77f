package daemon

import (
	"context"
	"fmt"
	"strconv"

	"flexid/cmd/internal/api"
)

// tripped is the guard of the client: an attempt was about to be sent twice. It was not, and nothing is until a person
// has looked.
func (c *core) tripped(attempt string) {
	c.engine.StopFor("guard", "attempt "+attempt+" was about to be sent a second time; it was not",
		"this is a fault of flexid: report it with the log, look at the document, then `flexid writes resume`")
}

// StopWrites, ResumeWrites and AcceptCompany make core the API's operator.
func (c *core) StopWrites(ctx context.Context, evidence, by, why string) error {
	return c.engine.StopWrites(ctx, evidence, by, why)
}

// ResumeWrites ends what a person may end; for a company that is not the one of the ledger the next check stops again.
func (c *core) ResumeWrites(ctx context.Context, evidence, by, why string) error {
	c.who.askAnew()
	return c.engine.ResumeWrites(ctx, evidence, by, why)
}

// AcceptCompany asks who the company is before anything changes. The engine then forgets or doubts what it knows, has the
// company noted (see replace), and lets writes go on, in this order: a crash in between leaves them stopped, or nothing
// known that is not so.
func (c *core) AcceptCompany(ctx context.Context, how, by, why string) error {
	if _, err := c.who.shown(ctx); err != nil {
		return err
	}
	if err := c.engine.AcceptCompany(ctx, how, by, why); err != nil {
		return fmt.Errorf("accepting the company: %w", err)
	}
	return nil
}

// observer adds to the line that writes have stopped how many documents wait for it. Of the engine's calls it counts writes
// only: reads and look-ups are counted where they are asked (see erp).
type observer struct {
	*api.Metrics
	standing *standing
}

// Call counts a write.
func (o observer) Call(kind string) {
	if kind == "write" {
		o.Metrics.Call(kind)
	}
}

// Log writes a line for the operator.
func (o observer) Log(event string, fields ...[2]string) {
	if event == "writes stopped" {
		fields = append(fields, [2]string{"documents_waiting", strconv.Itoa(o.standing.Status().Waiting)})
	}
	o.Metrics.Log(event, fields...)
}
