package quota

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// notice is the notice that a count deserves, in per cent; 0 = none.
func (q *Quota) notice(used int) int {
	switch {
	case used >= q.line(false):
		return 100
	case used*100 >= q.o.Limit*noticeAt:
		return noticeAt
	}
	return 0
}

// Run reads what the other replicas used and gives notice, until ctx ends. Without it nothing is said; Take needs it not.
func (q *Quota) Run(ctx context.Context) {
	tick := time.NewTicker(refreshTime)
	defer tick.Stop()
	for {
		if err := q.refresh(ctx); err != nil && ctx.Err() == nil {
			q.o.Log.Warn().Err(err).Msg("the daily request budget cannot be read or said")
		}
		select {
		case <-tick.C:
		case <-q.news:
		case <-ctx.Done():
			return
		}
	}
}

func (q *Quota) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q.mu.Lock()
	q.roll(q.o.Now())
	today := q.today
	q.mu.Unlock()
	c, _, err := q.read(ctx, today)
	if err != nil {
		return err
	}
	q.mu.Lock()
	if q.today == today {
		q.used, q.known = max(q.used, c.Used), true
	}
	q.mu.Unlock()
	level := q.notice(c.Used)
	if level <= c.Said {
		return nil
	}
	mine, err := q.claim(ctx, today, level)
	if err != nil || !mine {
		return err
	}
	// Told before it is noted: a crash in between says it twice, the other way round it would be said to nobody.
	text := q.words(level, c.Used, today)
	q.o.Log.Warn().Int("used", c.Used).Int("limit", q.o.Limit).Time("resets", today.end.UTC()).Msg(text)
	if err := q.o.Tell(ctx, text); err != nil {
		return fmt.Errorf("telling the notice: %w", err)
	}
	_, err = q.change(ctx, today, func(c *count) bool {
		news := c.Said < level
		c.Said, c.Giver = max(c.Said, level), ""
		return news
	})
	return err
}

// attempt is one replica's attempt to give a notice, and since when this process has seen it.
type attempt struct {
	giver string
	since time.Time
}

// claim is whether this replica gives the notice. Replicas learn of a count at the same moment, and without a claim each of
// them would give it. Another replica's claim is taken over when it has stood still for so long that its attempt is over:
// that replica died, or it could not tell.
func (q *Quota) claim(ctx context.Context, today day, level int) (mine bool, err error) {
	me := q.o.Owner + "/" + strconv.FormatInt(q.written.Add(1), 10)
	c, err := q.change(ctx, today, func(c *count) bool {
		mine = c.Said < level && (c.Giver == me || q.free(c.Giver))
		if !mine || c.Giver == me {
			return false
		}
		c.Giver = me
		return true
	})
	if err != nil {
		return false, fmt.Errorf("claiming the notice: %w", err)
	}
	if !mine && c.Giver != q.giving.giver {
		q.giving = attempt{c.Giver, q.o.Now()}
	}
	return mine, nil
}

// free is whether a notice with this giver may be given by this replica: nobody's, its own earlier attempt's, or that of an
// attempt which it has watched for longer than one may take.
func (q *Quota) free(giver string) bool {
	return giver == "" || strings.HasPrefix(giver, q.o.Owner+"/") ||
		giver == q.giving.giver && q.o.Now().Sub(q.giving.since) > askTimeout
}

func (q *Quota) words(level, used int, today day) string {
	until := today.end.In(q.o.Zone).Format("2006-01-02 15:04 MST")
	if level == 100 {
		return fmt.Sprintf("the daily request budget is used up (%d of %d): writes wait until %s, look-ups go on with the rest",
			used, q.o.Limit, until)
	}
	return fmt.Sprintf("%d of the %d requests of the daily budget are used; it begins anew at %s", used, q.o.Limit, until)
}
