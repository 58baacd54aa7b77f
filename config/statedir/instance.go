package statedir

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// instance is the content of instance.json.
type instance struct {
	ID      string `json:"id"`
	Machine string `json:"machine"` // hash of the machine's id
	File    uint64 `json:"file"`    // inode of this very file: a copy of it has another one
}

// InstanceID gives the id of this state directory on this machine, made at first use. A copied directory (another machine,
// or another file on the same one) gets a new id. The caller holds the lock.
func InstanceID(dir string) (string, error) {
	return instanceID(dir, machineID())
}

func instanceID(dir, machine string) (string, error) {
	path := filepath.Join(dir, "instance.json")
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the instance id: %w", err)
	}
	var found instance
	if err == nil && json.Unmarshal(text, &found) == nil && found.ID != "" && found.Machine == machine {
		if info, err := os.Stat(path); err == nil && inode(info) == found.File {
			return found.ID, nil
		}
	}
	made := instance{ID: randomHex(16), Machine: machine}
	err = replace(path, func(info fs.FileInfo) ([]byte, error) {
		made.File = inode(info)
		return json.Marshal(made)
	})
	if err != nil {
		return "", fmt.Errorf("writing the instance id: %w", err)
	}
	return made.ID, nil
}

func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// machineID is a hash, because the id itself is to be kept from applications' files. Where there is none (many
// containers), name and boot stand in: after a restart of the machine that costs a wait for the lease, never a double.
func machineID() string {
	text, err := os.ReadFile("/etc/machine-id")
	id := strings.TrimSpace(string(text))
	if err != nil || len(id) < 32 {
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		host, _ := os.Hostname()
		id = host + " " + strings.TrimSpace(string(boot))
	}
	sum := sha256.Sum256([]byte("flexid instance " + id))
	return hex.EncodeToString(sum[:16])
}

func randomHex(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: the runtime ends the process instead
	return hex.EncodeToString(raw)
}
