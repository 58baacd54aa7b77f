package probe

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flexid/flexi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func script(t *testing.T, text string) Script {
	t.Helper()
	s, err := ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listening starts a server on a real port.
func listening(t *testing.T, text string) *Server {
	t.Helper()
	s, err := Start(t.Context(), "127.0.0.1:0", script(t, text))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// probed makes a client for an address, without jitter, and runs a plan with it.
func probed(t *testing.T, address string, p Plan, more ...func(*flexi.Options)) Report {
	t.Helper()
	tally := new(Tally)
	o := flexi.Options{
		URL: address, Company: "probe", User: "probe", Password: "probe", Observe: tally.Observe, Probe: true,
		Rand: func() float64 { return 0 },
	}
	for _, f := range more {
		f(&o)
	}
	c, err := flexi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Evidence, p.System, p.Name = "adresar", "FLEXID", "PROBE1"
	r, err := Run(t.Context(), c, tally, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compared is probed with the server's count beside it.
func compared(t *testing.T, s *Server, address string, p Plan, more ...func(*flexi.Options)) Report {
	t.Helper()
	r := probed(t, address, p, more...)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s.Settled(ctx, r.WireRequests)
	r.Compare(s.Requests(), s.Commits())
	return r
}

// inMemory gives a client connections to s that need no sockets, so that time can be virtual.
func inMemory(s *Server) func(*flexi.Options) {
	return func(o *flexi.Options) {
		o.Dial = func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			s.serve(server)
			return client, nil
		}
	}
}
