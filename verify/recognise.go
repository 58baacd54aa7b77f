package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"flexid/flexi"
	"flexid/verify/compare"
	"flexid/verify/ledger"
)

// matches is what a look found, by whose it is. A record that only the Flexi id led to is nobody's: after a restore, or in
// another company, that id belongs to somebody else's record.
type matches struct {
	mine   []flexi.Record // proved to be this document
	others []flexi.Record // with its number, or another identifier that was asked for
	taken  string         // our Flexi id, where it shows a record that is not this document
	rival  string         // the other document of ours that mine belongs to as well
}

func (s matches) all() []flexi.Record { return append(slices.Clone(s.mine), s.others...) }

// recognise says which of the records are this document. A record is, if it carries our external id; or, where that was
// never seen on it (an adopted record, an evidence that keeps none), if it has the number and the content that we know.
func (e *Engine) recognise(ctx context.Context, t *task, records []flexi.Record) (matches, error) {
	var s matches
	row, w := t.row, t.row.Work
	q := e.question(t)
	q.id = "" // it only says where to look
	var err error
	var named []flexi.Record
	for _, r := range records {
		if carries(r, row.Ext) {
			if s.rival = e.otherOfOurs(t, r); s.rival == "" {
				if s.rival, err = e.ownedBy(ctx, row, r.ID()); err != nil {
					return s, err
				}
			}
			s.mine = append(s.mine, r)
			row.Marked = row.Marked || row.Last != nil
			continue
		}
		// After an attempt only the record that it named: one that was made since is not what was changed or deleted.
		same := !namesOne(w) || r.ID() == w.Target
		proved := false
		if same && t.know != nil && (r.ID() == row.FlexiID || q.names(r)) {
			if proved, err = e.proves(ctx, t, t.know, r); err != nil {
				return s, err
			}
		}
		switch {
		case proved:
			s.mine = append(s.mine, r)
		case r.ID() == row.FlexiID:
			s.taken = r.ID()
			fallthrough
		default:
			if q.names(r) && (same || row.Last != nil) {
				named = append(named, r)
			}
		}
	}
	// A payable's number holds within its year.
	year := e.yearOf(t, s.mine)
	for _, r := range named {
		if len(s.mine) > 0 && t.ev.Number == "" && e.otherOfOurs(t, r) != "" {
			continue // by a number that an answer gave us, and gave us wrong
		}
		if !e.byPairAlone(t, r) || sameNumber(year, t.number(), r.Issued(e.o.Settings.Zone), cisDosle(r)) {
			s.others = append(s.others, r)
		}
	}
	return s, nil
}

// namesOne says that an attempt was made that changes or deletes the record with the Flexi id Target.
func namesOne(w *ledger.Work) bool {
	return w.Opens > 0 && w.Target != "" && w.Write != "" && w.Write != flexi.Create && w.Write != flexi.Attach
}

// knowledge is what identifies a document whose record was never seen with our external id.
type knowledge struct {
	contents []json.RawMessage // any of them: as our events left it, or with the current event done
	picture  string            // of fields, where a person took the record as it stood
	fields   []string
	cancels  bool     // the last effective event cancelled it
	numbers  []string // any of them; nil = nobody knows it
}

// knowledge of a row is nil where nothing but our external id proves a record: it was seen with it, or nothing took effect yet.
func (e *Engine) knowledge(ctx context.Context, t *task) (*knowledge, error) {
	row := t.row
	if row.Last == nil || row.Marked {
		return nil, nil
	}
	left, err := t.left, error(nil)
	if left == nil {
		left, err = e.expected(ctx, row)
	}
	if err != nil {
		return nil, err
	}
	k := &knowledge{cancels: row.Last.Op == flexi.Storno}
	if left != nil {
		k.contents = append(k.contents, left)
		if t.ev.Body != nil {
			done, err := compare.Merge(left, t.ev.Body)
			if err != nil {
				return nil, fmt.Errorf("folding the event: %w", err)
			}
			k.contents = append(k.contents, done)
		}
	} else if k.picture = row.Last.Picture; k.picture != "" {
		ev, err := e.o.Ledger.Event(ctx, row.ID, row.Last.N)
		if err != nil {
			return nil, fmt.Errorf("reading event %d: %w", row.Last.N, err)
		}
		if k.fields, err = compare.FieldNames(ev.Body); err != nil {
			return nil, fmt.Errorf("fields of event %d: %w", row.Last.N, err)
		}
	}
	for _, n := range []string{numberOf(row), t.ev.Number} {
		if n != "" {
			k.numbers = append(k.numbers, n)
		}
	}
	return k, nil
}

// askFor are the fields that a look needs to prove a record by its content.
func (k *knowledge) askFor() (fields []string) {
	if k == nil {
		return nil
	}
	for _, body := range k.contents {
		if more, err := compare.Fields(body); err == nil {
			fields = append(fields, more...)
		}
	}
	return append(fields, k.fields...)
}

// proves says whether number and content show that a record without an external id of ours is the document.
func (e *Engine) proves(ctx context.Context, t *task, k *knowledge, r flexi.Record) (bool, error) {
	if e.otherOfOurs(t, r) != "" {
		return false, nil
	}
	if other, err := e.ownedBy(ctx, t.row, r.ID()); err != nil || other != "" {
		return false, err
	}
	// Without a number in common only the content is left, and then the record must at least stand where ours stood.
	if !slices.Contains(k.numbers, shownNumber(t.row.Evidence, r)) && (len(k.numbers) > 0 || r.ID() != t.row.FlexiID) {
		return false, nil
	}
	if k.cancels && !truth(r, "storno") {
		return false, nil
	}
	if k.picture != "" {
		return e.picture(t, k.fields, r) == k.picture, nil
	}
	for _, body := range k.contents {
		res, err := e.comparerOf(ctx, t, body).Compare(ctx, body, r)
		if err != nil {
			return false, fmt.Errorf("comparing record %s with what we know of it: %w", r.ID(), err)
		}
		if res.Equal(r.ID() == t.row.FlexiID) { // where ours stood, a note that somebody polished makes it no other document
			return true, nil
		}
	}
	return len(k.contents) == 0 && r.ID() == t.row.FlexiID, nil
}

// picture is a digest of some fields of a record as it stands.
func (e *Engine) picture(t *task, fields []string, r flexi.Record) string {
	image := compare.Comparer{Props: t.props}.Image(fields, r)
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(image)) {
		fmt.Fprintf(h, "%q=%q\n", name, image[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ownedBy is the address of another document of ours whose record has the Flexi id, "" if there is none that a look has
// ever confirmed since the company was last accepted.
func (e *Engine) ownedBy(ctx context.Context, row *ledger.Row, flexiID string) (string, error) {
	other, err := e.holderOfID(ctx, row, flexiID)
	if err != nil || other == nil || !other.Marked && !other.ReadBack.IsZero() {
		return "", err
	}
	return Address{other.Evidence, other.Source, other.Key}.String(), nil
}

// holderOfID is another row whose record has, by what answers said, this Flexi id.
func (e *Engine) holderOfID(ctx context.Context, row *ledger.Row, flexiID string) (*ledger.Row, error) {
	id := e.scheduler.ownerOf(row.Evidence, flexiID)
	if flexiID == "" || id == "" || id == row.ID {
		return nil, nil
	}
	other, err := e.o.Ledger.Get(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrNoRow), errors.Is(err, ledger.ErrNewer):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the document with Flexi id %s: %w", flexiID, err)
	}
	e.forgetOld(&other)
	if other.FlexiID != flexiID || other.Last == nil || other.Last.At.Before(e.marks.accepted()) {
		return nil, nil
	}
	return &other, nil
}

// missing says that a record which we left in Flexi is not there any more.
func (s matches) missing(row *ledger.Row) ledger.Problem {
	text := "the record is not in Flexi any more: somebody deleted it, or the ERP was set back to an earlier state"
	if s.taken != "" {
		text += "; its id " + s.taken + " belongs to another record now"
	}
	if len(s.others) > 0 {
		text += fmt.Sprintf("; number %s stands under record %s, which is not this document", numberOf(row), ids(s.others))
	}
	return ledger.Problem{Text: text, Cause: string(flexi.Gone)}
}
