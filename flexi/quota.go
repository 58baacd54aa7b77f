package flexi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Quota is the licence's daily limit of requests. It is asked before every connection to the ERP; a request that it did
// not grant never leaves. It is asked by many goroutines at once.
type Quota interface {
	// Take spends one request of a kind: read, write, lookup, probe or login. nil = it may be sent; an error should be a
	// *QuotaError, so that the caller knows for how long. undo gives the request back if no byte of it was sent.
	Take(ctx context.Context, kind string) (undo func(), err error)
}

// KindLogin is the kind of a request that opens, keeps or ends a session: look-ups need it too.
const KindLogin = "login"

// QuotaError is a request that the Quota did not grant. Nothing was sent, and nothing will be before Until.
type QuotaError struct {
	Until time.Time // when to ask again; after the reset of the day, or soon where the count could not be read
	Err   error     // why the count could not be read or changed; nil = the budget of the day is used up
}

func (e *QuotaError) Error() string {
	until := e.Until.UTC().Format(time.RFC3339)
	if e.Err != nil {
		return fmt.Sprintf("the daily request budget cannot be drawn on, next try at %s: %v", until, e.Err)
	}
	return "the daily request budget (FLEXID_FLEXI_DAILY_REQUESTS) is used up until " + until
}

func (e *QuotaError) Unwrap() error { return e.Err }

// take asks the quota for one request.
func (c *Client) take(ctx context.Context, kind string) (undo func(), err error) {
	if c.o.Quota == nil {
		return func() {}, nil
	}
	return c.o.Quota.Take(ctx, c.kind(kind))
}

// isQuota tells a refusal of our own budget from trouble at the ERP: asking again at once would only ask ourselves.
func isQuota(err error) bool {
	var q *QuotaError
	return errors.As(err, &q)
}
