package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"flexid/flexi"
)

// host is host:port of the ERP, and whether it speaks TLS.
func (d *doctor) host() (addr, name string, secure bool) {
	u, err := url.Parse(d.cfg.Flexi.URL)
	if err != nil {
		return d.cfg.Flexi.URL, "", false // config has checked it; the dial says the rest
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port), u.Hostname(), u.Scheme == "https"
}

func (d *doctor) address(ctx context.Context) bool {
	addr, _, _ := d.host()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		do := "check FLEXID_FLEXI_URL, and that the server runs and no firewall stands between"
		var dns *net.DNSError
		if errors.As(err, &dns) {
			do = "the name is not known here: check FLEXID_FLEXI_URL"
		}
		d.say("address", resultFail, err.Error(), do)
		return false
	}
	_ = conn.Close() // nothing was sent
	d.say("address", resultOK, addr+" takes connections", "")
	return true
}

// certificate shows what the server presents, and whether the client that serve uses takes it.
func (d *doctor) certificate(ctx context.Context) bool {
	addr, name, secure := d.host()
	if !secure {
		d.say("certificate", resultWarn, "http: nothing is encrypted", "use https, unless the ERP runs on this machine")
		return true
	}
	seen := shown(ctx, addr, name)
	conn, err := d.client.Dial(ctx)
	if err == nil {
		_ = conn.Close() // nothing was sent
		if days := seen.expires.Sub(d.now()).Hours() / 24; !seen.expires.IsZero() && days < 14 {
			d.say("certificate", resultWarn, fmt.Sprintf("fits, and ends in %.0f days; SHA-256 %s", days, seen.print), "have it renewed")
			return true
		}
		d.say("certificate", resultOK, "fits; SHA-256 "+seen.print, "")
		return true
	}
	var cert *flexi.CertError
	if errors.As(err, &cert) {
		d.say("certificate", resultFail, fmt.Sprintf("does not fit: %v; SHA-256 %s", cert.Err, cert.Fingerprint),
			"compare the fingerprint with the server's, then set "+cert.Hint+" (or FLEXID_FLEXI_CA_FILE)")
		return false
	}
	d.say("certificate", resultFail, err.Error(), "does the port speak TLS? check FLEXID_FLEXI_URL")
	return false
}

type leaf struct {
	print   string
	expires time.Time
}

var errSeen = errors.New("seen")

// shown looks at the server's certificate. The handshake is broken off before anything could be sent: this connection is
// not verified, and must never carry a request.
func shown(ctx context.Context, addr, name string) leaf {
	var l leaf
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: &tls.Config{
		ServerName: name, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, // only to read the fingerprint; VerifyConnection always fails
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				sum := sha256.Sum256(s.PeerCertificates[0].Raw)
				l = leaf{hex.EncodeToString(sum[:]), s.PeerCertificates[0].NotAfter}
			}
			return errSeen
		},
	}}
	if conn, err := dialer.DialContext(ctx, "tcp", addr); err == nil {
		_ = conn.Close()
	}
	return l
}
