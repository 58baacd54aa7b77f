package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Store keeps the count for all replicas; met by *ledger.StateBucket.
type Store interface {
	// Get reads a value and its revision; revision 0 = there is none.
	Get(ctx context.Context, key string) ([]byte, uint64, error)
	// Update stores a value if the key still has the revision, and returns the new one.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
}

// count is what all replicas have drawn in a day.
type count struct {
	Used int `json:"used"`
	Said int `json:"said,omitempty"` // the highest notice that was given, in per cent
	// Giver is who is giving the next notice, and which of its attempts this is. It is another for every attempt.
	Giver string `json:"teller,omitempty"`
	By    string `json:"by"` // who wrote this, and which of its writes it was: makes every value another
}

const (
	mostTries = 20 // of a compare-and-set against other replicas
	keepDays  = 8  // after which the count of a day is deleted
)

func key(d string) string { return "quota." + d }

// change applies f to the count of a day until it is stored; f returns false to leave it as it is. A change whose storing
// did not come to a clear end is read back by its name, so that it is not made twice.
func (q *Quota) change(ctx context.Context, d day, f func(*count) bool) (count, error) {
	mine := ""
	var last error
	for range mostTries {
		have, revision, err := q.read(ctx, d)
		if err != nil {
			return count{}, errors.Join(err, last)
		}
		if mine != "" && have.By == mine {
			return have, nil
		}
		next := have
		if !f(&next) {
			return have, nil
		}
		mine = q.o.Owner + "/" + strconv.FormatInt(q.written.Add(1), 10)
		next.By = mine
		value, err := json.Marshal(next)
		if err != nil {
			return count{}, fmt.Errorf("writing the count of requests: %w", err)
		}
		if _, last = q.o.Store.Update(ctx, key(d.name), value, revision); last == nil {
			if revision == 0 {
				q.forget(ctx, d)
			}
			return next, nil
		}
		if ctx.Err() != nil {
			return count{}, last
		}
	}
	return count{}, fmt.Errorf("changing the count of requests, %d times in vain: %w", mostTries, last)
}

func (q *Quota) read(ctx context.Context, d day) (count, uint64, error) {
	value, revision, err := q.o.Store.Get(ctx, key(d.name))
	if err != nil || len(value) == 0 {
		return count{}, revision, err
	}
	var c count
	if err := json.Unmarshal(value, &c); err != nil {
		return count{}, 0, fmt.Errorf("the count of requests of %s cannot be read: %w", d.name, err)
	}
	return c, revision, nil
}

// forget deletes counts of days that are long over; one that stays does no harm.
func (q *Quota) forget(ctx context.Context, d day) {
	for n := keepDays; n < 2*keepDays; n++ {
		if err := q.o.Store.Delete(ctx, key(d.before(n))); err != nil {
			return
		}
	}
}
