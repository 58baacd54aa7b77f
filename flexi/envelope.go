package flexi

import "encoding/json"

// envelope is the ERP's answer to a write, read tolerantly.
type envelope struct {
	success  bool
	said     bool // success was said at all, in a spelling that is known
	stats    map[string]int64
	odd      bool // a counter that is no number
	results  []result
	messages []Message // top-level message and errors
}

// result is the part of an answer about one record.
type result struct {
	id, code, requestID string
	errors              []Message
}

// decodeEnvelope reads the ERP's envelope. ok is false when the bytes are something else: HTML, half an answer, JSON of
// another speaker. Such bytes prove nothing about the ERP.
func decodeEnvelope(body []byte) (env envelope, ok bool) {
	in, err := root(body, "winstrom")
	if err != nil {
		return envelope{}, false
	}
	list := objects(in)
	if len(list) != 1 {
		return envelope{}, false
	}
	w := list[0]
	env.success, env.said = truth(w["success"])
	env.readStats(w["stats"])
	for _, r := range objects(inner(w["results"], "result")) {
		env.results = append(env.results, decodeResult(r))
	}
	if m := decodeMessage(w); m.Text != "" || m.Code != "" {
		env.messages = append(env.messages, m)
	}
	env.messages = append(env.messages, decodeMessages(w["errors"])...)
	_, hasSuccess := w["success"]
	return env, hasSuccess || len(env.results) > 0 || len(env.stats) > 0 || len(env.messages) > 0
}

func (env *envelope) readStats(raw json.RawMessage) {
	for _, s := range objects(raw) {
		for _, name := range []string{"created", "updated", "deleted", "skipped", "failed"} {
			v, there := s[name]
			if !there {
				continue
			}
			n, ok := number(v)
			if !ok || n < 0 {
				env.odd = true
				continue
			}
			if env.stats == nil {
				env.stats = make(map[string]int64)
			}
			env.stats[name] += n
		}
	}
}

// counted reports whether anything at all was changed according to the counters. A counter that cannot be read counts:
// it does not say zero.
func (env envelope) counted() bool {
	return env.odd || env.stats["created"] > 0 || env.stats["updated"] > 0 || env.stats["deleted"] > 0
}

// recordErrors are the errors of all records.
func (env envelope) recordErrors() []Message {
	var out []Message
	for _, r := range env.results {
		out = append(out, r.errors...)
	}
	return out
}

// all is everything the ERP said, record errors first: they name the field.
func (env envelope) all() []Message { return append(env.recordErrors(), env.messages...) }

func decodeResult(r map[string]json.RawMessage) result {
	out := result{id: text(r["id"]), code: text(r["code"]), requestID: text(r["request-id"])}
	out.errors = append(decodeMessages(r["errors"]), decodeMessages(r["error"])...)
	return out
}

// decodeMessages reads errors as a list, an object, {"error":…}, or plain strings.
func decodeMessages(raw json.RawMessage) []Message {
	var out []Message
	for _, e := range elements(inner(raw, "error")) {
		if s := text(e); s != "" {
			out = append(out, Message{Text: s})
			continue
		}
		if m := decodeMessage(object(e)); m != (Message{}) {
			out = append(out, m)
		}
	}
	return out
}

func decodeMessage(m map[string]json.RawMessage) Message {
	return Message{
		Text:  firstText(m, "message", "$"),
		For:   firstText(m, "for", "@for"),
		Path:  firstText(m, "path", "@path"),
		Value: firstText(m, "value", "@value"),
		Code:  firstText(m, "messageCode", "message@messageCode", "code", "@code"),
	}
}

func firstText(m map[string]json.RawMessage, keys ...string) string {
	for _, k := range keys {
		if s := text(m[k]); s != "" {
			return s
		}
	}
	return ""
}
