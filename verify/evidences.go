package verify

import "sync"

// evidences says of which evidences the ledger has no document. Most references of a document lead to such a one (kinds of
// documents, currencies, often partners), and asking the ledger who owns each of these numbers would cost a read for each.
//
// It learns from the watch and from our own writes. The watch shows rows in the order in which they were stored: once it has
// shown a row, it has shown those that were stored before it. Only of a row that was replaced meanwhile it shows later, and
// where it was the first one of its evidence, a document that refers to it may be sent before it: Flexi refuses that.
type evidences struct {
	mu    sync.Mutex
	met   map[string]bool
	whole bool   // every row that was there has been shown
	upTo  uint64 // revision of the last row that the watch showed
	blind bool   // a row could not be read: it may be of any evidence
}

func newEvidences() *evidences { return &evidences{met: map[string]bool{}} }

// meet is for a row that was read or written here, with its evidence; "" where that cannot be read.
func (x *evidences) meet(evidence string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.met[evidence] = true
	x.blind = x.blind || evidence == ""
}

// ready is for when the watch has shown every row that was there.
func (x *evidences) ready() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.whole = true
}

// reset is for when the watch broke, or begins anew, perhaps on a bucket that was restored, with lower revisions.
func (x *evidences) reset() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.whole, x.upTo = false, 0
}

// shown is for the revision of a row that the watch shows, after its evidence was met.
func (x *evidences) shown(revision uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.upTo = max(x.upTo, revision)
}

// current says that the watch has shown every row that was there when it began, and that all could be read.
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
