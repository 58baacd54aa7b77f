// Package stream binds JetStream: it ensures the streams, reads what comes in, and publishes.
//
//	stream        subjects                                        keeps
//	FLEXID_PUSH   <prefix>.push.>                                 events; at half full those that were taken go; full = refused
//	FLEXID_INBOX  <prefix>.in.*.*                                 raw deliveries, likewise
//	FLEXID_OUT    <prefix>.done.>, .change.>, .alert.>            what we tell, 30 days; full = the oldest go
//
// A prefix other than "flexi" marks the names, FLEXID_PUSH_<prefix>: one prefix is one company.
//
// How far the first two streams were taken is a key of the ledger, the cursor. A Reader reads from the cursor on and has what it
// reads stored in one atomic batch with the cursor that is behind it, so that an event is taken once and in order, whichever
// replica reads, dies or wakes up late: there are no acknowledgements, and no redelivery that could overtake. Before a
// batch is stored the stream is looked at: it must be the one that the cursor speaks of, with the same message there, without a hole
// behind it (look.go). Otherwise nothing is taken, and a person decides.
//
//	cursor -> read behind it -> look at the stream -> take: events, rows, ids, numbers and cursor together
//	  ^                                                 | refused: the cursor moved -> another replica takes, leave it to it
//	  |                                                 | refused: something else moved -> again with care, then one by one
//	  +--------------- read everything again -----------+ no answer, no NATS, ...
//
// The duplicate window is the server's least (100 ms). A longer one drops an event that was changed and sent again under
// the same id, without an error; telling the two apart is the ledger's work.
package stream
