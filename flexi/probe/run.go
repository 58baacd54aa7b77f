package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"flexid/flexi"
)

// Client is what a probe measures. Met by *flexi.Client, made with Tally.Observe as its observer.
type Client interface {
	List(ctx context.Context, q flexi.Query) (flexi.Page, error)
	Dial(ctx context.Context) (*flexi.Conn, error)
}

// Plan is what a probe does.
type Plan struct {
	Evidence string // asked or written to
	Calls    int    // one after the other; 0 = 1
	Write    bool   // a create instead of a read
	// System and Name make the identity of written records: ext:<System>.probe:<Name>-<n>, and kod <Name>-<n>.
	System, Name string
	Now          func() time.Time
}

// readOK is the outcome of a read that was answered; it is also what flexi calls it in a Request.
const readOK = "ok"

// MaxCalls bounds a plan.
const MaxCalls = 1000

// Run makes the calls and reports what they cost. tally must be what the client tells its requests. When ctx ends, no
// further call is begun, and the report is about those that were. The error is of the plan, never of a call.
func Run(ctx context.Context, c Client, tally *Tally, p Plan) (Report, error) {
	if p.Calls == 0 {
		p.Calls = 1
	}
	if p.Calls < 0 || p.Calls > MaxCalls {
		return Report{}, fmt.Errorf("probe: %d calls; 1 to %d are possible", p.Calls, MaxCalls)
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	r := Report{Outcomes: make(map[string]int)}
	begun := p.Now()
	for n := 1; n <= p.Calls && ctx.Err() == nil; n++ {
		got, err := p.call(ctx, c, n)
		if err != nil {
			return r, err
		}
		r.LogicalCalls++
		r.Outcomes[got.outcome]++
		r.Outcome, r.Error, r.WaitMillis = got.outcome, "", got.wait.Milliseconds()
		if got.err != nil {
			r.Error = got.err.Error()
		}
	}
	if r.LogicalCalls == 0 {
		return r, fmt.Errorf("probe: no call was made: %w", context.Cause(ctx))
	}
	r.measure(tally, p.Now().Sub(begun))
	return r, nil
}

// end is how one call ended.
type end struct {
	outcome string
	wait    time.Duration
	err     error
}

func (p Plan) call(ctx context.Context, c Client, n int) (end, error) {
	if !p.Write {
		return p.read(ctx, c), nil
	}
	prepared, err := p.prepare(n)
	if err != nil {
		return end{}, fmt.Errorf("probe: the document: %w", err)
	}
	return p.write(ctx, c, prepared, n), nil
}

func (p Plan) read(ctx context.Context, c Client) end {
	_, err := c.List(ctx, flexi.Query{Evidence: p.Evidence, Fields: []string{"id"}, Limit: 1})
	if err == nil {
		return end{outcome: readOK}
	}
	return end{outcome: flexi.OutcomeOf(err).String(), err: err}
}

func (p Plan) prepare(n int) (flexi.Prepared, error) {
	name := fmt.Sprintf("%s-%d", p.Name, n)
	body, err := json.Marshal(map[string]string{"kod": name, "nazev": "flexid probe " + name})
	if err != nil {
		return flexi.Prepared{}, err
	}
	return flexi.Prepare(flexi.Write{Evidence: p.Evidence, Op: flexi.Create, Docs: []flexi.Doc{{
		Ext: flexi.NewExternalID(p.System, "probe", name), Number: name, Body: body,
	}}})
}

// write sends once. The claim that a permit stands for is the person's command: it names a company for tests, where
// nobody keeps a ledger, and an unknown outcome is the end of the probe, not the start of a second send.
func (p Plan) write(ctx context.Context, c Client, prepared flexi.Prepared, n int) end {
	conn, err := c.Dial(ctx)
	if err != nil {
		out := end{outcome: flexi.OutcomeOf(err).String(), err: err}
		var shut *flexi.ThrottledError
		if errors.As(err, &shut) {
			out.wait = max(shut.Until.Sub(p.Now()), 0)
		}
		return out
	}
	res := conn.Send(ctx, prepared, flexi.Permit{Attempt: fmt.Sprintf("probe/%s-%d", p.Name, n), Claimed: p.Now()})
	out := end{outcome: res.Outcome.String(), wait: res.Wait, err: res.Err}
	if err := conn.Close(); err != nil {
		out.err = errors.Join(out.err, fmt.Errorf("closing the connection: %w", err))
	}
	return out
}
