package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Sign makes the headers that a sender of a source would send: to try a source out. id is the event id, "" = none for the
// kinds that can do without.
func Sign(s Source, id string, at time.Time, body []byte) (http.Header, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	h := http.Header{"Content-Type": {"application/json"}}
	switch s.Kind {
	case "token":
		h.Set("Authorization", "Bearer "+s.Secret)
		if id != "" {
			h.Set("Idempotency-Key", id)
		}
	case "flexi":
		h.Set("X-FB-Hook-SecKey", s.Secret)
	case "standard":
		if strings.HasPrefix(s.Secret, "whpk_") {
			return nil, errors.New("the source's secret is a public key: only its sender can sign")
		}
		if !plainID(id) {
			return nil, fmt.Errorf("the id %q cannot be signed", id)
		}
		key, err := decodeKey(s.Secret)
		if err != nil {
			return nil, err
		}
		seconds := strconv.FormatInt(at.Unix(), 10)
		sum := mac(key.shared, append([]byte(id+"."+seconds+"."), body...))
		h.Set("Webhook-Id", id)
		h.Set("Webhook-Timestamp", seconds)
		h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum))
	}
	return h, nil
}
