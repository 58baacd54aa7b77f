package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Docs writes every variable with its meaning and default. Formats: table, markdown, json, env (a file to start from).
func Docs(w io.Writer, format string) error {
	switch format {
	case "table":
		return docsTable(w)
	case "markdown":
		return docsMarkdown(w)
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(Variables())
	case "env":
		return docsEnv(w)
	}
	return fmt.Errorf("format %q is not one of table, markdown, json, env", format)
}

func docsTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VARIABLE\tDEFAULT\tMEANING\tALLOWED")
	for _, v := range Variables() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", v.Name, v.Default, v.Meaning, v.Allowed)
	}
	return table.Flush()
}

func docsMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| variable | meaning | default | allowed |\n|---|---|---|---|\n")
	for _, v := range Variables() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, v.Meaning, v.Default, v.Allowed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// docsEnv leaves everything commented out but what is required: a copy of a default would outlive a better one.
func docsEnv(w io.Writer) error {
	var b strings.Builder
	for _, v := range Variables() {
		if strings.Contains(v.Name, "<") {
			continue
		}
		fmt.Fprintf(&b, "# %s\n# default: %s; allowed: %s\n", v.Meaning, v.Default, v.Allowed)
		if !v.Required {
			b.WriteString("#")
		}
		b.WriteString(v.Name + "=\n\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
