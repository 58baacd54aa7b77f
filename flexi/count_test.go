package flexi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// earlyFaults strike before the request has come whole; more is how many bytes the server takes first.
func earlyFaults(more int) []func(*rawConn) {
	some := func(f func(*rawConn)) func(*rawConn) {
		return func(c *rawConn) {
			_, _ = c.br.Peek(more)
			f(c)
		}
	}
	return []func(*rawConn){
		(*rawConn).reset,
		(*rawConn).hangUp,
		some((*rawConn).reset),
		some((*rawConn).hangUp),
		some(func(c *rawConn) { c.answer(201, okBody) }),
		some(func(c *rawConn) { c.answerWith(429, "Retry-After: 1\r\n", "") }),
	}
}

// countFaults is everything that the raw server knows, healthy answers too.
func countFaults(r *rand.Rand) []func(*rawConn) {
	all := earlyFaults(1 + r.IntN(400))
	for _, f := range sendFaults() {
		all = append(all, f.handle)
	}
	for _, after := range []string{"Retry-After: 0\r\n", "Retry-After: 3\r\n", "Retry-After: 9300000000\r\n",
		"Retry-After: Mon, 30 Nov 2026 12:00:07 GMT\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\n"} {
		all = append(all, answering(429, after, ""), answering(503, after, htmlBody))
	}
	silence := func(c *rawConn) {
		_, _ = c.request()
		_, _ = io.Copy(io.Discard, c.br)
	}
	healthy := []func(*rawConn){answering(200, "", emptyList), answering(201, "", okBody)}
	return append(append(all, silence), slices.Repeat(healthy, 8)...)
}

// tally counts what Options.Observe is told.
type tally struct {
	mu    sync.Mutex
	kinds map[string]int
	all   int
	bytes int64
}

func (y *tally) observe(r Request) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.kinds[r.Kind]++
	y.all++
	y.bytes += r.Sent
}

// TestCountsAgree: over a long run of reads and writes through every fault, what the client counts is what the server
// counts, to the byte. A request is a connection on which at least one byte of it came. In memory a byte is either read
// by the server or not sent, so that there is no third answer.
func TestCountsAgree(t *testing.T) {
	const calls = 1500
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				r, came := rand.New(rand.NewPCG(seed, 3)), 0
				s, dial := pipes(nil)
				s.handle = func(c *rawConn) {
					mu.Lock()
					all := countFaults(r)
					f := all[r.IntN(len(all))]
					mu.Unlock()
					defer func() {
						if c.read.Load() > 0 {
							mu.Lock()
							came++
							mu.Unlock()
						}
					}()
					f(c)
				}
				seen := &tally{kinds: make(map[string]int)}
				c := testClient(t, "http://erp.test", dial, seeded(seed), func(o *Options) { o.Observe = seen.observe })
				ends := make(map[string]int)
				for n := range calls {
					ends[callOnce(t, c, n)]++
				}
				s.wg.Wait()
				_, bytes, _ := s.seen()
				if seen.all != came || seen.bytes != bytes {
					t.Errorf("the client counts %d requests and %d bytes, the server %d and %d", seen.all, seen.bytes, came, bytes)
				}
				if seen.kinds["read"] < calls/3 || seen.kinds["write"] < calls/3 || len(ends) < 6 {
					t.Errorf("%v, %v: the run proves too little", seen.kinds, ends)
				}
				t.Logf("%d calls, %d requests %v, ends %v", calls, came, seen.kinds, ends)
			})
		})
	}
}

// callOnce reads or writes, and waits if the ERP wants no requests. It returns how the call ended.
func callOnce(t *testing.T, c *Client, n int) string {
	var err error
	if n%2 == 0 {
		_, err = c.List(t.Context(), Query{Evidence: "banka"})
	} else {
		var cn *Conn
		if cn, err = c.Dial(t.Context()); err == nil {
			synctest.Wait() // what the server does by itself is done before the write begins
			r := cn.Send(t.Context(), mustPrepare(t, createWrite()), permit(fmt.Sprint(n)))
			sleep(context.Background(), r.Wait)
			return r.Outcome.String()
		}
	}
	var shut *ThrottledError
	if errors.As(err, &shut) {
		sleep(context.Background(), time.Until(shut.Until))
	}
	return "call " + OutcomeOf(err).String()
}
