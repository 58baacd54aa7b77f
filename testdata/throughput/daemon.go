package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// daemon is `flexid serve` on a state directory of its own.
type daemon struct {
	*process
	b     *bench
	state string
	api   string // address
}

// startDaemon starts flexid and waits until it takes events.
func (b *bench) startDaemon(ctx context.Context, dir string, e *fakeERP, l load, traced bool) (*daemon, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	d := &daemon{b: b, state: filepath.Join(dir, "state"), api: "http://" + addr}
	c := child{name: "flexid", dir: dir, args: []string{b.flexid, "serve"}, traced: traced, env: []string{
		"PATH=" + os.Getenv("PATH"), "FLEXID_FLEXI_URL=" + e.url, "FLEXID_FLEXI_COMPANY=firma", "FLEXID_FLEXI_USER=flexid", "FLEXID_FLEXI_PASSWORD=secret",
		fmt.Sprint("FLEXID_FLEXI_PACK=", l.pack), fmt.Sprint("FLEXID_FLEXI_CONCURRENCY=", l.atOnce),
		"FLEXID_STATE_DIR=" + d.state, "FLEXID_HTTP_ADDR=" + addr, "FLEXID_LOG_FORMAT=json",
	}}
	if b.profiles != "" || l.name == fileCase { // there it tells how much memory is in use
		c.env = append(c.env, "FLEXID_HTTP_PPROF=true")
	}
	if d.process, err = b.start(ctx, c); err != nil {
		return nil, err
	}
	if err := d.ready(ctx); err != nil {
		d.end()
		return nil, err
	}
	return d, nil
}

// restart ends the daemon as a supervisor does and starts it again, without waiting for more than the new process.
func (d *daemon) restart(ctx context.Context) error {
	if err := d.stop(); err != nil {
		return err
	}
	p, err := d.b.start(ctx, d.child)
	if err == nil {
		d.process = p
	}
	return err
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (d *daemon) ready(ctx context.Context) error {
	var ended error
	err := until(ctx, "flexid gets ready", time.Minute, func() (bool, any) {
		select {
		case <-d.done:
			ended = d.fault(fmt.Errorf("it ended: %w", d.err))
			return true, nil
		default:
		}
		_, err := d.get(ctx, "/readyz")
		return err == nil, nil
	})
	if err == nil {
		return ended
	}
	return d.fault(err)
}

// get asks the daemon's API.
func (d *daemon) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.api+path, nil)
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(d.state, "admin.token"))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", path, resp.Status, text)
	}
	return text, err
}

// connect connects to the NATS server inside the daemon, by the file that it writes for other programs.
func (d *daemon) connect() (*nats.Conn, error) {
	text, err := os.ReadFile(filepath.Join(d.state, "nats.json"))
	if err != nil {
		return nil, err
	}
	var info struct{ URL, Token string }
	if err := json.Unmarshal(text, &info); err != nil {
		return nil, err
	}
	return nats.Connect(info.URL, nats.Token(info.Token))
}

// publish publishes the documents from one number to another.
func (d *daemon) publish(ctx context.Context, from, to int) error {
	nc, err := d.connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	return publish(ctx, nc, "FLEXID_PUSH", "flexi.push."+evidence, from, to)
}

// told waits until the results of n documents are stored.
func (d *daemon) told(ctx context.Context, n int) error {
	const subject = "flexi.done." + evidence
	nc, err := d.connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	out, err := js.Stream(ctx, "FLEXID_OUT")
	if err != nil {
		return err
	}
	err = until(ctx, "results are told", 2*time.Minute, func() (bool, any) {
		info, err := out.Info(ctx, jetstream.WithSubjectFilter(subject))
		if err != nil {
			return false, err.Error()
		}
		return info.State.Subjects[subject] >= uint64(n), info.State.Subjects[subject]
	})
	return d.fault(err)
}

// profile keeps processor profiles of a daemon, one after the other, until what it returns is called; that waits for the last.
func (b *bench) profile(ctx context.Context, d *daemon, name string) (stop func()) {
	if b.profiles == "" || d.traced {
		return func() {}
	}
	enough := make(chan struct{})
	var taken sync.WaitGroup
	taken.Go(func() {
		for i := 1; ; i++ {
			text, err := d.get(ctx, fmt.Sprint("/debug/pprof/profile?seconds=", b.slice))
			if err == nil {
				err = os.WriteFile(filepath.Join(b.profiles, fmt.Sprintf("%s-%d-%d.prof", name, b.runs, i)), text, 0o600)
			}
			if err != nil {
				fmt.Fprintf(b.talk, "%s: no profile: %v\n", name, err)
				return
			}
			select {
			case <-enough:
				return
			default:
			}
		}
	})
	return func() { close(enough); taken.Wait() }
}
