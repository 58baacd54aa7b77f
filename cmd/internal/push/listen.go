package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"flexid/batch/stream"
	"flexid/verify"
)

// idPrefix begins the ids of a run's events.
func idPrefix(run string) string { return "push." + run + "." }

// eventID is the run and the place, from 1 as people count.
func eventID(run string, i int) string { return idPrefix(run) + strconv.Itoa(i+1) }

// place is the index of an event of this run, -1 for others.
func place(run, id string) int {
	text, ours := strings.CutPrefix(id, idPrefix(run))
	n, err := strconv.Atoi(text)
	if !ours || err != nil || n < 1 {
		return -1
	}
	return n - 1
}

// callTimeout bounds one request to NATS or to the daemon.
const callTimeout = 10 * time.Second

// listen tells every result on flexi.done that comes from now on, until stop is called. The position is asked for, not
// left to the server: a consumer that is made anew after a broken connection must not begin at its own time.
func (r *runner) listen(ctx context.Context) (stop func(), err error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := r.o.Stream.Names().Out
	out, err := r.o.JS.Stream(call, name)
	if err != nil {
		return nil, fmt.Errorf("looking at stream %s: %w", name, err)
	}
	r.begun = out.CachedInfo().State.LastSeq
	consumer, err := out.OrderedConsumer(call, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{r.doneSubjects()},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:    r.begun + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("listening to %s: %w", r.doneSubjects(), err)
	}
	// What goes wrong here is healed by the consumer; what is missed meanwhile, the daemon is asked about.
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		r.heard(m.Data())
		if meta, err := m.Metadata(); err == nil {
			r.heardTo.Store(meta.Sequence.Stream)
		}
	},
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { r.o.Log.Debug().Err(err).Msg("listening to results") }))
	if err != nil {
		return nil, fmt.Errorf("listening to %s: %w", r.doneSubjects(), err)
	}
	return func() {
		consuming.Stop()
		<-consuming.Closed()
	}, nil
}

// catchUp waits until everything that the stream holds now was heard: the daemon counts a result as told when the stream has
// it, and the last ones may be on their way to us. Without an answer the report goes without them.
func (r *runner) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	last, err := r.lastNotice(ctx)
	if err != nil {
		r.o.Log.Debug().Err(err).Msg("whether more results are on their way is not known")
		return
	}
	for r.heardTo.Load() < last && last > r.begun && ctx.Err() == nil {
		sleep(ctx, 10*time.Millisecond)
	}
}

// lastNotice is the sequence of the last message on flexi.done, 0 = there is none.
func (r *runner) lastNotice(ctx context.Context) (uint64, error) {
	out, err := r.o.JS.Stream(ctx, r.o.Stream.Names().Out)
	if err != nil {
		return 0, err
	}
	m, err := out.GetLastMsgForSubject(ctx, r.doneSubjects())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return m.Sequence, nil
}

func (r *runner) doneSubjects() string {
	prefix := r.o.Stream.Prefix
	if prefix == "" {
		prefix = stream.DefaultPrefix
	}
	return prefix + ".done.>"
}

// heard notes one message of flexi.done; those of other senders pass.
func (r *runner) heard(data []byte) {
	var told verify.Notice
	if json.Unmarshal(data, &told) != nil {
		return
	}
	if i := place(r.o.Run, told.EventID); i >= 0 {
		r.note(i, Result{State: told.State, Reason: told.Reason, Cause: told.Cause, Number: told.Number, Sends: told.Sends,
			FlexiID: told.FlexiID, Updated: told.Updated, Errors: told.Errors})
	}
}
