package ledger

import (
	"encoding/json"
	"time"

	"flexid/flexi"
)

// Format is the newest row format this binary writes. A row with a higher one is left alone (ErrNewer).
const Format = 1

// State is where a document stands; DESIGN 4.
type State string

// The states.
const (
	Queued    State = "queued"
	Sending   State = "sending"
	Maybe     State = "maybe"
	Confirmed State = "confirmed"
	Parked    State = "parked"
	Dropped   State = "dropped"
)

// Reason says why a document stands there.
type Reason string

// The reasons, by state.
const (
	Waiting  Reason = "waiting"   // queued: Retry-After, quota, an empty bucket, the ERP is down
	Behind   Reason = "behind"    // queued: an earlier event of the document holds it back
	Blocked  Reason = "blocked"   // queued: writes of the evidence are stopped
	WaitsFor Reason = "waits_for" // queued: a related document is not confirmed yet

	Adopted    Reason = "adopted"    // confirmed: it was there already, equal
	Repeated   Reason = "repeated"   // confirmed: the same event or content again, no write
	Superseded Reason = "superseded" // confirmed: a newer version took effect before

	Rejected   Reason = "rejected" // parked
	Conflict   Reason = "conflict"
	Duplicate  Reason = "duplicate"
	Unknown    Reason = "unknown"
	Unreadable Reason = "unreadable"
	IDReused   Reason = "id_reused"
)

// Final says that an event which stands so is over: nothing more happens to it by itself, and it holds back nothing that comes after.
func Final(s State, r Reason) bool {
	switch s {
	case Confirmed, Dropped:
		return true
	case Parked:
		return r == Rejected || r == Unreadable || r == IDReused
	}
	return false
}

// ID names a document: a hash of company, evidence and external id (DESIGN 5.3). It is the ledger key without prefix.
type ID string

// Row is the state of one document. It is changed only by compare-and-set (Ledger.Append, Claim, Settle).
type Row struct {
	Format   int              `json:"format"`
	ID       ID               `json:"id"`
	Evidence string           `json:"evidence"`
	Source   string           `json:"source,omitempty"`
	Key      string           `json:"key"`
	Ext      flexi.ExternalID `json:"ext"`

	// What lists show and filter by: the oldest event that is not final, else the last one.
	State    State     `json:"state"`
	Reason   Reason    `json:"reason,omitempty"`
	Cause    string    `json:"cause,omitempty"`
	Number   string    `json:"number,omitempty"`
	Partner  string    `json:"partner,omitempty"`
	Amount   string    `json:"amount,omitempty"`
	Currency string    `json:"currency,omitempty"`
	Date     string    `json:"date,omitempty"` // document date, YYYY-MM-DD
	Sends    int       `json:"sends"`          // of the shown event: attempts that may have committed or did
	Updated  time.Time `json:"updated"`
	Owner    string    `json:"owner,omitempty"` // the person it is assigned to

	// The record as our last effective event left it.
	FlexiID string `json:"flexi_id,omitempty"` // where to look; never a proof, see Marked
	// Marked: the record was seen with our external id. From then on nothing without it is this document.
	Marked bool `json:"marked,omitempty"`
	// Era is that of the company which all this is about, see Marks.
	Era     int      `json:"era,omitempty"`
	Numbers []string `json:"numbers,omitempty"` // number keys this row owns, see Ledger.TakeNumber
	Last    *Effect  `json:"last,omitempty"`    // nil: the key is unknown (never confirmed, or deleted)
	Base    []int    `json:"base,omitempty"`    // ordinals of the events that made it so; -n = event n and all before it, folded
	Known   *Version `json:"known,omitempty"`   // highest sender's version that took effect

	// The queue of events: each lies under its own key, Head..Tail are not final.
	Head int   `json:"head"` // ordinal of the current event; 0 none yet; Tail+1 never
	Tail int   `json:"tail"` // ordinal of the last appended event
	Work *Work `json:"work,omitempty"`

	Redo    []int     `json:"redo,omitempty"`    // ordinals of refused events that have their turn now, before the next of the queue
	Refused []Refused `json:"refused,omitempty"` // events that had no effect, whose content is not in Flexi, and that nobody closed
	Dropped *Discard  `json:"dropped,omitempty"` // what a person dropped, while nothing else came after it

	// Highest sequence appended so far, by intake stream: an event above it was never appended, so that the usual append
	// need not read the older events.
	Seen map[string]uint64 `json:"seen,omitempty"`

	Lease *Lease `json:"lease,omitempty"`

	// Aside is set in the row of an event that could not be stored under the document it names. Nothing is ever sent for it.
	Aside *Aside `json:"aside,omitempty"`

	// Follow-ups, which change no state by themselves.
	Due      time.Time   `json:"due,omitzero"`       // when the current event wants attention again
	ReadBack time.Time   `json:"read_back,omitzero"` // confirmed documents are read back by then
	Late     []time.Time `json:"late,omitempty"`     // late looks
	ToNotify []int       `json:"untold,omitempty"`   // ordinals of which flexi.done has stored no notice yet
	Parkings []Parking   `json:"parkings,omitempty"` // of which no alert is stored yet
	Quiet    time.Time   `json:"quiet,omitzero"`     // settle time of the youngest attempt of ANY event: before it, no later event is claimed
	LookOnce bool        `json:"look_once,omitempty"`

	Token string `json:"token"` // random, new for every write: tells our own timed-out compare-and-set from a stranger's

	Revision uint64                     `json:"-"` // of the store; 0 = not stored yet
	Was      State                      `json:"-"` // State as it was read, to tell an entry into a state; "" for a new row
	Extra    map[string]json.RawMessage `json:"-"` // fields of a newer minor version survive
}

// Parking is one entry into parked. It is kept until its alert is stored, whatever the document has become by then.
type Parking struct {
	N      int       `json:"n"` // the event
	At     time.Time `json:"at"`
	Reason Reason    `json:"reason"`
	Text   string    `json:"text,omitempty"`

	Fresh bool `json:"-"` // made by this process and not in its log yet
}

// Aside says what an event that was set aside is about.
type Aside struct {
	Key      string `json:"key"`                // the sender's key
	Length   int    `json:"length"`             // of the event's bytes; Event.Raw holds all of them or the first
	Digest   string `json:"digest"`             // SHA-256 of them all
	Readable bool   `json:"readable,omitempty"` // they are a document
}

// Effect is the last event that took effect.
type Effect struct {
	N      int       `json:"n"`
	Op     flexi.Op  `json:"op"`
	Digest string    `json:"digest"`         // "" = what is in Flexi is not what the event said
	Kept   string    `json:"kept,omitempty"` // digest of the content against which a person kept what is in Flexi
	At     time.Time `json:"at"`
	Sends  int       `json:"sends"`
	Shaky  bool      `json:"shaky,omitempty"` // it ever had an open attempt

	// The document number as the events that took effect left it. What an event without effect asked for is not in here.
	Number  string `json:"number,omitempty"`
	Partner string `json:"partner,omitempty"` // of a payable: Flexi id of the partner
	Year    string `json:"year,omitempty"`    // of a payable: the year of datVyst
	// Picture is a digest of the event's fields as a person took them for done, whatever was sent.
	Picture string `json:"picture,omitempty"`
}

// Refused is an event that was refused and may still be missing in Flexi.
type Refused struct {
	N       int      `json:"n"`
	Op      flexi.Op `json:"op"`
	Version *Version `json:"version,omitempty"`
	Digest  string   `json:"digest"`
	Fields  []string `json:"fields,omitempty"`  // of its document; nil = not known, or too many to keep
	Unknown bool     `json:"unknown,omitempty"` // nobody knew the document when it was refused: it came too early
	Reason  Reason   `json:"reason"`
	Cause   string   `json:"cause,omitempty"`
	Text    string   `json:"text"`
}

// Discard is the content of the event that a person dropped last.
type Discard struct {
	N       int      `json:"n"`
	Op      flexi.Op `json:"op"`
	Version *Version `json:"version,omitempty"`
	Digest  string   `json:"digest"`
}

// Version is a sender's version: an integer or an RFC 3339 time.
type Version struct {
	Text string `json:"text"`
}

// Lease is held while a document is being sent. It is taken over only by one who watched the revision stand still for
// For on its own monotonic clock; by the same Instance in another Run at once.
type Lease struct {
	Instance string        `json:"instance"` // id in the locked state directory and this machine
	Run      string        `json:"run"`      // random for each start of the process
	Epoch    int           `json:"epoch"`
	For      time.Duration `json:"for"`
}

// Work is the working state of the current event. When the event ends, its Story moves to the event's own key.
type Work struct {
	N        int       `json:"n"`
	Op       flexi.Op  `json:"op"`                 // as asked
	Write    flexi.Op  `json:"write,omitempty"`    // as sent: create, update, storno, delete, attach
	Version  *Version  `json:"version,omitempty"`  // the event's
	Digest   string    `json:"digest,omitempty"`   // the event's
	Fields   []string  `json:"fields,omitempty"`   // of the event's document; nil = not known, or too many to keep
	Unknown  bool      `json:"unknown,omitempty"`  // a look showed nothing to change
	Redone   bool      `json:"redone,omitempty"`   // the event was refused before, and has its turn again
	Begun    time.Time `json:"begun,omitzero"`     // when it became current
	FirstTry time.Time `json:"first_try,omitzero"` // for the 24 h limits

	Target  string            `json:"target,omitempty"`   // Flexi id the write goes to
	Before  map[string]string `json:"before,omitempty"`   // before-image: field -> canonical value or its hash
	BeforeU string            `json:"before_u,omitempty"` // lastUpdate of the before-image
	BeforeT time.Time         `json:"before_t,omitzero"`  // when it was read

	Attempt  int       `json:"attempt"`            // number of the last attempt
	Open     bool      `json:"open,omitempty"`     // an attempt that may have committed is not closed yet
	Opens    int       `json:"opens,omitempty"`    // sends that may have committed
	Ended    time.Time `json:"ended,omitzero"`     // end of the last open attempt
	Settle   time.Time `json:"settle,omitzero"`    // when its settle time is over
	Drawn    bool      `json:"drawn,omitempty"`    // a create that nothing but our external id identifies: Flexi draws the number
	Step     int       `json:"step,omitempty"`     // next look of the schedule
	Absences int       `json:"absences,omitempty"` // valid looks in a row that showed "not done"
	LastAbs  time.Time `json:"last_abs,omitzero"`
	Exists   bool      `json:"exists,omitempty"` // "exists" was said
	Refused  *Refusals `json:"refused,omitempty"`
	Reject   *Problem  `json:"reject,omitempty"` // a rejection that counts only after looks
	ByPerson bool      `json:"by_person,omitempty"`
	Pass     bool      `json:"pass,omitempty"`     // a person allowed this event to pass over what is there
	PassFor  string    `json:"pass_for,omitempty"` // the record for which Pass holds, as Look.Shown; "" = what proves to be ours
	Alone    bool      `json:"alone,omitempty"`    // after a maybe a document is sent alone
	Splits   int       `json:"splits,omitempty"`   // refused requests that it shared
	Most     int       `json:"most,omitempty"`     // most documents in its next request; 0 = no limit of its own
	Mates    []Mate    `json:"mates,omitempty"`    // who shared the last request, itself included; nil = nobody
	Shake    float64   `json:"shake,omitempty"`    // jitter of its look-ups, in [0, 1); one for a whole request
	Final    bool      `json:"final,omitempty"`    // the event is over: confirmed, dropped, parked for good
	Partner  string    `json:"partner,omitempty"`  // Flexi id of the partner of a number pair
	Adopt    string    `json:"adopt,omitempty"`    // Flexi id of the record that gets our external id
	Passed   int       `json:"passed,omitempty"`   // documents of the evidence accepted when this one was blocked by a 400
	For      ID        `json:"for,omitempty"`      // waits_for: that document

	End   *End  `json:"end,omitempty"` // set when Final
	Story Story `json:"story"`
}

// Mate is one event that shared a request.
type Mate struct {
	ID ID  `json:"id"`
	N  int `json:"n"`
}

// End is how an event ended. The row may be parked later by a read-back; the event's own end stays.
type End struct {
	State  State     `json:"state"`
	Reason Reason    `json:"reason,omitempty"`
	Cause  string    `json:"cause,omitempty"`
	Sends  int       `json:"sends"`
	At     time.Time `json:"at"`
}

// Refusals counts refusals in a row.
type Refusals struct {
	Auth    int `json:"auth,omitempty"`
	Message int `json:"message,omitempty"`
	Blocks  int `json:"blocks,omitempty"` // 400s that blocked
}

// Problem is why something stopped, for people: what the ERP said, or what we found.
type Problem struct {
	Text   string          `json:"text"`
	Errors []flexi.Message `json:"errors,omitempty"`
	Differ []Difference    `json:"differ,omitempty"`
	Link   string          `json:"link,omitempty"`  // another document, evidence/key
	Cause  string          `json:"cause,omitempty"` // becomes the row's: flexi.Gone
	Whole  bool            `json:"whole,omitempty"` // it is about all that our events left, not about the current event's fields
}

// Difference is one field on which sent and found do not agree.
type Difference struct {
	Field string `json:"field"`
	Sent  string `json:"sent"`
	Found string `json:"found"`
}

// Story is the append-only history of one event. Long middles are cut: Ledger keeps the first and the last entries.
type Story struct {
	Attempts  []Attempt  `json:"attempts,omitempty"`
	Looks     []Look     `json:"looks,omitempty"`
	Decisions []Decision `json:"decisions,omitempty"`
	Cut       int        `json:"cut,omitempty"` // entries left out
	Problem   *Problem   `json:"problem,omitempty"`

	Days map[string]string `json:"days,omitempty"` // times that were sent as days, by field: compare.Comparer.Days
}

// Attempt is one claimed send.
type Attempt struct {
	N        int             `json:"n"`
	Op       flexi.Op        `json:"op"`
	Claimed  time.Time       `json:"claimed"`
	Group    string          `json:"group,omitempty"`     // name of the request that it shared
	Size     int             `json:"documents,omitempty"` // in that request; 0 = it was alone
	Ended    time.Time       `json:"ended,omitzero"`
	Outcome  string          `json:"outcome,omitempty"` // "" = running; an Outcome's word
	Speaker  string          `json:"speaker,omitempty"`
	Odd      bool            `json:"odd,omitempty"` // of a maybe: it said success in a way of its own
	Text     string          `json:"text,omitempty"`
	Errors   []flexi.Message `json:"errors,omitempty"`
	Requests []flexi.Request `json:"requests,omitempty"`
}

// Look is one look-up.
type Look struct {
	Time    time.Time `json:"time"`
	Why     string    `json:"why"` // first, settle, late, read_back, person
	Verdict string    `json:"verdict"`
	Found   []string  `json:"found,omitempty"` // Flexi ids
	Ours    []string  `json:"ours,omitempty"`  // those of Found that are this document's record, not only its number's
	Shown   string    `json:"shown,omitempty"` // digest of the one record that was found, as it stood
	Text    string    `json:"text,omitempty"`
}

// Decision is a person's act.
type Decision struct {
	Time   time.Time `json:"time"`
	By     string    `json:"by"`
	What   string    `json:"what"` // confirm resend drop look note
	Why    string    `json:"why,omitempty"`
	Result string    `json:"result,omitempty"`
}

// Event is one event of a document, under its own key, durable before the row points at it. Body may be up to 512 KiB.
type Event struct {
	N        int             `json:"n"`
	EventID  string          `json:"event_id"`
	Given    bool            `json:"given,omitempty"` // the sender gave the id; else it is stream, sequence and time
	Op       flexi.Op        `json:"op"`
	Version  *Version        `json:"version,omitempty"`
	Received time.Time       `json:"received"`
	Subject  string          `json:"subject,omitempty"`
	Stream   StreamRef       `json:"stream,omitzero"`
	Derived  bool            `json:"derived,omitempty"` // the key was made from the number: the sender gave none
	Replayed bool            `json:"again,omitempty"`   // it may have been taken before the ledger was set back: looked up, not sent by itself
	Number   string          `json:"number,omitempty"`  // as people look it up, normalised
	Digest   string          `json:"digest"`            // of the canonical document
	Body     json.RawMessage `json:"body,omitempty"`    // the document in Flexi's fields
	Raw      []byte          `json:"raw,omitempty"`     // of an unreadable event
	Born     Reason          `json:"born,omitempty"`    // Unreadable or IDReused: parked from the start
	Problem  *Problem        `json:"problem,omitempty"`

	// Whole are the events whose fold is sent in place of Body, as in Row.Base: a person had the document put as a whole.
	Whole []int `json:"whole,omitempty"`

	// Set when it ended or parked; the story of the current event is in the row.
	State  State     `json:"state,omitempty"`
	Reason Reason    `json:"reason,omitempty"`
	Cause  string    `json:"cause,omitempty"`
	Sends  int       `json:"sends,omitempty"`
	Done   time.Time `json:"done,omitzero"`
	Story  *Story    `json:"story,omitempty"`

	Token string                     `json:"token,omitempty"` // as Row.Token; set by the ledger
	Extra map[string]json.RawMessage `json:"-"`               // as Row.Extra
}

// StreamRef is where an event lay in the intake stream.
type StreamRef struct {
	Stream string    `json:"stream,omitempty"`
	Seq    uint64    `json:"seq,omitempty"`
	Time   time.Time `json:"time,omitzero"`
}
