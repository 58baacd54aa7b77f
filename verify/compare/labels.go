package compare

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"flexid/flexi"
)

// labelsField is the one text that is a list: labels sent are added to what is there unless labelsField@removeAll.
const labelsField = "stitky"

func (w *walk) labels(at scope, p pair) {
	sent := labelsOf(p.sent[labelsField])
	replace := truth(p.sent[labelsField+"@removeAll"], "true")
	shown, isShown := p.found[labelsField]
	if !isShown {
		if len(sent) > 0 {
			w.result.skip(at.path+labelsField, "not shown by Flexi")
		}
		return
	}
	found := labelsOf(shown)
	for label := range sent {
		if !found[label] {
			w.result.differ(Difference{at.path + labelsField, joined(sent), joined(found)})
			return
		}
	}
	if replace && len(sent) != len(found) {
		w.result.differ(Difference{at.path + labelsField, joined(sent), joined(found)})
	}
}

// labelsOf reads "A, B", "code:A,code:B" or a list of them as a set of upper-case codes.
func labelsOf(raw json.RawMessage) map[string]bool {
	set := map[string]bool{}
	texts := []json.RawMessage{raw}
	if text, ok := scalar(raw); !ok || text == "" {
		texts, _ = flexi.ParseList(raw) // anything but a list of texts leaves the set empty
	}
	for _, t := range texts {
		text, _ := scalar(t)
		for label := range strings.SplitSeq(text, ",") {
			if label = upper(strings.TrimPrefix(plain(label), codePrefix)); label != "" {
				set[label] = true
			}
		}
	}
	return set
}

func joined(set map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(set)), ",")
}
