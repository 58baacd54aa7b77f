package flexi

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// testCert makes a self-signed certificate like the one an own installation ships with.
func testCert(t testing.TB, names ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "flexibee"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			tmpl.IPAddresses, tmpl.DNSNames = []net.IP{ip}, nil
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, hex.EncodeToString(sum[:])
}

func startTLS(t testing.TB, conf *tls.Config, handle func(*rawConn)) *rawServer {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	return serveRaw(t, ln, handle)
}

func secure(s *rawServer) string { return strings.Replace(s.url(), "http:", "https:", 1) }

func TestCertificate(t *testing.T) {
	cert, fp := testCert(t)
	named, _ := testCert(t, "127.0.0.1")
	pool := x509.NewCertPool()
	pool.AddCert(named.Leaf)
	colons := strings.ToUpper(strings.Join(strings.SplitAfter(fp, ""), ""))
	var pairs []string
	for i := 0; i < len(colons); i += 2 {
		pairs = append(pairs, colons[i:i+2])
	}
	cases := []struct {
		name string
		cert tls.Certificate
		set  func(*Options)
		ok   bool
	}{
		{"unknown authority", cert, func(*Options) {}, false},
		{"fingerprint", cert, func(o *Options) { o.CertSHA256 = fp }, true},
		{"fingerprint with colons", cert, func(o *Options) { o.CertSHA256 = strings.Join(pairs, ":") }, true},
		{"fingerprint of another", named, func(o *Options) { o.CertSHA256 = fp }, false},
		{"fingerprint of another, though the authority is known", named, func(o *Options) { o.CertSHA256, o.CAs = fp, pool }, false},
		{"authority", named, func(o *Options) { o.CAs = pool }, true},
		{"authority, but another name", cert, func(o *Options) {
			o.CAs = x509.NewCertPool()
			o.CAs.AddCert(cert.Leaf)
		}, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := startTLS(t, &tls.Config{Certificates: []tls.Certificate{tc.cert}}, answering(201, "", okBody))
			cn, err := testClient(t, secure(s), tc.set).Dial(t.Context())
			if tc.ok {
				if err != nil {
					t.Fatal(err)
				}
				if r := cn.Send(t.Context(), mustPrepare(t, createWrite()), permit("a1")); r.Outcome != Accepted {
					t.Errorf("%s: %v", r.Outcome, r.Err)
				}
				return
			}
			var ce *CertError
			if !errors.As(err, &ce) || OutcomeOf(err) != NotSent {
				t.Fatalf("error is %v", err)
			}
			sum := sha256.Sum256(tc.cert.Certificate[0])
			if ce.Fingerprint != hex.EncodeToString(sum[:]) || ce.Hint != "FLEXID_FLEXI_CERT_SHA256="+ce.Fingerprint {
				t.Errorf("fingerprint %s, hint %s", ce.Fingerprint, ce.Hint)
			}
			if _, bytes, _ := s.seen(); bytes != 0 {
				t.Errorf("the server has %d bytes", bytes)
			}
		})
	}
}

// HTTP/2 replays what the peer resets; it is not offered, so a server cannot choose it.
func TestHTTP2IsNotTaken(t *testing.T) {
	cert, fp := testCert(t)
	var chosen atomic.Value
	s := startTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"},
		VerifyConnection: func(s tls.ConnectionState) error { chosen.Store(s.NegotiatedProtocol); return nil },
	}, answering(201, "", okBody))
	c := testClient(t, secure(s), func(o *Options) { o.CertSHA256 = fp })
	if r := send(t, c, mustPrepare(t, createWrite()), permit("a1")); r.Outcome != Accepted {
		t.Fatalf("%s: %v", r.Outcome, r.Err)
	}
	if chosen.Load() != "http/1.1" {
		t.Errorf("the server chose %q", chosen.Load())
	}

	only := startTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}, (*rawConn).hangUp)
	if _, err := testClient(t, secure(only), func(o *Options) { o.CertSHA256 = fp }).Dial(t.Context()); OutcomeOf(err) != NotSent {
		t.Errorf("a server with HTTP/2 only: %v", err)
	}
}

func TestTLSFaults(t *testing.T) {
	cert, fp := testCert(t)
	pin := func(o *Options) { o.CertSHA256 = fp }
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}

	t.Run("no TLS at all", func(t *testing.T) {
		s := startRaw(t, func(c *rawConn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")); c.hangUp() })
		if _, err := testClient(t, secure(s), pin).Dial(t.Context()); OutcomeOf(err) != NotSent {
			t.Errorf("%v", err)
		}
	})
	t.Run("closed after the handshake", func(t *testing.T) {
		s := startTLS(t, conf, func(c *rawConn) {
			_ = c.Conn.(*tls.Conn).Handshake()
			c.hangUp()
		})
		cn, err := testClient(t, secure(s), pin).Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waitClosed(t, cn)
		if r := cn.Send(t.Context(), mustPrepare(t, createWrite()), permit("a1")); r.Outcome != NotSent {
			t.Errorf("%s: %v", r.Outcome, r.Err)
		}
	})
	t.Run("client certificate demanded", func(t *testing.T) {
		// With TLS 1.3 the refusal arrives after the request was written: that is a maybe.
		demand := conf.Clone()
		demand.ClientAuth = tls.RequireAnyClientCert
		s := startTLS(t, demand, func(c *rawConn) { _, _ = c.request() })
		cn, err := testClient(t, secure(s), pin).Dial(t.Context())
		if err != nil {
			t.Skipf("refused in the handshake: %v", err)
		}
		r := cn.Send(t.Context(), mustPrepare(t, createWrite()), permit("a1"))
		if r.Outcome != Maybe && r.Request.Sent != 0 {
			t.Errorf("%s with %d bytes: %v", r.Outcome, r.Request.Sent, r.Err)
		}
		if _, _, reqs := s.seen(); len(reqs) != 0 {
			t.Errorf("%d requests", len(reqs))
		}
	})
	t.Run("sessions are resumed and still verified", func(t *testing.T) {
		s := startTLS(t, conf, answering(201, "", okBody))
		c := testClient(t, secure(s), pin)
		for i := range 3 {
			if r := send(t, c, mustPrepare(t, createWrite()), permit(fmt.Sprint(i))); r.Outcome != Accepted {
				t.Fatalf("%d: %s, %v", i, r.Outcome, r.Err)
			}
		}
	})
}

// startProxy is a proxy that answers CONNECT with a status and joins the ends on 200.
func startProxy(t testing.TB, status int) *rawServer {
	return startRaw(t, func(c *rawConn) {
		r, err := c.request()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\n\r\n", status, http.StatusText(status))
		if status != 200 {
			c.hangUp()
			return
		}
		target, err := net.Dial("tcp", strings.Fields(r.head)[1])
		if err != nil {
			return
		}
		defer target.Close()
		c.s.wg.Go(func() { _, _ = io.Copy(target, c.br); _ = target.Close() })
		_, _ = io.Copy(c, target)
		c.hangUp()
	})
}

func TestProxy(t *testing.T) {
	cert, fp := testCert(t)
	through := func(p *rawServer) func(*Options) {
		return func(o *Options) {
			o.CertSHA256 = fp
			o.Proxy, _ = url.Parse(strings.Replace(p.url(), "http://", "http://joe:secret@", 1))
		}
	}
	t.Run("tunnel", func(t *testing.T) {
		s, p := startTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}}, answering(201, "", okBody)), startProxy(t, 200)
		if r := send(t, testClient(t, secure(s), through(p)), mustPrepare(t, createWrite()), permit("a1")); r.Outcome != Accepted {
			t.Fatalf("%s: %v", r.Outcome, r.Err)
		}
		_, _, reqs := p.seen()
		if len(reqs) != 1 || !strings.HasPrefix(reqs[0].head, "CONNECT "+s.ln.Addr().String()+" ") {
			t.Fatalf("the proxy saw %+v", reqs)
		}
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("joe:secret"))
		if reqs[0].header("Proxy-Authorization") != want || reqs[0].header("Authorization") != "" {
			t.Errorf("head to the proxy: %q", reqs[0].head)
		}
	})
	t.Run("refused", func(t *testing.T) {
		s, p := startTLS(t, &tls.Config{Certificates: []tls.Certificate{cert}}, answering(201, "", okBody)), startProxy(t, 503)
		_, err := testClient(t, secure(s), through(p)).Dial(t.Context())
		if OutcomeOf(err) != NotSent || !strings.Contains(err.Error(), "503") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
		if conns, _, _ := s.seen(); conns != 0 {
			t.Errorf("the server has %d connections", conns)
		}
	})
	t.Run("silent", func(t *testing.T) {
		p := startRaw(t, func(c *rawConn) { _, _ = bufio.NewReader(c).ReadByte(); _, _ = io.Copy(io.Discard, c); c.hangUp() })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := testClient(t, "https://erp.test", through(p)).Dial(ctx); OutcomeOf(err) != NotSent {
			t.Errorf("%v", err)
		}
	})
	t.Run("plain", func(t *testing.T) {
		p := startRaw(t, answering(201, "", okBody))
		if r := send(t, testClient(t, "http://erp.test", through(p)), mustPrepare(t, createWrite()), permit("a1")); r.Outcome != Accepted {
			t.Fatalf("%s: %v", r.Outcome, r.Err)
		}
		if _, _, reqs := p.seen(); !strings.HasPrefix(reqs[0].head, "POST http://erp.test/c/demo/") {
			t.Errorf("head: %q", reqs[0].head)
		}
	})
}
