//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"flexid/batch/stream"
)

// broker is a nats-server process that keeps its address over restarts.
type broker struct {
	t      *testing.T
	config string
	url    string
	proc   *process
	nc     *nats.Conn
	js     jetstream.JetStream

	told   map[string][]told // by event id
	toldAt uint64            // last sequence of FLEXID_OUT that was read
}

// told is one message on flexi.done.
type told struct {
	Evidence string `json:"evidence"`
	Key      string `json:"key"`
	State    string `json:"state"`
	Reason   string `json:"reason"`
	Cause    string `json:"cause"`
	EventID  string `json:"event_id"`
	Errors   []struct {
		Text string `json:"message"`
	} `json:"errors"`
}

// newBroker starts a server that flushes every write; store "" is a directory of the test.
func newBroker(t *testing.T, store string) *broker {
	t.Helper()
	dir := t.TempDir()
	if store == "" {
		store = filepath.Join(dir, "store")
	}
	port := freePort(t)
	b := &broker{t: t, config: filepath.Join(dir, "nats.conf"), url: fmt.Sprintf("nats://127.0.0.1:%d", port), told: map[string][]told{}}
	text := fmt.Sprintf("listen: \"127.0.0.1:%d\"\nserver_name: e2e\nmax_payload: 1MB\n"+
		"jetstream { store_dir: %q, sync_interval: always, max_file_store: 8GB }\n", port, store)
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatalf("writing the configuration of nats-server: %v", err)
	}
	b.start()
	b.connect()
	return b
}

// embeddedBroker speaks to the server inside a running daemon, with what the daemon wrote into its state directory.
func embeddedBroker(d *daemon) *broker {
	d.t.Helper()
	var info struct{ URL, Token string }
	raw := must(os.ReadFile(filepath.Join(d.dir, "nats.json")))(d.t, "reading nats.json")
	if err := json.Unmarshal(raw, &info); err != nil {
		d.t.Fatalf("nats.json: %v", err)
	}
	b := &broker{t: d.t, url: info.URL, told: map[string][]told{}}
	b.connect(nats.Token(info.Token))
	return b
}

func (b *broker) connect(more ...nats.Option) {
	b.t.Helper()
	options := append(more, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectBufSize(-1))
	b.nc = must(nats.Connect(b.url, options...))(b.t, "connecting")
	b.t.Cleanup(b.nc.Close)
	b.js = must(jetstream.New(b.nc))(b.t, "JetStream")
}

func freePort(t *testing.T) int {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t, "looking for a free port")
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts the server and waits until it takes connections.
func (b *broker) start() {
	b.t.Helper()
	b.proc = launch(b.t, "nats", programs.nats, environ(nil), "-c", b.config)
	eventually(b.t, 20*time.Second, "nats-server takes connections", func() (bool, string) {
		if !b.proc.alive() {
			b.t.Fatalf("nats-server ended: %s", b.proc.tail(10))
		}
		nc, err := nats.Connect(b.url)
		if err != nil {
			return false, err.Error()
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			return false, err.Error()
		}
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		if _, err := js.AccountInfo(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

// crash kills the server and starts it again.
func (b *broker) crash() {
	b.t.Helper()
	b.proc.kill()
	b.start()
}

// publish stores an event. What is not known to be stored is published again under the same event id, as a careful sender
// does.
func (b *broker) publish(m *nats.Msg) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
		_, err := b.js.PublishMsg(ctx, m)
		cancel()
		if err == nil || b.t.Context().Err() != nil || time.Now().After(deadline) {
			return err
		}
		if m.Header.Get(nats.MsgIdHdr) == "" {
			return fmt.Errorf("an event without id cannot be published again: %w", err)
		}
		if !moment(b.t, 100*time.Millisecond) {
			return err
		}
	}
}

// waiting is how many events intake has not taken.
func (b *broker) waiting() (uint64, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Second)
	defer cancel()
	return stream.Waiting(ctx, b.js, stream.Options{})
}

// lastSeq is the last sequence of a stream, 0 when it cannot be asked.
func (b *broker) lastSeq(name string) uint64 {
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer cancel()
	s, err := b.js.Stream(ctx, name)
	if err != nil {
		return 0
	}
	return s.CachedInfo().State.LastSeq
}

// hear reads what flexi.done has stored since the last time.
func (b *broker) hear() error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	s, err := b.js.Stream(ctx, "FLEXID_OUT")
	if err != nil {
		return err
	}
	for last := s.CachedInfo().State.LastSeq; b.toldAt < last; {
		m, err := s.GetMsg(ctx, b.toldAt+1, jetstream.WithGetMsgSubject("flexi.done.>"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			b.toldAt = last
			return nil
		}
		if err != nil {
			return err
		}
		var one told
		if err := json.Unmarshal(m.Data, &one); err != nil {
			return fmt.Errorf("message %d of flexi.done: %w", m.Sequence, err)
		}
		b.told[one.EventID] = append(b.told[one.EventID], one)
		b.toldAt = m.Sequence
	}
	return nil
}

// heard says whether flexi.done told what became of an event. Where the read-back noticed a person's edit first, the event
// before is what is parked, and this one waits behind it.
func (b *broker) heard(d *document, id string) bool {
	if len(b.told[id]) > 0 {
		return true
	}
	first := b.told[d.events[0].id]
	return d.kind == "edited" && len(first) > 0 && first[len(first)-1].State == "parked"
}

// rows reads every row of the ledger, past all daemons.
func (b *broker) rows(each func(value []byte)) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	kv, err := b.js.KeyValue(ctx, "flexid_ledger")
	if err != nil {
		return err
	}
	w, err := kv.Watch(ctx, "d.*", jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case u := <-w.Updates():
			if u == nil { // that was all
				return nil
			}
			each(u.Value())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
