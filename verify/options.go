package verify

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"flexid/flexi"
	"flexid/verify/ledger"
)

// Reader reads the ERP; every call may be repeated. Met by *flexi.Client.
type Reader interface {
	List(ctx context.Context, q flexi.Query) (flexi.Page, error)
	Properties(ctx context.Context, evidence string) (*flexi.Properties, error)
	Evidences(ctx context.Context) ([]flexi.EvidenceInfo, error)
	Company(ctx context.Context) (flexi.Company, error)
}

// Writer opens the one connection a write needs, and renews what went stale. An error of Dial means that nothing was sent.
type Writer interface {
	Dial(ctx context.Context) (*flexi.Conn, error)
	EndUserContext(ctx context.Context) error
}

// ERP is what the engine needs of Flexi.
type ERP interface {
	Reader
	Writer
}

// Rows keeps documents. Claim and Settle are durable when they return nil; see package ledger for their errors.
type Rows interface {
	Get(ctx context.Context, id ledger.ID) (ledger.Row, error)
	Cached(ctx context.Context, id ledger.ID, least uint64) (row ledger.Row, inHand bool, err error)
	Claim(ctx context.Context, rows []*ledger.Row) []error
	Settle(ctx context.Context, rows []*ledger.Row) []error
}

// Intake stores what comes in, all that a batch holds or nothing, together with how far its stream was taken.
type Intake interface {
	Begin(known func(ledger.ID) bool) *ledger.Batch
	Commit(ctx context.Context, b *ledger.Batch, c *ledger.Cursor) ([]ledger.Row, error)
}

// Events keeps the events of documents under their own keys.
type Events interface {
	Event(ctx context.Context, id ledger.ID, n int) (ledger.Event, error)
	CachedEvent(ctx context.Context, row *ledger.Row, n int) (ledger.Event, error)
	PutEvent(ctx context.Context, id ledger.ID, ev ledger.Event) error
	FirstOf(ctx context.Context, eventID, digest string, row ledger.ID) (claim ledger.EventClaim, known bool, err error)
}

// Asides remembers where events lie that could not be stored under the document they name.
type Asides interface {
	AsideEvent(ctx context.Context, eventID string) ([]ledger.ID, error)
}

// Numbers says which document owns a document number.
type Numbers interface {
	TakeNumber(ctx context.Context, evidence, number string, owner ledger.ID) (ledger.ID, error)
	FreeNumber(ctx context.Context, evidence, number string, owner ledger.ID) error
	HolderOf(ctx context.Context, evidence, number string) (ledger.ID, bool, error)
}

// Watcher delivers every row, then every change of one.
type Watcher interface {
	Watch(ctx context.Context) (<-chan ledger.Change, error)
}

// Ledger is the durable memory. Met by *ledger.Ledger, in tests also by a wrapper that fails and persists, or fails and
// does not.
type Ledger interface {
	Rows
	Intake
	Events
	Asides
	Numbers
	Watcher
	Marks
}

// Store keeps the few values that all replicas share: stops of writes. Met by *ledger.StateBucket.
type Store interface {
	Get(ctx context.Context, key string) ([]byte, uint64, error)
	Put(ctx context.Context, key string, value []byte) error
}

// Settings are the engine's numbers; see FLEXID_VERIFY_* and FLEXID_FLEXI_*.
type Settings struct {
	System  string         // of our external ids
	Company string         // as in the URL; part of every row's id
	Zone    *time.Location // in which a moment in a date field becomes a day; nil leaves the day as it is written

	Looks             []time.Duration // schedule after an attempt ended, ascending
	SettleServerError time.Duration
	SettleNoAnswer    time.Duration
	SettleProxy       time.Duration
	Sends             int // most sends of one event that may have committed
	LookFirst         bool
	Overwrite         bool
	Allow             func(evidence string, op flexi.Op) bool

	Concurrency  int           // most writes in flight
	Pack         int           // most documents in one write
	WriteTimeout time.Duration // whole write
	Lease        time.Duration // longer than the longest send; 0 = WriteTimeout + 40 s
	Instance     string        // of the locked state directory and this machine
	Run          string        // random for each start
	ReadBack     time.Duration // confirmed documents are read back after this, at most 5 min
	Fresh        time.Duration // how old a look or a before-image may be at its claim; 0 = 60 s
	LateLooks    []time.Duration
	Probe        time.Duration // first pause of a tripped breaker; 0 = 5 s
	Drain        time.Duration // how long a stop may take
}

// DefaultLooks is the schedule of DESIGN 4.6.
func DefaultLooks() []time.Duration {
	return []time.Duration{0, 2 * time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute}
}

func (s *Settings) defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if len(s.Looks) == 0 {
		s.Looks = DefaultLooks()
	}
	if len(s.LateLooks) == 0 {
		s.LateLooks = []time.Duration{time.Hour, 24 * time.Hour}
	}
	def(&s.SettleServerError, 30*time.Second)
	def(&s.SettleNoAnswer, 15*time.Minute)
	def(&s.SettleProxy, 5*time.Second)
	def(&s.WriteTimeout, 200*time.Second)
	def(&s.Lease, s.WriteTimeout+40*time.Second)
	def(&s.ReadBack, time.Minute)
	def(&s.Fresh, time.Minute)
	def(&s.Probe, 5*time.Second)
	def(&s.Drain, 30*time.Second)
	s.ReadBack = min(s.ReadBack, 5*time.Minute)
	if s.Sends == 0 {
		s.Sends = 8
	}
	if s.Concurrency == 0 {
		s.Concurrency = 4
	}
	if s.Pack == 0 {
		s.Pack = 20
	}
	if s.Allow == nil {
		s.Allow = func(_ string, op flexi.Op) bool { return op != flexi.Delete }
	}
}

// Options is what an Engine is made of. Now and Rand may be nil; State, Notifier and Observer may be nil in tests.
type Options struct {
	ERP      ERP
	Ledger   Ledger
	State    Store
	Notifier Notifier
	Observer Observer
	Budget   *flexi.Budget // shared with the client; nil = one of its own
	Settings Settings
	Now      func() time.Time
	Rand     func() float64
	Log      zerolog.Logger
	// Accepted is called when a person accepted the company, before writes go on: it notes which one that is. May be nil.
	Accepted func(ctx context.Context) error
}

func (o *Options) check() error {
	var faults []error
	if o.ERP == nil {
		faults = append(faults, errors.New("no ERP"))
	}
	if o.Ledger == nil {
		faults = append(faults, errors.New("no ledger"))
	}
	if s := o.Settings; s.System == "" || s.Company == "" || s.Instance == "" || s.Run == "" {
		faults = append(faults, errors.New("system, company, instance and run must be set"))
	}
	o.Settings.defaults()
	if o.Budget == nil {
		o.Budget = flexi.NewBudget(o.Settings.Pack)
	}
	if o.Settings.Lease <= o.Settings.WriteTimeout {
		faults = append(faults, errors.New("a lease must last longer than the longest write"))
	}
	return errors.Join(faults...)
}
