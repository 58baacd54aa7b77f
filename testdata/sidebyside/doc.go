// Package sidebyside runs the retry layers that people would use instead through the same scripts as flexid, in virtual
// time, and prints one table of what was counted at the server:
//
//	go test -run SideBySide -v .
//
// Every layer works as its own defaults say. It is a module of its own, so that what it compares with never becomes a
// dependency of flexid. A server answers one script for all; only the body of the documents differs: the peers send what
// is sent to the ERP without flexid, a record without an external id. One row sends flexid's envelope through
// go-retryablehttp, to show what the fence alone is worth.
//
// Two rows are flexid: reads are flexi.Client, documents are verify.Engine over a durable ledger.
package sidebyside
