package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"flexid/batch/stream"
	"flexid/cmd/internal/quota"
	"flexid/verify/ledger"
)

// newQuota is the daily budget of requests, nil where none is set.
func (d *daemon) newQuota(state *ledger.StateBucket) *quota.Quota {
	if d.cfg.Flexi.DailyRequests == 0 {
		return nil
	}
	notifier := stream.NewPublisher(d.js, d.streams)
	return quota.New(quota.Options{
		Limit: d.cfg.Flexi.DailyRequests, Reset: time.Duration(d.cfg.Flexi.DailyReset), Zone: d.cfg.Location,
		Store: state, Owner: newRun(), Now: d.now, Log: d.log,
		Tell: func(ctx context.Context, text string) error {
			body, err := json.Marshal(map[string]string{"time": d.now().UTC().Format(time.RFC3339), "kind": "quota", "text": text})
			if err != nil {
				return fmt.Errorf("writing a notice: %w", err)
			}
			return notifier.Notify(ctx, "alert", "quota", "", body)
		},
	})
}

// quotaStatus is how the budget stands, nil without one or while no core runs.
func (s *standing) quotaStatus() *quota.Status {
	var q *quota.Quota
	s.set(func() { q = s.quota })
	if q == nil {
		return nil
	}
	st := q.Status()
	return &st
}
