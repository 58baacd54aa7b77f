package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child says how a process is started.
type child struct {
	name   string
	dir    string // its log, and what strace writes
	args   []string
	env    []string
	traced bool
}

// process is a program that was started here. What it says goes into a log, but for lines of standard output that are read.
type process struct {
	child
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	done chan struct{} // closed when it has ended
	err  error         // of its end
}

func (b *bench) start(ctx context.Context, c child) (*process, error) {
	args := c.args
	if c.traced {
		// With -D the program, not strace, is our child: its id is the one to ask about and to signal.
		args = append([]string{"strace", "-D", "-f", "-qq", "--seccomp-bpf", "-e", "signal=none", "-e", "trace=fsync,fdatasync", "-o", c.trace()}, args...)
	}
	p := &process{child: c, cmd: exec.CommandContext(ctx, args[0], args[1:]...), done: make(chan struct{})}
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Env, p.cmd.Stderr = c.env, log
	diesWithUs(p.cmd)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, w, err := os.Pipe() // not StdoutPipe: waiting for the process would close it under the reader
	if err != nil {
		return nil, err
	}
	defer w.Close()
	p.cmd.Stdout, p.out = w, bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", c.name, err), out.Close())
	}
	go func() {
		defer close(p.done)
		defer out.Close()
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

func (c child) log() string   { return filepath.Join(c.dir, c.name+".log") }
func (c child) trace() string { return filepath.Join(c.dir, c.name+".strace") }

// end kills the process if it runs still, and returns when it is gone.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // one that has ended already is no fault
	<-p.done
}

// stop asks the process to end by itself.
func (p *process) stop() error {
	const most = time.Minute
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.fault(p.err)
	case <-timer.C:
		return fmt.Errorf("%s did not stop within %v", p.name, most)
	}
}

// fault adds what the process said last to an error about it.
func (p *process) fault(err error) error {
	if err == nil {
		return nil
	}
	text, _ := os.ReadFile(p.log()) // without it the error stands alone
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s: %w\n%s", p.name, err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
}

// line is the next one of its output.
func (p *process) line() (string, error) {
	if !p.out.Scan() {
		err := p.out.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return "", p.fault(err)
	}
	return p.out.Text(), nil
}

// await waits until the process has come to a stage, where it stands until it is released.
func (p *process) await(stage string) error {
	said, err := p.line()
	if err == nil && said != stage {
		err = p.fault(fmt.Errorf("it says %q, not %q", said, stage))
	}
	return err
}

func (p *process) release() error {
	_, err := io.WriteString(p.in, "\n")
	return err
}

func (p *process) pass(stage string) error { return errors.Join(p.await(stage), p.release()) }

// between is what the way from one stage to another took.
func (p *process) between(from, to string, documents int) (spent figures, err error) {
	if err := p.await(from); err != nil {
		return spent, err
	}
	begin, err := p.moment()
	if err != nil {
		return spent, err
	}
	if err := errors.Join(p.release(), p.await(to)); err != nil {
		return spent, err
	}
	end, err := p.moment()
	return begin.to(end, documents), err
}

// moment asks the kernel what the running process has used, and strace what it has synced.
func (p *process) moment() (moment, error) {
	m := moment{at: time.Now()}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return m, fmt.Errorf("this needs Linux: %w", err)
	}
	if m.processor, err = processorTime(string(stat)); err != nil || !p.traced {
		return m, err
	}
	trace, err := os.ReadFile(p.trace())
	m.syncs = countSyncs(trace)
	return m, err
}

// memory is a line of /proc/PID/status in KiB: VmRSS is what the process has now, VmHWM the most that it has had.
func (p *process) memory(name string) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("this needs Linux: %w", err)
	}
	return memoryLine(string(status), name)
}

func memoryLine(status, name string) (int, error) {
	_, rest, _ := strings.Cut("\n"+status, "\n"+name+":")
	var kib int
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
		return 0, fmt.Errorf("no %s in the status of a process", name)
	}
	return kib, nil
}

// processorTime reads user and system time from the line of /proc/PID/stat. The name in it may hold blanks and brackets.
func processorTime(stat string) (time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ, the same on every Linux
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("the kernel says %q of a process", stat)
	}
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}

// countSyncs counts the calls that a trace has. One that was interrupted by another thread's stands in two lines, the second
// of which says that it was resumed.
func countSyncs(trace []byte) int {
	return bytes.Count(trace, []byte(" fsync(")) + bytes.Count(trace, []byte(" fdatasync("))
}

// until asks every few milliseconds until the answer is yes, and fails when nothing moves for so long that nothing will. What
// ok returns besides is what moves.
func until(ctx context.Context, what string, most time.Duration, ok func() (bool, any)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var last any
	moved := time.Now()
	for {
		yes, now := ok()
		if yes {
			return nil
		}
		if now != last {
			last, moved = now, time.Now()
		}
		if time.Since(moved) > most {
			return fmt.Errorf("%s: nothing moved for %v, at %v", what, most, last)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
