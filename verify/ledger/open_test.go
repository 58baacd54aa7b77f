package ledger

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

func TestOpen(t *testing.T) {
	b := newBox(t)
	js := b.connect()
	_, err := Open(t.Context(), js, Options{Company: "firma", System: "FLEXID"})
	var missing *MissingError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "restore NATS's files") || !strings.Contains(err.Error(), "accept-empty") {
		t.Fatalf("got %v", err)
	}
	l := mustOpen(t, js, Options{Company: "firma", System: "FLEXID", Create: true})
	info, err := js.Stream(t.Context(), "KV_flexid_ledger")
	noErr(t, err)
	c := info.CachedInfo().Config
	want(t, "direct reads", c.AllowDirect, false)
	want(t, "history", c.MaxMsgsPerSubject, 2)
	want(t, "atomic batches", c.AllowAtomicPublish, true)
	want(t, "discard", c.Discard, jetstream.DiscardNew)
	want(t, "storage", c.Storage, jetstream.FileStorage)
	want(t, "deletes denied", c.DenyDelete, true)
	want(t, "ledger id in the stream", c.Metadata["flexid.ledger"], l.LedgerID())

	again := mustOpen(t, js, Options{Company: "other", System: "X", Create: true})
	want(t, "same ledger", again.LedgerID(), l.LedgerID())
	m, rev, err := again.Meta(t.Context())
	noErr(t, err)
	want(t, "pinned company", m.Company, "firma") // the caller compares
	want(t, "pinned system", m.System, "FLEXID")
	want(t, "ledger in meta", m.Ledger, l.LedgerID())

	m.Identity = CompanyIdentity{ID: "7", DBName: "firma", Name: "Firma s.r.o.", CreatedAt: "2024-01-01"}
	noErr(t, again.SetMeta(t.Context(), m, rev))
	var conflict *ConflictError
	if err := l.SetMeta(t.Context(), m, rev); !errors.As(err, &conflict) {
		t.Fatalf("got %v", err)
	}
	got, _, err := l.Meta(t.Context())
	noErr(t, err)
	want(t, "identity", got.Identity, m.Identity)
}

func TestOpenWithoutCompanyPinsNothing(t *testing.T) {
	l := mustOpen(t, newBox(t).connect(), Options{Create: true})
	_, rev, err := l.Meta(t.Context())
	noErr(t, err)
	want(t, "revision", rev, 0)
}

func TestPrefix(t *testing.T) {
	b := newBox(t)
	js := b.connect()
	for prefix, bucket := range map[string]string{"": "flexid_ledger", "flexi": "flexid_ledger", "acme": "flexid_ledger_acme"} {
		l := mustOpen(t, js, Options{Prefix: prefix, Create: true})
		want(t, prefix, l.Bucket(), bucket)
	}
	one, two := mustOpen(t, js, Options{}), mustOpen(t, js, Options{Prefix: "acme"})
	row := sampleRow("x")
	noErr(t, one.Claim(t.Context(), []*Row{&row})[0])
	if _, err := two.Get(t.Context(), row.ID); !errors.Is(err, ErrNoRow) {
		t.Fatalf("got %v", err)
	}
	if _, err := Open(t.Context(), js, Options{Prefix: "a.b", Create: true}); err == nil {
		t.Fatal("a prefix with a dot was taken")
	}
}

// TestOpenRace: many replicas start at once on an empty NATS and end with one ledger.
func TestOpenRace(t *testing.T) {
	b := newBox(t)
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		js := b.connect()
		wg.Go(func() {
			l, err := Open(t.Context(), js, Options{Create: true, Company: "firma", System: "FLEXID"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = l.LedgerID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		want(t, "ledger", id, ids[0])
	}
}

func TestContradictingBucketIsRefused(t *testing.T) {
	good := func() jetstream.StreamConfig {
		o := Options{}
		o.defaults()
		return streamConfig("flexid_ledger", o, ledgerMetadata("L"))
	}
	cases := map[string]struct {
		change func(*jetstream.StreamConfig)
		says   string
	}{
		"good":           {func(*jetstream.StreamConfig) {}, ""},
		"direct reads":   {func(c *jetstream.StreamConfig) { c.AllowDirect = true }, "AllowDirect"},
		"history":        {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, "history is 5"},
		"expiry":         {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "expire after 1h"},
		"memory":         {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "memory"},
		"discard old":    {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, "drops its oldest rows"},
		"few keys":       {func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }, "at most 10 keys"},
		"other subjects": {func(c *jetstream.StreamConfig) { c.Subjects = []string{"$KV.flexid_ledger.d.>"} }, "subjects"},
		"not ours":       {func(c *jetstream.StreamConfig) { c.Metadata = nil }, "not made by flexid"},
		"newer format":   {func(c *jetstream.StreamConfig) { c.Metadata["flexid.format"] = "2" }, "newer flexid"},
		"history of one": {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, "older flexid"},
		"async": {func(c *jetstream.StreamConfig) {
			c.AllowAtomicPublish, c.PersistMode = false, jetstream.AsyncPersistMode
		}, "async"},
		"several at once": {func(c *jetstream.StreamConfig) { c.AllowDirect, c.MaxAge = true, time.Hour }, "AllowDirect"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			js := newBox(t).connect()
			cfg := good()
			c.change(&cfg)
			_, err := js.CreateStream(t.Context(), cfg)
			noErr(t, err)
			_, err = Open(t.Context(), js, Options{Create: true})
			var refused *ConfigError
			if c.says == "" {
				noErr(t, err)
				return
			}
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v", err)
			}
			if name == "several at once" {
				want(t, "faults", len(refused.Faults), 2)
			}
		})
	}
}

// TestToolTurnsDirectReadsOn: an update by a key-value tool flips AllowDirect. The running ledger goes on reading from
// the leader, the next start refuses.
func TestToolTurnsDirectReadsOn(t *testing.T) {
	b := newBox(t)
	l, js := b.ledger()
	_, err := b.connect().CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: l.Bucket(), History: 1})
	if err != nil {
		t.Skip("this server refuses the update:", err)
	}
	sub, err := js.Conn().SubscribeSync("$JS.API.DIRECT.GET.>")
	noErr(t, err)
	if _, err := l.Get(t.Context(), "none"); !errors.Is(err, ErrNoRow) {
		t.Fatalf("got %v", err)
	}
	noErr(t, js.Conn().Flush())
	if n, _, _ := sub.Pending(); n != 0 {
		t.Fatal("a row was read from whoever answers first")
	}
	var refused *ConfigError
	if _, err := Open(t.Context(), js, Options{}); !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
}

// TestBucketDeletedUnderUs: every call says so, in bounded time, whatever it was.
func TestBucketDeletedUnderUs(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	l, js := b.ledger()
	row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
	noErr(t, err)
	noErr(t, js.DeleteStream(t.Context(), "KV_"+l.Bucket()))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	errs := map[string]error{}
	_, errs["get"] = l.Get(ctx, row.ID)
	_, errs["append"] = l.Append(ctx, row, sampleEvent(2), nil)
	errs["claim"] = l.Claim(ctx, []*Row{&row})[0]
	errs["settle"] = l.Settle(ctx, []*Row{&row})[0]
	_, errs["event"] = l.Event(ctx, row.ID, 1)
	errs["put event"] = l.PutEvent(ctx, row.ID, sampleEvent(1))
	_, errs["number"] = l.TakeNumber(ctx, "banka", "1", row.ID)
	_, errs["event id"] = l.TakeEventID(ctx, "e", "d", row.ID, StreamRef{})
	_, _, errs["meta"] = l.Meta(ctx)
	for _, err := range l.List(ctx, nil) {
		errs["list"] = err
	}
	for what, err := range errs {
		var missing *MissingError
		if !errors.As(err, &missing) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	want(t, "calls", len(errs), 10)
}

func TestFullBucket(t *testing.T) {
	b := newBox(t)
	l := mustOpen(t, b.connect(), Options{Create: true, MaxBytes: 8 << 10})
	var err error
	for n := 1; err == nil && n < 1000; n++ {
		_, err = l.Append(t.Context(), sampleRow("x"), sampleEvent(n), nil)
	}
	var full *FullError
	if !errors.As(err, &full) || !strings.Contains(err.Error(), "maximum bytes exceeded") {
		t.Fatalf("got %v", err)
	}
	row, err := l.Get(t.Context(), sampleRow("x").ID)
	noErr(t, err)
	want(t, "events up to the last acknowledged one are there", row.Tail >= 5, true)
	_, err = l.Event(t.Context(), row.ID, row.Tail)
	noErr(t, err)
}

func TestRoom(t *testing.T) {
	b := newBox(t)
	js := b.connect()
	open := mustOpen(t, js, Options{Create: true})
	room, err := open.Room(t.Context())
	noErr(t, err)
	want(t, "no limit", room, Room{Used: 0, Free: -1})
	l := mustOpen(t, js, Options{Prefix: "small", Create: true, MaxBytes: 100_000})
	_, err = l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
	noErr(t, err)
	room, err = l.Room(t.Context())
	noErr(t, err)
	if room.Used < 300 || room.Used+room.Free != 100_000 {
		t.Fatalf("got %+v", room)
	}
	noErr(t, js.DeleteStream(t.Context(), "KV_"+l.Bucket()))
	var missing *MissingError
	if _, err := l.Room(t.Context()); !errors.As(err, &missing) {
		t.Fatalf("got %v", err)
	}
}

func TestEventLargerThanTheServerTakes(t *testing.T) {
	b := newBox(t, func(o *server.Options) { o.MaxPayload = 64 << 10 })
	l, _ := b.ledger()
	ev := sampleEvent(1)
	ev.Raw = make([]byte, 60<<10) // base64 makes it larger
	_, err := l.Append(t.Context(), sampleRow("x"), ev, nil)
	var large *TooLargeError
	if !errors.As(err, &large) {
		t.Fatalf("got %v", err)
	}
	if _, err := l.Get(t.Context(), sampleRow("x").ID); !errors.Is(err, ErrNoRow) {
		t.Fatalf("a row points at an event that was not stored: %v", err)
	}
}

// TestRestart: what was acknowledged is there after a restart, and a claim that met the restart is decided after it.
func TestRestart(t *testing.T) {
	b := newBox(t)
	l, _ := b.ledger()
	row, err := l.Append(t.Context(), sampleRow("x"), sampleEvent(1), nil)
	noErr(t, err)
	b.stop()
	done := make(chan error, 1)
	claimed := row.Clone()
	claimed.State = Sending
	go func() { done <- l.Claim(t.Context(), []*Row{&claimed})[0] }()
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var u *UndecidedError
	other := row.Clone()
	if err := l.Claim(short, []*Row{&other})[0]; !errors.As(err, &u) {
		t.Fatalf("a claim without a server: %v", err)
	}
	b.start()
	noErr(t, <-done)
	got, err := l.Get(t.Context(), row.ID)
	noErr(t, err)
	want(t, "state", got.State, Sending)
	want(t, "token", got.Token, claimed.Token)
	want(t, "revision", got.Revision, claimed.Revision)
	_, err = l.Append(t.Context(), row, sampleEvent(1), nil)
	if !errors.Is(err, ErrHave) {
		t.Fatalf("got %v", err)
	}
}
