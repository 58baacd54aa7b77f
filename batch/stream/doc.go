// Package stream binds JetStream: it ensures the streams, hands over events one at a time, and publishes.
//
//	stream        subjects                                        keeps
//	FLEXID_PUSH   <prefix>.push.>                                 a work queue: what intake has not taken yet; full = refused
//	FLEXID_INBOX  <prefix>.in.*.*                                 raw deliveries; at half full those that were taken go; full = refused
//	FLEXID_OUT    <prefix>.done.>, .change.>, .alert.>            what we tell, 30 days; full = the oldest go
//
// A prefix other than "flexi" marks the names, FLEXID_PUSH_<prefix>: one prefix is one company.
//
// Intake is serial over all replicas, of the first two streams each on its own: one durable consumer with at most one
// message out at a time. Its only work is to make the event durable in the ledger, and the message is acknowledged after
// that, so an acknowledgement is flow control and a lost one costs a redelivery. Several messages out at a time would let
// a redelivery overtake: an update would be queued before the create it belongs to.
//
// The duplicate window is the server's least (100 ms). A longer one drops an event that was changed and sent again under
// the same id, without an error; telling the two apart is the ledger's work.
package stream
