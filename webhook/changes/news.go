package changes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"flexid/flexi"
)

// News is one message: the newest change of one record in one read.
type News struct {
	Evidence   string   `json:"evidence"`
	Operation  string   `json:"operation"`  // of the newest change
	Operations []string `json:"operations"` // of all changes of the record in this read, each once, oldest first
	Version    int64    `json:"version"`
	ID         string   `json:"id"` // Flexi id
	External   []string `json:"external_ids"`
	Timestamp  string   `json:"timestamp,omitempty"` // Flexi's local time, as it wrote it
}

// newest leaves one change of each record, by rising version; what lies before from was read already. One invoice with
// three rows is a create and three updates of it in one transaction: Operations keeps the create.
func newest(all []flexi.Change, from int64) []News {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b flexi.Change) int { return cmp.Compare(a.Version, b.Version) })
	type record struct{ evidence, id string }
	last := map[record]*News{}
	for _, c := range all {
		if c.Version < from {
			continue
		}
		n := News{Evidence: c.Evidence, Operation: c.Operation, Version: c.Version, ID: c.ID, External: c.ExternalIDs, Timestamp: c.Timestamp}
		if n.External == nil {
			n.External = []string{}
		}
		key := record{c.Evidence, c.ID}
		if before := last[key]; before != nil {
			n.Operations = before.Operations
		}
		if !slices.Contains(n.Operations, c.Operation) {
			n.Operations = append(n.Operations, c.Operation)
		}
		last[key] = &n
	}
	news := make([]News, 0, len(last))
	for _, n := range last {
		news = append(news, *n)
	}
	slices.SortFunc(news, func(a, b News) int { return cmp.Compare(a.Version, b.Version) })
	return news
}

func (r *Reader) publish(ctx context.Context, n News) error {
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("writing a change: %w", err)
	}
	// With the operation: the server drops the second of two messages with one id, and one version may hold two changes.
	id := fmt.Sprintf("change %s %s %d %s", n.Evidence, n.ID, n.Version, n.Operation)
	if err := r.o.Notifier.Notify(ctx, "change", n.Evidence+"."+n.Operation, id, body); err != nil {
		return fmt.Errorf("publishing version %d: %w", n.Version, err)
	}
	return nil
}
