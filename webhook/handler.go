package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// call is one request on its way through the steps of the package's table.
type call struct {
	*Server
	w        http.ResponseWriter
	r        *http.Request
	control  *http.ResponseController
	source   *source // nil while none is known
	evidence string
	wait     time.Duration
	freed    func() // gives the slot back; may be called twice
}

// ServeHTTP answers one delivery.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := s.o.Now()
	s.inHand.Add(1)
	defer s.inHand.Add(-1)
	c := &call{Server: s, w: w, r: r, control: http.NewResponseController(w), freed: func() {}}
	defer func() { c.freed() }()
	// Also for what is left of a body after an early refusal: the server reads some of it to keep the connection. A writer
	// without deadlines is a test's.
	_ = c.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")

	answer, err := c.deliver()
	if err != nil {
		c.refused(err, begun)
		return
	}
	name := c.source.name
	s.metrics.answered(name, answer.status, s.o.Now().Sub(begun))
	s.metrics.last.WithLabelValues(name).Set(float64(s.o.Now().Unix()))
	c.freed()
	answer.send(c)
}

func (c *call) refused(err error, begun time.Time) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		refusal = &Refusal{Status: http.StatusServiceUnavailable, Reason: reasonStore, Retry: retryAfter, Detail: "the delivery cannot be taken now", Err: err}
	}
	name := ""
	if c.source != nil {
		name = c.source.name
	}
	c.metrics.answered(name, refusal.Status, c.o.Now().Sub(begun))
	c.metrics.rejected.WithLabelValues(name, refusal.Reason).Inc()
	line := c.noisy.Warn()
	if refusal.Reason == reasonStore {
		line = c.noisy.Error()
	}
	// Headers and body stay out: they hold secrets and personal data.
	line.Str("source", name).Int("status", refusal.Status).Str("reason", refusal.Reason).Str("from", c.r.RemoteAddr).
		Err(refusal).Msg("a delivery was refused")
	refusal.write(c.w)
}

// deliver goes through the steps. Its error is a *Refusal.
func (c *call) deliver() (answer, error) {
	for _, step := range []func() error{c.route, c.network, c.slot, c.declared} {
		if err := step(); err != nil {
			return answer{}, err
		}
	}
	body, err := c.body()
	if err != nil {
		return answer{}, err
	}
	kind, request := c.source.kind, &Request{Header: c.r.Header, Evidence: c.evidence, Body: body, Now: c.o.Now()}
	if kind.Ping(request) {
		return answer{status: http.StatusOK}, nil
	}
	if err := kind.Verify(request); err != nil {
		return answer{}, err
	}
	if !c.source.bucket.AllowN(c.o.Now(), 1) {
		refusal := refuse(http.StatusTooManyRequests, reasonRate, "more deliveries a second than this source may send")
		refusal.Retry = 1
		return answer{}, refusal
	}
	request.Body = unmarked(body) // the proof is over the bytes as they came
	delivery, err := kind.Read(request)
	if err != nil {
		return answer{}, err
	}
	if c.source.rules.Wakes {
		c.o.Wake(c.source.name)
		return answer{status: c.source.rules.Accepted}, nil
	}
	return c.keep(delivery)
}

// byteOrderMark is how some senders begin every body; it is no content.
var byteOrderMark = []byte("\xef\xbb\xbf")

// unmarked is a body without its one mark. One with two stays as it is: whoever reads it later passes over one mark too, and
// the second is a fault.
func unmarked(body []byte) []byte {
	rest := bytes.TrimPrefix(body, byteOrderMark)
	if bytes.HasPrefix(rest, byteOrderMark) {
		return body
	}
	return rest
}

// route finds the source. The answer is one and the same for whatever is not there, so that nobody learns which names are.
func (c *call) route() error {
	path, ok := strings.CutPrefix(c.r.URL.Path, "/in/")
	name, evidence, named := strings.Cut(path, "/")
	source := c.sources[name]
	if !ok || source == nil || source.rules.Evidence != named || named && (evidence == "" || strings.Contains(evidence, "/")) {
		return refuse(http.StatusNotFound, reasonPath,
			"nothing is delivered here; deliveries go to /in/SOURCE, documents of a source of kind token to /in/SOURCE/EVIDENCE")
	}
	c.source, c.evidence = source, evidence
	if c.r.Method != http.MethodPost {
		return refuse(http.StatusMethodNotAllowed, reasonMethod, "deliveries are sent by POST")
	}
	return nil
}

func (c *call) network() error {
	if len(c.source.networks) == 0 || within(c.source.networks, c.client()) {
		return nil
	}
	return refuse(http.StatusForbidden, reasonNetwork, "deliveries of this source do not come from this address")
}

// client is who sent the request. X-Forwarded-For is read from its end, for as long as proxies that are believed speak:
// what stands before may be made up by the sender. The zero address is in no network.
func (c *call) client() netip.Addr {
	peer, err := netip.ParseAddrPort(c.r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr()
	hops := strings.Split(strings.Join(c.r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(c.o.Proxies, addr); i-- {
		hop := strings.TrimSpace(hops[i])
		if hop == "" {
			break
		}
		if addr, err = netip.ParseAddr(hop); err != nil {
			return netip.Addr{}
		}
	}
	return addr
}

// slot takes one of the places of deliveries in hand.
func (c *call) slot() error {
	busy := refuse(http.StatusServiceUnavailable, reasonInFlight, "too many deliveries at once")
	busy.Retry = retryAfter
	if !take(c.slots) {
		return busy
	}
	if !take(c.source.slots) {
		<-c.slots
		return busy
	}
	held := true
	c.freed = func() {
		if held {
			held = false
			<-c.source.slots
			<-c.slots
		}
	}
	return nil
}

// declared refuses by what the head says, before any of the body is read.
func (c *call) declared() error {
	if c.r.ContentLength > c.source.most {
		return tooLarge()
	}
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return refuse(http.StatusUnsupportedMediaType, reasonType, "the body is compressed: send it as it is, without Content-Encoding")
	}
	if types := c.source.rules.Types; len(types) > 0 {
		if media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || !slices.Contains(types, media) {
			return refuse(http.StatusUnsupportedMediaType, reasonType, "send Content-Type: "+strings.Join(types, " or "))
		}
	}
	if !c.source.rules.Waits {
		return nil
	}
	return c.parameters()
}

// parameters are read where the sender writes the address himself: what he asks for there and nobody does, such as another
// operation, would be missed only in the books. Other senders may have parameters of their own, and take a refusal as final.
func (c *call) parameters() error {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return refuse(http.StatusBadRequest, reasonMalformed, "the parameters of the address are not readable: what is no letter or digit is written with %")
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if name != "wait" {
			return refuse(http.StatusBadRequest, reasonMalformed, fmt.Sprintf(
				"the address has a parameter %.40q, which means nothing: the one there is is wait; key, operation and event id are headers (Flexid-Key, Flexid-Op, Idempotency-Key)", name))
		}
	}
	switch text := q["wait"]; {
	case len(text) > 1:
		return refuse(http.StatusBadRequest, reasonMalformed, "wait is there twice")
	case len(text) == 1 && text[0] != "":
		wait, err := time.ParseDuration(text[0])
		if err != nil || wait < 0 {
			return refuse(http.StatusBadRequest, reasonMalformed, "wait is a duration such as 20s, at most "+maxWait.String())
		}
		c.wait = min(wait, maxWait)
	}
	return nil
}

func tooLarge() *Refusal {
	return refuse(http.StatusRequestEntityTooLarge, reasonSize, "the delivery is larger than this source may send")
}

// body reads the raw bytes, once.
func (c *call) body() ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.source.most))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		// The server watches the connection for the sender's going away, and takes the deadline for that where there is no
		// body whose end would lift it.
		_ = c.control.SetReadDeadline(time.Time{})
		return body, nil
	case errors.As(err, &large):
		return nil, tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, reasonSlow, "the body did not come within "+bodyTimeout.String())
	}
	return nil, &Refusal{Status: http.StatusBadRequest, Reason: reasonMalformed, Detail: "the body broke off", Err: err}
}
