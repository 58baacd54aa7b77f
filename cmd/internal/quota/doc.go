// Package quota keeps the licence's daily budget of requests to the ERP, over restarts and together with the other
// replicas.
//
//	flexi.Client --Take--> Quota --draws a block--> state bucket, key quota.<day>: used, said, giver
//
// The count is drawn from the bucket in blocks by compare-and-set, so that a request does not cost a durable write. A block
// is counted before any of it is spent: a crash loses the rest of it, and the count is then too high, never too low. Blocks
// begin at one request and double, so that a daemon that dies at every start does not eat the day.
//
// A notice is given by the replica that wrote itself into the key as its giver. What is told but not noted, because that
// replica died or lost NATS in between, is told once more by another.
//
// The last twentieth is kept for look-ups and the logins they need: what became of a write must be found out, new writes
// can wait. When the rest is used up, Take answers with a *flexi.QuotaError that names the end of the day. Where the bucket
// cannot be asked, what is drawn is spent and then nothing: no request leaves uncounted.
package quota
