package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tokenFile lies in the state directory.
const tokenFile = "admin.token"

// AdminToken gives the token of the API, made at first start. The caller holds the lock.
func AdminToken(dir string) (string, error) {
	token, err := ReadAdminToken(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token = randomHex(32)
	err = replace(filepath.Join(dir, tokenFile), func(fs.FileInfo) ([]byte, error) { return []byte(token + "\n"), nil })
	if err != nil {
		return "", fmt.Errorf("writing the API token: %w", err)
	}
	return token, nil
}

// ReadAdminToken gives the token that a daemon made; errors.Is(err, fs.ErrNotExist) when none ever started here.
func ReadAdminToken(dir string) (string, error) {
	path := filepath.Join(dir, tokenFile)
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("reading the API token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s can be read by others: remove it and restart the daemon, so that a new token is made", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the API token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 32 {
		// A short or empty token would let anybody in who guesses it.
		return "", fmt.Errorf("%s holds no token: remove it and restart the daemon", path)
	}
	return token, nil
}

// replace writes a file of mode 0600 as a whole or not at all, also over a power cut.
func replace(path string, content func(fs.FileInfo) ([]byte, error)) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := fill(file, content); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func fill(file *os.File, content func(fs.FileInfo) ([]byte, error)) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	text, err := content(info)
	if err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Sync()
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
