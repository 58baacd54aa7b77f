// Package batch turns what comes in into events of package verify.
//
// Decoding never fails: what cannot be read becomes an event whose Problem says what is wrong and what to send instead,
// with its raw bytes. It is then shown to a person like any other document; refusing it here would lose it without a trace.
//
//	what       looked for in, first to last
//	evidence   the subject <prefix>.push.<evidence>[.<key>]
//	operation  header Flexid-Op, the last word of a CloudEvent's type; else create (files: upsert)
//	key        header Flexid-Key, a CloudEvent's subject, the last token of the subject; else the document number
//	event id   header Flexid-Event-Id, a CloudEvent's source and id, header Nats-Msg-Id; else stream, sequence and time
//	document   the body, or a CloudEvent's data
//
// A delivery of the inbox carries what the webhook receiver authenticated: its source from the subject, the rest from the
// headers that the receiver wrote (see delivery.go). Its event id begins with the source's name.
//
// Whatever is given twice must agree: choosing one of two keys would put a document under a name that the next event
// about it does not use, and the ERP would get it twice.
//
// Nats-Msg-Id is looked for last because the server reads it too: of two messages that carry the same one within 100 ms it
// acknowledges both and stores the first, whatever is in them.
//
// An event id is never made of content: price A, then B, then A again are three events.
package batch
