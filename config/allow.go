package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Allow is which operations events may ask for: a list for every evidence, and lists of their own for some.
type Allow struct {
	every []string
	own   map[string][]string
}

// Allowed says whether an event may ask for op on a document of evidence.
func (a Allow) Allowed(evidence, op string) bool {
	ops, ok := a.own[evidence]
	if !ok {
		ops = a.every
	}
	return slices.Contains(ops, op)
}

// UnmarshalText reads items separated by commas: an operation for every evidence, or evidence:op+op, which replaces the
// list for that evidence. The word none in place of operations is the empty list.
func (a *Allow) UnmarshalText(text []byte) error {
	items, err := split(string(text))
	if err != nil {
		return err
	}
	parsed := Allow{own: map[string][]string{}}
	for _, item := range items {
		evidence, list, own := strings.Cut(item, ":")
		if !own {
			evidence, list = "", item
		}
		if own && !isEvidence(evidence) {
			return fmt.Errorf("%q is not the name of an evidence such as faktura-vydana", evidence)
		}
		ops, err := parseOps(list)
		if err != nil {
			return err
		}
		if !own {
			parsed.every = append(parsed.every, ops...)
			continue
		}
		if _, twice := parsed.own[evidence]; twice {
			return fmt.Errorf("evidence %s is named twice: join its operations with +", evidence)
		}
		parsed.own[evidence] = ops
	}
	*a = parsed
	return nil
}

func parseOps(list string) ([]string, error) {
	if list == "none" {
		return nil, nil
	}
	ops := strings.Split(list, "+")
	for i, op := range ops {
		ops[i] = strings.TrimSpace(op)
		switch ops[i] {
		case "create", "update", "upsert", "storno", "delete":
		case "":
			return nil, errors.New("an operation is missing")
		default:
			return nil, fmt.Errorf("%q is not one of create, update, upsert, storno, delete", ops[i])
		}
	}
	return ops, nil
}

func isEvidence(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return s != ""
}

// String writes it in the grammar it is read in, evidences sorted.
func (a Allow) String() string {
	items := slices.Clone(a.every)
	for _, evidence := range slices.Sorted(maps.Keys(a.own)) {
		ops := strings.Join(a.own[evidence], "+")
		if ops == "" {
			ops = "none"
		}
		items = append(items, evidence+":"+ops)
	}
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ",")
}

// MarshalText writes what String writes.
func (a Allow) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
