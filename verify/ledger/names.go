package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// holder is the value under a number: which document owns it. A freed number keeps its key with an empty owner, so that
// every change of it is a compare-and-set and none is a deletion.
type holder struct {
	Format   int       `json:"format"`
	Evidence string    `json:"evidence"`
	Number   string    `json:"number"`
	Owner    ID        `json:"owner,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Token    string    `json:"token"`
}

// TakeNumber makes a document the owner of a document number (normalised by the caller) and returns who owns it: owner
// itself, now or already, else the document that was faster.
func (l *Ledger) TakeNumber(ctx context.Context, evidence, number string, owner ID) (ID, error) {
	for {
		h, rev, err := l.holder(ctx, evidence, number)
		if err != nil || h.Owner != "" {
			return h.Owner, err
		}
		err = l.putHolder(ctx, holder{Evidence: evidence, Number: number, Owner: owner, Since: l.now()}, rev)
		if err == nil {
			return owner, nil
		}
		if !lostRace(err) {
			return "", err
		}
	}
}

// FreeNumber gives a number back. If owner does not own it, nothing happens.
func (l *Ledger) FreeNumber(ctx context.Context, evidence, number string, owner ID) error {
	for {
		h, rev, err := l.holder(ctx, evidence, number)
		if err != nil || h.Owner != owner || rev == 0 {
			return err
		}
		err = l.putHolder(ctx, holder{Evidence: evidence, Number: number, Since: l.now()}, rev)
		if !lostRace(err) {
			return err
		}
	}
}

// HolderOf says which document owns a number, if any does.
func (l *Ledger) HolderOf(ctx context.Context, evidence, number string) (ID, bool, error) {
	h, _, err := l.holder(ctx, evidence, number)
	return h.Owner, h.Owner != "", err
}

func (l *Ledger) holder(ctx context.Context, evidence, number string) (holder, uint64, error) {
	var h holder
	rev, err := l.load(ctx, numberKey(evidence, number), &h)
	if err != nil {
		return holder{}, 0, fmt.Errorf("owner of number %q in %s: %w", number, evidence, err)
	}
	return h, rev, nil
}

func (l *Ledger) putHolder(ctx context.Context, h holder, revision uint64) error {
	h.Format, h.Token = Format, l.token()
	if err := l.save(ctx, numberKey(h.Evidence, h.Number), h, revision); err != nil {
		return fmt.Errorf("owner of number %q in %s: %w", h.Number, h.Evidence, err)
	}
	return nil
}

// EventClaim is what came first under an event id.
type EventClaim struct {
	New  bool      // this call was the first
	Same bool      // not the first, but with the same digest and for the same document
	Ref  StreamRef // of the first; equal to the caller's when its message was delivered again
	Row  ID        // of the first
}

// eventID is the value under an event id.
type eventID struct {
	Format int       `json:"format"`
	ID     string    `json:"event_id"`
	Digest string    `json:"digest"`
	Row    ID        `json:"row"`
	Ref    StreamRef `json:"stream,omitzero"`
	Token  string    `json:"token"`
}

// TakeEventID remembers under which digest, document and place in the stream an event id came first, and tells it to
// everyone who comes later. It is kept for good.
func (l *Ledger) TakeEventID(ctx context.Context, id, digest string, row ID, ref StreamRef) (EventClaim, error) {
	key := eventIDKey(id)
	for {
		var first eventID
		rev, err := l.load(ctx, key, &first)
		if err != nil {
			return EventClaim{}, fmt.Errorf("event id %q: %w", id, err)
		}
		if rev > 0 {
			if sameRef(first.Ref, ref) {
				first.Ref = ref // also in the time's location, so that callers may compare with ==
			}
			return EventClaim{Same: first.Digest == digest && first.Row == row, Ref: first.Ref, Row: first.Row}, nil
		}
		mine := eventID{Format: Format, ID: id, Digest: digest, Row: row, Ref: ref, Token: l.token()}
		err = l.save(ctx, key, mine, 0)
		if err == nil {
			return EventClaim{New: true, Ref: ref, Row: row}, nil
		}
		if !lostRace(err) {
			return EventClaim{}, fmt.Errorf("event id %q: %w", id, err)
		}
	}
}

// FirstOf gives what came first under an event id, without taking it; known is false where nothing did. Same is said of
// digest and row.
func (l *Ledger) FirstOf(ctx context.Context, id, digest string, row ID) (claim EventClaim, known bool, err error) {
	var first eventID
	rev, err := l.load(ctx, eventIDKey(id), &first)
	if err != nil || rev == 0 {
		return EventClaim{}, false, err
	}
	return EventClaim{Same: first.Digest == digest && first.Row == row, Ref: first.Ref, Row: first.Row}, true, nil
}

// load reads a small record; revision 0 = there is none.
func (l *Ledger) load(ctx context.Context, key string, v any) (uint64, error) {
	e, err := l.get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(e.Value(), &head); err != nil {
		return 0, fmt.Errorf("reading %s: %w: %w", key, ErrDamaged, err)
	}
	if head.Format > Format {
		return 0, fmt.Errorf("%s has format %d: %w", key, head.Format, ErrNewer)
	}
	if err := json.Unmarshal(e.Value(), v); err != nil {
		return 0, fmt.Errorf("reading %s: %w: %w", key, ErrDamaged, err)
	}
	return e.Revision(), nil
}

func (l *Ledger) save(ctx context.Context, key string, v any, revision uint64) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = l.cas(ctx, key, data, revision)
	return err
}
