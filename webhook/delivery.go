package webhook

import (
	"context"
	"encoding/json"
)

// Delivery is what is stored of a request.
type Delivery struct {
	Source string
	ID     string // the sender's id of the event; "" = none was given
	Body   []byte

	// Of the kind whose path names the evidence; "" = the body is an event that says it all.
	Evidence, Op, Key, Version string

	// Problem is why a delivery is kept and must not take effect; a person sees it.
	Problem string

	ours string // in place of ID
}

// Header is the delivery without its body: all that is kept of the request. It is an allow-list, since Authorization,
// X-FB-Hook-SecKey and cookies are secrets, and what a proxy adds would make a repetition look like another delivery.
func (d *Delivery) Header() map[string][]string {
	head := map[string][]string{}
	for name, value := range map[string]string{
		"Flexid-Event-Id": d.ID, "Flexid-Delivery": d.ours, "Flexid-Evidence": d.Evidence, "Flexid-Op": d.Op,
		"Flexid-Key": d.Key, "Flexid-Version": d.Version, "Flexid-Problem": d.Problem,
	} {
		if value != "" {
			head[name] = []string{value}
		}
	}
	return head
}

// place is what the sink tells deliveries apart by.
func (d *Delivery) place() string {
	if d.ID != "" {
		return "id " + d.ID
	}
	return "ours " + d.ours
}

// Document is what a delivery is about.
type Document struct {
	Evidence, Source, Key string
	EventID               string
	Address               string // EVIDENCE/SOURCE:KEY, as `flexid docs show` takes it
	Path                  string // of the document in the API
}

// Sink keeps deliveries; met by *stream.Inbox.
type Sink interface {
	// Store keeps a delivery durably under source and id, once. fresh: it is stored now. Not fresh: the id was used before;
	// same says whether with the same header and body. After an error it may have been stored; not after one with a method
	// TooLarge that says true.
	Store(ctx context.Context, source, id string, header map[string][]string, body []byte) (fresh, same bool, err error)
}

// Reader says what a delivery is about, by the rules under which it is taken from the sink later. Its error is for the
// sender, in words that hold no secret: what is wrong and what to send instead.
type Reader interface {
	Read(d *Delivery) (Document, error)
}

// Waiter waits until an event is over or needs a person, and gives the outcome; over is false when ctx ended first.
type Waiter interface {
	Wait(ctx context.Context, d Document) (outcome json.RawMessage, over bool)
}
