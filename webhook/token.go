package webhook

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxID is the length of the longest event id, bytes. The source's name is put before it.
const maxID = 230

// token is our own API: the sender knows a secret, and each request is one document.
type token struct{ secrets []string }

// Rules of our own clients: told at once what is wrong.
func (*token) Rules() Rules {
	return Rules{Evidence: true, Waits: true, Types: []string{"application/json"},
		Accepted: http.StatusAccepted, Clash: http.StatusUnprocessableEntity}
}

// Ping is not known to this kind.
func (*token) Ping(*Request) bool { return false }

// Verify compares the bearer token.
func (k *token) Verify(r *Request) error {
	value, _ := only(r.Header, "Authorization")
	scheme, given, _ := strings.Cut(value, " ")
	// Compared in every case, so that the time does not tell a missing header from a wrong one.
	if fits := oneOf(k.secrets, strings.TrimSpace(given)); !fits || !strings.EqualFold(scheme, "Bearer") {
		return refuse(http.StatusUnauthorized, reasonSignature, "the request is not authenticated: send Authorization: Bearer with the source's secret")
	}
	return nil
}

// Read takes the event's headers; they are as much authenticated as the body.
func (k *token) Read(r *Request) (Delivery, error) {
	d := Delivery{Evidence: r.Evidence, Body: r.Body}
	for name, to := range map[string]*string{
		"Idempotency-Key": &d.ID, "Flexid-Key": &d.Key, "Flexid-Op": &d.Op, "Flexid-Version": &d.Version,
	} {
		values := r.Header.Values(name)
		if len(values) == 0 {
			continue
		}
		value := strings.TrimSpace(values[0])
		switch {
		case len(values) > 1:
			return d, refuse(http.StatusBadRequest, reasonMalformed, "header "+name+" is given twice")
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			return d, refuse(http.StatusBadRequest, reasonMalformed, "header "+name+" is not plain UTF-8 text")
		case value == "":
			return d, refuse(http.StatusBadRequest, reasonMalformed, "header "+name+" is empty: leave it out or give it a value")
		}
		*to = value
	}
	if len(d.ID) > maxID {
		return d, refuse(http.StatusBadRequest, reasonMalformed, "header Idempotency-Key is longer than 230 bytes")
	}
	return d, singleNames(r.Body)
}
