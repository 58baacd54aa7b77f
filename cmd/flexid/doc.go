// Command flexid puts document events from NATS JetStream into the ERP ABRA Flexi, each exactly once in effect.
//
// Only `flexid serve` writes documents. The other commands ask the running daemon over its API, since two writers could
// each find the other's open attempt and judge it dead; doctor, probe, config, healthcheck and version need no daemon.
//
// Data goes to standard output, talk to standard error. Exit codes:
//
//	0   ok
//	1   error
//	2   usage
//	3   nothing matches
//	4   some documents were rejected     (push, batch, audit)
//	5   some documents are not known     (push, batch, audit; before 4)
//	75  try again later
//	78  bad configuration
package main
