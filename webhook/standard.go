package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// standard is Standard Webhooks 1.0.0: v1 (HMAC-SHA256) and v1a (ed25519), also under Svix's header names.
type standard struct {
	keys      []key
	tolerance time.Duration
}

// key is one secret, decoded. The version of a signature follows from the key and never from the request alone: else a
// sender could choose to have a public key taken for a shared one.
type key struct {
	shared []byte            // of whsec_
	public ed25519.PublicKey // of whpk_
}

// leastKey is the length of the shortest shared key, bytes; the specification asks for 24 to 64.
const leastKey = 16

// most is how many signatures of a request are looked at: a sender that rotates sends two.
const most = 16

func newStandard(secrets []string, tolerance time.Duration) (*standard, error) {
	k := &standard{tolerance: tolerance}
	if k.tolerance <= 0 {
		k.tolerance = 5 * time.Minute
	}
	for i, secret := range secrets {
		decoded, err := decodeKey(secret)
		if err != nil {
			return nil, &SettingError{[]string{"SECRET", "PREVIOUS_SECRET"}[i], err}
		}
		k.keys = append(k.keys, decoded)
	}
	return k, nil
}

// decodeKey reads whsec_… or whpk_…. Unlike Stripe's, the prefix is no part of the key, and the rest is base64.
func decodeKey(secret string) (key, error) {
	if strings.HasPrefix(secret, "whsk_") {
		return key{}, errors.New("is the sender's private key (whsk_): the receiver takes the public one (whpk_)")
	}
	text, isPublic := strings.CutPrefix(secret, "whpk_")
	if !isPublic {
		text = strings.TrimPrefix(secret, "whsec_")
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return key{}, errors.New("is not base64 after its prefix whsec_ or whpk_")
	case isPublic && len(raw) != ed25519.PublicKeySize:
		return key{}, fmt.Errorf("is not a public key of ed25519: it has %d bytes, not %d", len(raw), ed25519.PublicKeySize)
	case isPublic:
		return key{public: raw}, nil
	case len(raw) < leastKey:
		return key{}, fmt.Errorf("decodes to %d bytes: at least %d are needed, 24 are usual", len(raw), leastKey)
	}
	return key{shared: raw}, nil
}

// Rules of senders that keep an id over their own repetitions.
func (*standard) Rules() Rules {
	return Rules{Types: []string{"application/json"}, Accepted: http.StatusAccepted, Clash: http.StatusConflict, Quarantine: true}
}

// Ping is not known to this kind.
func (*standard) Ping(*Request) bool { return false }

// signed is what a signature stands over, as it came.
type signed struct{ id, time, signatures string }

// Verify checks signature and time. Both are worked out in every case: the answer is the same, and so is its time.
func (k *standard) Verify(r *Request) error {
	s, err := signedOf(r.Header)
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(s.time, 10, 64)
	if err != nil || s.time[0] < '0' || s.time[0] > '9' || len(s.time) > 12 {
		return refuse(http.StatusBadRequest, reasonMalformed, "the timestamp is not a whole number of seconds")
	}
	if !plainID(s.id) {
		return refuse(http.StatusBadRequest, reasonMalformed, "the id is not 1 to 230 printable characters of ASCII without a dot")
	}
	fits := k.fits(s, r.Body)
	age := r.Now.Unix() - at
	fresh := age <= int64(k.tolerance/time.Second) && -age <= int64(k.tolerance/time.Second)
	switch {
	case !fits:
		return refuse(http.StatusUnauthorized, reasonSignature, unsigned)
	case !fresh:
		return refuse(http.StatusUnauthorized, reasonStale, unsigned)
	}
	return nil
}

// unsigned is one text for a wrong signature and an old one: which it was stands in the log only.
const unsigned = "the request is not authenticated: its signature does not fit, or it is too old"

func signedOf(h http.Header) (signed, error) {
	var found []signed
	for _, prefix := range []string{"Webhook-", "Svix-"} {
		id, hasID := only(h, prefix+"Id")
		at, hasTime := only(h, prefix+"Timestamp")
		lines := h.Values(prefix + "Signature")
		if !hasID && !hasTime && len(lines) == 0 {
			continue
		}
		if !hasID || !hasTime || len(lines) == 0 {
			return signed{}, refuse(http.StatusUnauthorized, reasonSignature, unsigned)
		}
		found = append(found, signed{id, at, strings.Join(lines, " ")})
	}
	switch len(found) {
	case 0:
		return signed{}, refuse(http.StatusUnauthorized, reasonSignature, unsigned)
	case 1:
		return found[0], nil
	}
	// Which of two ids is signed would depend on the reader.
	return signed{}, refuse(http.StatusBadRequest, reasonMalformed, "webhook- and svix- headers are mixed")
}

func plainID(id string) bool {
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '.' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// fits tries every signature with every key, without stopping at the first that fits.
func (k *standard) fits(s signed, body []byte) bool {
	content := append([]byte(s.id+"."+s.time+"."), body...)
	match := false
	for i, part := range strings.Fields(s.signatures) {
		if i == most {
			break
		}
		version, text, _ := strings.Cut(part, ",")
		signature, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue
		}
		for _, key := range k.keys {
			switch {
			case version == "v1" && key.shared != nil:
				match = hmac.Equal(signature, mac(key.shared, content)) || match
			case version == "v1a" && key.public != nil:
				match = ed25519.Verify(key.public, content, signature) || match
			}
		}
	}
	return match
}

func mac(key, content []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(content)
	return h.Sum(nil)
}

// Read takes the id and the body. Flexid-… headers count for nothing here: they are not signed.
func (k *standard) Read(r *Request) (Delivery, error) {
	s, err := signedOf(r.Header)
	if err != nil {
		return Delivery{}, err
	}
	return Delivery{ID: s.id, Body: r.Body}, singleNames(r.Body)
}
