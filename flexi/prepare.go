package flexi

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Prepared is a request ready to be sent: the envelope is written and checked. It is made by Prepare and Join only.
type Prepared struct {
	write Write
	docs  []sent
	body  []byte
}

// sent is one document of a request as it is sent, and what it is known by, to be compared with the answer.
type sent struct {
	record []byte   // its part of the body
	ids    []string // every identifier in it
	code   string   // the kod that the answer must show, normalised; "" = any
}

// Body is the request body as it goes over the wire.
func (p Prepared) Body() []byte { return p.body }

// Write is what was asked for.
func (p Prepared) Write() Write { return p.write }

var evidenceName = regexp.MustCompile(`^[a-z][a-z0-9-]{1,59}$`)

// Prepare writes the envelope of a request and refuses what must not be sent. Only a create may make a record: it
// carries the external id and is refused by the server when that exists. Everything else carries the Flexi id and is
// refused when that does not exist.
func Prepare(w Write) (Prepared, error) {
	if !evidenceName.MatchString(w.Evidence) {
		return Prepared{}, fmt.Errorf("prepare: %q is not an evidence", w.Evidence)
	}
	if len(w.Docs) == 0 {
		return Prepared{}, errors.New("prepare: no document")
	}
	docs := make([]sent, 0, len(w.Docs))
	for i, d := range w.Docs {
		rec, ids, err := envelopeRecord(w, d)
		if err != nil {
			return Prepared{}, fmt.Errorf("prepare %s %s, document %d: %w", w.Op, w.Evidence, i+1, err)
		}
		docs = append(docs, sent{record: appendRecord(nil, rec), ids: ids, code: codeOf(w.Evidence, rec, d.Number)})
	}
	return envelop(w, docs)
}

// Join makes one request of several, of one evidence and one operation, each of which was checked when it was prepared. Two documents
// that carry the same identifier cannot share a request.
func Join(requests []Prepared) (Prepared, error) {
	if len(requests) == 0 {
		return Prepared{}, errors.New("join: no request")
	}
	first := requests[0].write
	w := Write{Evidence: first.Evidence, Op: first.Op}
	var docs []sent
	for _, p := range requests {
		if p.write.Evidence != w.Evidence || p.write.Op != w.Op || len(p.docs) == 0 {
			return Prepared{}, fmt.Errorf("join: %s %q does not go with %s %q", p.write.Op, p.write.Evidence, w.Op, w.Evidence)
		}
		w.Docs, docs = append(w.Docs, p.write.Docs...), append(docs, p.docs...)
	}
	return envelop(w, docs)
}

// envelop writes the body around the records. The documents are the caller's own: they keep their part of the body in place of what they
// had.
func envelop(w Write, docs []sent) (Prepared, error) {
	seen := make(map[string]bool)
	size := 100
	for i, d := range docs {
		for _, id := range d.ids {
			if seen[id] {
				return Prepared{}, fmt.Errorf("prepare %s %s, document %d: %s is there twice", w.Op, w.Evidence, i+1, id)
			}
			seen[id] = true
		}
		size += len(d.record) + 1
	}
	body := append(make([]byte, 0, size), `{"winstrom":{"@version":"1.0","`+w.Evidence+`":[`...)
	for i := range docs {
		if i > 0 {
			body = append(body, ',')
		}
		from := len(body)
		body = append(body, docs[i].record...)
		docs[i].record = body[from:len(body):len(body)]
	}
	return Prepared{write: w, docs: docs, body: append(body, `]}}`...)}, nil
}

// envelopeRecord is one record of the request and the identifiers in it.
func envelopeRecord(w Write, d Doc) (map[string]json.RawMessage, []string, error) {
	rec, err := fields(w, d)
	if err != nil {
		return nil, nil, err
	}
	if w.Op != Create && !isDigits(d.FlexiID) {
		return nil, nil, fmt.Errorf("%q is not a Flexi id", d.FlexiID)
	}
	if (w.Op == Create || w.Op == Attach) && !d.Ext.Valid() {
		return nil, nil, fmt.Errorf("%q is not an external id", string(d.Ext))
	}
	ids := []string{d.FlexiID}
	switch w.Op {
	case Create:
		ids = append([]string{string(d.Ext)}, otherIDs(rec)...)
		rec["@update"] = json.RawMessage(`"fail"`)
	case Attach:
		ids = append(ids, string(d.Ext))
	case Update:
		for _, f := range itemFields(rec) {
			rec[f+"@removeAll"] = json.RawMessage(`"true"`)
		}
	case Storno, Delete:
		rec["@action"], _ = plainJSON(string(w.Op))
	}
	if w.Op != Create {
		rec["@create"] = json.RawMessage(`"fail"`)
	}
	if w.Op == Create || w.Op == Attach {
		rec["id"], err = plainJSON(ids)
	} else {
		rec["id"], err = plainJSON(d.FlexiID)
	}
	return rec, ids, err
}

// fields is the body as a record; empty for the operations that have none.
func fields(w Write, d Doc) (map[string]json.RawMessage, error) {
	switch w.Op {
	case Create, Update:
		if err := CheckBody(w.Evidence, systemOf(d.Ext), d.Body); err != nil {
			return nil, err
		}
		rec := object(d.Body)
		if _, _, err := NumberIn(w.Evidence, rec); err != nil {
			return nil, err
		}
		return rec, nil
	case Storno, Delete, Attach:
		if len(d.Body) > 0 {
			return nil, fmt.Errorf("%s takes no fields", w.Op)
		}
		return make(map[string]json.RawMessage), nil
	}
	return nil, fmt.Errorf("operation %q is not one that is sent", w.Op)
}

// systemOf is the system part without the source.
func systemOf(e ExternalID) string {
	system, _, _ := strings.Cut(e.System(), ".")
	return system
}

func otherIDs(rec map[string]json.RawMessage) []string {
	var out []string
	for _, e := range elements(rec["id"]) {
		out = append(out, text(e))
	}
	return out
}

// codeOf is the kod that the answer must show. A payable's number stands in another column than the code of the answer.
func codeOf(evidence string, rec map[string]json.RawMessage, number string) string {
	if kod := text(rec["kod"]); kod != "" {
		return NormaliseNumber("", kod)
	}
	if _, pair := NumberField(evidence); !pair {
		return NormaliseNumber(evidence, number)
	}
	return ""
}

// ItemsField lists the row collections in a body: polozkyFaktury, skladovePolozky and their like.
func ItemsField(body json.RawMessage) []string { return itemFields(object(body)) }

func itemFields(rec map[string]json.RawMessage) []string {
	var out []string
	for _, k := range sortedKeys(rec) {
		low := strings.ToLower(k)
		if strings.Contains(k, "@") || !strings.HasPrefix(low, "polozky") && !strings.HasSuffix(low, "polozky") {
			continue
		}
		if raw := rec[k]; len(raw) > 0 && (raw[0] == '[' || raw[0] == '{') {
			out = append(out, k)
		}
	}
	return out
}
