package main

import (
	"context"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A batch of the server may hold 1,000 messages. Few keys are stored faster one by one, side by side: a batch syncs about five
// times whatever is in it.
const (
	fullBatch = 800
	fewKeys   = 8
)

// journal stores keys by compare-and-set, durably. What comes while two commits are on their way goes together in the next.
type journal struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	calls chan call
	made  int // batches, by the goroutine of run alone
}

// put is one key: its new value, and the revision that it must have, 0 = it is new.
type put struct {
	subject string
	value   []byte
	after   uint64
}

// call is what one caller stores together.
type call struct {
	puts []put
	done chan<- stored
}

type stored struct {
	last uint64 // revision of the last key; those before it have the numbers before
	err  error
}

func newJournal(nc *nats.Conn, js jetstream.JetStream) *journal {
	return &journal{nc: nc, js: js, calls: make(chan call, 1000)}
}

// store returns when the keys are on the disk.
func (j *journal) store(ctx context.Context, puts []put) (last uint64, err error) {
	done := make(chan stored, 1)
	select {
	case j.calls <- call{puts, done}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	select {
	case s := <-done:
		return s.last, s.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run commits until the channel of calls is closed or ctx ends.
func (j *journal) run(ctx context.Context) error {
	var commits sync.WaitGroup
	defer commits.Wait()
	slots := make(chan struct{}, 2)
	for {
		slots <- struct{}{}
		var first call
		var open bool
		select {
		case first, open = <-j.calls:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !open {
			return nil
		}
		group, keys := j.gather(first)
		j.made++
		id := "journal-" + strconv.Itoa(j.made)
		commits.Go(func() {
			defer func() { <-slots }()
			if keys < fewKeys {
				j.singly(ctx, id, group)
				return
			}
			j.together(ctx, id, group)
		})
	}
}

// gather adds what waits, up to a full batch.
func (j *journal) gather(first call) (group []call, keys int) {
	group, keys = []call{first}, len(first.puts)
	for keys < fullBatch {
		select {
		case c, open := <-j.calls:
			if !open {
				return group, keys
			}
			group, keys = append(group, c), keys+len(c.puts)
		default:
			return group, keys
		}
	}
	return group, keys
}

func (j *journal) together(ctx context.Context, id string, group []call) {
	var all []*nats.Msg
	for _, c := range group {
		for _, p := range c.puts {
			all = append(all, p.message())
		}
	}
	last, err := atomically(ctx, j.nc, id, all)
	at := last - uint64(len(all))
	for _, c := range group {
		at += uint64(len(c.puts))
		c.done <- stored{at, err}
	}
}

func (j *journal) singly(ctx context.Context, id string, group []call) {
	var all sync.WaitGroup
	for i, c := range group {
		all.Go(func() {
			if len(c.puts) > 1 {
				j.together(ctx, id+"-"+strconv.Itoa(i), []call{c})
				return
			}
			ack, err := j.js.PublishMsg(ctx, c.puts[0].message())
			if err != nil {
				c.done <- stored{err: err}
				return
			}
			c.done <- stored{last: ack.Sequence}
		})
	}
	all.Wait()
}

func (p put) message() *nats.Msg {
	m := nats.NewMsg(p.subject)
	m.Data = p.value
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(p.after, 10))
	return m
}
