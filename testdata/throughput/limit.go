package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// ledgerRow is about what a ledger keeps of a document.
type ledgerRow struct {
	ID, State, Evidence, Key, Number, Partner, Date, Lease string
	First, Last, Sends                                     int
	Story                                                  []string
	Due                                                    time.Time
}

// taken is a document in hand.
type taken struct {
	row      ledgerRow
	revision uint64
}

// limiter is the durable work alone.
type limiter struct {
	js      jetstream.JetStream
	journal *journal
	load    load
	n       int
	ready   chan *taken
	settled atomic.Int64
	lost    atomic.Int64 // results that the stream did not take
}

// limit is the part that does the durable work of flexid's promise and nothing else.
func limit(ctx context.Context, args []string, s *stage) error {
	var l load
	f := flag.NewFlagSet("limit", flag.ContinueOnError)
	dir, n := f.String("dir", ".", "where NATS keeps its files"), f.Int("n", 1000, "documents")
	f.IntVar(&l.pack, "pack", 20, "most documents in a request")
	f.IntVar(&l.atOnce, "at-once", 4, "most requests at once")
	f.DurationVar(&l.fixed, "fixed", 0, "what a request takes")
	f.DurationVar(&l.each, "each", 0, "and for every document in it")
	if err := f.Parse(args); err != nil {
		return err
	}
	nc, stop, err := startNATS(server.Options{StoreDir: *dir, SyncAlways: true})
	if err != nil {
		return err
	}
	defer stop()
	w := &limiter{load: l, n: *n, ready: make(chan *taken, *n)}
	w.js, err = jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(*n),
		jetstream.WithPublishAsyncErrHandler(func(jetstream.JetStream, *nats.Msg, error) { w.lost.Add(1) }))
	if err != nil {
		return err
	}
	for name, subject := range map[string]string{"IN": "in", "LEDGER": "row.>", "OUT": "out"} {
		c := jetstream.StreamConfig{Name: name, Subjects: []string{subject}, AllowAtomicPublish: true}
		if name == "LEDGER" {
			c.MaxMsgsPerSubject = 2 // with one, a power cut in a batch loses rows that were acknowledged
		}
		if _, err := w.js.CreateStream(ctx, c); err != nil {
			return err
		}
	}
	w.journal = newJournal(nc, w.js)
	if err := s.reach("ready"); err != nil {
		return err
	}
	if err := publish(ctx, nc, "IN", "in", 1, *n); err != nil {
		return err
	}
	if err := s.reach("published"); err != nil {
		return err
	}
	if err := w.all(ctx); err != nil {
		return err
	}
	return s.reach("done")
}

// all takes, claims, settles and tells every document.
func (w *limiter) all(ctx context.Context) error {
	both, bothCtx := errgroup.WithContext(ctx)
	both.Go(func() error { return w.journal.run(bothCtx) })
	both.Go(func() error {
		defer close(w.journal.calls)
		work, workCtx := errgroup.WithContext(bothCtx)
		work.Go(func() error { return w.take(workCtx) })
		for range w.load.atOnce {
			work.Go(func() error { return w.send(workCtx) })
		}
		return work.Wait()
	})
	if err := both.Wait(); err != nil {
		return err
	}
	select {
	case <-w.js.PublishAsyncComplete():
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.lost.Load() > 0 || w.settled.Load() != int64(w.n) {
		return fmt.Errorf("of %d documents %d were settled, of which %d were not told", w.n, w.settled.Load(), w.lost.Load())
	}
	return nil
}

// take stores what it reads, each document as event, number and row, together with how far it has come.
func (w *limiter) take(ctx context.Context) error {
	defer close(w.ready)
	consumer, err := w.js.CreateConsumer(ctx, "IN", jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		return err
	}
	var cursor uint64 // revision of its key
	for got := 0; got < w.n; {
		batch, err := consumer.Fetch(min(250, w.n-got), jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return err
		}
		var docs []*taken
		var puts []put
		last := ""
		for m := range batch.Messages() {
			d, event, err := read(m)
			if err != nil {
				return err
			}
			last = d.row.ID
			docs = append(docs, d)
			puts = append(puts, put{"row.event." + last, event, 0}, put{"row.number." + d.row.Number, []byte(last), 0}, put{"row.of." + last, encode(d.row), 0})
		}
		if err := batch.Error(); err != nil {
			return err
		}
		if len(docs) == 0 {
			continue
		}
		puts = append(puts, put{"row.cursor", []byte(last), cursor})
		if cursor, err = w.journal.store(ctx, puts); err != nil {
			return err
		}
		for i, d := range docs {
			d.revision = cursor - uint64(3*(len(docs)-1-i)+1)
			w.ready <- d // it holds all of them
		}
		got += len(docs)
	}
	return nil
}

// read looks into a message as far as a row needs it.
func read(m jetstream.Msg) (*taken, []byte, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, nil, err
	}
	var doc struct{ Kod, Firma, DatVyst string }
	if err := json.Unmarshal(m.Data(), &doc); err != nil {
		return nil, nil, err
	}
	id := strconv.FormatUint(meta.Sequence.Stream, 10)
	event, err := json.Marshal(map[string]any{"id": id, "at": meta.Timestamp, "subject": m.Subject(), "body": json.RawMessage(m.Data())})
	return &taken{row: ledgerRow{ID: id, State: "queued", Evidence: evidence, Key: doc.Kod, Number: doc.Kod, Partner: doc.Firma,
		Date: doc.DatVyst, First: 1, Last: 1, Due: time.Now()}}, event, err
}

// send claims what is ready, lets the time of a request pass and settles it.
func (w *limiter) send(ctx context.Context) error {
	for {
		group := w.group()
		if len(group) == 0 {
			return ctx.Err()
		}
		err := w.change(ctx, group, func(r *ledgerRow) {
			r.State, r.Lease, r.Story = "sending", "instance/run/1", append(r.Story, "attempt 1 claimed at 2026-03-09T10:00:00Z, create")
		})
		if err != nil {
			return err
		}
		if err := pass(ctx, w.load.request(len(group))); err != nil {
			return err
		}
		err = w.change(ctx, group, func(r *ledgerRow) {
			r.State, r.Lease, r.Sends, r.Story = "confirmed", "", 1, append(r.Story, "POST 201, 230 bytes, 12 ms, accepted, Flexi id 4711")
		})
		if err != nil {
			return err
		}
		for _, d := range group {
			if _, err := w.js.PublishAsync("out", encode(d.row)); err != nil {
				return err
			}
		}
		w.settled.Add(int64(len(group)))
	}
}

// group is the documents of one request: the next one and what else is ready; none when there are no more.
func (w *limiter) group() (group []*taken) {
	d, open := <-w.ready
	for open {
		if group = append(group, d); len(group) == w.load.pack {
			return group
		}
		select {
		case d, open = <-w.ready:
		default:
			return group
		}
	}
	return group
}

// change stores the rows of a group together.
func (w *limiter) change(ctx context.Context, group []*taken, how func(*ledgerRow)) error {
	puts := make([]put, len(group))
	for i, d := range group {
		how(&d.row)
		puts[i] = put{"row.of." + d.row.ID, encode(d.row), d.revision}
	}
	last, err := w.journal.store(ctx, puts)
	for i, d := range group {
		d.revision = last - uint64(len(group)-1-i)
	}
	return err
}

func encode(r ledgerRow) []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers can always be written
	}
	return text
}

func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
