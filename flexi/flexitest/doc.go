// Package flexitest is a fake ABRA Flexi: what httptest is for a server of one's own, this is for the ERP. It speaks the
// ERP's REST API on a real port (Start, URL) or in memory (Dial), keeps books with the ERP's rules, goes wrong on demand
// and remembers every request. It imports nothing of flexid, so a client that was written against the real server can
// be pointed at it.
//
//	srv := flexitest.New(flexitest.Options{})
//	defer srv.Close()
//	srv.OnWrite(1, nil, flexitest.Fault{Kind: flexitest.ServerError, Done: true}) // committed, then a 500
//	client := &http.Client{Transport: &http.Transport{DialContext: srv.Dial}}
//
// # One request
//
//	arrives -> logged -> script? -> [cut the body] -> body read, documents named -> rule or chance picks a fault
//	        -> gates: address, load, login, format, company, evidence, stale role, licence, rights
//	        -> one transaction -> commit or take back (Fault.Done) -> Delay -> answer, or what the fault says instead
//
// Every fault comes twice, done and not done: a client that treats both alike is wrong about one of them. Truth is read
// from Records, Commits and Requests, never from what the client was told.
//
// # What is like the real server and what is not
//
// Sources are the vendor's pages and recorded answers; where they are silent the fake picks one behaviour: numbers are
// unique in an evidence, refused writes give their number back, a partly failed non-atomic write is a 400, an unknown
// field is an error, rows are shown with relations=polozky or when they are named in detail=custom. Relations to
// evidences that the fake does not keep are taken as they are. Not there: printing, mail, pairing (but Pay), stock, sending
// web hooks (LoadChanges puts into the log of changes what a real one carried), XML other than for a few service addresses.
package flexitest
