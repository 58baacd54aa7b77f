package verify

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"flexid/flexi"
)

// metadataCache answers questions about the ERP that change rarely: which evidences there are, their fields, and which record a
// reference names. Met by compare.Resolver.
type metadataCache struct {
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

func newMetadataCache(erp ERP, now func() time.Time, heard func(string, about, error)) *metadataCache {
	return &metadataCache{erp: erp, now: now, readEnded: heard, flights: map[string]*flight{}, ailing: map[string]time.Time{}, props: map[string]known[*flexi.Properties]{}, refs: map[string]known[string]{}}
}

// reset forgets everything: the ids behind references were given anew.
func (mc *metadataCache) reset() {
	mc.mu.Lock()
	defer mc.mu.Unlock()
	mc.evidences, mc.listed = nil, time.Time{}
	clear(mc.props)
	clear(mc.refs)
}

// evidence finds an agenda by its path. ok is false when the ERP says there is none; names then holds all paths.
func (mc *metadataCache) evidence(ctx context.Context, path string) (info flexi.EvidenceInfo, ok bool, err error) {
	mc.mu.Lock()
	info, ok = mc.evidences[path]
	fresh := mc.now().Sub(mc.listed) < keepMetadata
	mc.mu.Unlock()
	if ok || fresh {
		return info, ok, nil
	}
	return mc.list(ctx, path)
}

// list reads the list of evidences anew.
func (mc *metadataCache) list(ctx context.Context, path string) (info flexi.EvidenceInfo, ok bool, err error) {
	err = mc.once(ctx, "list", path, func() error {
		list, err := mc.erp.Evidences(ctx)
		if err != nil {
			return fmt.Errorf("listing the evidences: %w", err)
		}
		m := make(map[string]flexi.EvidenceInfo, len(list))
		for _, e := range list {
			m[e.Path] = e
		}
		mc.mu.Lock()
		defer mc.mu.Unlock()
		mc.evidences, mc.listed = m, mc.now()
		return nil
	})
	mc.mu.Lock()
	defer mc.mu.Unlock()
	info, ok = mc.evidences[path]
	return info, ok && err == nil, err
}

// surely is evidence for a caller who would park something if it is not there or takes no import: such a list may be old, or
// that of a stale role, so it is asked again, and once more after our user's context was renewed.
func (mc *metadataCache) surely(ctx context.Context, path string) (info flexi.EvidenceInfo, ok bool, err error) {
	info, ok, err = mc.evidence(ctx, path)
	writable := func() bool { return ok && info.Importable() }
	if err != nil || writable() {
		return info, ok, err
	}
	mc.mu.Lock()
	young := mc.now().Sub(mc.listed) < keepAbsent
	mc.mu.Unlock()
	if !young {
		if info, ok, err = mc.list(ctx, path); err != nil || writable() {
			return info, ok, err
		}
	}
	if mc.renewedAt(mc.now()) {
		return info, ok, nil
	}
	if err := mc.renew(ctx); err != nil {
		return info, ok, fmt.Errorf("renewing our user's context before %s is given up: %w", path, err)
	}
	return mc.list(ctx, path)
}

// renew ends our user's context at the server, so that a stale role is no reason for anything afterwards.
func (mc *metadataCache) renew(ctx context.Context) error {
	if err := mc.erp.EndUserContext(ctx); err != nil {
		return err
	}
	mc.mu.Lock()
	defer mc.mu.Unlock()
	mc.renewed = mc.now()
	return nil
}

// renewedAt says whether our user's context was renewed not long before a moment.
func (mc *metadataCache) renewedAt(now time.Time) bool {
	mc.mu.Lock()
	defer mc.mu.Unlock()
	return !mc.renewed.IsZero() && now.Sub(mc.renewed) < keepRenewed
}

// properties of an evidence, kept for an hour.
func (mc *metadataCache) properties(ctx context.Context, evidence string) (*flexi.Properties, error) {
	mc.mu.Lock()
	k, ok := mc.props[evidence]
	mc.mu.Unlock()
	if ok && mc.now().Sub(k.at) < keepMetadata {
		return k.value, nil
	}
	err := mc.once(ctx, "fields of "+evidence, evidence, func() error {
		p, err := mc.erp.Properties(ctx, evidence)
		if err != nil {
			return fmt.Errorf("reading the fields of %s: %w", evidence, err)
		}
		mc.mu.Lock()
		defer mc.mu.Unlock()
		mc.props[evidence] = known[*flexi.Properties]{p, mc.now()}
		return nil
	})
	mc.mu.Lock()
	defer mc.mu.Unlock()
	if err != nil && ok { // old metadata is better than none while it cannot be read
		k.at = mc.now().Add(keepOld - keepMetadata)
		mc.props[evidence] = k
		return k.value, nil
	}
	return mc.props[evidence].value, err
}

// rowProperties are the fields of an evidence's rows, nil where Flexi gives none; that is asked once an hour.
func (mc *metadataCache) rowProperties(ctx context.Context, evidence string) *flexi.Properties {
	name := evidence + "-polozka"
	if info, ok, err := mc.evidence(ctx, name); err != nil || !ok || info.Path == "" {
		return nil
	}
	p, err := mc.properties(ctx, name)
	if err != nil {
		return nil
	}
	return p
}

// Same says whether two references name the same record; known is false where that cannot be told now.
func (mc *metadataCache) Same(ctx context.Context, evidence, x, y string) (same, known bool) {
	if evidence == "" || x == "" || y == "" {
		return false, false
	}
	ix, err1 := mc.resolve(ctx, evidence, x)
	iy, err2 := mc.resolve(ctx, evidence, y)
	if err1 != nil || err2 != nil || ix == "" || iy == "" {
		return false, false
	}
	return ix == iy, true
}

// resolve finds the Flexi id behind a reference; "" when no record or several carry it.
func (mc *metadataCache) resolve(ctx context.Context, evidence, ref string) (string, error) {
	ref = strings.TrimSpace(ref)
	if ref != "" && strings.Trim(ref, "0123456789") == "" {
		return ref, nil
	}
	key := evidence + "\x00" + ref
	mc.mu.Lock()
	k, ok := mc.refs[key]
	mc.mu.Unlock()
	if ok && mc.now().Sub(k.at) < keepRefs {
		return k.value, nil
	}
	if err := mc.isAiling(evidence); err != nil {
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
	page, err := mc.erp.List(ctx, flexi.Query{Evidence: evidence, Filter: filter, Fields: []string{"id", "kod"}, Limit: 0})
	mc.readEnded(evidence, aboutRecords, err)
	if err != nil {
		mc.mu.Lock()
		mc.ailing[evidence] = mc.now()
		mc.mu.Unlock()
		return "", fmt.Errorf("resolving %s in %s: %w", ref, evidence, err)
	}
	if len(page.Records) != 1 {
		return "", nil // not kept: it may be typed in the next minute
	}
	id := page.Records[0].ID()
	mc.mu.Lock()
	defer mc.mu.Unlock()
	if len(mc.refs) >= mostRefs {
		clear(mc.refs)
	}
	mc.refs[key] = known[string]{id, mc.now()}
	return id, nil
}
