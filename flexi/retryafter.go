package flexi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter caps what a server may ask for: beyond it the header is a mistake or a date of another year.
const maxRetryAfter = time.Hour

// ParseRetryAfter reads the header in both forms of RFC 9110: whole seconds, or a date. A date is measured against the
// answer's own Date, so that a wrong clock on either side does not matter; now stands in where there is none. The wait
// is between 0 and one hour. The second result is false without a header that can be read.
func ParseRetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if strings.Trim(v, "0123456789") == "" {
		v = strings.TrimLeft(v, "0")
		if len(v) > 5 { // ten digits of seconds overflow a Duration, and a negative wait is no wait
			return maxRetryAfter, true
		}
		n, _ := strconv.Atoi("0" + v)
		return min(time.Duration(n)*time.Second, maxRetryAfter), true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}

// retryWait is how long to wait after a refusal. Jitter comes on top of what the server asked for, never into it:
// everybody was refused at once and would otherwise be back at once.
func retryWait(h http.Header, now time.Time, random func() float64) time.Duration {
	ra, ok := ParseRetryAfter(h, now)
	if !ok {
		return jitter(random, time.Second)
	}
	return ra + jitter(random, spreadOf(ra))
}

// spreadOf is over how long those come back who were asked to wait: the longer the wait, the more have gathered.
func spreadOf(ra time.Duration) time.Duration { return max(time.Second, ra/2) }

// jitter is uniform in [0, most).
func jitter(random func() float64, most time.Duration) time.Duration {
	return time.Duration(random() * float64(most))
}
