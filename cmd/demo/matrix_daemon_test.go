package main

import (
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/batch/stream"
	"flexid/flexi/flexitest"
	"flexid/verify"
)

// TestDaemonInSomeModes is the whole daemon, in real time, before servers where what stands around the engine decides: who
// the company is, is asked before anything else. The other modes are TestDemoInEveryMode's.
func TestDaemonInSomeModes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	stops := map[string]string{"login-page": "", "login-redirect": "", "chunked": "", "gzip-unasked": "outage", "no-licence": "licence"}
	for _, m := range flexitest.Modes() {
		reason, tried := stops[m.Name]
		if !tried {
			continue
		}
		delete(stops, m.Name)
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			p, err := compose(1, 7)
			must(t, err)
			for _, ev := range p.events {
				ev.mishap = nil
			}
			s := &stage{dir: t.TempDir(), ended: make(chan error, 1), erp: flexitest.New(flexitest.Options{AllowUsedNumbers: true})}
			m.On(s.erp)
			must(t, s.begin(t.Context(), options{addr: "127.0.0.1:0"}, p, io.Discard))
			defer func() { must(t, s.strike()) }()
			if reason == "" {
				must(t, s.play(t.Context(), p, io.Discard))
				tally, err := s.count(t.Context(), p)
				must(t, err)
				if !tally.good() {
					t.Errorf("%+v", tally)
				}
				return
			}
			s.stopped(t, p, reason)
		})
	}
	if len(stops) > 0 {
		t.Errorf("no such modes: %v", stops)
	}
}

// stopped: within a minute the status names the reason for which nothing is written.
func (s *stage) stopped(t *testing.T, p *piece, reason string) {
	t.Helper()
	nc, to := s.publisher(t)
	defer nc.Close()
	for _, ev := range p.events {
		must(t, ev.publish(t.Context(), to))
	}
	for began := time.Now(); time.Since(began) < time.Minute; {
		st, err := s.api.status(t.Context())
		must(t, err)
		if st.Engine != nil && slices.ContainsFunc(st.Engine.Stops, stopSays(reason)) {
			if n := s.erp.Count(flexitest.Write); n > 0 {
				t.Errorf("%d writes", n)
			}
			return
		}
		if !pause(t.Context(), lookEvery) {
			break
		}
	}
	st, err := s.api.status(t.Context())
	t.Errorf("after a minute nothing says %q: %+v, %v", reason, st.Engine, err)
	if os.Getenv("FLEXID_TEST_LOG") != "" {
		t.Log(s.erp.Requests())
	}
}

// publisher is another program that publishes events.
func (s *stage) publisher(t *testing.T) (*nats.Conn, *stream.Publisher) {
	t.Helper()
	nc, err := nats.Connect(s.info.NATS, nats.Token(s.info.NATSToken))
	must(t, err)
	js, err := jetstream.New(nc)
	must(t, err)
	return nc, stream.NewPublisher(js, stream.Options{})
}

func stopSays(reason string) func(verify.Stop) bool {
	return func(g verify.Stop) bool {
		return !g.Open && g.Reason == reason && g.Text != "" && g.Remedy != ""
	}
}
