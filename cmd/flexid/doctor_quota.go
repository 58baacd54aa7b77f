package main

import (
	"context"
	"fmt"
	"time"

	"flexid/cmd/internal/api"
)

// quota tells how the daily budget of requests stands. The count is the daemon's; what doctor itself asks is not in it.
func (d *doctor) quota(ctx context.Context) {
	f := d.cfg.Flexi
	if f.DailyRequests == 0 {
		d.say("quota", resultOK, "no daily budget of requests is set", "if the licence has one, set FLEXID_FLEXI_DAILY_REQUESTS")
		return
	}
	budget := fmt.Sprintf("%d requests a day, which begins at %s (%s)", f.DailyRequests, f.DailyReset, d.cfg.Location)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	st, err := d.status(ctx)
	switch {
	case err != nil || st.Quota == nil || !st.Quota.Known:
		d.say("quota", resultOK, budget+"; what is left of them is known once `flexid serve` runs", "")
	case st.Quota.Trouble != "":
		d.say("quota", resultWarn, budget+"; it cannot be drawn on: "+st.Quota.Trouble, "see the check of nats: no request is sent uncounted")
	case st.Quota.Waiting:
		d.say("quota", resultWarn, fmt.Sprintf("%s; used up (%d of %d): writes wait until %s", budget, st.Quota.Used, st.Quota.Limit,
			st.Quota.Resets.Format(time.RFC3339)), "nothing to do, or order more requests and raise FLEXID_FLEXI_DAILY_REQUESTS")
	default:
		d.say("quota", resultOK, fmt.Sprintf("%s; %d are used", budget, st.Quota.Used), "")
	}
}

// status asks a running daemon; an error means that none can be asked.
func (d *doctor) status(ctx context.Context) (st api.Status, err error) {
	token := d.cfg.API.Token.Reveal()
	if token == "" {
		if token, err = adminToken(d.cfg.StateDir); err != nil {
			return st, err
		}
	}
	err = newClient(d.cfg.API.URL, token).get(ctx, "/api/v1/status", &st)
	return st, err
}
