package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"flexid/flexi"
)

// document checks the document and gives the key that its number makes, "" without one.
func (r *reader) document() (key string) {
	if len(bytes.TrimSpace(r.doc)) == 0 && (r.op == flexi.Storno || r.op == flexi.Delete) {
		r.doc = []byte("{}")
	}
	if len(r.doc) > MaxEvent {
		r.fail("the document has %d bytes, more than the %d that one may have", len(r.doc), MaxEvent)
		return ""
	}
	fields, problem := r.object(r.doc)
	if problem != "" {
		r.fail("%s", problem)
		return ""
	}
	if err := flexi.CheckBody(r.event.Evidence, r.system, r.doc); err != nil {
		r.fail("%s", err)
	}
	return r.number(fields)
}

// number reads the document number: kod, or for payables partner, year and the supplier's number. Without the year the number
// that a supplier uses again next January would name last year's document.
func (r *reader) number(fields map[string]json.RawMessage) (key string) {
	evidence := r.event.Evidence
	number, ok, err := flexi.NumberIn(evidence, fields)
	if err != nil {
		r.fail("%s", numberProblem(evidence, fields, err))
		return ""
	}
	if !ok {
		return ""
	}
	key = number.Value
	if number.Pair {
		year := flexi.Year(flexi.Record(fields).Issued(r.zone))
		if year == "" {
			return ""
		}
		key = partner(number.Partner) + "/" + year + "/" + number.Value
	}
	if problem := badName(key); problem != "" {
		r.fail("the document number %s", problem)
		return ""
	}
	return key
}

// numberProblem names both lengths when a number does not fit: how much to cut is what the sender has to know.
func numberProblem(evidence string, fields map[string]json.RawMessage, err error) string {
	field, _ := flexi.NumberField(evidence)
	var text string
	if json.Unmarshal(fields[field], &text) == nil {
		length := utf8.RuneCountInString(flexi.NormaliseNumber(evidence, text))
		if most := flexi.MaxNumber(evidence); length > most {
			return fmt.Sprintf("%s %s has %d characters, Flexi takes at most %d", field, quote(text), length, most)
		}
	}
	return err.Error()
}

// partner writes a reference by code in upper case, as Flexi keeps codes: the same partner makes the same key. A slash in it
// is written otherwise, or the number 1 of the partner A/B would have the key of the number B/1 of A.
func partner(reference string) string {
	if code, ok := strings.CutPrefix(reference, "code:"); ok {
		reference = "code:" + strings.ToUpper(normal(code))
	}
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(reference)
}

// object reads one JSON object, and says what else the bytes are. The bytes that it read last it does not read again.
func (r *reader) object(doc []byte) (fields map[string]json.RawMessage, problem string) {
	if last := &r.last; len(doc) == 0 || len(last.doc) != len(doc) || &last.doc[0] != &doc[0] {
		last.doc = doc
		last.fields, last.problem = r.read(doc)
	}
	return r.last.fields, r.last.problem
}

func (r *reader) read(doc []byte) (fields map[string]json.RawMessage, problem string) {
	// Nearly all are one. What else it may be is asked about the rest.
	if utf8.Valid(doc) {
		fields = flexi.ParseRecord(doc)
	}
	if fields == nil {
		return nil, r.noObject(doc)
	}
	if _, ok := fields["winstrom"]; ok {
		return nil, "the body is a winstrom envelope: " + r.hint()
	}
	return fields, ""
}

func (r *reader) hint() string {
	if r.file {
		return "an event is one document; a list or an envelope must be the whole file"
	}
	return "an event is one document; files, lists and envelopes go through: flexid push"
}

// noObject says what bytes are that are not one JSON object.
func (r *reader) noObject(doc []byte) string {
	if what := OtherFormat(doc); what != "" {
		return "the body is " + what
	}
	if problem := notUTF8(doc); problem != "" {
		return "the body is " + problem
	}
	trimmed := bytes.TrimSpace(doc)
	switch {
	case len(trimmed) == 0:
		return "the body is empty: send the document as a JSON object"
	case bytes.HasPrefix(trimmed, byteOrderMark):
		return "the body has a byte order mark that is not its very beginning: send plain UTF-8"
	}
	decoder := json.NewDecoder(bytes.NewReader(doc))
	var value json.RawMessage
	if err := decoder.Decode(&value); err != nil {
		return "the body is not JSON: " + place(doc, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Sprintf("the body goes on after the document, at byte %d: %s", decoder.InputOffset(), r.hint())
	}
	if value[0] == '[' {
		return "the body is a list: " + r.hint()
	}
	return "the body is not a JSON object: send the document as {\"kod\":…}"
}

// place adds line and byte to a syntax error; the line only where there are several.
func place(doc []byte, err error) string {
	var syntax *json.SyntaxError
	at := int64(len(doc))
	if errors.As(err, &syntax) {
		at = min(syntax.Offset, at)
	}
	text := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		text = "it ends too early"
	}
	if !bytes.Contains(doc, []byte("\n")) {
		return fmt.Sprintf("byte %d: %s", at, text)
	}
	before := doc[:at]
	return fmt.Sprintf("its line %d, byte %d: %s", 1+bytes.Count(before, []byte("\n")), int(at)-bytes.LastIndexByte(before, '\n')-1, text)
}
