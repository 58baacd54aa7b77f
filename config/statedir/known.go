package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Known is what a daemon knew of its ledger and its streams when it last looked. A NATS that shows something else, or
// nothing, has lost what was sent and what came in: it must not pass for a first start.
type Known struct {
	Ledger  string               `json:"ledger"`            // its id
	Streams map[string]time.Time `json:"streams,omitempty"` // when they were made, by name

	Taken map[string]uint64 `json:"taken,omitempty"` // up to which message they were taken, by name; a minute old at most while serve runs

	// What the ledger held, to tell what is missing when it is gone.
	Documents map[string]int `json:"documents,omitempty"` // by state
	Noted     time.Time      `json:"noted,omitzero"`
}

// knownFile lies in the state directory; one prefix is one ledger.
const knownFile = "ledger.json"

// ReadKnown gives what is known of the ledger with a prefix; the zero value where none was ever opened from this directory.
func ReadKnown(dir, prefix string) (Known, error) {
	all, err := readKnown(dir)
	return all[prefix], err
}

func readKnown(dir string) (map[string]Known, error) {
	path := filepath.Join(dir, knownFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Known{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which ledger is ours: %w", err)
	}
	all := map[string]Known{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s cannot be read (%w): it says which ledger is ours; if NATS was not touched, remove the file and start again", path, err)
	}
	return all, nil
}

// WriteKnown replaces what is known of the ledger with a prefix. The caller holds the lock.
func WriteKnown(dir, prefix string, k Known) error {
	all, err := readKnown(dir)
	if err != nil {
		return err
	}
	all[prefix] = k
	err = replace(filepath.Join(dir, knownFile), func(fs.FileInfo) ([]byte, error) { return json.MarshalIndent(all, "", " ") })
	if err != nil {
		return fmt.Errorf("writing which ledger is ours: %w", err)
	}
	return nil
}
