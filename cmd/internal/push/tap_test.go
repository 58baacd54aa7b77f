package push_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// tap stands between a client and its server. It sees what is published to the intake, message by message, and decides what becomes of
// each and of its answer.
type tap struct {
	server nats.InProcessConnProvider
	decide func(m message) deed // nil = all pass
	old    bool                 // the server does not know what a batch is

	mu    sync.Mutex
	n     int // messages seen
	fates map[string]deed
}

// message is one that is published to the intake.
type message struct {
	n      int // from 0
	batch  string
	place  int // in the batch, from 1
	commit bool
	event  string // its id
}

// deed is what becomes of a message.
type deed int

const (
	pass    deed = iota
	swallow      // it does not reach the server
	mute         // it does, and the answer is lost
	cut          // the connection breaks before it
	cutLate      // the connection breaks when the answer comes
	numDeeds
)

// InProcessConn makes tap a nats.InProcessConnProvider.
func (t *tap) InProcessConn() (net.Conn, error) {
	c, err := t.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return &tapped{Conn: c, tap: t}, nil
}

type tapped struct {
	net.Conn
	tap *tap

	up       []byte // from the client, not whole yet
	down     []byte // from the server, not whole yet
	readable []byte
}

// Write passes on what is whole.
func (c *tapped) Write(b []byte) (int, error) {
	c.up = append(c.up, b...)
	for {
		n := whole(c.up)
		if n == 0 {
			return len(b), nil
		}
		raw, ok := c.tap.judge(c.up[:n])
		if !ok {
			_ = c.Close()
			return 0, io.ErrClosedPipe
		}
		if _, err := c.Conn.Write(raw); err != nil {
			return 0, err
		}
		c.up = c.up[n:]
	}
}

// Read keeps back answers that are to be lost.
func (c *tapped) Read(b []byte) (int, error) {
	for len(c.readable) == 0 {
		more := make([]byte, 32<<10)
		n, err := c.Conn.Read(more)
		if err != nil {
			return 0, err
		}
		c.down = append(c.down, more[:n]...)
		for n := whole(c.down); n > 0; n = whole(c.down) {
			switch c.tap.fate(c.down[:n]) {
			case mute:
			case cutLate:
				_ = c.Close()
				return 0, io.EOF
			default:
				c.readable = append(c.readable, c.down[:n]...)
			}
			c.down = c.down[n:]
		}
	}
	n := copy(b, c.readable)
	c.readable = c.readable[n:]
	return n, nil
}

// whole is the length of the operation that b begins with, 0 while it is not all there.
func whole(b []byte) int {
	line, _, found := bytes.Cut(b, []byte("\r\n"))
	if !found {
		return 0
	}
	n := len(line) + 2
	words := strings.Fields(string(line))
	switch {
	case len(words) == 0:
		return n
	case strings.HasSuffix(words[0], "PUB"), strings.HasSuffix(words[0], "MSG"):
		size, err := strconv.Atoi(words[len(words)-1])
		if err != nil {
			panic(fmt.Sprintf("%q: %v", line, err))
		}
		n += size + 2
	}
	if len(b) < n {
		return 0
	}
	return n
}

// judge gives what is passed on to the server; ok is false where the connection breaks.
func (t *tap) judge(raw []byte) (passed []byte, ok bool) {
	line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	words := strings.Fields(string(line))
	if len(words) < 4 || words[0] != "HPUB" || !strings.HasPrefix(words[1], "flexi.push.") {
		return raw, true
	}
	var m message
	for _, field := range strings.Split(string(rest), "\r\n") {
		name, value, _ := strings.Cut(field, ": ")
		switch name {
		case "Nats-Batch-Id":
			m.batch = value
		case "Nats-Batch-Sequence":
			m.place, _ = strconv.Atoi(value)
		case "Nats-Batch-Commit":
			m.commit = true
		case "Flexid-Event-Id":
			m.event = value
		}
	}
	t.mu.Lock()
	m.n = t.n
	t.n++
	t.mu.Unlock()
	what := pass
	if t.decide != nil {
		what = t.decide(m)
	}
	if reply := words[2]; len(words) == 5 && (what == mute || what == cutLate) {
		t.mu.Lock()
		if t.fates == nil {
			t.fates = map[string]deed{}
		}
		t.fates[reply] = what
		t.mu.Unlock()
	}
	switch what {
	case swallow:
		return nil, true
	case cut:
		return nil, false
	}
	if t.old {
		raw = bytes.ReplaceAll(raw, []byte("Nats-Batch-"), []byte("Old--Batch-")) // a header that means nothing
	}
	return raw, true
}

// fate is what becomes of an operation of the server.
func (t *tap) fate(raw []byte) deed {
	line, _, _ := bytes.Cut(raw, []byte("\r\n"))
	words := strings.Fields(string(line))
	if len(words) < 2 {
		return pass
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fates[words[1]]
}
