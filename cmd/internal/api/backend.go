package api

import (
	"context"
	"iter"
	"time"

	"flexid/cmd/internal/quota"
	"flexid/verify"
	"flexid/verify/ledger"
)

// Ledger is what the read model asks; *ledger.Ledger meets it.
type Ledger interface {
	Get(ctx context.Context, id ledger.ID) (ledger.Row, error)
	// List streams every row for which want is true, without holding them all in memory.
	List(ctx context.Context, want func(*ledger.Row) bool) iter.Seq2[ledger.Row, error]
	Event(ctx context.Context, id ledger.ID, n int) (ledger.Event, error)
	// AsideOf gives the rows of events that name the document and could not be stored under it.
	AsideOf(ctx context.Context, id ledger.ID) ([]ledger.ID, error)
}

// Decider takes a person's decision; *verify.Engine meets it. It is asked even when the row looks as if the answer were
// clear, since only the engine knows it under compare-and-set.
type Decider interface {
	Decide(ctx context.Context, a verify.Address, d verify.Decision) (ledger.Row, error)
	// Choices are the decisions worth offering about a row, by the rules that carry them out.
	Choices(row *ledger.Row) []verify.What
}

// Operator acts on the whole daemon; *verify.Engine meets it.
type Operator interface {
	StopWrites(ctx context.Context, evidence, by, why string) error
	ResumeWrites(ctx context.Context, evidence, by, why string) error
	AcceptCompany(ctx context.Context, how, by, why string) error
}

// Reporter tells how the engine is doing; *verify.Engine meets it.
type Reporter interface{ Status() verify.Status }

// Backend is what the API needs of the running engine.
type Backend struct {
	Ledger   Ledger
	Decider  Decider
	Operator Operator
	Reporter Reporter
	Finder   Finder // nil = every list reads the whole ledger
	Company  string // the name under which the ledger keeps its rows; "" = Options.Company
}

// Trouble is why the daemon is not ready, in words an operator can act on.
type Trouble struct {
	Part   string `json:"part"` // nats, disk, ledger, intake or start
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Refused is the ERP's wish for patience (429): nothing is sent before Until, then one request after the other.
type Refused struct {
	Until   time.Time `json:"until"`
	Reason  string    `json:"reason"`
	Waiting int       `json:"waiting"` // requests
}

// Info is what the daemon says about itself.
type Info struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Phase   string    `json:"phase"` // what is being done: "waiting for NATS", "running", "stopping"
	Company string    `json:"company"`
	System  string    `json:"system"`
	Ledger  string    `json:"ledger,omitempty"` // id of the ledger
	NATS    string    `json:"nats,omitempty"`   // address without secrets

	GivenUp string `json:"given_up,omitempty"` // what is missing since a person accepted an empty ledger or stream

	Quota *quota.Status `json:"quota,omitempty"` // nil = no daily budget of requests, or it is not counted yet

	Refused *Refused `json:"refused,omitempty"` // nil = the ERP takes requests

	Checked *Check `json:"company_check,omitempty"` // nil = Flexi has not been asked yet
}

// Check is the last time that Flexi was asked which company it is.
type Check struct {
	Time time.Time `json:"time"`
	Text string    `json:"text,omitempty"` // why it failed, "" = it did not
}

// Status is the answer of /api/v1/status.
type Status struct {
	Info
	Ready    bool      `json:"ready"`
	Troubles []Trouble `json:"troubles,omitempty"`
	// WritesStopped: something keeps documents of at least one evidence from being sent; Engine.Stops say what.
	WritesStopped bool   `json:"writes_stopped"`
	Parts         []Part `json:"parts"` // erp, nats, ledger, intake
	Waits         []Wait `json:"waits"` // what waits for whom
	// Engine is nil while the daemon has no ledger yet.
	Engine *verify.Status `json:"engine,omitempty"`
}

// Act is the body of every request that changes something: who, and why.
type Act struct {
	By       string `json:"by"`
	Why      string `json:"why,omitempty"`
	Evidence string `json:"evidence,omitempty"` // writes: "" = all
	How      string `json:"how,omitempty"`      // company accept: new or restored
	Company  string `json:"company,omitempty"`  // company accept: its name, where nothing asks for an acceptance
	Revision uint64 `json:"revision,omitempty"` // decision: of the row as it was seen; 0 takes it as it is
}
