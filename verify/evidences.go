package verify

import (
	"sync"

	"flexid/verify/ledger"
)

// evidences says of which evidences the ledger has no document. Most references of a document lead to such a one (kinds of
// documents, currencies, often partners), and asking the ledger who owns each of these numbers would cost a read for each.
//
// It learns from the watch and from our own writes. The watch tells of rows in the order in which they were stored: once it has
// told of a row, it has told of those that were stored before it. Only of a row that was replaced meanwhile it tells later, and
// where it was the first one of its evidence, a document that refers to it may be sent before it: Flexi refuses that.
type evidences struct {
	mu    sync.Mutex
	met   map[string]bool
	whole bool   // every row that was there has been told of
	upTo  uint64 // revision of the last row that the watch told of
	blind bool   // a row could not be read: it may be of any evidence
}

func newEvidences() *evidences { return &evidences{met: map[string]bool{}} }

// meet is for a row that was written here.
func (x *evidences) meet(evidence string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.met[evidence] = true
}

// told is for what the watch tells.
func (x *evidences) told(c *ledger.Change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case c.Ready:
		x.whole = true
	case c.Row.ID == "": // the watch broke, or begins anew, perhaps on a bucket that was restored, with lower revisions
		x.whole, x.upTo = false, 0
	case c.Row.Evidence != "":
		x.met[c.Row.Evidence] = true
	case !c.Deleted:
		x.blind = true
	}
	x.upTo = max(x.upTo, c.Row.Revision)
}

// current says that the watch has told of every row that was there when it began, and that all could be read.
func (x *evidences) current() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.whole && !x.blind
}

// none says that no document of an evidence was stored before a revision of a row. It is false where that is not known.
func (x *evidences) none(evidence string, before uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.whole && !x.blind && x.upTo >= before && !x.met[evidence]
}
