package flexi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Options are the settings of a Client.
type Options struct {
	URL, Company, User, Password string
	// Session logs in once and sends the session's id instead of user and password; see KeepSession and Logout.
	Session bool

	// CAs replaces the system's authorities. CertSHA256 pins the server's certificate instead (hex, with or without
	// colons). One of the two always decides: verification cannot be switched off.
	CAs        *x509.CertPool
	CertSHA256 string

	// WriteTimeout is for a whole write, counted from its claim; nine tenths of it for the first byte of the answer.
	// ReadTimeout is for one try of a read, and twice that for all its tries. 0 = 200 s and 30 s.
	WriteTimeout, ReadTimeout time.Duration

	// Proxy is an HTTP proxy; nil = none. The environment is never asked: a write must not take another way by accident.
	Proxy *url.URL
	// Dial replaces the dialler, for tests.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	Now  func() time.Time
	Rand func() float64 // in [0, 1)

	// Budget bounds what is sent again; nil = one of its own.
	Budget *Budget
	// Quota is asked before every request; nil = no limit.
	Quota Quota
	// Observe is told every request of which at least one byte reached the wire, also the tries of one read.
	Observe func(Request)
	// Tripped is told the name of an attempt that was about to be sent twice; the caller stops all writes.
	Tripped func(attempt string)
	// Probe marks everything this Client does as probing, for the counts.
	Probe bool
	Log   zerolog.Logger
}

const (
	defaultWriteTimeout = 200 * time.Second
	defaultReadTimeout  = 30 * time.Second
	dialTimeout         = 5 * time.Second  // one TCP connection
	connectTimeout      = 15 * time.Second // with proxy and TLS
)

// Client speaks to one company of one ERP as one user. It holds no connection and needs no closing.
// Safe for concurrent use.
type Client struct {
	o        Options
	base     *url.URL
	tls      *tls.Config
	guard    *Guard
	budget   *Budget
	throttle *throttle

	session *session // nil = user and password go with every request
}

var companyName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// New checks the options, all of them, and makes no connection.
func New(o Options) (*Client, error) {
	c := &Client{o: o, guard: NewGuard(), budget: o.Budget}
	if c.budget == nil {
		c.budget = NewBudget(1)
	}
	if o.Session {
		c.session = newSession()
	}
	if c.o.Now == nil {
		c.o.Now = time.Now
	}
	if c.o.Rand == nil {
		c.o.Rand = rand.Float64
	}
	c.throttle = &throttle{now: c.o.Now, random: c.o.Rand}
	if c.o.Dial == nil {
		c.o.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if c.o.WriteTimeout == 0 {
		c.o.WriteTimeout = defaultWriteTimeout
	}
	if c.o.ReadTimeout == 0 {
		c.o.ReadTimeout = defaultReadTimeout
	}
	var faults []error
	var err error
	if c.base, err = parseBase(o.URL); err != nil {
		faults = append(faults, err)
	}
	faults = append(faults, c.o.faults()...)
	pin, err := fingerprint256(o.CertSHA256)
	if err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("flexi: %w", errors.Join(faults...))
	}
	c.tls = tlsConfig(c.base.Hostname(), o.CAs, pin)
	return c, nil
}

func (o Options) faults() []error {
	var faults []error
	if !companyName.MatchString(o.Company) {
		faults = append(faults, fmt.Errorf("company %q is not an identifier as it stands in the ERP's addresses", o.Company))
	}
	if o.User == "" {
		faults = append(faults, errors.New("user is missing"))
	}
	if strings.Contains(o.User, ":") && !o.Session {
		faults = append(faults, errors.New("user has a colon in it, which basic authentication cannot carry"))
	}
	if o.Password == "" {
		faults = append(faults, errors.New("password is missing"))
	}
	if o.WriteTimeout < 0 || o.ReadTimeout < 0 {
		faults = append(faults, errors.New("a time limit is negative"))
	}
	if o.Proxy != nil && (o.Proxy.Scheme != "http" || o.Proxy.Host == "") {
		faults = append(faults, errors.New("proxy is not of the form http://host:port"))
	}
	return faults
}

// parseBase reads the ERP's address. Its text is not repeated in errors: people paste logins into it.
func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(s, "/"))
	switch {
	case err != nil:
		return nil, errors.New("address of the ERP cannot be read")
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("address of the ERP is not of the form https://host:port")
	case u.User != nil:
		return nil, errors.New("address of the ERP has a login in it: user and password have settings of their own")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("address of the ERP has a query in it")
	}
	return u, nil
}

func fingerprint256(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	pin, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
	if err != nil || len(pin) != 32 {
		return nil, errors.New("fingerprint of the certificate is not 64 hexadecimal digits")
	}
	return pin, nil
}

// address is host:port of the ERP.
func (c *Client) address() string {
	port := c.base.Port()
	switch {
	case port != "":
	case c.base.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(c.base.Hostname(), port)
}

// companyPath is the address of something inside our company.
func (c *Client) companyPath(rest string) string { return "/c/" + c.o.Company + rest }

func (c *Client) observe(r Request) {
	if c.o.Observe != nil && r.Sent > 0 {
		c.o.Observe(r)
	}
}

func (c *Client) kind(k string) string {
	if c.o.Probe {
		return "probe"
	}
	return k
}
