package flexi

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// dial makes one connection that no pool knows and no retry of net/http can replace. Whatever fails here, no byte of a
// request was sent: there was none yet.
func (c *Client) dial(ctx context.Context) (*http.ClientConn, *guardedConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var gc *guardedConn
	t := &http.Transport{
		Protocols:          new(http.Protocols),
		DisableKeepAlives:  true,
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := c.o.Dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			gc = &guardedConn{Conn: conn}
			return gc, nil
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var err error
			gc, err = c.dialTLS(ctx, network, addr)
			if err != nil {
				return nil, err // never a nil *guardedConn in an interface
			}
			return gc, nil
		},
	}
	// HTTP/2 replays a request that the peer reset, without a limit: https://go.dev/issue/52459.
	t.Protocols.SetHTTP1(true)
	if c.base.Scheme == "http" && c.o.Proxy != nil {
		t.Proxy = http.ProxyURL(c.o.Proxy)
	}
	cc, err := t.NewClientConn(ctx, c.base.Scheme, c.address())
	if err != nil {
		if gc != nil {
			err = errors.Join(err, ignoreClosed(gc.Close()))
		}
		return nil, nil, err
	}
	return cc, gc, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// dialTLS goes to the ERP, through the proxy if there is one, and shakes hands. The proxy is asked here and not by the
// transport, so that the guardedConn can stand above TLS.
func (c *Client) dialTLS(ctx context.Context, network, addr string) (*guardedConn, error) {
	first := addr
	if c.o.Proxy != nil {
		first = proxyAddress(c.o.Proxy)
	}
	conn, err := c.o.Dial(ctx, network, first)
	if err != nil {
		return nil, err
	}
	if c.o.Proxy != nil {
		if err := connect(ctx, conn, c.o.Proxy, addr); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("proxy: %w", err)
		}
	}
	m := &meter{Conn: conn}
	tc := tls.Client(m, c.tls)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS: %w", certError(err))
	}
	return &guardedConn{Conn: tc, below: m.out.Load}, nil
}

func proxyAddress(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return u.Host
}

// connect asks a proxy for a tunnel.
func connect(ctx context.Context, conn net.Conn, proxy *url.URL, addr string) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: make(http.Header)}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	// The reader may be thrown away afterwards: behind a tunnel the server does not speak until it is spoken to.
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, 64<<10)), req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the tunnel was refused with status %d", resp.StatusCode)
	}
	return nil
}

// tlsConfig trusts the authorities, or exactly one certificate.
func tlsConfig(host string, cas *x509.CertPool, pin []byte) *tls.Config {
	t := &tls.Config{
		ServerName: host,
		RootCAs:    cas,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		// One connection per request would otherwise pay for a whole handshake each time.
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
	if pin != nil {
		// Own installations ship certificates without a usable name or authority. The fingerprint is the stricter check;
		// it runs on every connection, resumed ones too.
		t.InsecureSkipVerify = true //nolint:gosec // VerifyConnection below decides
		t.VerifyConnection = func(s tls.ConnectionState) error { return pinned(s, pin) }
	}
	return t
}

func pinned(s tls.ConnectionState, pin []byte) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the server showed no certificate")
	}
	leaf := s.PeerCertificates[0]
	if sum := sha256.Sum256(leaf.Raw); subtle.ConstantTimeCompare(sum[:], pin) != 1 {
		return newCertError(leaf, errors.New("its fingerprint is another than the one that is set"))
	}
	return nil
}

// certError makes trouble with a certificate into a *CertError and leaves other errors alone.
func certError(err error) error {
	var v *tls.CertificateVerificationError
	if errors.As(err, &v) && len(v.UnverifiedCertificates) > 0 {
		return newCertError(v.UnverifiedCertificates[0], err)
	}
	return err
}

func newCertError(leaf *x509.Certificate, err error) *CertError {
	sum := sha256.Sum256(leaf.Raw)
	fp := hex.EncodeToString(sum[:])
	return &CertError{Fingerprint: fp, Hint: "FLEXID_FLEXI_CERT_SHA256=" + fp, Err: err}
}
