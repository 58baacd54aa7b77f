package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"flexid/verify/ledger"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ourHeader begins the names of headers that belong to a delivery; the others in a stored message are the server's.
const ourHeader = "Flexid-"

// Inbox keeps webhook deliveries as they came, each once.
type Inbox struct {
	js jetstream.JetStream
	o  Options
}

// NewInbox stores into the inbox stream of o.
func NewInbox(js jetstream.JetStream, o Options) *Inbox { return &Inbox{js: js, o: o} }

// InboxSubject is where the delivery with an id lies: <prefix>.in.<source>.<hash>. The id enters as a hash because
// senders put dots, blanks and wildcards into it.
func (o Options) InboxSubject(source, id string) string {
	sum := sha256.Sum256([]byte(source + "\x00" + id))
	hash := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
	return o.prefix() + ".in." + plain(source) + "." + hash
}

// Store keeps a delivery: body and headers, whose names begin with Flexid-. fresh: it is stored now. Not fresh: the id was
// used before, and same says whether for the same headers and body; nothing was stored. Errors: *FullError and *TooLargeError (not stored),
// *UnavailableError and all others (may have been stored; storing again finds out).
//
// The server compares, not its duplicate window: that one forgets after its time and drops a changed body in silence. This
// holds for as long as the stream keeps the first delivery; of one that was let go (see Trim) the ledger knows the id.
func (i *Inbox) Store(ctx context.Context, source, id string, header map[string][]string, body []byte) (fresh, same bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	m := nats.NewMsg(i.o.InboxSubject(source, id))
	maps.Copy(m.Header, header)
	m.Data = body
	name := i.o.Names().Inbox
	_, err = i.js.PublishMsg(ctx, m, jetstream.WithExpectStream(name), jetstream.WithExpectLastSequencePerSubject(0))
	switch {
	case err == nil:
		return true, false, nil
	case apiCode(err) == ledger.CodeWrongSequence: // the subject has a message already
		same, err = i.holds(ctx, m)
		return false, same, err
	case isFull(err):
		return false, false, &FullError{Stream: name, Err: err}
	case isTooLarge(err):
		return false, false, &TooLargeError{Subject: m.Subject, Bytes: len(body), Most: i.js.Conn().MaxPayload(), Err: err}
	}
	return false, false, fmt.Errorf("storing a delivery of %s: %w", source, explain(i.js.Conn(), m.Subject, err))
}

// Has says whether the inbox still holds the delivery with an id.
func (i *Inbox) Has(ctx context.Context, source, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := i.o.Names().Inbox
	s, err := i.js.Stream(ctx, name)
	if err != nil {
		return false, fmt.Errorf("looking at stream %s: %w", name, explain(i.js.Conn(), "$JS.API.STREAM.INFO."+name, err))
	}
	_, err = s.GetLastMsgForSubject(ctx, i.o.InboxSubject(source, id))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for a delivery: %w", explain(i.js.Conn(), "$JS.API.STREAM.MSG.GET."+name, err))
	}
	return true, nil
}

// holds compares a delivery with the one that lies under its subject.
func (i *Inbox) holds(ctx context.Context, m *nats.Msg) (same bool, err error) {
	name := i.o.Names().Inbox
	s, err := i.js.Stream(ctx, name)
	if err != nil {
		return false, fmt.Errorf("looking at stream %s: %w", name, explain(i.js.Conn(), "$JS.API.STREAM.INFO."+name, err))
	}
	stored, err := s.GetLastMsgForSubject(ctx, m.Subject)
	if err != nil {
		return false, fmt.Errorf("reading the delivery that came before: %w", explain(i.js.Conn(), "$JS.API.STREAM.MSG.GET."+name, err))
	}
	return bytes.Equal(stored.Data, m.Data) && maps.EqualFunc(ours(stored.Header), ours(m.Header), slices.Equal), nil
}

func ours(header nats.Header) map[string][]string {
	own := map[string][]string{}
	for name, values := range header {
		if strings.HasPrefix(name, ourHeader) {
			own[name] = values
		}
	}
	return own
}
