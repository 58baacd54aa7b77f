package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"flexid/verify/ledger"
)

// DefaultPrefix is the first token of our subjects unless the settings say another.
const DefaultPrefix = "flexi"

// LedgerKey is the metadata of the intake stream that names the ledger it belongs to.
const LedgerKey = "flexid.ledger"

// MaxEvent is the size of the largest event, bytes.
const MaxEvent = 512 << 10

// WantPayload is the largest message that the largest event may become, bytes: unreadable ones are kept in base64.
const WantPayload = 800 << 10

// StreamBytes is what each stream reserves at a server that has room enough.
const StreamBytes = 1 << 30

const (
	headerRoom  = 64 << 10
	dupWindow   = 100 * time.Millisecond // the server's least
	outAge      = 30 * 24 * time.Hour
	callTimeout = 5 * time.Second // one request to JetStream
)

// Options of the topology. The zero value of a field means its default.
type Options struct {
	Prefix   string // first token of subjects; "" = flexi
	Replicas int    // 0 = 1 for new streams, as they are for others
	MaxBytes int64  // of each stream, reserved at the server; 0 = NewBytes for new streams, as they are for others
	NewBytes int64  // of each new stream, where the server has less room than usual to reserve; 0 = 1 GiB
	LedgerID string // written into the intake stream; "" = leave it
	// Known is when the streams that hold what comes in were made, by name. Not nil: they are those of before, and one that is
	// missing or another one is a *LostError, never made anew.
	Known map[string]time.Time
	// First is the first sequence of a stream that is made, by name: one above all that was taken of the one before it.
	First map[string]uint64
	Log   zerolog.Logger
}

// Topology is what Ensure found or made.
type Topology struct {
	Push, Inbox, Out string // stream names
	PushNew          bool   // the intake stream did not exist before
	LedgerID         string // that the intake stream names, "" if none
}

// Names gives the stream names without asking the server.
func (o Options) Names() Topology {
	return Topology{Push: o.name("FLEXID_PUSH"), Inbox: o.name("FLEXID_INBOX"), Out: o.name("FLEXID_OUT")}
}

func (o Options) prefix() string {
	if o.Prefix == "" {
		return DefaultPrefix
	}
	return o.Prefix
}

func (o Options) name(base string) string {
	if o.prefix() == DefaultPrefix {
		return base
	}
	return base + "_" + o.prefix()
}

// PushLedger says which ledger the intake stream names, and whether that stream exists. A daemon looks here before it
// opens or makes a ledger: a stream that names one while the ledger is gone means that claims are lost.
func PushLedger(ctx context.Context, js jetstream.JetStream, o Options) (ledgerID string, exists bool, err error) {
	config, err := lookStream(ctx, js, o.Names().Push)
	if err != nil || config == nil {
		return "", false, err
	}
	return config.Metadata[LedgerKey], true, nil
}

// Made tells when the streams that hold what comes in were made, by name; one that does not exist is missing. A stream that
// is restored from a backup keeps its time, one that is made anew has another.
func Made(ctx context.Context, js jetstream.JetStream, o Options) (map[string]time.Time, error) {
	t := o.Names()
	made := map[string]time.Time{}
	for _, name := range []string{t.Push, t.Inbox} {
		info, err := streamInfo(ctx, js, name)
		if err != nil {
			return nil, err
		}
		if info != nil {
			made[name] = info.Created.UTC()
		}
	}
	return made, nil
}

// lost says whether a stream is gone or another one than before; nil where nothing is known of it.
func (o Options) lost(want jetstream.StreamConfig, have *jetstream.StreamInfo) error {
	before, ok := o.Known[want.Name]
	if !ok {
		return nil
	}
	is := &LostError{Stream: want.Name, Made: before}
	switch {
	case have == nil:
		return is
	case have.Created.Sub(before).Abs() > time.Millisecond:
		is.Other = have.Created.UTC()
		return is
	}
	if id := have.Config.Metadata[LedgerKey]; want.Name == o.Names().Push && id != "" && id != o.LedgerID {
		is.Other, is.Ledger = have.Created.UTC(), id
		return is
	}
	return nil
}

// Ensure makes the streams that are missing, updates harmless differences and refuses what contradicts. Errors:
// *LostError (a person decides), *ContradictionError (final), *UnavailableError (try again), *FullError (no room for the streams).
func Ensure(ctx context.Context, js jetstream.JetStream, o Options) (Topology, error) {
	t := o.Names()
	for _, want := range o.configs() {
		want.FirstSeq = o.First[want.Name]
		info, err := streamInfo(ctx, js, want.Name)
		if err != nil {
			return t, err
		}
		if err := o.lost(want, info); err != nil {
			return t, err
		}
		var have *jetstream.StreamConfig
		if info != nil {
			have = &info.Config
		}
		if want.Name == t.Push {
			t.PushNew = have == nil
		}
		if err := ensureStream(ctx, js, want, have, o); err != nil {
			return t, err
		}
		if want.Name == t.Push {
			t.LedgerID = want.Metadata[LedgerKey]
			if have != nil && o.LedgerID == "" {
				t.LedgerID = have.Metadata[LedgerKey]
			}
		}
	}
	return t, nil
}

// SetLedger makes the intake stream name another ledger: a person has said that the old one is lost.
func SetLedger(ctx context.Context, js jetstream.JetStream, o Options) error {
	name := o.Names().Push
	have, err := lookStream(ctx, js, name)
	if err != nil {
		return err
	}
	if have == nil {
		return fmt.Errorf("stream %s does not exist", name)
	}
	if have.Metadata == nil {
		have.Metadata = map[string]string{}
	}
	have.Metadata[LedgerKey] = o.LedgerID
	return change(ctx, js, "UPDATE", *have, js.UpdateStream)
}

// Waiting counts the events of the intake stream that are not taken yet.
func Waiting(ctx context.Context, js jetstream.JetStream, o Options) (uint64, error) {
	name := o.Names().Push
	info, err := streamInfo(ctx, js, name)
	if err == nil && info == nil {
		err = &LostError{Stream: name}
	}
	if err != nil {
		return 0, err
	}
	c, err := ledger.CursorOf(ctx, js, o.Prefix, name)
	if err != nil {
		return 0, err
	}
	if info.State.Msgs == 0 {
		return 0, nil
	}
	return info.State.LastSeq + 1 - min(max(behind(c), info.State.FirstSeq), info.State.LastSeq+1), nil
}

// Begin gives the cursor with which a stream begins to be taken, or is taken anew after a person accepted it as it is: what it holds
// is all taken (again), what it does not hold is given up.
func Begin(ctx context.Context, js jetstream.JetStream, name string) (ledger.Cursor, error) {
	info, err := streamInfo(ctx, js, name)
	if err == nil && info == nil {
		err = &LostError{Stream: name}
	}
	if err != nil {
		return ledger.Cursor{}, err
	}
	return ledger.Cursor{Stream: name, Made: info.Created.UTC(), GivenUp: max(info.State.FirstSeq, 1) - 1, Replayed: info.State.LastSeq}, nil
}

func (o Options) configs() []jetstream.StreamConfig {
	t, p := o.Names(), o.prefix()
	replicas, bytes := max(o.Replicas, 1), cmp.Or(o.MaxBytes, o.NewBytes, StreamBytes)
	metadata := map[string]string{}
	if o.LedgerID != "" {
		metadata[LedgerKey] = o.LedgerID
	}
	base := jetstream.StreamConfig{
		Storage: jetstream.FileStorage, Replicas: replicas, MaxBytes: bytes, Duplicates: dupWindow,
		MaxMsgs: -1, MaxMsgsPerSubject: -1, MaxConsumers: -1, MaxMsgSize: -1,
	}
	push, inbox, out := base, base, base
	push.Name, push.Subjects, push.Description = t.Push, []string{p + ".push.>"}, "flexid: events to be put into Flexi"
	push.Retention, push.Discard, push.MaxMsgSize, push.Metadata = jetstream.LimitsPolicy, jetstream.DiscardNew, MaxEvent+headerRoom, metadata
	push.AllowAtomicPublish = true // for senders; an older server ignores it
	inbox.Name, inbox.Subjects, inbox.Description = t.Inbox, []string{p + ".in.*.*"}, "flexid: webhook deliveries as they came"
	inbox.Retention, inbox.Discard = jetstream.LimitsPolicy, jetstream.DiscardNew
	out.Name, out.Subjects, out.Description = t.Out, []string{p + ".done.>", p + ".change.>", p + ".alert.>"}, "flexid: results, changes and alerts"
	out.Retention, out.Discard, out.MaxAge = jetstream.LimitsPolicy, jetstream.DiscardOld, outAge
	out.AllowAtomicPublish = true // for us
	return []jetstream.StreamConfig{push, inbox, out}
}

// lookStream gives the configuration of a stream, nil when it does not exist.
func lookStream(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamConfig, error) {
	info, err := streamInfo(ctx, js, name)
	if err != nil || info == nil {
		return nil, err
	}
	return &info.Config, nil
}

// streamInfo gives what the server says of a stream, nil when it does not exist.
func streamInfo(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at stream %s: %w", name, explain(js.Conn(), "$JS.API.STREAM.INFO."+name, err))
	}
	return s.CachedInfo(), nil
}

func ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, have *jetstream.StreamConfig, o Options) error {
	if have == nil {
		err := change(ctx, js, "CREATE", want, js.CreateStream)
		if err == nil {
			o.Log.Info().Str("stream", want.Name).Int("replicas", want.Replicas).Int64("max_bytes", want.MaxBytes).Msg("stream made")
		}
		return err
	}
	if fields := contradictions(*have, want); len(fields) > 0 {
		return &ContradictionError{Name: "stream " + want.Name, Fields: fields}
	}
	merged, changed := merge(*have, want, o)
	if len(changed) == 0 {
		return nil
	}
	err := change(ctx, js, "UPDATE", merged, js.UpdateStream)
	if err == nil {
		o.Log.Info().Str("stream", want.Name).Strs("changed", changed).Msg("stream updated")
	}
	return err
}

// change is one CREATE or UPDATE of a stream with its deadline and its errors in words.
func change(ctx context.Context, js jetstream.JetStream, verb string, config jetstream.StreamConfig,
	do func(context.Context, jetstream.StreamConfig) (jetstream.Stream, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := do(ctx, config)
	switch {
	case err == nil:
		return nil
	case apiCode(err) == ledger.CodeSubjectsOverlap:
		return &ContradictionError{Name: "another stream", Fields: []string{
			fmt.Sprintf("it holds subjects of %s (%v): %v", config.Name, config.Subjects, err)}}
	case isFull(err):
		return &FullError{Stream: config.Name, Reserve: config.MaxBytes, Err: err}
	}
	subject := "$JS.API.STREAM." + verb + "." + config.Name
	return fmt.Errorf("setting up stream %s: %w", config.Name, explain(js.Conn(), subject, err))
}
