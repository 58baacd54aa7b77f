//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one program of a test. Its output goes into a file; the end of it is shown when the test fails.
type process struct {
	t    *testing.T
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	once sync.Once
}

// launch starts a program; it is killed when the test ends.
func launch(t *testing.T, name, bin string, env []string, args ...string) *process {
	t.Helper()
	return start(t, name, "", exec.Command(bin, args...), env)
}

// start is launch with what the program writes to standard output in a file of its own, which is emptied first; "" = beside
// its log.
func start(t *testing.T, name, stdout string, cmd *exec.Cmd, env []string) *process {
	t.Helper()
	p := &process{t: t, name: name, log: filepath.Join(t.ArtifactDir(), name+".log"), done: make(chan struct{}), cmd: cmd}
	file := must(os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(t, "opening the log of "+name)
	defer file.Close()
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, file, file
	if stdout != "" {
		out := must(os.Create(stdout))(t, "opening the output of "+name)
		defer out.Close()
		p.cmd.Stdout = out
	}
	// A test that runs out of time takes its processes with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if at := strings.Index(p.said(), "WARNING: DATA RACE"); raced && at >= 0 {
			t.Errorf("%s: %s", name, p.said()[at:])
		}
		if t.Failed() {
			t.Logf("end of %s:\n%s", filepath.Base(p.log), p.tail(40))
		}
	})
	return p
}

// signal sends a signal to the process, which has not been waited for.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(s)
	}
}

// freeze is SIGSTOP. It returns when every thread stands still: until then a write may still get out.
func (p *process) freeze() {
	p.signal(syscall.SIGSTOP)
	for range 10_000 {
		running := 0
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		for _, name := range tasks {
			stat, _ := os.ReadFile(name)
			if _, state, ok := strings.Cut(string(stat), ") "); ok && !strings.HasPrefix(state, "T") {
				running++
			}
		}
		if running == 0 {
			return
		}
	}
	p.t.Errorf("%s does not stand still", p.name)
}

// kill is kill -9. It returns when the process is gone.
func (p *process) kill() {
	p.once.Do(func() { p.signal(syscall.SIGKILL) })
	<-p.done
}

// stop asks the process to end and gives its exit code.
func (p *process) stop(most time.Duration) int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	return p.wait(most)
}

// wait gives the exit code once the process has ended.
func (p *process) wait(most time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.t.Errorf("%s did not end within %v", p.name, most)
		p.kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// said is everything that the process wrote, with what earlier runs of the same name wrote.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (p *process) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(p.said()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// runCommand runs flexid to its end and gives what it wrote and its exit code.
func runCommand(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, talk bytes.Buffer
	cmd := exec.CommandContext(t.Context(), programs.flexid, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &talk
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running flexid %v: %v", args, err)
	}
	return out.String(), talk.String(), cmd.ProcessState.ExitCode()
}

// environ is a small environment: nothing of the machine's own settings gets into a test.
func environ(set map[string]string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "TZ=Europe/Prague"}
	for name, value := range set {
		env = append(env, fmt.Sprintf("%s=%s", name, value))
	}
	slices.Sort(env)
	return env
}
