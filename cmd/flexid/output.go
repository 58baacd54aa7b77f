package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printer writes rows in one of the four formats. Rows are written as they come, so that a list of every document needs
// no memory; a table looks at the first ones to learn how wide its columns are.
type printer struct {
	w      io.Writer
	format string
	head   []string
	color  bool
	excel  bool

	n       int
	csv     *csv.Writer
	waiting [][]string
	widths  []int
	err     error
}

// sampled is how many rows a table waits for before it fixes the widths.
const sampled = 500

func (p *program) printer(head ...string) *printer {
	pr := &printer{w: p.out, format: p.format, head: head, color: p.color(), excel: p.excel}
	if pr.format == "csv" {
		if pr.excel {
			_, pr.err = io.WriteString(pr.w, "\ufeff") // without it a spreadsheet takes the text for CP1250
		}
		pr.csv = csv.NewWriter(pr.w)
		if pr.excel {
			pr.csv.Comma, pr.csv.UseCRLF = ';', true
		}
	}
	if pr.format == "csv" && pr.err == nil {
		pr.err = pr.csv.Write(head)
	}
	return pr
}

// row writes one row: value for JSON, cells for people and spreadsheets.
func (pr *printer) row(value any, cells ...string) {
	if pr.err != nil {
		return
	}
	switch pr.format {
	case "json", "ndjson":
		pr.json(value)
	case "csv":
		if pr.excel {
			cells = pr.commas(cells)
		}
		pr.err = pr.csv.Write(harmless(cells))
	default:
		pr.waiting = append(pr.waiting, cells)
		if pr.widths != nil || len(pr.waiting) == sampled {
			pr.flushTable()
		}
	}
	pr.n++
}

func (pr *printer) json(value any) {
	data, err := json.Marshal(value)
	if err != nil {
		pr.err = err
		return
	}
	before := ""
	switch {
	case pr.format == "ndjson":
	case pr.n == 0:
		before = "[\n"
	default:
		before = ",\n"
	}
	after := ""
	if pr.format == "ndjson" {
		after = "\n"
	}
	_, pr.err = io.WriteString(pr.w, before+string(data)+after)
}

// end writes what is left and returns the first error of all.
func (pr *printer) end() error {
	if pr.err != nil {
		return fmt.Errorf("writing the output: %w", pr.err)
	}
	switch pr.format {
	case "json":
		tail := "\n]\n"
		if pr.n == 0 {
			tail = "[]\n"
		}
		_, pr.err = io.WriteString(pr.w, tail)
	case "csv":
		pr.csv.Flush()
		pr.err = pr.csv.Error()
	case "table":
		if pr.n > 0 {
			pr.flushTable()
		}
	}
	if pr.err != nil {
		return fmt.Errorf("writing the output: %w", pr.err)
	}
	return nil
}

func (pr *printer) flushTable() {
	if pr.widths == nil {
		pr.widths = make([]int, len(pr.head))
		head := make([]string, len(pr.head))
		for i, h := range pr.head {
			head[i] = strings.ToUpper(h)
		}
		for _, cells := range append([][]string{head}, pr.waiting...) {
			for i, c := range cells {
				pr.widths[i] = max(pr.widths[i], utf8.RuneCountInString(clean(c)))
			}
		}
		pr.line(head, false)
	}
	for _, cells := range pr.waiting {
		pr.line(cells, pr.color)
	}
	pr.waiting = pr.waiting[:0]
}

func (pr *printer) line(cells []string, color bool) {
	var b strings.Builder
	for i, c := range cells {
		c = clean(c)
		pad := 0
		if i < len(cells)-1 {
			pad = max(0, pr.widths[i]-utf8.RuneCountInString(c)) + 2
		}
		if color {
			c = painted(pr.head[i], c)
		}
		b.WriteString(c + strings.Repeat(" ", pad))
	}
	if pr.err == nil {
		_, pr.err = io.WriteString(pr.w, strings.TrimRight(b.String(), " ")+"\n")
	}
}

// painted colours what an eye looks for.
func painted(column, text string) string {
	code := ""
	switch text {
	case "confirmed", "ok":
		code = "32"
	case "maybe", "warn":
		code = "33"
	case "parked", "fail":
		code = "31"
	}
	if code == "" || column != "state" && column != "result" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// clean takes the control characters out of text that came from outside: on a terminal they could rewrite the screen.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return '\uFFFD'
		}
		return r
	}, s)
}

// commas writes the decimals of columns that hold numbers as Czech spreadsheets read them. Keys and numbers of documents stay
// as they are, also where they look like decimals.
func (pr *printer) commas(cells []string) []string {
	out := slices.Clone(cells)
	for i := range out {
		switch pr.head[i] {
		case "amount", "amplification", "spent_seconds", "attempt_seconds":
			out[i] = strings.Replace(out[i], ".", ",", 1)
		}
	}
	return out
}

// isNumber holds for what a spreadsheet reads as a number and nothing else.
func isNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && strings.Trim(digits, "0123456789.,") == "" && strings.Count(digits, ".")+strings.Count(digits, ",") <= 1
}

// harmless keeps a spreadsheet from reading a cell as a formula.
func harmless(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		if c != "" && !isNumber(c) && strings.ContainsRune("=+-@\t\r", rune(c[0])) {
			c = "'" + c
		}
		out[i] = c
	}
	return out
}

// object writes a single value: JSON for the JSON formats, else what text does.
func (p *program) object(value any, text func(io.Writer)) error {
	switch p.format {
	case "json", "ndjson":
		enc := json.NewEncoder(p.out)
		enc.SetEscapeHTML(false)
		if p.format == "json" {
			enc.SetIndent("", "  ")
		}
		if err := enc.Encode(value); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	default:
		text(p.out)
	}
	return nil
}
