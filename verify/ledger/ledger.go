package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// Options says where a ledger lies and whose it is.
type Options struct {
	Prefix   string // of all NATS names; "" and "flexi" are the default one
	Company  string // as in the ERP's address; noted in Meta by the first Open that gives it
	System   string // of our external ids; noted like Company
	Replicas int    // of a new bucket; 0 = 1
	MaxBytes int64  // of a new bucket; 0 = no limit of its own
	Create   bool   // the bucket may be made: only when the intake stream is new, or a person accepted an empty one

	Now     func() time.Time // nil = time.Now
	Token   func() string    // random text, never the same twice; nil = 130 random bits
	Timeout time.Duration    // of one store call; 0 = 5 s
	Idle    time.Duration    // how long Watch hears nothing before it asks whether it missed a change; 0 = 5 s, less than a minute
	Log     zerolog.Logger
}

func (o *Options) defaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Token == nil {
		o.Token = rand.Text
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Idle <= 0 {
		o.Idle = 5 * time.Second
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = -1
	}
}

// Ledger keeps rows, events, numbers and event ids. It is safe for concurrent use, also by several processes.
type Ledger struct {
	*store
	id    string
	rows  string // see Meta.Rows
	now   func() time.Time
	token func() string
}

// Open binds the ledger's bucket, or makes it if Options.Create allows. Errors: *MissingError when there is none,
// *ConfigError when the bucket cannot be trusted; anything else means that NATS could not be asked, try again.
// Open does not compare Company and System with what Meta has pinned: the caller does and knows both ways out.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Ledger, error) {
	o.defaults()
	bucket, err := bucketName("flexid_ledger", o.Prefix)
	if err != nil {
		return nil, err
	}
	want := streamConfig(bucket, o, ledgerMetadata(o.Token()))
	have, err := ensure(ctx, js, want, o, o.Create)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, &MissingError{Bucket: bucket}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	if faults := append(contradictions(have, want), checkMetadata(have)...); len(faults) > 0 {
		return nil, &ConfigError{Bucket: bucket, Faults: faults}
	}
	if have.Replicas < want.Replicas {
		o.Log.Warn().Int("replicas", have.Replicas).Int("wanted", want.Replicas).Msg("ledger: fewer replicas than configured")
	}
	s, err := bind(ctx, js, bucket, o)
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	s.gather(have.AllowAtomicPublish, o.Token())
	s.cache = newCache()
	l := &Ledger{store: s, id: have.Metadata[metaLedgerID], now: o.Now, token: o.Token}
	if err := l.pin(ctx, o.Company, o.System); err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	meta, _, err := l.Meta(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	l.rows = meta.RowsUnder()
	return l, nil
}

// bind is done once and never refreshed: the handle remembers that AllowDirect is off, so that reads go to the leader
// even if some tool turns it on meanwhile.
func bind(ctx context.Context, js jetstream.JetStream, bucket string, o Options) (*store, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	kv, err := js.KeyValue(ctx, bucket)
	if err != nil {
		return nil, err
	}
	return &store{kv: kv, js: js, bucket: bucket, timeout: o.Timeout, idle: o.Idle, log: o.Log}, nil
}

// gather lets writes wait for each other, to go to the disk together where the server can store several keys as a whole.
func (s *store) gather(batches bool, name string) {
	s.group = &group{one: s.update, timeout: s.timeout}
	if batches {
		s.group.batch = &wire{nc: s.js.Conn(), bucket: s.bucket, name: name}
	} else {
		s.log.Warn().Msg("ledger: " + ErrNoBatches.Error() + "; everything is stored one by one, and slower")
	}
}

// Batches says whether several keys can be stored as a whole; without it everything holds, slower.
func (l *Ledger) Batches() bool { return l.group != nil && !l.group.noBatches() }

// LedgerID is the random name of this ledger; the intake stream's metadata carries it.
func (l *Ledger) LedgerID() string { return l.id }

// RowsUnder is the company's name for RowID in this ledger.
func (l *Ledger) RowsUnder() string { return l.rows }

// Bucket is the name of the key-value bucket, for messages.
func (l *Ledger) Bucket() string { return l.bucket }

// Get reads a row from the leader. It is a hint: only a compare-and-set decides. Errors: ErrNoRow; ErrNewer, with what
// names the document; *MissingError; anything else means that NATS could not be asked.
func (l *Ledger) Get(ctx context.Context, id ID) (Row, error) {
	row, _, err := l.row(ctx, id)
	return row, err
}

func (l *Ledger) row(ctx context.Context, id ID) (Row, []byte, error) {
	e, err := l.get(ctx, rowKey(id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Row{}, nil, fmt.Errorf("row %s: %w", id, ErrNoRow)
	}
	if err != nil {
		return Row{}, nil, err
	}
	row, err := rowOf(e.Value(), e.Revision(), id)
	return row, e.Value(), err
}

func rowOf(value []byte, revision uint64, id ID) (Row, error) {
	row, err := Unmarshal(value)
	row.Revision = revision
	if row.ID == "" {
		row.ID = id
	}
	if err == nil && row.ID != id {
		err = fmt.Errorf("what was read is row %s", row.ID)
	}
	if err != nil && !errors.Is(err, ErrNewer) {
		err = fmt.Errorf("row %s, revision %d: %w", id, revision, err)
	}
	return row, err
}

// Event reads event n of a document; ErrNoEvent if there is none.
func (l *Ledger) Event(ctx context.Context, id ID, n int) (Event, error) {
	ev, _, err := l.event(ctx, id, n)
	return ev, err
}

func (l *Ledger) event(ctx context.Context, id ID, n int) (Event, uint64, error) {
	e, err := l.get(ctx, eventKey(id, n))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Event{}, 0, fmt.Errorf("event %d of %s: %w", n, id, ErrNoEvent)
	}
	if err != nil {
		return Event{}, 0, err
	}
	ev, err := unmarshalEvent(e.Value())
	if err != nil {
		return Event{}, e.Revision(), fmt.Errorf("event %d of %s: %w", n, id, err)
	}
	if ev.N != n {
		// What it says would be carried out: an answer that is not the one asked for must not be.
		return Event{}, e.Revision(), fmt.Errorf("event %d of %s: what was read is event %d", n, id, ev.N)
	}
	return ev, e.Revision(), nil
}

// PutEvent stores an event that the row points at already, for instance with the story of its end; the last writer wins.
// It is durable when it returns nil. A story that does not fit beside the event is left out but for its problem.
func (l *Ledger) PutEvent(ctx context.Context, id ID, ev Event) error {
	err := l.putEvent(ctx, id, ev)
	var large *TooLargeError
	if errors.As(err, &large) && ev.Story != nil {
		s := ev.Story
		ev.Story = &Story{Problem: cut{text: 400, list: 1}.problem(s.Problem), Cut: s.Cut + len(s.Attempts) + len(s.Looks) + len(s.Decisions)}
		err = l.putEvent(ctx, id, ev)
	}
	return err
}

func (l *Ledger) putEvent(ctx context.Context, id ID, ev Event) error {
	if e := l.cache.event(id, ev.N, 0, l.linked()); e.revision > 0 {
		if _, err := l.writeEvent(ctx, id, ev, e.revision); !lostRace(err) {
			return err
		}
	}
	for {
		_, rev, err := l.event(ctx, id, ev.N)
		if err != nil && rev == 0 && !errors.Is(err, ErrNoEvent) {
			return err
		}
		if _, err = l.writeEvent(ctx, id, ev, rev); !lostRace(err) {
			return err
		}
	}
}

// writeEvent stores an event at one revision. Without a compare-and-set a call that timed out could be stored after a
// later one and bring an old story back.
func (l *Ledger) writeEvent(ctx context.Context, id ID, ev Event, revision uint64) (uint64, error) {
	ev.Token = l.token()
	data, err := ev.marshal()
	if err != nil {
		return 0, err
	}
	return l.cas(ctx, eventKey(id, ev.N), data, revision)
}

// lostRace says that somebody else wrote, reading again can help.
func lostRace(err error) bool {
	var c *ConflictError
	return errors.As(err, &c) && !c.Deleted
}
