// Package flexi speaks HTTP to the ERP ABRA Flexi and says what became of one request.
//
// A write ends in one of six outcomes and the unknown one is the zero value: whoever forgets to classify says "it may
// have been committed", never "it was not done".
//
//	seen                                                                    outcome
//	no byte of the request left (dial, TLS, proxy, counter stands still)    not_sent
//	429, 421, 425; first 401; first two 400 with only a message             refused
//	400 or a 4xx not named here, ERP's envelope, errors of a record         rejected
//	402, 403, second 401; 404 405 406 with envelope; third bare 400         blocked
//	2xx, whole envelope, success, counters and identifiers as asked         accepted
//	everything else                                                         maybe
//
// A write is one POST on a connection of its own (Client.Dial, then Conn.Send): net/http replays requests on pooled
// connections and over HTTP/2, and a replay is a second document. Nothing in this package sends a write twice, and there
// is no option to make it. Reads are retried here and nowhere else, under one policy.
//
// A 429 throttles the Client, reads and writes alike, for as long as the ERP asks and a little more. Who waits
// leaves in a slot of its own; who has not that much time is told until when by a *ThrottledError, and nothing
// was sent for it.
//
// The claim that permits a send is the caller's (Permit). The connection itself refuses to let bytes out once the claim
// is too old or the attempt was sent before, so that a process which slept through its lease cannot finish a request.
package flexi
