package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"flexid/flexi"
)

// Merge returns what a document should look like after these events, in order: a later field replaces an earlier one
// with its attributes, rows are replaced whole whatever name they are sent under, labels are added unless
// stitky@removeAll, ids are collected. Empty bodies change nothing.
func Merge(bodies ...json.RawMessage) (json.RawMessage, error) {
	merged := flexi.Record{}
	for i, body := range bodies {
		if len(bytes.TrimSpace(body)) == 0 || string(bytes.TrimSpace(body)) == "null" {
			continue
		}
		next, err := decode(body)
		if err != nil {
			return nil, fmt.Errorf("merge event %d: %w", i, err)
		}
		overlay(merged, next)
	}
	out, err := marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("merge events: %w", err)
	}
	return out, nil
}

func overlay(merged, next flexi.Record) {
	labels := addedLabels(merged, next)
	ids := addedIDs(merged["id"], next["id"])
	for name := range next {
		if !strings.Contains(name, "@") {
			forget(merged, name)
		}
	}
	for name, value := range next {
		merged[name] = value
	}
	for name, value := range labels {
		merged[name] = value
	}
	if ids != nil {
		merged["id"] = ids
	}
}

// forget takes a field out, with its attributes; a collection under all its names, else its rows would stand twice.
func forget(merged flexi.Record, name string) {
	for old := range merged {
		plainName, _, _ := strings.Cut(old, "@")
		if plainName == name || isCollection(name) && isCollection(plainName) {
			delete(merged, old)
		}
	}
}

// addedLabels returns the label fields after next, nil if next leaves or replaces them.
func addedLabels(merged, next flexi.Record) flexi.Record {
	raw, ok := next[labelsField]
	old, had := merged[labelsField]
	if !ok || !had || truth(next[labelsField+"@removeAll"], "true") {
		return nil
	}
	all := labelsOf(old)
	for label := range labelsOf(raw) {
		all[label] = true
	}
	// Texts always marshal.
	text, _ := json.Marshal(joined(all))
	out := flexi.Record{labelsField: text}
	if attr, ok := merged[labelsField+"@removeAll"]; ok {
		out[labelsField+"@removeAll"] = attr
	}
	return out
}

// addedIDs keeps every identifier that was sent: a look must ask by all of them.
func addedIDs(old, next json.RawMessage) json.RawMessage {
	if empty(old) || empty(next) {
		return nil
	}
	var all []string
	for _, raw := range []json.RawMessage{old, next} {
		all = appendIDs(all, raw)
	}
	text, _ := json.Marshal(all)
	return text
}

func appendIDs(all []string, raw json.RawMessage) []string {
	list := []json.RawMessage{raw}
	if _, ok := scalar(raw); !ok {
		list, _ = flexi.ParseList(raw) // anything but a list is no identifier
	}
	for _, item := range list {
		if id, ok := scalar(item); ok && id != "" && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}
