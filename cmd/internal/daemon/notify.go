package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Notify is where a service manager wants to hear how the daemon stands; the zero value is nobody.
type Notify struct {
	Socket   string        // systemd's NOTIFY_SOCKET
	Watchdog time.Duration // it restarts us after this long without a sign of life; 0 = it does not watch
}

// NotifyFrom reads systemd's variables. A watchdog meant for another process is not ours to feed.
func NotifyFrom(lookup func(name string) string) Notify {
	n := Notify{Socket: lookup("NOTIFY_SOCKET")}
	pid := lookup("WATCHDOG_PID")
	micros, err := strconv.ParseInt(lookup("WATCHDOG_USEC"), 10, 64)
	if err == nil && micros > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.Watchdog = time.Duration(micros) * time.Microsecond
	}
	return n
}

// notifier writes datagrams to the service manager. What it cannot say is logged and otherwise ignored: the daemon's work
// does not depend on it.
type notifier struct {
	n      Notify
	log    zerolog.Logger
	check  func(ctx context.Context) error // whether the daemon is alive
	status func() string                   // how it stands, in a line; nil = nothing is told

	stop context.CancelFunc
	done sync.WaitGroup
}

// notifyTimeout bounds one datagram: a full socket must not hold up a stop.
const notifyTimeout = time.Second

func (n *notifier) say(state string) {
	if n.n.Socket == "" {
		return
	}
	if err := n.write(state); err != nil {
		n.log.Warn().Err(err).Str("state", state).Msg("the service manager cannot be told")
	}
}

func (n *notifier) write(state string) error {
	// A name that begins with @ is an abstract one; net knows that.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.n.Socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(notifyTimeout)) // fails on a closed connection only
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}

// feed begins to feed the watchdog, from the start on: waiting for NATS is no hang.
func (n *notifier) feed() {
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	if n.status != nil {
		n.follow(ctx, n.status)
	}
	if n.n.Socket == "" || n.n.Watchdog <= 0 {
		return
	}
	n.done.Go(func() {
		for {
			n.alive(ctx)
			if !sleep(ctx, n.n.Watchdog/3) { // two may be lost
				return
			}
		}
	})
}

// statusEvery is how often the status for the service manager is looked at.
const statusEvery = 2 * time.Second

// follow tells the service manager how the daemon stands whenever that changes, from now until close.
func (n *notifier) follow(ctx context.Context, text func() string) {
	if n.n.Socket == "" {
		return
	}
	n.done.Go(func() {
		for said := ""; ; {
			if now := text(); now != said {
				said = now
				n.say("STATUS=" + now)
			}
			if !sleep(ctx, statusEvery) {
				return
			}
		}
	})
}

// alive feeds the watchdog only after a look at the daemon: a process whose locks are stuck must be restarted, however
// well its timers run.
func (n *notifier) alive(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.n.Watchdog/3)
	defer cancel()
	if err := n.check(ctx); err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			n.log.Error().Err(err).Msg("the daemon does not look alive; the watchdog is not fed")
		}
		return
	}
	n.say("WATCHDOG=1")
}

// close ends the feeding.
func (n *notifier) close() {
	n.stop()
	n.done.Wait()
}

// lookAlive asks for everything that a stuck daemon could not give: the locks of standing and engine. The ERP and NATS are
// not asked: a restart does not bring them back.
func (d *daemon) lookAlive(ctx context.Context) error {
	looked := make(chan struct{})
	// Ends with the locks that it waits for; where it never does, the service manager ends the process.
	go func() {
		defer close(looked)
		d.standing.troubles()
		d.standing.Status()
	}()
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the state of the engine cannot be read: %w", context.Cause(ctx))
	}
}
