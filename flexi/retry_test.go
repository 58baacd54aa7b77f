package flexi

import (
	"net/http"
	"testing"
	"time"
)

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	cases := []struct {
		name, value, date string
		want              time.Duration
		ok                bool
	}{
		{"none", "", "", 0, false},
		{"seconds", "120", "", 2 * time.Minute, true},
		{"zero", "0", "", 0, true},
		{"leading zeros", "000000007", "", 7 * time.Second, true},
		{"blanks around", " 7 ", "", 7 * time.Second, true},
		{"an hour and more", "86400", "", time.Hour, true},
		{"an overflow", "9300000000", "", time.Hour, true},
		{"a longer overflow", "99999999999999999999999", "", time.Hour, true},
		{"signed", "-5", "", 0, false},
		{"plus", "+5", "", 0, false},
		{"fraction", "1.5", "", 0, false},
		{"words", "soon", "", 0, false},
		{"date", at(90 * time.Second), "", 90 * time.Second, true},
		{"date in the past", at(-time.Hour), "", 0, true},
		{"date far away", at(48 * time.Hour), "", time.Hour, true},
		{"date by the server's clock", at(10*time.Hour + time.Minute), at(10 * time.Hour), time.Minute, true},
		{"date, and a broken Date", at(time.Minute), "yesterday", time.Minute, true},
		{"RFC 850", now.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), "", time.Minute, true},
		{"asctime", now.Add(time.Minute).Format(time.ANSIC), "", time.Minute, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := http.Header{"Retry-After": {tc.value}, "Date": {tc.date}}
			if got, ok := ParseRetryAfter(h, now); got != tc.want || ok != tc.ok {
				t.Errorf("%s, %v; want %s, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
	if _, ok := ParseRetryAfter(nil, now); ok {
		t.Error("something out of no header")
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	f.Add("120", "")
	f.Add("Mon, 30 Nov 2026 12:00:00 GMT", "Mon, 30 Nov 2026 11:00:00 GMT")
	f.Fuzz(func(t *testing.T, value, date string) {
		d, ok := ParseRetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, time.Unix(1e9, 0))
		if d < 0 || d > time.Hour || !ok && d != 0 {
			t.Errorf("%q at %q: %s, %v", value, date, d, ok)
		}
	})
}

// Jitter is on top of the server's wish: nobody is early, and not everybody comes at once.
func TestRetryWait(t *testing.T) {
	header := func(v string) http.Header { return http.Header{"Retry-After": {v}} }
	cases := []struct {
		name      string
		h         http.Header
		low, high time.Duration
	}{
		{"no header", nil, 0, time.Second},
		{"zero", header("0"), 0, time.Second},
		{"short", header("1"), time.Second, 2 * time.Second},
		{"long", header("60"), time.Minute, 90 * time.Second},
		{"capped", header("999999"), time.Hour, 90 * time.Minute},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			for random, want := range map[float64]time.Duration{0: tc.low, 0.5: (tc.low + tc.high) / 2} {
				if got := retryWait(tc.h, time.Now(), func() float64 { return random }); got != want {
					t.Errorf("random %v: %s, want %s", random, got, want)
				}
			}
		})
	}
}

func TestRefusedCarriesAWait(t *testing.T) {
	s := startRaw(t, answering(429, "Retry-After: 10\r\n", ""))
	c := testClient(t, s.url(), func(o *Options) { o.Rand = func() float64 { return 0.2 } })
	if r := send(t, c, mustPrepare(t, createWrite()), permit("a1")); r.Outcome != Refused || r.Wait != 11200*time.Millisecond {
		t.Errorf("%s, wait %s", r.Outcome, r.Wait)
	}
}

func TestBucket(t *testing.T) {
	now := time.Unix(1e9, 0)
	taken := func(b *Bucket, now time.Time) (n int) {
		for range 5000 {
			if _, ok := b.Take(now); !ok {
				return n
			}
			n++
		}
		return n
	}
	b := NewBucket(10, 0.1, 10*time.Second)
	if n := taken(b, now); n != 10 {
		t.Fatalf("%d tokens in a full bucket of 10", n)
	}
	wait, ok := b.Take(now.Add(4 * time.Second))
	if ok || wait.Round(time.Millisecond) != 6*time.Second {
		t.Errorf("after 4 s: %v, wait %s", ok, wait)
	}
	if n := taken(b, now.Add(10*time.Second)); n != 1 {
		t.Errorf("time gave %d tokens in 10 s", n)
	}
	if n := taken(b, now.Add(-time.Hour)); n != 0 {
		t.Errorf("a clock set back gave %d tokens", n)
	}
	b.Pay(25)
	if n := taken(b, now.Add(-time.Hour)); n != 2 {
		t.Errorf("25 successes paid for %d tries", n)
	}
	later := now.Add(-time.Hour)
	if wait := b.Wait(later, 3); wait.Round(time.Millisecond) != 25*time.Second { // half a token was left
		t.Errorf("3 tokens in %s", wait)
	}
	b.Return()
	if wait := b.Wait(later, 1); wait != 0 || taken(b, later) != 1 {
		t.Errorf("a returned token is there in %s", wait)
	}
	if wait := b.Wait(later, 50); wait.Round(time.Millisecond) != 95*time.Second {
		t.Errorf("more tokens than it holds: %s", wait)
	}
	b.Pay(100_000)
	if left := b.Tokens(now.Add(-time.Hour)); left != 10 {
		t.Errorf("%v tokens in a bucket of 10", left)
	}
}

func TestBudget(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := NewBudget(20)
	for _, c := range []struct {
		name   string
		bucket *Bucket
		size   float64
		after  time.Duration // to the next token of an empty one
	}{
		{"reads", b.Reads, 10, 10 * time.Second},
		{"refusals", b.Refusals, 1000, 100 * time.Millisecond},
		{"sends after a maybe", b.Maybes, 40, 10 * time.Second},
	} {
		if got := c.bucket.Tokens(now); got != c.size {
			t.Errorf("%s: %v tokens, want %v", c.name, got, c.size)
		}
		for range int(c.size) {
			c.bucket.Take(now)
		}
		if wait, ok := c.bucket.Take(now); ok || wait != c.after {
			t.Errorf("%s, empty: %v, wait %s, want %s", c.name, ok, wait, c.after)
		}
	}
}

func TestBackoff(t *testing.T) {
	most := func() float64 { return 1 }
	for n, want := range map[int]time.Duration{0: 200 * time.Millisecond, 1: 400 * time.Millisecond, 5: 6400 * time.Millisecond, 6: backoffCap, 30: backoffCap} {
		if got := backoff(n, most); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
