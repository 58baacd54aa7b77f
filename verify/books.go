package verify

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"flexid/flexi"
)

// books answers questions about the ERP that change rarely: which evidences there are, their fields, and which record a
// reference names. Met by compare.Resolver.
type books struct {
	erp       ERP
	now       func() time.Time
	readEnded func(evidence string, of about, err error) // how a read ended, for admission

	mu        sync.Mutex
	flights   map[string]*flight   // reads that are under way
	renewed   time.Time            // when our user's context was renewed last
	ailing    map[string]time.Time // evidences whose records could not be read, and when
	evidences map[string]flexi.EvidenceInfo
	listed    time.Time
	props     map[string]known[*flexi.Properties]
	refs      map[string]known[string] // evidence + reference -> Flexi id
}

type known[T any] struct {
	value T
	at    time.Time
}

const (
	keepMetadata = time.Hour
	keepOld      = time.Minute // metadata that cannot be read anew
	keepAbsent   = time.Second // what would park something is asked again
	keepRenewed  = time.Minute
	keepAiling   = 5 * time.Second
	keepRefs     = 10 * time.Minute
	mostRefs     = 20_000
)

func newBooks(erp ERP, now func() time.Time, heard func(string, about, error)) *books {
	return &books{erp: erp, now: now, readEnded: heard, flights: map[string]*flight{}, ailing: map[string]time.Time{}, props: map[string]known[*flexi.Properties]{}, refs: map[string]known[string]{}}
}

// reset forgets everything: the ids behind references were given anew.
func (b *books) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evidences, b.listed = nil, time.Time{}
	clear(b.props)
	clear(b.refs)
}

// evidence finds an agenda by its path. ok is false when the ERP says there is none; names then holds all paths.
func (b *books) evidence(ctx context.Context, path string) (info flexi.EvidenceInfo, ok bool, err error) {
	b.mu.Lock()
	info, ok = b.evidences[path]
	fresh := b.now().Sub(b.listed) < keepMetadata
	b.mu.Unlock()
	if ok || fresh {
		return info, ok, nil
	}
	return b.list(ctx, path)
}

// list reads the list of evidences anew.
func (b *books) list(ctx context.Context, path string) (info flexi.EvidenceInfo, ok bool, err error) {
	err = b.once(ctx, "list", path, func() error {
		list, err := b.erp.Evidences(ctx)
		if err != nil {
			return fmt.Errorf("listing the evidences: %w", err)
		}
		m := make(map[string]flexi.EvidenceInfo, len(list))
		for _, e := range list {
			m[e.Path] = e
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.evidences, b.listed = m, b.now()
		return nil
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	info, ok = b.evidences[path]
	return info, ok && err == nil, err
}

// surely is evidence for a caller who would park something if it is not there or takes no import: such a list may be old, or
// that of a stale role, so it is asked again, and once more after our user's context was renewed.
func (b *books) surely(ctx context.Context, path string) (info flexi.EvidenceInfo, ok bool, err error) {
	info, ok, err = b.evidence(ctx, path)
	writable := func() bool { return ok && info.Importable() }
	if err != nil || writable() {
		return info, ok, err
	}
	b.mu.Lock()
	young := b.now().Sub(b.listed) < keepAbsent
	b.mu.Unlock()
	if !young {
		if info, ok, err = b.list(ctx, path); err != nil || writable() {
			return info, ok, err
		}
	}
	if b.renewedAt(b.now()) {
		return info, ok, nil
	}
	if err := b.renew(ctx); err != nil {
		return info, ok, fmt.Errorf("renewing our user's context before %s is given up: %w", path, err)
	}
	return b.list(ctx, path)
}

// renew ends our user's context at the server, so that a stale role is no reason for anything afterwards.
func (b *books) renew(ctx context.Context) error {
	if err := b.erp.EndUserContext(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renewed = b.now()
	return nil
}

// renewedAt says whether our user's context was renewed not long before a moment.
func (b *books) renewedAt(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.renewed.IsZero() && now.Sub(b.renewed) < keepRenewed
}

// properties of an evidence, kept for an hour.
func (b *books) properties(ctx context.Context, evidence string) (*flexi.Properties, error) {
	b.mu.Lock()
	k, ok := b.props[evidence]
	b.mu.Unlock()
	if ok && b.now().Sub(k.at) < keepMetadata {
		return k.value, nil
	}
	err := b.once(ctx, "fields of "+evidence, evidence, func() error {
		p, err := b.erp.Properties(ctx, evidence)
		if err != nil {
			return fmt.Errorf("reading the fields of %s: %w", evidence, err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.props[evidence] = known[*flexi.Properties]{p, b.now()}
		return nil
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && ok { // old metadata is better than none while it cannot be read
		k.at = b.now().Add(keepOld - keepMetadata)
		b.props[evidence] = k
		return k.value, nil
	}
	return b.props[evidence].value, err
}

// rowProperties are the fields of an evidence's rows, nil where Flexi gives none; that is asked once an hour.
func (b *books) rowProperties(ctx context.Context, evidence string) *flexi.Properties {
	name := evidence + "-polozka"
	if info, ok, err := b.evidence(ctx, name); err != nil || !ok || info.Path == "" {
		return nil
	}
	p, err := b.properties(ctx, name)
	if err != nil {
		return nil
	}
	return p
}

// Same says whether two references name the same record; known is false where that cannot be told now.
func (b *books) Same(ctx context.Context, evidence, x, y string) (same, known bool) {
	if evidence == "" || x == "" || y == "" {
		return false, false
	}
	ix, err1 := b.resolve(ctx, evidence, x)
	iy, err2 := b.resolve(ctx, evidence, y)
	if err1 != nil || err2 != nil || ix == "" || iy == "" {
		return false, false
	}
	return ix == iy, true
}

// resolve finds the Flexi id behind a reference; "" when no record or several carry it.
func (b *books) resolve(ctx context.Context, evidence, ref string) (string, error) {
	ref = strings.TrimSpace(ref)
	if ref != "" && strings.Trim(ref, "0123456789") == "" {
		return ref, nil
	}
	key := evidence + "\x00" + ref
	b.mu.Lock()
	k, ok := b.refs[key]
	b.mu.Unlock()
	if ok && b.now().Sub(k.at) < keepRefs {
		return k.value, nil
	}
	if err := b.isAiling(evidence); err != nil {
		return "", err
	}
	kind, value, found := strings.Cut(ref, ":")
	var filter flexi.Filter
	switch {
	case !found:
		return "", nil
	case kind == "code":
		filter = flexi.Eq("kod", flexi.NormaliseNumber(evidence, value))
	case kind == "ext":
		filter = flexi.ExtEq(flexi.ExternalID(ref))
	case kind == "in":
		filter = flexi.Eq("ic", value)
	case kind == "vatid":
		filter = flexi.Eq("dic", value)
	default:
		return "", nil
	}
	page, err := b.erp.List(ctx, flexi.Query{Evidence: evidence, Filter: filter, Fields: []string{"id", "kod"}, Limit: 0})
	b.readEnded(evidence, aboutRecords, err)
	if err != nil {
		b.mu.Lock()
		b.ailing[evidence] = b.now()
		b.mu.Unlock()
		return "", fmt.Errorf("resolving %s in %s: %w", ref, evidence, err)
	}
	if len(page.Records) != 1 {
		return "", nil // not kept: it may be typed in the next minute
	}
	id := page.Records[0].ID()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.refs) >= mostRefs {
		clear(b.refs)
	}
	b.refs[key] = known[string]{id, b.now()}
	return id, nil
}
