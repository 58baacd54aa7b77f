package flexi

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Reasons why a guardedConn lets no bytes through. None of them reached the wire.
var (
	errNotOpen     = errors.New("the connection was not released for a request")
	errSpokeFirst  = errors.New("the server spoke before it was asked; its answer belongs to somebody else")
	errSealed      = errors.New("the request is over")
	errClaimOld    = errors.New("the claim is too old for a first byte")
	errWriteOver   = errors.New("the time for the write is over in mid-request")
	errSecondSend  = errors.New("this attempt was sent before")
	errConnUsed    = errors.New("the connection was used before")
	errNoClaim     = errors.New("there is no claim for this write")
	errAnswerLimit = errors.New("the answer is larger than the limit")
)

// piece is how much goes to the connection between two looks at the clock: a process that was stopped in mid-request
// and goes on after its lease must not be able to finish the request.
const piece = 4 << 10

// guardedConn is the connection under one request. It stands above TLS, so that it sees the request and nothing else, counts
// what passes, and asks check before the first byte and before every later piece.
type guardedConn struct {
	net.Conn
	below func() int64 // bytes that left below TLS; nil = Conn's own count is exact

	mu       sync.Mutex
	check    func(first bool) error // nil = nothing may pass
	begun    bool                   // check let a first byte pass
	inFlight int64                  // length of a piece that has not come back
	sealed   bool
	spoke    bool
	refusal  error // the first no of check
	sent     int64
	received int64
}

// allow lets one request pass under check.
func (gc *guardedConn) allow(check func(first bool) error) {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	gc.check = check
}

// Write passes p on in pieces.
func (gc *guardedConn) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		next := p[done:min(done+piece, len(p))]
		if err := gc.beginPiece(len(next)); err != nil {
			return done, err
		}
		n, moved, err := gc.writePiece(next)
		gc.endPiece(moved)
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (gc *guardedConn) beginPiece(n int) error {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	switch {
	case gc.sealed:
		return errSealed
	case gc.check == nil:
		return errNotOpen
	case gc.spoke:
		return errSpokeFirst
	}
	if err := gc.check(!gc.begun); err != nil {
		if gc.refusal == nil {
			gc.refusal = err
		}
		return err
	}
	gc.begun, gc.inFlight = true, int64(n)
	return nil
}

// writePiece writes one piece; moved is what the server may have seen of it. A failing TLS write reports nothing although a
// part of its record may have left.
func (gc *guardedConn) writePiece(p []byte) (n int, moved int64, err error) {
	if gc.below == nil {
		n, err = gc.Conn.Write(p)
		return n, int64(n), err
	}
	before := gc.below()
	n, err = gc.Conn.Write(p)
	moved = int64(n)
	if err != nil {
		moved = max(moved, gc.below()-before)
	}
	return n, moved, err
}

func (gc *guardedConn) endPiece(moved int64) {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	gc.inFlight = 0
	gc.sent += moved
}

// Read refuses what the server says before a byte of the request left: on a fresh connection that can only be meant for
// someone else, and taken as an answer it would report a success that never was.
func (gc *guardedConn) Read(p []byte) (int, error) {
	n, err := gc.Conn.Read(p)
	gc.mu.Lock()
	defer gc.mu.Unlock()
	if n > 0 && !gc.begun {
		gc.spoke = true
		return 0, errSpokeFirst
	}
	gc.received += int64(n)
	return n, err
}

// seal ends the request: no byte passes any more, and the count is final. A piece that has not come back counts as sent,
// since what became of it is not known.
func (gc *guardedConn) seal() (sent, received int64, refusal error) {
	gc.mu.Lock()
	defer gc.mu.Unlock()
	gc.sealed = true
	refusal = gc.refusal
	if refusal == nil && gc.spoke {
		refusal = errSpokeFirst
	}
	return gc.sent + gc.inFlight, gc.received, refusal
}

// meter counts the bytes that leave below TLS.
type meter struct {
	net.Conn
	out atomic.Int64
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.out.Add(int64(n))
	return n, err
}
