package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Info is what another program needs to connect.
type Info struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// ReadInfo reads the file that a running daemon wrote; errors.Is(err, fs.ErrNotExist) when there is none.
func ReadInfo(path string) (Info, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Info{}, fmt.Errorf("reading the address of the embedded NATS server: %w", err)
	}
	var info Info
	if err := json.Unmarshal(text, &info); err != nil {
		return Info{}, fmt.Errorf("reading the address of the embedded NATS server from %s: %w", path, err)
	}
	if info.URL == "" || info.Token == "" {
		return Info{}, fmt.Errorf("%s names no address or no token", path)
	}
	return info, nil
}

func keptToken(path string) string {
	if path != "" {
		if info, err := ReadInfo(path); err == nil && len(info.Token) >= 32 {
			return info.Token
		}
	}
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails: the runtime ends the process instead
	return hex.EncodeToString(raw)
}

// writeInfo replaces the file as a whole, so that a reader never sees half a token, and for the owner's eyes only.
func writeInfo(path string, info Info) (err error) {
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if _, err := file.Write(append(text, '\n')); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
