package batch

import (
	"encoding/json"
	"strings"

	"flexid/flexi"
	"flexid/verify"
)

// FileEvent is one event in a file or from a mapping: {"evidence":…,"source":…,"op":…,"key":…,"version":…,"document":{…}}.
type FileEvent struct {
	Evidence string          `json:"evidence,omitempty"`
	Source   string          `json:"source,omitempty"`  // "" = the one said beside the file, else none
	Op       string          `json:"op,omitempty"`      // "" = upsert
	Key      string          `json:"key,omitempty"`     // "" = the document number
	Version  string          `json:"version,omitempty"` // a number is taken too
	Document json.RawMessage `json:"document"`
}

// DecodeFileEvent reads one event of a file; evidence is the one said beside the file, "" if none. An object without
// "document" is a bare Flexi document of that evidence. Like Decode it never fails. The caller gives the event its id:
// what makes two lines the same event is known to him alone.
func (d Decoder) DecodeFileEvent(line []byte, evidence string) verify.Event {
	r := &reader{system: d.System, zone: d.Zone, op: flexi.Upsert, doc: line, file: true, event: verify.Event{Evidence: UnknownEvidence, Source: d.Source}}
	if len(line) > MaxEvent {
		r.fail("the event has %d bytes, more than the %d that one may have", len(line), MaxEvent)
		return r.finish(line)
	}
	fields, problem := r.object(line)
	if problem != "" {
		r.fail("%s", problem)
	}
	_, wrapped := fields["document"]
	said, named := fields["evidence"] // no document of Flexi has such a field
	switch {
	case wrapped:
		r.fileEvent(fields, &evidence)
	case named:
		evidence, _ = scalar(said)
		r.fail("the event has no field \"document\"")
	}
	if evidence == "" {
		r.fail("no evidence: write it into the event, or say it beside the file (--evidence)")
	} else {
		r.evidence("the event", evidence)
	}
	return r.finish(line)
}

func (r *reader) fileEvent(fields map[string]json.RawMessage, evidence *string) {
	if twice := repeated(r.doc); twice != "" {
		r.fail("the event has %s twice", quote(twice))
	}
	texts := map[string]string{}
	for name, raw := range fields {
		switch name {
		case "evidence", "source", "op", "key", "version":
			text, ok := scalar(raw)
			if !ok {
				r.fail("%s of the event is neither a string nor a number", name)
			}
			texts[name] = text
		case "document":
		default:
			r.fail("the event has a field %s; it may have evidence, source, op, key, version and document", quote(name))
		}
	}
	if texts["evidence"] != "" {
		*evidence = texts["evidence"]
	}
	r.source("source", texts["source"])
	if texts["op"] != "" {
		r.ops = append(r.ops, given{"op", texts["op"]})
	}
	r.key("key", texts["key"])
	r.version("version", texts["version"])
	r.doc = fields["document"]
}

// scalar takes a string or a number; keys and versions are written as both.
func scalar(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text), true
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String(), true
	}
	return "", false
}
