package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Usable says, without making anything, whether this user could make the directory or write into it. The error tells why not.
func Usable(dir string) error {
	at, err := existing(dir)
	if err != nil {
		return err
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("writing to %s: %w", at, err)
	}
	var on unix.Statfs_t
	if err := unix.Statfs(at, &on); err != nil {
		return fmt.Errorf("looking at the disk of %s: %w", at, err)
	}
	switch {
	case on.Type == unix.PROC_SUPER_MAGIC, on.Type == unix.SYSFS_MAGIC, on.Type == unix.CGROUP2_SUPER_MAGIC, on.Type == unix.CGROUP_SUPER_MAGIC:
		return fmt.Errorf("%s is made by the kernel and keeps no files", at)
	case on.Files > 0 && on.Ffree == 0:
		return fmt.Errorf("the disk of %s can hold no more files (no free inode)", at)
	}
	if at != filepath.Clean(dir) {
		return nil
	}
	for _, name := range []string{"lock", "instance.json", "admin.token", "nats"} {
		path := filepath.Join(at, name)
		if err := unix.Access(path, unix.W_OK); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("writing to %s, which is there already: %w", path, err)
		}
	}
	return nil
}

// existing is the directory itself, or the one above it that is there and in which it would be made.
func existing(dir string) (string, error) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			if to, err := os.Readlink(at); err == nil {
				return "", fmt.Errorf("%s is a link to %s, which is not there: nothing can be made behind it", at, to)
			}
			continue
		case err != nil:
			return "", fmt.Errorf("looking at the state directory: %w", err)
		case !info.IsDir():
			return "", fmt.Errorf("%s is no directory", at)
		}
		return at, nil
	}
}

// Free is how many bytes this user may still write to the disk that holds the directory, or will hold it.
func Free(dir string) (int64, error) {
	at, err := existing(dir)
	if err != nil {
		return 0, err
	}
	var on unix.Statfs_t
	if err := unix.Statfs(at, &on); err != nil {
		return 0, fmt.Errorf("looking at the disk of %s: %w", at, err)
	}
	if on.Bsize <= 0 {
		return 0, errors.New("the disk of " + at + " tells no block size")
	}
	return int64(min(on.Bavail, 1<<40)) * on.Bsize, nil
}

// Unusable says of an error of this package whether the directory itself is to blame, so that trying again is no use. A
// directory that somebody else holds is let go of, and a full or faltering disk may get better.
func Unusable(err error) bool {
	var held *HeldError
	if err == nil || errors.As(err, &held) {
		return false
	}
	for _, passing := range []error{unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR, unix.EAGAIN, unix.EBUSY, unix.ETIMEDOUT, unix.ESTALE} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return true
}
