package webhook

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// Source is the settings of one sender. Secrets are kept in memory only.
type Source struct {
	Kind                   string
	Secret, PreviousSecret string
	Networks               []netip.Prefix // where deliveries may come from; empty = anywhere
	MaxBytes               int64          // 0 = 512 KiB
	Rate                   int            // deliveries a second, and at once; 0 = 50
	Tolerance              time.Duration  // of a signed time, both ways; 0 = 5 min
}

// Check says whether the settings can be used; its error is a *SettingError.
func (s Source) Check() error {
	_, err := newKind(s)
	return err
}

// perSource is how many deliveries of one source are in hand at most.
const perSource = 64

// source is one sender at work.
type source struct {
	name     string
	kind     Kind
	rules    Rules
	networks []netip.Prefix
	most     int64
	slots    chan struct{}
	bucket   *rate.Limiter
}

func newSource(name string, s Source) (*source, error) {
	kind, err := newKind(s)
	if err != nil {
		return nil, err
	}
	if s.MaxBytes == 0 {
		s.MaxBytes = 512 << 10
	}
	if s.Rate == 0 {
		s.Rate = 50
	}
	return &source{
		name: name, kind: kind, rules: kind.Rules(), networks: s.Networks, most: s.MaxBytes,
		slots: make(chan struct{}, perSource), bucket: rate.NewLimiter(rate.Limit(s.Rate), s.Rate),
	}, nil
}

func within(networks []netip.Prefix, addr netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// take fills a slot without waiting: a sender that is answered at once tries again, one that waits in a queue gives up
// and sends a second time beside the first.
func take(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}
