// Package api is the daemon's HTTP face: documents and their stories, the queue that people own, status, health, metrics.
//
// It is a read model over the ledger plus a thin way to the engine. Nothing here decides what becomes of a document: a
// decision is handed to the engine, which checks it against the row under compare-and-set and may say no (409). The list
// shows a row as the ledger has it at that moment; a row is never cached, so what a person reads is what the engine acts on.
//
//	GET  /healthz /readyz /metrics                              no token
//	GET  /api/v1/documents[?state=open&evidence=…&limit=…]      rows, JSON array or NDJSON
//	GET  /api/v1/documents/{evidence}/{[source:]key}            the whole story of one document
//	GET  /api/v1/queue[?state=…&reason=…&cause=…]               what waits for an answer, with reason and owner
//	POST /api/v1/queue/{decision}                               several at once, see DecideRequest; rows of Decided
//	POST /api/v1/queue/{evidence}/{[source:]key}/{decision}     look confirm resend drop note, body {by, why[, revision]}
//	GET  /api/v1/status
//	POST /api/v1/writes/{stop|resume}                           body {evidence, by, why}
//	POST /api/v1/company/accept                                 body {how, by, why}
//	POST /api/v1/ledger/accept-empty                            body {by, why}
//	GET  /debug/pprof/[profile]                                 Go's profiles, only with FLEXID_HTTP_PPROF
//
// The server is up before NATS and the ledger are: a supervisor must see why the daemon is not ready. Until Use is called,
// everything that needs the ledger answers 503 with what is being waited for.
package api
