//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexid/testdata/testenv"
)

// programs are the binaries under test. They are built once, before the first test.
var programs struct{ dir, flexid, nats string }

func TestMain(m *testing.M) {
	if os.Getenv("FLEXID_E2E_NATS") != "" { // we are the command nats
		if err := standIn(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "nats:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testenv.Parallel(6)
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "flexid-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs.dir, programs.flexid, programs.nats = dir, filepath.Join(dir, "flexid"), filepath.Join(dir, "nats-server")
	for _, args := range [][]string{
		{fmt.Sprintf("-race=%t", raced), "-o", programs.flexid, "flexid/cmd/flexid"},
		{"-o", programs.nats, "github.com/nats-io/nats-server/v2"},
	} {
		if text, err := exec.Command("go", append([]string{"build"}, args...)...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build %s: %v\n%s", strings.Join(args, " "), err, text)
			return 1
		}
	}
	testenv.InMemory() // only now: where memory is, programs may not be allowed to run
	return m.Run()
}

// slow says whether the full size was asked for.
func slow() bool { return os.Getenv("FLEXID_SLOW") == "1" }

func onlySlow(t *testing.T, why string) {
	t.Helper()
	if !slow() {
		t.Skip("set FLEXID_SLOW=1: " + why)
	}
}

// eventually asks until ok says yes or the time is over; then it fails with what ok said last.
func eventually(t *testing.T, most time.Duration, what string, ok func() (bool, string)) {
	t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	last, begun, next := "", time.Now(), 20*time.Second
	for {
		yes, said := ok()
		if yes {
			return
		}
		last = said
		if since := time.Since(begun); since > next {
			t.Logf("%s: after %v: %s", what, since.Round(time.Second), last)
			next *= 2
		}
		select {
		case <-every.C:
		case <-t.Context().Done():
			t.Fatalf("%s: the test ended first: %s", what, last)
		case <-deadline.C:
			t.Fatalf("%s: not within %v: %s", what, most, last)
		}
	}
}

// moment lets time pass on purpose: when a process is killed must not hang on what it does.
func moment(t *testing.T, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.Context().Done():
		return false
	}
}

func must[T any](v T, err error) func(t *testing.T, doing string) T {
	return func(t *testing.T, doing string) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
		return v
	}
}
