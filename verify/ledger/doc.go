// Package ledger keeps what flexid knows of every document, durably, in a NATS JetStream key-value bucket, and changes
// it by compare-and-set only.
//
// The promise of the whole program rests on one sentence: when Claim returns nil, the claim is on disk, and nobody else
// holds it. Everything here serves that sentence:
//
//   - A read is a hint, also a read from the leader (a deposed one may still answer). A stale row costs a conflict and
//     one more read, never a decision.
//   - A store call that timed out is unknown, not failed: it may be stored later, even after a quorum came back. It is
//     repeated with the same expected revision and the same bytes until it is decided or the context is over. The bytes
//     hold a fresh random token, so finding them at the leader proves that the write was ours.
//   - A decided call ends in nil, *ConflictError (somebody else wrote; read again), *FullError, *TooLargeError or
//     *MissingError; an undecided one in *UndecidedError. After any error nothing may be sent on the strength of the
//     claim.
//
// What waits to be stored goes to the disk together, in one atomic batch (group.go): a call of this package is still one
// compare-and-set, decided by itself. Several keys are stored as a whole or not at all only by Ledger.commit.
//
// A process keeps the documents in hand that it has just written or read (cache.go): Ledger.Cached and CachedEvent give them without
// asking the leader. That is for callers whose next act is a compare-and-set on that very row; all others call Get and Event.
//
// The bucket keeps two revisions of a key. The server stores a batch with its syncs put off, and removes the revisions that
// are replaced before the new ones are on the disk: with one revision a cut of power in that moment loses acknowledged rows.
//
// Keys of the bucket (hashes are SHA-256, shortened to 160 bits, base32):
//
//	d.<id>        Row, the state of one document; id = RowID(company, evidence, external id)
//	v.<id>.<n>    Event n of that document, stored before the row points at it
//	n.<hash>      which document owns a document number
//	e.<hash>      what came under an event id first
//	c.<stream>    Cursor: how far a stream was taken
//	m.ledger      Meta: which company and which system this ledger belongs to
//	m.marks       Marks: how far the company's books were when last seen
//
// Nothing is deleted and nothing expires: an expired claim would be a licence to send twice.
//
// Events are appended in a Batch: events, rows, event ids, numbers and how far the stream was taken go to the disk together or not
// at all. Where the server cannot do that the same calls write through, and then both writers of a race must come out with their
// own event stored. Each appender does, in this order:
//
//	1 read the row (revision r, last ordinal t)
//	2 write event t+1 by compare-and-set, also if it lies there already; if somebody else's event lies there, write the
//	  row once without a change first (r moves on, so that his step 3 must fail)
//	3 compare-and-set the row from r to last ordinal t+1
//
// Step 2 after step 1 makes it safe: who overwrites an event has moved the row's revision after reading that event, so
// an appender whose step 3 succeeds wrote its event either before (then its revision is stale) or later (then the
// overwrite fails).
package ledger
