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
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case err != nil:
			return fmt.Errorf("looking at the state directory: %w", err)
		case !info.IsDir():
			return fmt.Errorf("%s is no directory", at)
		}
		if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("writing to %s: %w", at, err)
		}
		return nil
	}
}
