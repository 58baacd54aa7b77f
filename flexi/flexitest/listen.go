package flexitest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// pipeListener hands the server side of in-memory connections to the HTTP server.
type pipeListener struct {
	queue chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{queue: make(chan net.Conn), done: make(chan struct{})}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "flexi.test:5434" }

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	client, server := memPipe()
	var err error
	select {
	case l.queue <- server:
		return client, nil
	case <-l.done:
		err = &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		err = &net.OpError{Op: "dial", Net: "pipe", Err: ctx.Err()}
	}
	_, _ = client.Close(), server.Close()
	return nil, err
}

// refusingListener closes connections that a fault refuses before a byte of them is read.
type refusingListener struct {
	net.Listener
	s *Server
}

func (g *refusingListener) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g.s.refusesConn() {
			abort(c)
			continue
		}
		if g.s.opt.TLS {
			c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{g.s.cert}, NextProtos: []string{"http/1.1"}})
		}
		return c, nil
	}
}

// abort closes a connection so that a TCP peer sees a reset, not an orderly end.
func abort(c net.Conn) {
	inner := c
	if t, ok := c.(*tls.Conn); ok {
		inner = t.NetConn()
	}
	switch t := inner.(type) {
	case *memConn:
		t.abort()
		return
	case *net.TCPConn:
		_ = t.SetLinger(0)
	}
	_ = inner.Close()
}

// trackConn knows the live connections, so that going down can cut them.
func (s *Server) trackConn(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(s.conns, c)
	}
}

// newCertificate makes a self-signed certificate. Its times are the system's, since that is what a client checks by.
func newCertificate() (tls.Certificate, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(fmt.Sprintf("flexitest: make a key: %v", err))
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "flexi.test"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"flexi.test", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		panic(fmt.Sprintf("flexitest: make a certificate: %v", err))
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(fmt.Sprintf("flexitest: read the certificate: %v", err))
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, leaf
}
