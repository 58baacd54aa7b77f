package verify

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"flexid/verify/ledger"
)

// FoldNumber makes what a person typed and what Flexi upper-cased comparable.
func FoldNumber(s string) string { return strings.ToUpper(norm.NFC.String(strings.TrimSpace(s))) }

// Candidates are the documents among which a list finds all that it wants, from memory: so that a list of few need not read the
// ledger of all. Rows that cannot be read are among them, whatever is wanted: a list says how many it leaves out. number, unless it
// is "", is that of the wanted rows; states says which of them may be wanted by where they stand. ok is false where nobody knows,
// or where they are so many that reading the whole ledger in one go is quicker. Rows that another replica changed in the last
// moment may be missing.
func (e *Engine) Candidates(number string, states func(Standing) bool) (ids []ledger.ID, ok bool) {
	if !e.evidences.current() {
		return nil, false
	}
	return e.scheduler.candidatesFor(FoldNumber(number), states)
}

// mostCandidates is how many documents, of all, are read one by one rather than all in one go: a single read costs five times as
// much.
func mostCandidates(all int) int { return max(200, all/5) }

func (sc *scheduler) candidatesFor(number string, states func(Standing) bool) (ids []ledger.ID, ok bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if number != "" {
		ids = sc.andUnread(sc.numbers.of(sc.numberKey(number)))
		return ids, len(ids) <= mostCandidates(len(sc.rows))
	}
	n := len(sc.unread)
	var wanted []*standing
	for _, at := range sc.standings {
		if !states(at.Standing) {
			continue
		}
		if n += at.documents; at.open == nil || n > mostCandidates(len(sc.rows)) {
			return nil, false
		}
		wanted = append(wanted, at)
	}
	for _, at := range wanted {
		ids = slices.AppendSeq(ids, maps.Keys(at.open))
	}
	return sc.andUnread(ids), n <= mostCandidates(len(sc.rows))
}

// cannotRead notes that a row cannot be read as it is stored now: a newer flexid's, or a damaged one. What it said before still
// counts for everything else.
func (sc *scheduler) cannotRead(id ledger.ID) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.unread[id] = true
	delete(sc.heard, id)
}

// andUnread adds the rows that cannot be read. One of them may be there as what it was before.
func (sc *scheduler) andUnread(ids []ledger.ID) []ledger.ID {
	if len(sc.unread) == 0 {
		return ids
	}
	ids = slices.AppendSeq(ids, maps.Keys(sc.unread))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// atRest says that nothing more happens to the documents of the state by itself or by a person, and nearly all documents are in it.
func atRest(s ledger.State) bool { return s == ledger.Confirmed || s == ledger.Dropped }

// numbers are the documents by the key of the number that they show. Hardly any number has two.
type numbers struct {
	first map[uint64]ledger.ID
	more  map[uint64][]ledger.ID
}

func (n *numbers) of(key uint64) []ledger.ID {
	first, ok := n.first[key]
	if !ok {
		return nil
	}
	return append([]ledger.ID{first}, n.more[key]...)
}

func (n *numbers) add(key uint64, id ledger.ID) {
	if _, taken := n.first[key]; taken {
		n.more[key] = append(n.more[key], id)
		return
	}
	n.first[key] = id
}

func (n *numbers) remove(key uint64, id ledger.ID) {
	rest := slices.DeleteFunc(n.of(key), func(o ledger.ID) bool { return o == id })
	delete(n.first, key)
	delete(n.more, key)
	for _, o := range rest {
		n.add(key, o)
	}
}

// addNumberOf gives the key of the number that a row shows, 0 for none.
func (sc *scheduler) addNumberOf(row *ledger.Row) uint64 {
	number := FoldNumber(row.Number)
	if number == "" {
		return 0
	}
	key := sc.numberKey(number)
	sc.numbers.add(key, row.ID)
	return key
}

func (sc *scheduler) dropNumberOf(id ledger.ID, key uint64) {
	if key != 0 {
		sc.numbers.remove(key, id)
	}
}

// numberKey is short, since there is one for each document. Two numbers of one key only cost a read.
func (sc *scheduler) numberKey(number string) uint64 {
	return max(1, maphash.String(sc.seed, "number\x00"+number))
}
