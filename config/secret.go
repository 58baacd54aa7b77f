package config

import (
	"fmt"
	"io"
)

const hidden = "[hidden]"

// Secret is a password or token. However it is printed or encoded, it shows "[hidden]"; only Reveal gives it away. The
// value lies behind a pointer so that a printer that reaches it past its methods, in an unexported field of somebody's
// struct, sees an address.
type Secret struct{ value *string }

// NewSecret hides a value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal gives the value; "" when there is none.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Empty says that there is no value.
func (s Secret) Empty() bool { return s.Reveal() == "" }

func (s Secret) String() string { return hidden }

// GoString hides the value from %#v.
func (s Secret) GoString() string { return hidden }

// Format hides the value from every verb, also from those that look past String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON hides the value from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// UnmarshalText takes a value in.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
