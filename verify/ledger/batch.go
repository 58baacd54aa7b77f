package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Batch is what messages of a stream store together: events, rows, event ids, numbers and the cursor, all of it or nothing. Its
// calls are those of the ledger, by the same code, over a buffer: they read what the batch holds already, else the ledger, and
// what they write stays in the buffer until Commit. Every key is stored by compare-and-set on what was read of it, so that a
// batch which builds on something old is refused as a whole.
//
// Where the server cannot store several keys as a whole, a batch holds one message, its calls write through, event before row, and
// Commit moves the cursor: a message that was stored before its cursor moved is recognised by its place in the stream.
//
// It is for one goroutine.
type Batch struct {
	base *Ledger
	over *Ledger // base itself where calls write through
	buf  *buffer // nil where they do
	rows map[ID]*Row
	one  bool // a message was put into one that takes no more
}

// How much a batch holds, with room for the last message.
const (
	fullPuts  = mostPuts - 100
	fullBytes = mostBytes - 1<<20
)

// Begin begins a batch. known, if not nil, says that there may be a row with an id; what it does not know, and every event id and
// number, is taken to be new without a look, since nearly all are. Where that is wrong the batch is refused; one that begins
// with nil looks at everything.
func (l *Ledger) Begin(known func(ID) bool) *Batch {
	b := &Batch{base: l, over: l, rows: map[ID]*Row{}}
	if l.Batches() {
		b.buf = &buffer{base: l.store, known: known, keys: map[string]*held{}}
		over := *l
		over.store = &store{kv: b.buf, js: l.js, bucket: l.bucket, timeout: l.timeout, idle: l.idle, log: l.log}
		b.over = &over
	}
	return b
}

// Full says that no further message should go into the batch.
func (b *Batch) Full() bool {
	if b.buf == nil {
		return b.one
	}
	return len(b.buf.order) >= fullPuts || b.buf.bytes >= fullBytes
}

// Get is the ledger's.
func (b *Batch) Get(ctx context.Context, id ID) (Row, error) { return b.over.Get(ctx, id) }

// Event is the ledger's.
func (b *Batch) Event(ctx context.Context, id ID, n int) (Event, error) {
	return b.over.Event(ctx, id, n)
}

// TakeEventID is the ledger's.
func (b *Batch) TakeEventID(ctx context.Context, id, digest string, row ID, ref StreamRef) (EventClaim, error) {
	b.one = true
	return b.over.TakeEventID(ctx, id, digest, row, ref)
}

// TakeNumber is the ledger's.
func (b *Batch) TakeNumber(ctx context.Context, evidence, number string, owner ID) (ID, error) {
	return b.over.TakeNumber(ctx, evidence, number, owner)
}

// MakesNumber says that the batch stores a number that no document had before. Where calls write through it says so of none.
func (b *Batch) MakesNumber(evidence, number string) bool {
	if b.buf == nil {
		return false
	}
	h := b.buf.keys[numberKey(evidence, number)]
	return h != nil && h.dirty && h.base == 0
}

// NoteAside is the ledger's.
func (b *Batch) NoteAside(ctx context.Context, meant ID, eventID string, row ID) error {
	return b.over.NoteAside(ctx, meant, eventID, row)
}

// AsideEvent is the ledger's.
func (b *Batch) AsideEvent(ctx context.Context, eventID string) ([]ID, error) {
	return b.over.AsideEvent(ctx, eventID)
}

// Append is the ledger's. The row's revision is known when the batch is stored.
func (b *Batch) Append(ctx context.Context, template Row, ev Event, modify func(*Row)) (Row, error) {
	b.one = true
	row, err := b.over.Append(ctx, template, ev, modify)
	if err == nil {
		kept := row
		if before := b.rows[row.ID]; before != nil {
			kept.Was = before.Was // the batch is one change of the row
		}
		b.rows[row.ID] = &kept
	}
	return row, err
}

// Commit stores the batch and moves the cursor, where there is one, and gives the rows that took events, as they are stored
// now. Errors as Claim; with a conflict of the cursor somebody else took the messages, with another one something that the
// batch builds on was changed meanwhile: read again. ErrNoBatches: the server takes them no more, begin anew.
func (b *Batch) Commit(ctx context.Context, c *Cursor) ([]Row, error) {
	var puts []put
	if b.buf != nil {
		for _, key := range b.buf.order {
			h := b.buf.keys[key]
			puts = append(puts, put{key, h.value, h.base})
		}
	}
	if c != nil { // last: it must not pass what is not stored
		value, err := b.base.cursorValue(*c)
		if err != nil {
			return nil, err
		}
		puts = append(puts, put{cursorKey(c.Stream), value, c.Revision})
	}
	if len(puts) > 0 {
		last, err := b.base.commit(ctx, puts)
		if err != nil {
			return nil, fmt.Errorf("storing what was taken: %w", err)
		}
		first := last - uint64(len(puts)) + 1
		for i, p := range puts {
			if id, ok := rowOfKey(p.key); ok && b.rows[id] != nil {
				b.rows[id].Revision = first + uint64(i)
			}
		}
		if c != nil {
			c.Revision = last
		}
	}
	rows := make([]Row, 0, len(b.rows))
	for _, r := range b.rows {
		rows = append(rows, *r)
	}
	return rows, nil
}

// Commit is the batch's own; whoever stands between the engine and the ledger can fail here.
func (l *Ledger) Commit(ctx context.Context, b *Batch, c *Cursor) ([]Row, error) {
	return b.Commit(ctx, c)
}

// held is what a batch knows of a key.
type held struct {
	value    []byte
	base     uint64 // revision at the ledger, 0 = it was not there
	revision uint64 // that the batch's own calls see, 0 = the key is not there
	dirty    bool
	deleted  bool // by hand: a marker lies there
}

// buffer is a bucket as the calls of one batch see it.
type buffer struct {
	base  *store
	known func(ID) bool // nil = everything is looked at
	keys  map[string]*held
	order []string // of the keys that were written
	bytes int
	count uint64
}

// fresh says that a key is taken to be new without a look.
func (b *buffer) fresh(key string) bool {
	if b.known == nil {
		return false
	}
	if id, ok := rowOfKey(key); ok {
		return !b.known(id)
	}
	return strings.HasPrefix(key, idPrefix) || strings.HasPrefix(key, numberPrefix)
}

// written is above every revision of a bucket: the calls of a batch see that a value is newer than what was read.
const written = 1 << 62

type bufferEntry struct {
	jetstream.KeyValueEntry
	h held
}

func (e bufferEntry) Value() []byte    { return e.h.value }
func (e bufferEntry) Revision() uint64 { return e.h.revision }

// Get is a keyValue's.
func (b *buffer) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	h, err := b.look(ctx, key)
	if err != nil {
		return nil, err
	}
	if h.revision == 0 {
		return nil, jetstream.ErrKeyNotFound
	}
	return bufferEntry{h: *h}, nil
}

func (b *buffer) look(ctx context.Context, key string) (*held, error) {
	if h := b.keys[key]; h != nil {
		return h, nil
	}
	h := &held{}
	if b.fresh(key) {
		b.keys[key] = h
		return h, nil
	}
	e, err := b.base.kv.Get(ctx, key)
	switch {
	case err == nil:
		h.value, h.base, h.revision = e.Value(), e.Revision(), e.Revision()
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, err
	case b.known == nil:
		if h.deleted, err = b.base.marker(ctx, key); err != nil {
			return nil, err
		}
	}
	b.keys[key] = h
	return h, nil
}

// errRemoved says that a mark of deletion lies under a key that shows nothing.
var errRemoved = errors.New("the key was deleted by hand")

// Update is a keyValue's. A key that must not exist and was not looked at is taken to be new.
func (b *buffer) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	h := b.keys[key]
	if h == nil && revision == 0 && b.known != nil { // an event: its row says that there is none
		h = &held{}
		b.keys[key] = h
	}
	if h == nil {
		var err error
		if h, err = b.look(ctx, key); err != nil {
			return 0, err
		}
	}
	if h.deleted {
		return 0, errRemoved
	}
	if h.revision != revision {
		return 0, jetstream.ErrKeyExists
	}
	if h.dirty {
		b.bytes -= len(h.value)
	} else {
		h.dirty = true
		b.order = append(b.order, key)
		b.bytes += len(key)
	}
	b.count++
	b.bytes += len(value)
	h.value, h.revision = value, written+b.count
	return h.revision, nil
}

// marker says whether a key that showed nothing was deleted by hand. A value that lies there was made since: that batch will be
// refused, and the next one sees it.
func (s *store) marker(ctx context.Context, key string) (bool, error) {
	if s.js == nil {
		return false, nil
	}
	st, err := s.js.Stream(ctx, "KV_"+s.bucket)
	if err != nil {
		return false, err
	}
	m, err := st.GetLastMsgForSubject(ctx, subject(s.bucket, key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return removal(m), nil
}

// removal says that a message of a bucket stands for a key that was removed.
func removal(m *jetstream.RawStreamMsg) bool {
	return m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != ""
}
