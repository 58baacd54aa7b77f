package flexi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// Change is one change of one record, without its fields.
type Change struct {
	Evidence    string
	Operation   string // create, update, delete
	Version     int64  // unique and rising, with gaps
	Timestamp   string // the server's local time, as it wrote it
	ID          string // Flexi id
	ExternalIDs []string
}

// Changes is a page of changes, or the body of a hook.
type Changes struct {
	GlobalVersion int64 // of the newest change of the company
	Next          int64 // where to go on; 0 = there is no more
	Changes       []Change
}

// Changes reads changes from version start on, that one included. limit is 1 to 1000.
func (c *Client) Changes(ctx context.Context, start int64, limit int) (Changes, error) {
	var out Changes
	path := c.companyPath(fmt.Sprintf("/changes.json?auth=http&start=%d&limit=%d", start, limit))
	err := c.read(ctx, ask{op: "changes", kind: "read", method: http.MethodGet, path: path, take: func(a answer) error {
		var err error
		out, err = DecodeChanges(a.body)
		return err
	}})
	return out, err
}

// DecodeChanges reads a page of changes or the body of a hook. A change without evidence or version is an error: a
// cursor that passed over it would lose it.
func DecodeChanges(body []byte) (Changes, error) {
	in, err := root(body, "winstrom")
	if err != nil {
		return Changes{}, fmt.Errorf("changes: %w", err)
	}
	w := object(in)
	if w == nil || w["changes"] == nil {
		return Changes{}, errors.New("changes: there is no list of changes in it")
	}
	var out Changes
	out.GlobalVersion, _ = number(w["@globalVersion"])
	if next := text(w["next"]); next != "" && next != "none" {
		n, ok := number(w["next"])
		if !ok {
			return Changes{}, fmt.Errorf("changes: next is %q", next)
		}
		out.Next = n
	}
	for _, raw := range elements(inner(w["changes"], "change")) {
		m := object(raw)
		ch := Change{
			Evidence: firstText(m, "@evidence", "evidence"), Operation: firstText(m, "@operation", "operation"),
			Timestamp: firstText(m, "@timestamp", "timestamp"), ID: Record(m).ID(), ExternalIDs: Record(m).ExternalIDs(),
		}
		var ok bool
		if ch.Version, ok = number(m["@in-version"]); !ok {
			ch.Version, ok = number(m["in-version"])
		}
		if !ok || ch.Evidence == "" {
			return Changes{}, errors.New("changes: one of them has no evidence or no version")
		}
		out.Changes = append(out.Changes, ch)
	}
	return out, nil
}
