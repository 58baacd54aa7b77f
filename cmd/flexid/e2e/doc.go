// Package e2e proves with real processes that every event becomes one document: the flexid binary, a nats-server of its
// own, and a fake Flexi that is reached over TCP and fails on purpose. Nothing here is part of flexid.
//
//	events ──> nats-server <── flexid (one or two, killed, stopped, continued) ──> fake Flexi
//	  │                                                                                │
//	  └── the script says what every document must look like in the end ── compared ───┘
//
// What is asserted is read from the books and the request log of the fake and from the streams, never from what flexid says
// about itself alone. Settle times are seconds instead of minutes, and late commits are always shorter than they.
//
// The normal run uses small scripts. FLEXID_SLOW=1 runs them in full, with the stopped processes and the public
// command-line tool of NATS. go test -artifacts keeps the logs of all processes. FLEXID_BENCH=n measures a file of n documents,
// FLEXID_DOCUMENTS=n gives TestLoad n documents.
package e2e
