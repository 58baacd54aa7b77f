package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// head says on what was measured.
func (b *bench) head(ctx context.Context) (string, error) {
	version, err := exec.CommandContext(ctx, b.flexid, "version").Output()
	if err != nil {
		return "", fmt.Errorf("asking flexid for its version: %w", err)
	}
	sync, err := syncTime(filepath.Join(b.dir, "sync"))
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("%s\n%s/%s, %d processors; a sync of 4 KiB takes %v", strings.TrimSpace(string(version)), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), sync.Round(time.Microsecond))
	if sync < 20*time.Microsecond {
		head += ": no disk does that; give -dir a folder on one"
	}
	head += fmt.Sprintf("\n%s documents in a run, rounds: %d", short(float64(b.n)), b.rounds)
	if b.rounds > 1 {
		head += "; medians, least and most in brackets"
	}
	return head, nil
}

// syncTime is the median of writing a little and waiting for the disk.
func syncTime(name string) (time.Duration, error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 4096)
	var all []float64
	for range 101 {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, float64(time.Since(began)))
	}
	return time.Duration(median(all)), nil
}
