// Package push puts events of files into the intake stream and learns what became of them.
//
//	check    every event of every file is read and judged; one fault and nothing is sent
//	publish  in the order of the files, a batch at a time, acknowledged by the stream
//	learn    from flexi.done, listened to before the first event is published; about stragglers the daemon is asked
//
// What was read lies in temporary files, unlinked as soon as they are open: the second pass cannot see another file than
// the first one did, memory does not grow with the input, and nothing is left behind by a kill.
//
// An event's id is the run and its place in it. A run that was killed is repeated as a whole, under other ids: what the
// daemon has already is then confirmed as repeated, because a file's operation is upsert and equal content is no write. Ids
// made of content would call price A, then B, then A again the same event.
//
// Events go out in atomic batches: one is under way at a time, and inside it the order is kept. One that is not acknowledged is taken
// apart, and each of its events repeated under its id until it is acknowledged. Where there is only a handful, and where the server
// takes no batches, they go out one by one, a window of them at a time. The stream stores what one connection sends in the order in
// which it was sent, save what it does not store at all; so events of one document, and those of which one refers to the other, are
// never in a window together. When a publish fails, nothing new goes out until it and every other one under way is acknowledged.
package push
