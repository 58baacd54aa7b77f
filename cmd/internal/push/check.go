package push

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
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
	Line     int    `json:"line"` // 0 = of the whole file
	Evidence string `json:"evidence,omitempty"`
	Key      string `json:"key,omitempty"`
	Problem  string `json:"problem"` // names the field
}

func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Problem)
}

// Input is what Check reads.
type Input struct {
	Files    []string  // as Expand gives them; "-" = Stdin
	Stdin    io.Reader // for "-"
	Format   string    // read.NDJSON, read.JSON, "" = look
	Evidence string    // of bare documents; "" = every event says its own
	Decoder  batch.Decoder
}

// Check reads every event of every file into the spool and gives each fault to report; it returns how many there were. A
// file that cannot be read is one of them, so that the others are checked too. Its error is of spooling, or the cause of ctx.
func Check(ctx context.Context, in Input, spool *Spool, report func(Fault)) (faults int, err error) {
	counted := func(f Fault) {
		faults++
		report(f)
	}
	for _, name := range in.Files {
		if err := in.file(ctx, name, spool, counted); err != nil {
			return faults, err
		}
	}
	return faults, spool.Flush()
}

func (in Input) file(ctx context.Context, name string, spool *Spool, report func(Fault)) error {
	r := in.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			report(Fault{File: name, Problem: cause(err).Error()})
			return nil
		}
		defer file.Close()
		r = file
	}
	r, err := unpacked(r)
	if err != nil {
		report(Fault{File: name, Problem: "it begins as gzip, but cannot be unpacked: " + err.Error()})
		return nil
	}
	for raw, err := range read.Events(r, strings.TrimSuffix(name, ".gz"), in.Format) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			report(Fault{File: name, Line: raw.Line, Problem: "the file cannot be read from here on: " + cause(err).Error()})
			return nil
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
					return err
				}
				continue
			}
			fault.Problem, fault.Key = e.Problem, e.Key
			if e.Evidence != batch.UnknownEvidence {
				fault.Evidence = e.Evidence
			}
		}
		report(fault)
	}
	return nil
}

// cause leaves out what stands around an error of a file: who reads it is told the name beside it.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return cause(inner)
	}
	return err
}

// unpacked reads gzip as what is in it, by its first bytes: the name of standard input does not tell.
func unpacked(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, _ := in.Peek(2) // an error comes again when it is read
	if string(head) != "\x1f\x8b" {
		return in, nil
	}
	return gzip.NewReader(in)
}

// Passed is something in a folder that Expand did not take.
type Passed struct {
	Name   string
	Folder bool // not entered: what lies in it may be of another night, or still be written
}

// Expand turns folders into the files in them, sorted by name: *.json, *.ndjson and *.jsonl, also with .gz. Other files and
// folders there are passed over and named. Names that begin with a dot are not even that, so that a file can be written there
// under such a name and renamed when it is whole.
func Expand(args []string) (files []string, passed []Passed, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case arg == "-" && slices.Contains(files, "-"):
			return nil, nil, errors.New("standard input is named twice")
		case arg == "-" || err == nil && !info.IsDir():
			files = append(files, arg)
			continue
		case err != nil:
			return nil, nil, err
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, nil, err
		}
		for _, entry := range entries {
			name := filepath.Join(arg, entry.Name())
			switch {
			case strings.HasPrefix(entry.Name(), "."):
			case isFolder(name, entry):
				passed = append(passed, Passed{Name: name, Folder: true})
			case isInput(entry.Name()):
				files = append(files, name)
			default:
				passed = append(passed, Passed{Name: name})
			}
		}
	}
	return files, passed, nil
}

// isFolder also follows a link: what it points to counts.
func isFolder(name string, entry os.DirEntry) bool {
	if entry.Type()&os.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func isInput(name string) bool {
	switch filepath.Ext(strings.TrimSuffix(strings.ToLower(name), ".gz")) {
	case ".json", ".ndjson", ".jsonl":
		return true
	}
	return false
}
