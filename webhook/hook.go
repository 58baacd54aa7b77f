package webhook

import (
	"bytes"
	"net/http"

	"flexid/flexi"
)

// hook is ABRA Flexi's own web hook. Its header is a secret that never changes, and its body neither names the company nor
// is signed: a delivery proves only that somebody knows the secret. So it wakes the reader of changes, and a lost, late,
// doubled or forged one costs nothing.
type hook struct{ secrets []string }

// Rules of Flexi: a 2xx within 15 s, with an empty body, whatever it sent.
func (*hook) Rules() Rules { return Rules{Wakes: true, Accepted: http.StatusOK, Clash: http.StatusOK} }

// Ping is the empty notification by which Flexi tries an address before it registers the hook. Whether that one carries
// the secret is not documented.
func (*hook) Ping(r *Request) bool {
	body := bytes.TrimSpace(r.Body)
	if len(body) == 0 || string(body) == "{}" {
		return true
	}
	changes, err := flexi.DecodeChanges(body)
	return err == nil && len(changes.Changes) == 0
}

// Verify compares the secret.
func (k *hook) Verify(r *Request) error {
	given, _ := only(r.Header, "X-FB-Hook-SecKey")
	if !oneOf(k.secrets, given) {
		return refuse(http.StatusUnauthorized, reasonSignature, "the request is not authenticated: X-FB-Hook-SecKey is not the source's secret")
	}
	return nil
}

// Read finds nothing to store.
func (k *hook) Read(*Request) (Delivery, error) { return Delivery{}, nil }
