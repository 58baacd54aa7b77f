package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Holder is who holds a state directory.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// HeldError is a state directory that another process holds.
type HeldError struct {
	Dir    string
	Holder Holder // zero when the other process has not written it yet
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("state directory %s is held by another flexid", e.Dir)
	}
	return fmt.Sprintf("state directory %s is held by another flexid: process %d on %s since %s",
		e.Dir, e.Holder.PID, e.Holder.Host, e.Holder.Since.UTC().Format(time.RFC3339))
}

// Lock is a held state directory. The kernel lets go of it when the process ends, however it ends.
type Lock struct{ file *os.File }

// Acquire makes the directory if it is missing (0700) and takes its lock without waiting. A *HeldError says who has it.
func Acquire(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory (set FLEXID_STATE_DIR to one that this user may write): %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the state directory (set FLEXID_STATE_DIR to one that this user may write): %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			held := &HeldError{Dir: dir}
			_ = json.NewDecoder(file).Decode(&held.Holder)
			return nil, held
		}
		return nil, fmt.Errorf("locking the state directory %s (is it on a network file system?): %w", dir, err)
	}
	host, _ := os.Hostname()
	if err := sign(file, Holder{PID: os.Getpid(), Host: host, Since: time.Now().UTC()}); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the lock of the state directory: %w", err), file.Close())
	}
	return &Lock{file: file}, nil
}

func sign(file *os.File, holder Holder) error {
	text, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt(append(text, '\n'), 0)
	return err
}

// Release lets go. The file stays: who removes it could remove the one that the next holder has just locked.
func (l *Lock) Release() error { return l.file.Close() }
