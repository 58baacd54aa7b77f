package stream_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/batch/stream"
)

func config(t *testing.T, js jetstream.JetStream, name string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

func TestEnsureMakesTheStreams(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	o := stream.Options{LedgerID: "ledger-1"}
	if id, exists, err := stream.PushLedger(t.Context(), js, o); id != "" || exists || err != nil {
		t.Fatalf("before: %q, %v, %v", id, exists, err)
	}
	topology := ensure(t, js, o)
	if topology != (stream.Topology{Push: "FLEXID_PUSH", Inbox: "FLEXID_INBOX", Out: "FLEXID_OUT", PushNew: true, LedgerID: "ledger-1"}) {
		t.Errorf("%+v", topology)
	}
	day := 24 * time.Hour
	for name, ok := range map[string]bool{
		"FLEXID_PUSH": func() bool {
			c := config(t, js, "FLEXID_PUSH")
			return c.Retention == jetstream.LimitsPolicy && c.AllowAtomicPublish && c.Discard == jetstream.DiscardNew && c.MaxBytes == 1<<30 && c.MaxAge == 0 &&
				c.MaxMsgSize > stream.MaxEvent && c.Duplicates == 100*time.Millisecond && c.Storage == jetstream.FileStorage && !c.AllowDirect && asJSON(c.Subjects) == `["flexi.push.\u003e"]`
		}(),
		"FLEXID_INBOX": func() bool {
			c := config(t, js, "FLEXID_INBOX")
			return c.Retention == jetstream.LimitsPolicy && c.Discard == jetstream.DiscardNew && c.MaxAge == 0 && asJSON(c.Subjects) == `["flexi.in.*.*"]`
		}(),
		"FLEXID_OUT": func() bool {
			c := config(t, js, "FLEXID_OUT")
			return c.Retention == jetstream.LimitsPolicy && c.Discard == jetstream.DiscardOld && c.MaxAge == 30*day && c.Duplicates == 100*time.Millisecond && len(c.Subjects) == 3
		}(),
	} {
		if !ok {
			t.Errorf("%s: %+v", name, config(t, js, name))
		}
	}
	if id, exists, err := stream.PushLedger(t.Context(), js, o); id != "ledger-1" || !exists || err != nil {
		t.Errorf("after: %q, %v, %v", id, exists, err)
	}
}

func TestEnsureAgainChangesNothing(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{LedgerID: "ledger-1"})
	log := &logs{}
	topology := ensure(t, js, stream.Options{Log: log.logger()})
	if topology.PushNew || topology.LedgerID != "ledger-1" || log.String() != "" {
		t.Errorf("%+v\n%s", topology, log)
	}
}

func TestPrefixesLiveSideBySide(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	topology := ensure(t, js, stream.Options{Prefix: "acme"})
	if topology.Push != "FLEXID_PUSH_acme" || !topology.PushNew || asJSON(config(t, js, "FLEXID_PUSH_acme").Subjects) != `["acme.push.\u003e"]` {
		t.Errorf("%+v", topology)
	}
}

func TestEnsureRefusesWhatContradicts(t *testing.T) {
	fit := jetstream.StreamConfig{Name: "FLEXID_PUSH", Subjects: []string{"flexi.push.>"}, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardNew, MaxBytes: 1 << 20, Storage: jetstream.FileStorage}
	for _, tc := range []struct {
		name, says string
		change     func(*jetstream.StreamConfig)
	}{
		{"a work queue, as the first edition made it", "retention is WorkQueue", func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }},
		{"subjects", "subjects", func(c *jetstream.StreamConfig) { c.Subjects = []string{"flexi.push.*"} }},
		{"memory", "storage", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		{"drops the oldest", "discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"one per subject", "per subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }},
		{"a number of messages", "max messages", func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }},
		{"an age", "max age", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"no acknowledgement", "no_ack", func(c *jetstream.StreamConfig) { c.NoAck = true }},
		{"another subject inside", "subject transform", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "flexi.push.>", Destination: "flexi.push.x.>"}
		}},
		{"asynchronous", "persist mode", func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }},
		{"another ledger's", "ledger is other", func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{stream.LedgerKey: "other"} }},
		{"under another name", "another stream", func(c *jetstream.StreamConfig) { c.Name = "FOREIGN" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			js := newHost(t).connect(zerolog.Nop())
			have := fit
			tc.change(&have)
			if _, err := js.CreateStream(t.Context(), have); err != nil {
				t.Fatal(err)
			}
			before := asJSON(config(t, js, have.Name))
			_, err := stream.Ensure(t.Context(), js, stream.Options{LedgerID: "mine"})
			var contradiction *stream.ContradictionError
			if !errors.As(err, &contradiction) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
			if after := asJSON(config(t, js, have.Name)); after != before {
				t.Errorf("changed all the same:\n%s\n%s", before, after)
			}
		})
	}
}

func TestEnsureUpdatesWhatIsHarmless(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FLEXID_PUSH", Subjects: []string{"flexi.push.>"}, Retention: jetstream.LimitsPolicy,
		Discard: jetstream.DiscardNew, MaxBytes: 1 << 20, Duplicates: 2 * time.Minute, AllowDirect: true, MaxMsgSize: 100, Metadata: map[string]string{"owner": "warehouse"}})
	if err != nil {
		t.Fatal(err)
	}
	log := &logs{}
	topology := ensure(t, js, stream.Options{LedgerID: "mine", Log: log.logger()})
	c := config(t, js, "FLEXID_PUSH")
	if c.Duplicates != 100*time.Millisecond || c.AllowDirect || c.MaxMsgSize < stream.MaxEvent || c.Metadata[stream.LedgerKey] != "mine" || c.Metadata["owner"] != "warehouse" {
		t.Errorf("%+v", c)
	}
	if c.MaxBytes != 1<<20 {
		t.Error("a limit that an operator has tuned was reset")
	}
	if topology.PushNew || topology.LedgerID != "mine" || log.count("stream updated") != 1 {
		t.Errorf("%+v\n%s", topology, log)
	}
	ensure(t, js, stream.Options{MaxBytes: 2 << 20})
	if c := config(t, js, "FLEXID_PUSH"); c.MaxBytes != 2<<20 {
		t.Errorf("a limit that was asked for: %d", c.MaxBytes)
	}
}

func TestSetLedgerReplacesALostOne(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{LedgerID: "lost"})
	push(t, js, stream.Options{}, "kept")
	if err := stream.SetLedger(t.Context(), js, stream.Options{LedgerID: "new"}); err != nil {
		t.Fatal(err)
	}
	ensure(t, js, stream.Options{LedgerID: "new"})
	if n, err := stream.Waiting(t.Context(), js, stream.Options{}); n != 1 || err != nil {
		t.Errorf("%d events wait, %v", n, err)
	}
}

func TestEnsureWithoutRoom(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	_, err := stream.Ensure(t.Context(), js, stream.Options{MaxBytes: 1 << 60})
	var full *stream.FullError
	if !errors.As(err, &full) {
		t.Fatalf("got %v", err)
	}
	if said := err.Error(); strings.Contains(said, "the message was not stored") || !strings.Contains(said, "FLEXID_STATE_DIR") || !strings.Contains(said, "max_file_store") {
		t.Errorf("no message was sent, and what to do must be said: %s", said)
	}
}

// TestNewStreamsFitASmallServer: what new streams reserve can be made less, and those that are there keep what they have.
func TestNewStreamsFitASmallServer(t *testing.T) {
	js := newHost(t).connect(zerolog.Nop())
	ensure(t, js, stream.Options{NewBytes: 3 << 20})
	ensure(t, js, stream.Options{NewBytes: 5 << 20})
	for _, name := range []string{"FLEXID_PUSH", "FLEXID_INBOX", "FLEXID_OUT"} {
		if c := config(t, js, name); c.MaxBytes != 3<<20 {
			t.Errorf("%s reserves %d", name, c.MaxBytes)
		}
	}
}
