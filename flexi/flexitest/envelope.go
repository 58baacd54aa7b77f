package flexitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// object is one JSON object of a client; numbers stay as they were written.
type object map[string]any

// job is one record of a write, in the order in which the client sent it.
type job struct {
	path string
	in   object
}

// envelope is a decoded {"winstrom":…}: attributes of the root and the records.
type envelope struct {
	attrs  map[string]string
	beside object // "evidence@action" and the like
	jobs   []job
}

// decodeEnvelope keeps the order of the evidences, because parents have to come before the documents that name them; a
// plain map would lose it.
func decodeEnvelope(body []byte) (*envelope, error) {
	root, err := members(body)
	if err != nil {
		return nil, err
	}
	env := &envelope{attrs: map[string]string{}, beside: object{}}
	for _, m := range root {
		if m.key != "winstrom" {
			continue
		}
		// Some clients wrap the content in an array.
		parts, err := elements(m.raw)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if err := env.read(part); err != nil {
				return nil, err
			}
		}
		env.spread()
		return env, nil
	}
	return nil, errors.New("chybí kořenový element winstrom")
}

func (env *envelope) read(raw json.RawMessage) error {
	list, err := members(raw)
	if err != nil {
		return err
	}
	for _, m := range list {
		if isBeside(m.key) {
			var text string
			_ = json.Unmarshal(m.raw, &text) // what is no text asks for nothing
			env.beside[m.key] = text
			continue
		}
		first := bytes.TrimSpace(m.raw)
		if strings.HasPrefix(m.key, "@") || len(first) == 0 || first[0] != '{' && first[0] != '[' {
			env.attr(m)
			continue
		}
		records, err := elements(m.raw)
		if err != nil {
			return err
		}
		for _, r := range records {
			in, err := decodeObject(r)
			if err != nil {
				// Lists of words (order, id of a bulk read) are attributes, not records.
				env.attr(m)
				break
			}
			env.jobs = append(env.jobs, job{path: m.key, in: in})
		}
	}
	return nil
}

// attr keeps a root attribute; the elements of a list are joined by a line feed.
func (env *envelope) attr(m member) {
	list, err := elements(m.raw)
	if err != nil {
		return
	}
	var words []string
	for _, e := range list {
		var v any
		dec := json.NewDecoder(bytes.NewReader(e))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return
		}
		if s, ok := scalar(v); ok {
			words = append(words, s)
		}
	}
	env.attrs[strings.TrimPrefix(m.key, "@")] = strings.Join(words, "\n")
}

type member struct {
	key string
	raw json.RawMessage
}

// members reads an object in order.
func members(raw []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("očekáván objekt JSON: %w", orEOF(err))
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var m member
		m.key, _ = key.(string)
		if err := dec.Decode(&m.raw); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("za koncem JSON jsou další data")
	}
	return out, nil
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// elements makes a list of an array or of a single value: the server takes both.
func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	if first := bytes.TrimSpace(raw); len(first) == 0 || first[0] != '[' {
		return []json.RawMessage{raw}, nil
	}
	var out []json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	return out, nil
}

func decodeObject(raw []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var o object
	if err := dec.Decode(&o); err != nil {
		return nil, err
	}
	if o == nil {
		return nil, errors.New("záznam je prázdný")
	}
	return o, nil
}

// identifiers reads the id of a record: 123, "code:X", an array, or the one string "[123][code:X]".
func identifiers(v any) []string {
	switch v := v.(type) {
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, identifiers(e)...)
		}
		return out
	default:
		s, ok := scalar(v)
		if s = strings.TrimSpace(s); !ok || s == "" {
			return nil
		}
		if s[0] == '[' {
			return bracketed(s)
		}
		return []string{s}
	}
}

func bracketed(s string) []string {
	var out []string
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c == '[' || c == ']' || c == ',':
			if b.Len() > 0 {
				out = append(out, b.String())
				b.Reset()
			}
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}
