package push

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"flexid/batch"
	"flexid/batch/read"
)

// Fault is one thing in the input that keeps all of it from being sent.
type Fault struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Evidence string `json:"evidence,omitempty"`
	Key      string `json:"key,omitempty"`
	Problem  string `json:"problem"` // names the field
}

func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Problem) }

// Input is what Check reads.
type Input struct {
	Files    []string  // as Expand gives them; "-" = Stdin
	Stdin    io.Reader // for "-"
	Format   string    // read.NDJSON, read.JSON, "" = look
	Evidence string    // of bare documents; "" = every event says its own
	Decoder  batch.Decoder
}

// Check reads every event of every file into the spool and gives each fault to report; it returns how many there were. Its
// error is about reading or spooling.
func Check(in Input, spool *Spool, report func(Fault)) (faults int, err error) {
	for _, name := range in.Files {
		n, err := in.file(name, spool, report)
		faults += n
		if err != nil {
			return faults, fmt.Errorf("%s: %w", name, err)
		}
	}
	return faults, spool.Flush()
}

func (in Input) file(name string, spool *Spool, report func(Fault)) (faults int, err error) {
	r := in.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return 0, errors.Unwrap(err) // the caller names the file
		}
		defer file.Close()
		r = file
	}
	for raw, err := range read.Events(r, name, in.Format) {
		if err != nil {
			return faults, err
		}
		fault := Fault{File: name, Line: raw.Line, Problem: raw.Problem}
		if raw.Problem == "" {
			beside := in.Evidence
			if raw.Evidence != "" {
				beside = raw.Evidence
			}
			e := in.Decoder.DecodeFileEvent(raw.Raw, beside)
			if e.Problem == "" {
				if err := spool.Add(name, raw.Line, &e); err != nil {
					return faults, err
				}
				continue
			}
			fault.Problem, fault.Key = e.Problem, e.Key
			if e.Evidence != batch.UnknownEvidence {
				fault.Evidence = e.Evidence
			}
		}
		faults++
		report(fault)
	}
	return faults, nil
}

// Expand turns folders into the files in them, sorted by name: *.json, *.ndjson and *.jsonl. Names that begin with a dot
// are passed over, so that a file can be written there under such a name and renamed when it is whole.
func Expand(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case arg == "-" && slices.Contains(files, "-"):
			return nil, errors.New("standard input is named twice")
		case arg == "-" || err == nil && !info.IsDir():
			files = append(files, arg)
			continue
		case err != nil:
			return nil, err
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if isInput(entry) {
				files = append(files, filepath.Join(arg, entry.Name()))
			}
		}
	}
	return files, nil
}

func isInput(entry fs.DirEntry) bool {
	if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
		return false
	}
	switch strings.ToLower(filepath.Ext(entry.Name())) {
	case ".json", ".ndjson", ".jsonl":
		return true
	}
	return false
}
