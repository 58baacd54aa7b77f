package flexi_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

// counter grants a number of requests.
type counter struct {
	mu       sync.Mutex
	left     int
	until    time.Time
	asked    map[string]int
	returned map[string]int
}

func (q *counter) Take(_ context.Context, kind string) (func(), error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked[kind]++
	if q.left == 0 {
		return nil, &flexi.QuotaError{Until: q.until}
	}
	q.left--
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.returned[kind]++
		q.left++
	}, nil
}

func limited(t *testing.T, n int) (*flexitest.Server, *flexi.Client, *counter) {
	t.Helper()
	s := flexitest.New(flexitest.Options{})
	t.Cleanup(s.Close)
	q := &counter{left: n, until: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), asked: map[string]int{}, returned: map[string]int{}}
	c, err := flexi.New(flexi.Options{URL: s.URL(), Company: "firma", User: "flexid", Password: "secret", Dial: s.Dial, Quota: q,
		Rand: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, q
}

// Nothing leaves without a grant, a refusal is not asked about again, and it says until when.
func TestQuotaBeforeEveryRequest(t *testing.T) {
	s, c, q := limited(t, 2)
	ask := map[string]func() error{
		"read": func() error { _, err := c.Company(t.Context()); return err },
		"lookup": func() error {
			_, err := c.List(t.Context(), flexi.Query{Evidence: evidence, Limit: 1, Lookup: true})
			return err
		},
		"write": func() error {
			cn, err := c.Dial(t.Context())
			if err == nil {
				_ = cn.Close()
			}
			return err
		},
	}
	want(t, "a write", do(t, c, "a1", flexi.Create, invoice(1)), flexi.Accepted)
	if err := ask["read"](); err != nil {
		t.Fatal(err)
	}
	before := s.Count("")
	for kind, f := range ask {
		err := f()
		var quota *flexi.QuotaError
		if !errors.As(err, &quota) || !quota.Until.Equal(q.until) || flexi.OutcomeOf(err) != flexi.NotSent {
			t.Errorf("%s over the budget: %v (%s)", kind, err, flexi.OutcomeOf(err))
		}
	}
	if n := s.Count("") - before; n != 0 || before != 2 {
		t.Errorf("%d requests with a grant, %d without one", before, n)
	}
	if q.asked["read"] != 2 || q.asked["lookup"] != 1 || q.asked["write"] != 2 {
		t.Errorf("asked %v: a refusal is final until its date", q.asked)
	}
}

// What was not sent comes back: the ERP did not count it.
func TestQuotaReturned(t *testing.T) {
	s, c, q := limited(t, 10)
	cn, err := c.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_ = cn.Close()
	}
	if q.returned["write"] != 1 {
		t.Errorf("a connection that carried nothing gave back %d", q.returned["write"])
	}
	s.SetDown(true)
	if _, err := c.Dial(t.Context()); err == nil {
		t.Fatal("connected to a server that is down")
	}
	if _, err := c.Company(t.Context()); err == nil {
		t.Fatal("read from a server that is down")
	}
	if q.left != 10 || q.asked["read"] == 0 || q.asked["read"] != q.returned["read"] {
		t.Errorf("left %d of 10, asked %v, returned %v", q.left, q.asked, q.returned)
	}
}
