package statedir_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexid/config/statedir"
)

// TestMain lets the test binary be the other process that holds a directory.
func TestMain(m *testing.M) {
	dir := os.Getenv("STATEDIR_TEST_HOLD")
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := statedir.Acquire(dir); err != nil {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent lets go, or dies
	os.Exit(0)
}

func TestAcquireMakesAPrivateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	lock, err := statedir.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	var held *statedir.HeldError
	if _, err := statedir.Acquire(dir); !errors.As(err, &held) || held.Holder.PID != os.Getpid() {
		t.Errorf("a second lock in one process: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := statedir.Acquire(dir)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	_ = again.Release()
}

func TestLockOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "STATEDIR_TEST_HOLD="+dir)
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	_, err = statedir.Acquire(dir)
	var held *statedir.HeldError
	if !errors.As(err, &held) || held.Holder.PID != other.Process.Pid || time.Since(held.Holder.Since) > time.Minute {
		t.Fatalf("got %v", err)
	}
	if host, _ := os.Hostname(); !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), dir) {
		t.Errorf("text: %v", err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	lock, err := statedir.Acquire(dir)
	if err != nil {
		t.Fatalf("a killed process still holds the directory: %v", err)
	}
	_ = lock.Release()
}

func TestInstanceID(t *testing.T) {
	dir := t.TempDir()
	first, err := statedir.InstanceID(dir)
	if err != nil || len(first) != 32 {
		t.Fatal(first, err)
	}
	if again, err := statedir.InstanceID(dir); again != first {
		t.Errorf("a restart changed the id: %s, %v", again, err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	other, err := statedir.InstanceID(copied)
	if err != nil || other == first {
		t.Errorf("a copied directory has the id of the first: %s, %v", other, err)
	}
	if again, _ := statedir.InstanceID(copied); again != other {
		t.Error("the copy's own id does not last")
	}
	if again, _ := statedir.InstanceID(dir); again != first {
		t.Error("the first one lost its id to the copy")
	}
}

func TestInstanceIDOfADamagedFile(t *testing.T) {
	dir := t.TempDir()
	first, _ := statedir.InstanceID(dir)
	if err := os.WriteFile(filepath.Join(dir, "instance.json"), []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if made, err := statedir.InstanceID(dir); err != nil || made == first || made == "" {
		t.Errorf("%s, %v", made, err)
	}
}

func TestAdminToken(t *testing.T) {
	dir := t.TempDir()
	if _, err := statedir.ReadAdminToken(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before the first start: %v", err)
	}
	token, err := statedir.AdminToken(dir)
	if err != nil || len(token) != 64 {
		t.Fatal(token, err)
	}
	path := filepath.Join(dir, "admin.token")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, read := range []func(string) (string, error){statedir.AdminToken, statedir.ReadAdminToken} {
		if again, err := read(dir); again != token || err != nil {
			t.Errorf("%s, %v", again, err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := statedir.AdminToken(dir); err == nil {
		t.Error("a token that others can read is used")
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := statedir.AdminToken(dir); err == nil {
		t.Error("an empty token is used")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestKnown(t *testing.T) {
	dir := t.TempDir()
	if k, err := statedir.ReadKnown(dir, "flexi"); err != nil || k.Ledger != "" {
		t.Fatalf("before the first start: %+v, %v", k, err)
	}
	made := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	first := statedir.Known{Ledger: "A", Streams: map[string]time.Time{"FLEXID_PUSH": made}, Documents: map[string]int{"parked": 2}, Noted: made}
	for prefix, k := range map[string]statedir.Known{"flexi": first, "other": {Ledger: "B"}} {
		if err := statedir.WriteKnown(dir, prefix, k); err != nil {
			t.Fatal(err)
		}
	}
	k, err := statedir.ReadKnown(dir, "flexi")
	if err != nil || k.Ledger != "A" || !k.Streams["FLEXID_PUSH"].Equal(made) || k.Documents["parked"] != 2 || !k.Noted.Equal(made) {
		t.Errorf("%+v, %v", k, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "ledger.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.json"), []byte(`{"flexi":`), 0o600); err != nil {
		t.Fatal(err)
	}
	// A file that cannot be read is no first start.
	if _, err := statedir.ReadKnown(dir, "flexi"); err == nil || !strings.Contains(err.Error(), "ledger.json") {
		t.Errorf("a damaged file: %v", err)
	}
	if err := statedir.WriteKnown(dir, "flexi", first); err == nil {
		t.Error("a damaged file is overwritten")
	}
}
