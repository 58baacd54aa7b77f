package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// atOnce bounds the calls of one group that wait to be stored: as many as go to the disk together.
const atOnce = mostPuts

// Claim stores rows whose attempts are about to be sent, each by compare-and-set on its Revision; revision 0 makes the
// row. It returns one error for each row, in order. nil means: durable, ours, and Token, Updated and Revision of the row
// are those of the store. After any other answer nothing may be sent for that row:
//
//	*ConflictError   somebody else wrote, for instance an event was appended: read the row again
//	*UndecidedError  ctx ended while the store did not answer. Row.Token is then the token that was tried: a row that
//	                 shows it later was stored by this call
//	*FullError, *TooLargeError, *MissingError, ErrNewer: not stored
//
// A claim is smaller than a row may be, so that its outcome always finds room.
func (l *Ledger) Claim(ctx context.Context, rows []*Row) []error {
	_, claim, _ := limits(l.payload())
	return l.write(ctx, rows, claim)
}

// Settle stores outcomes, with the guarantees and errors of Claim.
func (l *Ledger) Settle(ctx context.Context, rows []*Row) []error {
	most, _, _ := limits(l.payload())
	return l.write(ctx, rows, most)
}

func (l *Ledger) write(ctx context.Context, rows []*Row, most int) []error {
	errs := make([]error, len(rows))
	if len(rows) == 1 {
		errs[0] = l.writeRow(ctx, rows[0], most)
		return errs
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, row := range rows {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = l.writeRow(ctx, row, most)
		})
	}
	wg.Wait()
	return errs
}

// writeRow stores a row of at most most bytes. It works on a copy: a row that was not stored must not look as if it had been.
func (l *Ledger) writeRow(ctx context.Context, row *Row, most int) error {
	next := *row
	if next.ID == "" {
		return errors.New("a row without id cannot be stored")
	}
	if next.Format == 0 {
		next.Format = Format
	}
	next.Token, next.Updated = l.token(), l.now()
	_, claim, _ := limits(l.payload())
	data, err := next.fit(claim, most)
	if err != nil {
		return err
	}
	next.Revision, err = l.cas(ctx, rowKey(row.ID), data, row.Revision)
	if err == nil {
		*row = next
		return nil
	}
	var undecided *UndecidedError
	if errors.As(err, &undecided) {
		row.Token = next.Token
	}
	return fmt.Errorf("storing row %s/%s: %w", row.Evidence, row.Key, err)
}
