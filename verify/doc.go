// Package verify is the only way by which a document's write leaves for the ERP. It is built around one rule: a write
// whose outcome is not known is never sent again until the document has been looked up.
//
// One row per document in the ledger says where it stands; it is changed only by compare-and-set, and the change to sending
// is durable before the first byte of an attempt. The row decides, not the delivery: no row means never sent, sending by
// this live process means running, sending found after a restart means maybe.
//
//	queued    -> sending(n) | confirmed (already there) | parked(unreadable | id_reused | duplicate | conflict | rejected)
//	sending   -> confirmed | parked(rejected) | maybe | queued (not sent, refused, blocked; maybe where an earlier attempt is open)
//	maybe     -> confirmed | sending(n+1) | parked(conflict | duplicate | unknown | rejected)
//	confirmed -> parked(conflict | duplicate)     by read-back or a late look
//	parked(unknown) -> confirmed                  by a late look; every other way out of parked is a person's
//
// # The path of one document
//
// Accept appends an event to the row. Run schedules the rows that are due, each by one worker at a time; advance takes a row
// as far as it goes now, the same way for a first send, a redelivery, a restart and a person's resend:
//
//	queued.go     judge the event: repeated? allowed? number free? what it refers to there? look first
//	send.go       slot, connection, claims (claim.go), bytes; alone or with others of its kind (pack.go)
//	outcome.go    what the answer makes of each document
//	maybe.go      look on schedule; confirm, park, or send again after the proof (resend.go)
//	ending.go     how an event ends: confirmed (effect.go), parked, over without effect
//	followup.go   read back what was confirmed; look late at what was ever in doubt
//	decide.go     what a person decides, about what was seen (seen.go); whole.go sends again what Flexi has lost
//
// # Five questions
//
//	where is it decided that a write may be sent again?    resend.go
//	what stops all writes?                                 stops.go
//	where does a document wait?                            scheduler.go
//	what is stored before the first byte?                  claim.go
//	what happens on a restart?                             restart.go
//
// # Words
//
//	admission       decides which writes may leave, and when
//	breaker         stops the writes of one evidence or of all by what Flexi answers; it trips and is reset by itself
//	half-open trial one document, sent alone, that shows whether a tripped breaker may be reset
//	manual stop     a reason for which only a person lets writes go on
//	throttle        of package flexi: nothing is asked for as long as a 429 says
//	slot            the right to send one request
//	job, waiter     a document that is ready to be sent; the same while it waits for a slot
//	group           the jobs of one request
//	suspect         a document that had a bad outcome of its own
//	scheduler       which rows are due
//	observation     which revision of a row was seen here, since when
//	metadata cache  evidences, fields and references, kept for a while
//	follow-up       a read-back or late look at what is over
//	notice          a message on flexi.done; Notifier stores it
//	resend          a send after one that is proved not to have taken effect
//	replayed        an event that may have been taken before ledger or stream was set back
//
// # What permits a second send
//
// Three valid looks that show "not done" (absent, or for a change the before-image), the last one after the settle time and
// at most a minute old at the claim, and for a create the fence: a record of ours came back with our external id, so that
// the server would refuse a second one. A look is valid only if it brings back a control record along with the answer.
//
// # What may be in hand
//
// A row in hand (ledger.Cached) lacks what another replica did in the last moment. So it begins a visit only, after a conflict the
// leader is asked, and it is never older than what the scheduler has seen: else a document would be put away with an event that it
// does not know of. The compare-and-set on that row decides; what a step does before it is harmless on an old row, or
// asks the leader first (actsFirst):
//
//	flexi.done, flexi.alert    leader: another replica may have published it
//	story, fold of an event that is over    leader: it would be kept as it was, and what was noted since would be lost
//	looks, probe, connection, a job in a request    cost only; the claim conflicts and nothing is sent
//	a number taken or freed    freed by the first who wants it, by the leader's word on its holder
//	take over a send    the compare-and-set; the lease is judged by what the scheduler has watched
//	breakers, fence, budget, alertLook    say what Flexi has just shown, or are as after any conflict
//
// Events are read as of a row (ledger.CachedEvent), wherever they come from: task, begin, showNext, keepStory, notify, and the
// events that a row's base names. Everything else asks the leader, because no compare-and-set on what was read follows:
//
//	resend, relations, holderOfID    decide about a row by what another one says
//	accept, Knows    decide that a message is done
//	decide, seen, whole, aside    a person decides about what there is; events by themselves only to change them
//	requestCheck, onlyAppended, giveUp    must not miss what was stored last: an acceptance, an event beside a send, a repair
//	knowledge, anOlderEvent    rare, and events of long ago
//	API, lists, webhook    show what is
//
// # Who does what
//
//	scheduler      which rows are due, by lane and in the order in which they came; whose writes are stopped
//	looker         packs looks of one evidence into one request, with its control
//	packer         which waiting documents share a request, and how many may
//	admission      breakers stop writes during an outage or a refusal that is ours (breaker.go) and are reset by half-open trials
//	               (trial.go), manual stops by a person (stops.go); slots go to the waiter whose event came first (slot.go)
//	fence          which evidences keep our external ids, as seen since start
//	metadataCache  evidences, fields and references, kept for a while
package verify
