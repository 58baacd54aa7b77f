package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The parsers here name what is wrong without repeating the whole value: the fault around them shows it where it may.

// List is a list of words.
type List []string

// UnmarshalText reads words separated by commas.
func (l *List) UnmarshalText(text []byte) error {
	words, err := split(string(text))
	*l = words
	return err
}

func split(text string) ([]string, error) {
	words := strings.Split(text, ",")
	for i, word := range words {
		if words[i] = strings.TrimSpace(word); words[i] == "" {
			return nil, fmt.Errorf("item %d is empty", i+1)
		}
	}
	return words, nil
}

// Networks are address ranges; a lone address is a range of one.
type Networks []netip.Prefix

// UnmarshalText reads addresses and networks separated by commas.
func (n *Networks) UnmarshalText(text []byte) error {
	words, err := split(string(text))
	if err != nil {
		return err
	}
	for i, word := range words {
		prefix, err := netip.ParsePrefix(word)
		if addr, addrErr := netip.ParseAddr(word); addrErr == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return fmt.Errorf("item %d is neither an address nor a network", i+1)
		}
		*n = append(*n, prefix.Masked())
	}
	return nil
}

// Contains says whether an address is in one of the ranges.
func (n Networks) Contains(addr netip.Addr) bool {
	for _, prefix := range n {
		if prefix.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// Durations is a schedule: rising, counted from one beginning.
type Durations []time.Duration

// UnmarshalText reads rising durations separated by commas. The last one is repeated by its reader, so it may not be so
// short that the repetition becomes a storm of requests.
func (d *Durations) UnmarshalText(text []byte) error {
	words, err := split(string(text))
	if err != nil {
		return err
	}
	for i, word := range words {
		step, err := parseDuration(word)
		if err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
		if i > 0 && step <= (*d)[i-1] {
			return fmt.Errorf("item %d is not longer than the one before", i+1)
		}
		*d = append(*d, step)
	}
	if last := (*d)[len(*d)-1]; last < 100*time.Millisecond {
		return errors.New("the last item is repeated and must be at least 100ms")
	}
	return nil
}

// Clock is a time of day, as the time since midnight.
type Clock time.Duration

// UnmarshalText reads HH:MM.
func (c *Clock) UnmarshalText(text []byte) error {
	at, err := time.Parse("15:04", string(text))
	if err != nil {
		return errors.New("not a time of day such as 02:30")
	}
	*c = Clock(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute)
	return nil
}

func (c Clock) String() string {
	d := time.Duration(c)
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}

// MarshalText writes HH:MM.
func (c Clock) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Size is a number of bytes.
type Size int64

// UnmarshalText reads a number of bytes, KiB, MiB or GiB.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for suffix, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = strings.TrimSpace(rest), bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return errors.New("not a number of bytes such as 512KiB")
	}
	*s = Size(n * unit)
	return nil
}

func (s Size) String() string {
	if s > 0 && s%(1<<20) == 0 {
		return strconv.FormatInt(int64(s)>>20, 10) + "MiB"
	}
	if s > 0 && s%(1<<10) == 0 {
		return strconv.FormatInt(int64(s)>>10, 10) + "KiB"
	}
	return strconv.FormatInt(int64(s), 10)
}

// parseDuration adds the day to Go's units: what is kept is thought of in days.
func parseDuration(text string) (time.Duration, error) {
	if days := regexp.MustCompile(`^([0-9]{1,5})d$`).FindStringSubmatch(text); days != nil {
		n, _ := strconv.Atoi(days[1])
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		if _, numErr := strconv.ParseFloat(text, 64); numErr == nil {
			return 0, errors.New("a duration needs a unit: ms, s, m, h or d")
		}
		return 0, errors.New("not a duration such as 30s, 5m or 400d")
	}
	if d < 0 {
		return 0, errors.New("a duration may not be negative")
	}
	return d, nil
}
