package flexi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// truthServer is a server that keeps the only ledger: what it has of each document, and what it committed.
type truthServer struct {
	mu        sync.Mutex
	r         *rand.Rand
	whole     map[string]int // whole requests by document
	committed map[string]int
}

func (tr *truthServer) intn(n int) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.r.IntN(n)
}

// handle plays one fault, chosen by chance.
func (tr *truthServer) handle(c *rawConn) {
	switch tr.intn(4) {
	case 0: // before the request
		switch tr.intn(3) {
		case 0:
			c.reset()
		case 1:
			c.hangUp()
		case 2:
			c.answer(201, okBody)
		}
		return
	case 1: // in the middle
		_, _ = c.br.Peek(1 + tr.intn(400))
		if tr.intn(2) == 0 {
			c.reset()
		} else {
			c.hangUp()
		}
		return
	}
	r, err := c.request()
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(string(r.body), `"ext:FLEXID:`)
	name, _, _ := strings.Cut(rest, `"`)
	commit := tr.intn(2) == 0
	tr.mu.Lock()
	tr.whole[name]++
	if commit {
		tr.committed[name]++
	}
	tr.mu.Unlock()
	tr.speak(c, name, commit)
}

// speak ends a request that the server has; what it says fits what it did only now and then.
func (tr *truthServer) speak(c *rawConn, name string, commit bool) {
	good := strings.NewReplacer("k1", name, "FV-1", strings.ToUpper(name)).Replace(okBody)
	switch n := tr.intn(6); {
	case n == 0:
		c.reset()
	case n == 1:
		c.hangUp()
	case n == 2:
		c.answer([]int{500, 502, 503, 504, 408, 302}[tr.intn(6)], htmlBody)
	case n == 3:
		_, _ = io.Copy(io.Discard, c) // silence until the client gives up
		c.hangUp()
	case !commit:
		c.answer([]int{429, 400}[tr.intn(2)], errorsBody)
	case n == 4:
		_, _ = fmt.Fprintf(c, "HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(good), good[:tr.intn(len(good))])
		c.hangUp()
	default:
		c.answer(201, good)
	}
}

// Over many seeds: what is called not sent never reached the server whole, what is called accepted was committed, what
// was committed is accepted or a maybe, and no document was sent twice.
func TestTruth(t *testing.T) {
	seeds := 16
	if testing.Short() {
		seeds = 4
	}
	cert, fp := testCert(t)
	counts := make(map[Outcome]int)
	for seed := range seeds {
		tr := &truthServer{r: rand.New(rand.NewPCG(uint64(seed), 7)), whole: map[string]int{}, committed: map[string]int{}}
		s, set := startRaw(t, tr.handle), func(*Options) {}
		if seed%2 == 1 {
			s = startTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}}, tr.handle)
			set = func(o *Options) { o.URL, o.CertSHA256 = secure(s), fp }
		}
		c := testClient(t, s.url(), set, func(o *Options) { o.WriteTimeout = 40 * time.Millisecond })
		for i := range 40 {
			name := fmt.Sprintf("s%dn%d", seed, i)
			o := tr.write(t, c, name)
			counts[o]++
			tr.check(t, name, o)
		}
	}
	for _, o := range []Outcome{Maybe, NotSent, Refused, Rejected, Accepted} {
		if counts[o] == 0 {
			t.Errorf("no write ended %s: the run proves nothing about it (%v)", o, counts)
		}
	}
}

// write sends one document once, with a caller that gives up at a random moment now and then.
func (tr *truthServer) write(t *testing.T, c *Client, name string) Outcome {
	w := Write{Evidence: "banka", Op: Create, Docs: []Doc{{Ext: NewExternalID("FLEXID", "", name), Number: name,
		Body: fmt.Appendf(nil, `{"kod":%q,"popis":%q}`, name, strings.Repeat("x", tr.intn(3)*3000))}}}
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if tr.intn(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(tr.intn(2000))*time.Microsecond)
	}
	defer cancel()
	cn, err := c.Dial(ctx)
	if err != nil {
		return OutcomeOf(err)
	}
	defer cn.Close()
	return cn.Send(ctx, mustPrepare(t, w), permit(name)).Outcome
}

func (tr *truthServer) check(t *testing.T, name string, o Outcome) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	whole, committed := tr.whole[name], tr.committed[name]
	switch {
	case whole > 1:
		t.Errorf("%s: %d requests", name, whole)
	case o == NotSent && whole > 0:
		t.Errorf("%s: not sent, but the server has it", name)
	case o == Accepted && committed == 0:
		t.Errorf("%s: accepted, but not committed", name)
	case committed > 0 && o != Accepted && o != Maybe:
		t.Errorf("%s: committed, but %s", name, o)
	}
}

// A connection whose writes arrive although they report an error, the worst that an operating system could do: what
// the count cannot know must not be called not sent after the connection was handed a byte and took it.
func TestTruthOfPartialWrites(t *testing.T) {
	for _, taken := range []int{0, 1, 100} {
		s := startRaw(t, func(c *rawConn) { _, _ = c.request() })
		c := testClient(t, s.url(), func(o *Options) {
			o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &failing{Conn: conn, take: taken}, err
			}
		})
		want := Maybe
		if taken == 0 {
			want = NotSent
		}
		if r := send(t, c, mustPrepare(t, createWrite()), permit("a1")); r.Outcome != want || r.Request.Sent != int64(taken) {
			t.Errorf("%d bytes taken: %s with %d", taken, r.Outcome, r.Request.Sent)
		}
	}
}

type failing struct {
	net.Conn
	take int
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.Conn.Write(p[:min(f.take, len(p))])
	if err == nil {
		err = errors.New("broken")
	}
	return n, err
}
