package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
)

// oneOf compares in constant time, whatever the lengths are and whichever secret fits.
func oneOf(secrets []string, given string) bool {
	sum := sha256.Sum256([]byte(given))
	match := 0
	for _, secret := range secrets {
		own := sha256.Sum256([]byte(secret))
		match |= subtle.ConstantTimeCompare(own[:], sum[:])
	}
	return match == 1
}
