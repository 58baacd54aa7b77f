// Package statedir looks after the state directory of one daemon: who holds it, whose it is, which ledger is its own, and the
// token of its API.
//
//	lock           locked by the daemon for as long as it lives; says who holds it
//	instance.json  the instance id, with the machine and the file it was made for
//	ledger.json    the id of the ledger and what is known of it, by prefix
//	admin.token    token of the API, made at first start
//
// The lock matters because the embedded NATS server has none: two servers on one directory each confirm the same claims,
// and every invoice between them is sent twice. The instance id matters because a daemon may take its own leases back at
// once after a restart: with a copied id another daemon would take over a send that is still running.
package statedir
