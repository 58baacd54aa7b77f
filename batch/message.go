package batch

import "time"

// Message is an event as it came, before anybody has read it.
type Message struct {
	Subject string
	Header  map[string][]string // keys as the sender wrote them; they are read without regard to case
	Data    []byte

	Stream   string // where it lies
	Seq      uint64
	Time     time.Time // when the stream took it
	Received time.Time // when we got it
	Replayed bool      // it may have been taken before the ledger or the stream was set back
}
