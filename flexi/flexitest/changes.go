package flexitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// hookBody is a web hook's body, or a page of the changes log: both have one shape.
type hookBody struct {
	Winstrom struct {
		GlobalVersion string `json:"@globalVersion"`
		Changes       []struct {
			Evidence  string   `json:"@evidence"`
			Version   string   `json:"@in-version"`
			Operation string   `json:"@operation"`
			Timestamp string   `json:"@timestamp"`
			ID        string   `json:"id"`
			External  []string `json:"external-ids"`
		} `json:"changes"`
	} `json:"winstrom"`
}

// LoadChanges adds the changes of a web hook's body to the log of changes, as if they had just been made here; the books
// are not touched. Versions must rise above all that the log has had; @globalVersion becomes that of the body, and own
// writes go on from there. After an error nothing was added.
func (s *Server) LoadChanges(body []byte) error {
	var in hookBody
	if err := json.Unmarshal(body, &in); err != nil {
		return fmt.Errorf("load changes: %w", err)
	}
	global, err := strconv.ParseInt(in.Winstrom.GlobalVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("load changes: @globalVersion: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.store.watching {
		return errors.New("load changes: changes are not watched")
	}
	last, all := s.store.version, []change{}
	for i, c := range in.Winstrom.Changes {
		version, err := strconv.ParseInt(c.Version, 10, 64)
		if err != nil {
			return fmt.Errorf("load changes: version of change %d: %w", i+1, err)
		}
		id, err := strconv.ParseInt(c.ID, 10, 64)
		if err != nil {
			return fmt.Errorf("load changes: id of change %d: %w", i+1, err)
		}
		if version <= last || version > global {
			return fmt.Errorf("load changes: version %d of change %d is not above %d, or above @globalVersion %d", version, i+1, last, global)
		}
		last = version
		all = append(all, change{evidence: c.Evidence, op: c.Operation, version: version, stamp: c.Timestamp, id: id, ext: c.External})
	}
	s.store.changes, s.store.version = append(s.store.changes, all...), max(global, s.store.version)
	return nil
}
