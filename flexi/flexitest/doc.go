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
//	        -> refusals: address, load, login, format, company, evidence, stale role, licence, rights
//	        -> one transaction -> commit or take back (Fault.Done) -> Delay -> answer, or what the fault says instead
//
// Every fault comes twice, done and not done: a client that treats both alike is wrong about one of them. Truth is read
// from Records, Commits and Requests, never from what the client was told.
//
// # What is like the real server and what is not
//
// Sources are the vendor's pages and recorded answers; where they are silent the fake picks one behaviour: numbers are
// unique in an evidence, refused writes give their number back, a partly failed non-atomic write is a 400, an unknown
// field is an error, rows are shown with relations=polozky or when they are named in detail=custom, an attribute may stand
// beside its evidence ("faktura-vydana@action") or inside the record, removeAll works alone. Relations to
// evidences that the fake does not keep are taken as they are. Not there: printing, mail, pairing (but Pay), stock, sending
// web hooks (LoadChanges puts into the log of changes what a real one carried), XML other than for a few service addresses.
//
// # Modes
//
// Where a real server may be otherwise, a mode switches that on. Modes is the list of all, with a sentence on each and the
// question to which it is the other answer; a client's tests range over it. By what they change:
//
//   - shape of answers: failed-is-zero, native-answers, error-strings, wrapped-lists, stats-in-list, bare-errors,
//     exists-is-409, update-is-200, results-reversed, empty-success, nothing-saved, bare-refusals, updated-beside,
//     no-stats, request-ids-upper-case, no-request-ids, nameless-errors
//   - travel: chunked, gzip, gzip-unasked, bodies-limited, addresses-limited, answers-limited, proxy-impatient,
//     answer-500-done, answer-500-undone, answer-502-done, answer-503-done, answer-lost, commits-late, slow, down-a-while
//   - who is let in: daily-limit-429, daily-limit-402, daily-limit-403, one-at-a-time, one-at-a-time-seconds,
//     one-at-a-time-date, too-many-users, stale-role, stale-is-error, stale-no-import, stale-is-403, maintenance, login-redirect,
//     login-page, login-form-only, login-json-only, no-licence, no-right
//   - one evidence alone: writes-sick, records-sick, metadata-sick, evidence-list-sick, import-refused,
//     import-disallowed, evidence-hidden, evidence-hidden-from-stale
//   - what a write does: unknown-fields-dropped, any-case-tags, removeall-needs-rows, rows-by-position,
//     rows-own-name-only, rows-common-name-only, code-must-exist, numbers-per-table, numbers-per-year,
//     used-numbers-refused, burn-numbers, lower-code-refused, lower-code-kept, one-external-id, uuid-prefix-only, no-fence,
//     no-external-ids, column-read-only, period-locked
//   - what reads show: rows-need-relations, native-values, order-reversed, detail-moved-301, detail-moved-302,
//     quotes-doubled, quotes-plain, bare-deletes, shows-late, reads-empty, reads-some, reads-no-ids, body-limit-ignored,
//     body-count-ignored, limit-ignored, count-ignored, version-ignored, unknown-ext-refused, value-refused,
//     external-ids-empty, external-ids-hidden, records-padded
package flexitest
