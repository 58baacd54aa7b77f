package batch

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// byteOrderMark is how some programs begin every text in UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// Unmarked is a text without the one byte order mark at its very beginning, which says nothing: the same document with and
// without it is the same content. A further one, or one elsewhere, is a fault.
func Unmarked(text []byte) []byte { return bytes.TrimPrefix(text, byteOrderMark) }

// OtherFormat says what a text is that is no JSON, and what is taken instead; "" when it may be JSON. People send what their
// accounting program exports, and "invalid character" does not tell them what to do.
func OtherFormat(text []byte) string {
	const taken = "flexid takes JSON: one document or event a line (NDJSON), a list, or a winstrom envelope"
	head := bytes.TrimLeft(Unmarked(text[:min(len(text), 4<<10)]), " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("<")) && bytes.Contains(head, []byte("isdoc.cz")):
		return "ISDOC, which flexid does not read: " + taken
	case bytes.HasPrefix(head, []byte("<!DOCTYPE")), bytes.HasPrefix(bytes.ToLower(head), []byte("<html")):
		return "a web page (HTML): " + taken
	case bytes.HasPrefix(head, []byte("<")):
		return "XML, which flexid does not read: " + taken
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return "a zip archive (a spreadsheet or an ISDOC package): " + taken
	case bytes.HasPrefix(head, []byte("%PDF")):
		return "a PDF: " + taken
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return "UTF-16: save it as UTF-8"
	case isTable(head):
		return "a table (CSV): " + taken + "; export it as JSON, or turn each row into an object"
	}
	return ""
}

// isTable: the first two lines have as many cells, several, and do not begin as JSON does.
func isTable(head []byte) bool {
	if len(head) == 0 || strings.IndexByte(`{["-0123456789tfn`, head[0]) >= 0 && head[0] != '"' && !isWord(head) {
		return false
	}
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	second, _, whole := bytes.Cut(rest, []byte("\n"))
	for _, separator := range []byte(";\t,|") {
		n := bytes.Count(first, []byte{separator})
		if n > 0 && (len(bytes.TrimSpace(second)) == 0 || !whole || bytes.Count(second, []byte{separator}) >= n) && !bytes.ContainsAny(first, "{}[]") {
			return true
		}
	}
	return false
}

// isWord tells the name of a column from true, false, null and numbers.
func isWord(head []byte) bool {
	word := head[:len(head)-len(bytes.TrimLeft(head, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))]
	switch string(word) {
	case "", "true", "false", "null":
		return false
	}
	return true
}

// lastName is the name of the JSON field in which a text ends.
var lastName = regexp.MustCompile(`"([^"\\]{1,60})"\s*:\s*[\["{]*[^"]*$`)

// notUTF8 says where a text stops to be UTF-8, in which field, and what it most likely is; "" when all of it is UTF-8.
func notUTF8(doc []byte) string {
	at := invalidUTF8(doc)
	if at < 0 {
		return ""
	}
	begin := max(0, at-200)
	where := ""
	if m := lastName.FindSubmatch(doc[begin:at]); m != nil && utf8.Valid(m[1]) {
		where = fmt.Sprintf(" in field %q", m[1])
	}
	text := fmt.Sprintf("not UTF-8: byte %d%s", at+1, where)
	if read, ok := asWindows1250(doc, at); ok {
		return text + fmt.Sprintf("; it looks like Windows-1250, in which it says %q, or like another 8-bit encoding: save it as UTF-8", read)
	}
	return text + ": save it as UTF-8"
}

// asWindows1250 reads the text around a place as Czech programs on Windows write it. ok is false when that makes no letters.
func asWindows1250(doc []byte, at int) (text string, ok bool) {
	begin, end := at, at
	for begin > 0 && at-begin < 20 && doc[begin-1] != '"' && doc[begin-1] >= ' ' {
		begin--
	}
	for end < len(doc) && end-at < 30 && doc[end] != '"' && doc[end] >= ' ' {
		end++
	}
	read, err := charmap.Windows1250.NewDecoder().Bytes(doc[begin:end])
	if err != nil {
		return "", false
	}
	for _, c := range string(read) {
		if c >= utf8.RuneSelf && !strings.ContainsRune("áčďéěíňóřšťúůýžÁČĎÉĚÍŇÓŘŠŤÚŮÝŽäëïöüÄËÏÖÜßľĺŕôĽĹŔÔąćęłńśźżĄĆĘŁŃŚŹŻ €§°–—„“”‚‘’…×÷\u00a0", c) {
			return "", false
		}
	}
	return string(read), true
}

func invalidUTF8(doc []byte) int {
	for i := 0; i < len(doc); {
		c, size := utf8.DecodeRune(doc[i:])
		if c == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
