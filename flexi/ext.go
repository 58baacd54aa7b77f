package flexi

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// ExternalID is the identity that we own inside the ERP: ext:<system>:<key>. It is unique within one evidence.
type ExternalID string

var (
	plainKey  = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,60}$`)
	hashedKey = regexp.MustCompile(`^h-[0-9a-f]{40}$`)
	wholeExt  = regexp.MustCompile(`^ext:[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*:[A-Za-z0-9._/-]{1,60}$`)
)

// NewExternalID names the document that a source calls key; source "" is the daemon's own intake. A key with other
// characters than [A-Za-z0-9._/-], or longer than 60, enters as a hash: the ERP has a syntax of its own for brackets,
// commas and colons in identifiers. A key that looks like such a hash is hashed too, else a sender could name the
// document of another key.
func NewExternalID(system, source, key string) ExternalID {
	if source != "" {
		system += "." + source
	}
	if !plainKey.MatchString(key) || hashedKey.MatchString(key) {
		sum := sha256.Sum256([]byte(key))
		key = "h-" + hex.EncodeToString(sum[:])[:40]
	}
	return ExternalID("ext:" + system + ":" + key)
}

// Valid reports whether the identifier can be sent as it stands.
func (e ExternalID) Valid() bool { return wholeExt.MatchString(string(e)) }

// System is the part between the colons, with the source: "FLEXID" or "FLEXID.shop".
func (e ExternalID) System() string {
	system, _, _ := strings.Cut(strings.TrimPrefix(string(e), "ext:"), ":")
	return system
}

// Key is the part after the system; a hash when the sender's key did not fit.
func (e ExternalID) Key() string {
	_, key, _ := strings.Cut(strings.TrimPrefix(string(e), "ext:"), ":")
	return key
}

// String is the identifier as it goes over the wire.
func (e ExternalID) String() string { return string(e) }

// Of reports whether the identifier belongs to system, whatever its source. Letter case does not count: whether the ERP
// tells systems apart by case is not documented.
func (e ExternalID) Of(system string) bool {
	own, mine := strings.ToLower(e.System()), strings.ToLower(system)
	return own == mine || strings.HasPrefix(own, mine+".")
}
