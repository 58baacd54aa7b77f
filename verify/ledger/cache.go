package ledger

import (
	"bytes"
	"container/list"
	"strconv"
	"strings"
	"sync"
)

// How much a cache holds; what was not used for longest goes first.
const (
	mostCached      = 8192 // documents
	mostCachedBytes = 32 << 20
	cachedOverhead  = 512 // of a row or an event beside its value
)

// cache keeps the documents in hand: rows that this process has just written or read, with their revisions, and the events of
// theirs that it uses. What it gives is a hint, as every read is.
//
// It keeps something only while a watch corrects it. A row that another process changed is replaced when the watch tells of it.
// All is forgotten when the watch breaks: what is read after that may be a bucket that was restored, which uses revisions again.
//
// Events have no watch. But whoever changes an event that a row points at changes the row after it. So events are kept with
// their row, and are forgotten when somebody else changes that.
//
// Its methods do nothing on nil.
type cache struct {
	mu      sync.Mutex
	watches int    // that correct it
	link    uint64 // of the connection when the last one began, see store.linked
	life    uint64 // counts how often all was forgotten: an answer to what was asked before is not kept
	docs    map[ID]*list.Element
	recent  list.List // of *cachedDoc, the last used first
	bytes   int
}

// cachedDoc is a row and its events as of one revision of the row.
type cachedDoc struct {
	id       ID
	revision uint64
	row      []byte
	own      []byte // the row as a write of ours that is under way would leave it: the watch may be the first to tell of it
	events   map[int]cachedEvent
	bytes    int
}

// cachedEvent is an event as it is stored, or decoded. Nobody changes it: a newer one replaces it.
type cachedEvent struct {
	revision uint64
	value    []byte
	event    *Event // in place of value
}

func newCache() *cache { return &cache{docs: map[ID]*list.Element{}} }

// open begins to keep, for a watch that tells of every change from here on.
func (c *cache) open(link uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	c.watches++
	c.link = link
}

// close forgets everything, for a watch that ended.
func (c *cache) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	c.watches--
}

func (c *cache) forget() {
	clear(c.docs)
	c.recent.Init()
	c.bytes = 0
	c.life++
}

// asking is called before the store is asked, for what is told of the answer.
func (c *cache) asking() (life uint64) {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life
}

// writing is asking for puts.
func (c *cache) writing(puts []put) (life uint64) {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range puts {
		if id, ok := rowOfKey(p.key); ok {
			if d := c.doc(id); d != nil && d.revision == p.revision {
				d.own = p.value
			}
		}
	}
	return c.life
}

// stored takes over what a unit of puts has stored. After an error nobody knows what lies under its keys.
func (c *cache) stored(puts []put, last, life uint64, err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && (c.life != life || c.watches == 0) {
		return
	}
	// Rows come first: an event that is stored with its row is one that the row points at.
	rows := map[ID]bool{}
	first := last - uint64(len(puts)) + 1
	for i, p := range puts {
		id, ok := rowOfKey(p.key)
		switch {
		case !ok:
		case err != nil:
			c.remove(id)
		default:
			rows[id] = c.wrote(id, p, first+uint64(i))
		}
	}
	for i, p := range puts {
		id, n, ok := eventOfKey(p.key)
		d := c.doc(id)
		if !ok || d == nil {
			continue
		}
		// One that is stored alone, before its row, may still be replaced by another writer's.
		old, have := d.events[n]
		switch {
		case err != nil:
			c.setEvent(d, n, cachedEvent{})
		case rows[id], have && old.revision < first+uint64(i):
			c.setEvent(d, n, cachedEvent{revision: first + uint64(i), value: p.value})
		}
	}
	c.shrink()
}

// wrote takes over a row that this process stored. It says whether that is the row which is kept now.
func (c *cache) wrote(id ID, p put, revision uint64) bool {
	d := c.doc(id)
	switch {
	case d == nil || d.revision < p.revision:
		c.replace(id, p.value, revision)
	case d.revision == p.revision: // nobody else has written in between
		d.revision, d.row, d.own = revision, p.value, nil
		c.use(d)
	default: // the watch has told of it already, or of something newer
		return d.revision == revision
	}
	return true
}

// correct corrects the row of a document by what the watch tells.
func (c *cache) correct(r record) {
	id, ok := rowOfKey(r.key)
	if c == nil || !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.doc(id)
	switch {
	case d == nil:
	case r.deleted:
		c.remove(id)
	case r.revision <= d.revision:
	case d.own != nil && bytes.Equal(r.value, d.own):
		d.revision, d.row, d.own = r.revision, d.own, nil
		c.use(d)
	default:
		c.replace(id, r.value, r.revision)
		c.shrink()
	}
}

// shown corrects what is kept by what the leader shows under a key; revision 0 is nothing. Older than what is kept is the answer of a
// deposed leader, or a bucket that was restored.
func (c *cache) shown(key string, revision uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := rowOfKey(key); ok {
		if d := c.doc(id); d != nil && d.revision != revision {
			c.remove(id)
		}
		return
	}
	if id, n, ok := eventOfKey(key); ok {
		if d := c.doc(id); d != nil && d.events[n].revision != revision {
			c.setEvent(d, n, cachedEvent{})
		}
	}
}

// row gives a row of at least a revision. link is that of the connection as it is now.
func (c *cache) row(id ID, least, link uint64) (value []byte, revision uint64) {
	if c == nil {
		return nil, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.doc(id)
	if d == nil || c.link != link || d.revision < least {
		return nil, 0
	}
	c.use(d)
	return d.row, d.revision
}

// event gives an event as of a revision of its row; revision 0 as of any.
func (c *cache) event(id ID, n int, row, link uint64) cachedEvent {
	if c == nil {
		return cachedEvent{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.doc(id)
	if d == nil || c.link != link || row != 0 && d.revision != row {
		return cachedEvent{}
	}
	c.use(d)
	return d.events[n]
}

// keepRow takes over what the leader has shown.
func (c *cache) keepRow(id ID, value []byte, revision, life uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.doc(id); c.life != life || c.watches == 0 || d != nil && d.revision >= revision {
		return
	}
	c.replace(id, value, revision)
	c.shrink()
}

// keepEvent takes over what the leader has shown, if the row is still of the revision.
func (c *cache) keepEvent(id ID, n int, row uint64, e cachedEvent, life uint64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.doc(id); c.life == life && d != nil && d.revision == row && d.events[n].revision <= e.revision {
		c.setEvent(d, n, e)
		c.shrink()
	}
}

func (c *cache) doc(id ID) *cachedDoc {
	if at := c.docs[id]; at != nil {
		return at.Value.(*cachedDoc)
	}
	return nil
}

// replace puts a row in the place of what is kept of a document. Its events may have changed with it.
func (c *cache) replace(id ID, row []byte, revision uint64) {
	c.remove(id)
	d := &cachedDoc{id: id, revision: revision, row: row, events: map[int]cachedEvent{}}
	c.docs[id] = c.recent.PushFront(d)
	c.measure(d)
}

func (c *cache) setEvent(d *cachedDoc, n int, e cachedEvent) {
	if e.revision == 0 {
		delete(d.events, n)
	} else {
		d.events[n] = e
	}
	c.use(d)
}

// use puts a document first, and measures it anew.
func (c *cache) use(d *cachedDoc) {
	c.recent.MoveToFront(c.docs[d.id])
	c.measure(d)
}

func (c *cache) measure(d *cachedDoc) {
	n := cachedOverhead + len(d.id) + len(d.row) + len(d.own)
	for _, e := range d.events {
		if n += cachedOverhead + len(e.value); e.event != nil {
			n += len(e.event.Body) + len(e.event.Raw)
		}
	}
	c.bytes += n - d.bytes
	d.bytes = n
}

func (c *cache) remove(id ID) {
	if at := c.docs[id]; at != nil {
		c.bytes -= c.recent.Remove(at).(*cachedDoc).bytes
		delete(c.docs, id)
	}
}

func (c *cache) shrink() {
	for len(c.docs) > mostCached || c.bytes > mostCachedBytes {
		c.remove(c.recent.Back().Value.(*cachedDoc).id)
	}
}

// eventOfKey gives row and ordinal of the event under a key.
func eventOfKey(key string) (id ID, n int, ok bool) {
	rest, ok := strings.CutPrefix(key, eventPrefix)
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(rest[dot+1:])
	return ID(rest[:dot]), n, err == nil
}
