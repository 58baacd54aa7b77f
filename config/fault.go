package config

import (
	"fmt"
	"strings"
)

// Fault is one thing wrong with the settings.
type Fault struct {
	Variable string // the variable to change
	Value    string // what it holds, shortened; empty for secrets and for variables that may hold one
	Problem  string // what is wrong
	Allowed  string // what may be written
	Example  string // a line that is accepted
}

func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.Variable)
	if f.Value != "" {
		fmt.Fprintf(&b, "=%q", f.Value)
	}
	b.WriteString(": " + f.Problem)
	if f.Allowed != "" {
		b.WriteString("; allowed: " + f.Allowed)
	}
	if f.Example != "" {
		b.WriteString("; example: " + f.Example)
	}
	return b.String()
}

// Faults is the error of Load: everything that is wrong, in the order of the documentation. Exit code 78.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, 0, len(f)+1)
	lines = append(lines, fmt.Sprintf("%d settings are wrong", len(f)))
	if len(f) == 1 {
		lines[0] = "1 setting is wrong"
	}
	for _, fault := range f {
		lines = append(lines, "  "+fault.String())
	}
	return strings.Join(lines, "\n")
}

// Warning is a setting that works and is likely not meant.
type Warning struct{ Variable, Text string }

func (w Warning) String() string { return w.Variable + ": " + w.Text }

// Warnings is what Load has to say besides faults.
type Warnings []Warning
