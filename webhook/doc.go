// Package webhook receives deliveries over HTTP: each is authenticated, stored durably in the inbox, and only then
// answered. It knows neither NATS nor the ledger; what it needs of them are three small interfaces.
//
//	step                                          refused with
//	1  path and method                            404 (the same for every unknown path), 405
//	2  the source's networks                      403
//	3  deliveries in hand, no queue               503 + Retry-After
//	4  declared size, encoding, media type        413, 415
//	5  body, within its size and 10 s             413, 408, 400
//	6  the kind's proof, over the raw bytes       401 (also when too old), 400 for a malformed one
//	7  the source's rate                          429 + Retry-After
//	8  what the delivery asks for                 422, nothing stored
//	9  stored, within 2 s                         503 + Retry-After; 422 or 409 for an id that came with another body
//
// The rate comes after the proof, so that a stranger cannot use up what belongs to the source; what he can use is bounded
// by step 3 and the deadlines.
//
// A 2xx means: it is in the inbox exactly once. Every other answer means: it is not, or, after a 503, the same delivery
// sent again is recognised. Senders take a 4xx as final, so own trouble is never one.
//
// A kind is one type: what its deliveries look like (Rules), how it proves itself (Verify), what it asks for (Read), and
// whether it may ask without proof if we are there (Ping).
//
//	kind      proof                                   the body is                     answer
//	token     Authorization: Bearer                   a document, path names evidence 202, ?wait=20s waits
//	standard  Standard Webhooks v1 and v1a, svix too  an event                        202
//	flexi     X-FB-Hook-SecKey                        not read: it wakes the reader   200
//	                                                  of changes
//
// Of a request nothing is kept but body and the few headers that are part of what is asked: for two of the three kinds a
// header is the secret.
package webhook
