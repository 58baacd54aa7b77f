package flexi

import (
	"encoding/json"
	"time"
)

// Write is one request: documents of one evidence and one operation, one transaction at the ERP.
type Write struct {
	Evidence string
	Op       Op // never Upsert: verify decides between Create and Update
	Docs     []Doc
}

// Doc is one document of a Write. Body holds Flexi's own fields only; envelope and identifiers are written by this
// package alone.
type Doc struct {
	Ext     ExternalID      // our identity: sent with Create and Attach only
	FlexiID string          // sent with Update, Storno, Delete, Attach
	Number  string          // the number in Body, compared with the answer; "" when the ERP draws it
	Body    json.RawMessage // nil for Storno, Delete, Attach
}

// Permit is what a caller must hold to send: a durable claim and what it knows of earlier refusals.
type Permit struct {
	Attempt   string        // unique name of the attempt: the guard counts sends by it
	Others    []string      // names of the attempts of the other documents in the request
	Claimed   time.Time     // when the claim was acknowledged (with its monotonic reading)
	FirstByte time.Duration // how old the claim may be when the first byte leaves; 0 = 5 s
	// Refusals in a row that this document already had: they decide between Refused and Blocked.
	PriorAuth, PriorMessage int
}
