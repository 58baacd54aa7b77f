// Package embedded runs a NATS server inside the daemon, for those who have none: JetStream with a flush to disk for every
// write, a token, and a listener so that the nats command-line tool can reach it.
//
// Every write is flushed (SyncAlways) because the server's own default, once in two minutes, loses confirmed claims and
// events in a power cut, and stream sequences start again. The caller holds the lock of the state directory: the server
// has none, and two servers on one directory both confirm the same claim.
package embedded
