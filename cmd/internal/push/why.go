package push

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// askWhy is how long no news come before the daemon is asked why.
const askWhy = 1500 * time.Millisecond

// Sources of reasons, the one that explains most first.
const (
	ofNATS = iota
	ofDaemon
	ofRun
	numReasons
)

// reasons is why nothing goes on, as several see it. Each is kept until the same one says otherwise.
type reasons struct {
	say func(text string)

	mu    sync.Mutex
	texts [numReasons]string
	last  string
}

func (r *reasons) set(source int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[source] = text
	all := r.texts[ofNATS] // without NATS the others only follow from it
	if all == "" {
		parts := make([]string, 0, numReasons)
		for _, t := range r.texts {
			if t != "" {
				parts = append(parts, t)
			}
		}
		all = strings.Join(parts, "; ")
	}
	if all != r.last {
		r.last = all
		r.say(all)
	}
}

// watchNATS says that the connection is gone, and that it is back, until the function that it returns is called. A publish
// that waits for its acknowledgement would say it much later, and a run that waits for results never.
func (r *runner) watchNATS(ctx context.Context) (stop func()) {
	const pause = 500 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		nc := r.o.JS.Conn()
		for ctx.Err() == nil {
			text := ""
			if !nc.IsConnected() {
				text = "NATS is away; waiting until it is back"
			}
			r.reasons.set(ofNATS, text)
			sleep(ctx, pause)
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

// askWhy asks the daemon why nothing happens. Without an answer nothing is known, and nothing is said.
func (r *runner) askWhy(ctx context.Context) {
	if r.o.Daemon == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := r.o.Daemon.Stopped(ctx, r.o.Spool.Evidences(Waiting, Maybe))
	if err != nil {
		r.o.Log.Debug().Err(err).Msg("the daemon cannot be asked why nothing happens")
		return
	}
	r.reasons.set(ofDaemon, text)
}

// Evidences are those of events that stand at one of the outcomes. Only the first of them are looked at: they are few, and
// there may be a million events.
func (s *Spool) Evidences(outcomes ...Outcome) map[string]bool {
	const most = 1000
	all := map[string]bool{}
	looked := 0
	for i := 0; i < s.Len() && looked < most; i++ {
		if o, _, _, err := s.Standing(i); err != nil || !slices.Contains(outcomes, o) {
			continue
		}
		looked++
		if e, err := s.Entry(i); err == nil {
			all[e.Evidence] = true
		}
	}
	return all
}
