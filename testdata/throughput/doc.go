// Command throughput measures flexid beside two programs of its own and prints one table. In the folder of the source:
//
//	go run ./testdata/throughput                              everything: about an hour
//	go run ./testdata/throughput -n 3000 -rounds 1 -only pack20,file
//	go run ./testdata/throughput -only pack20 -strace -profiles DIR
//
// What is measured, each in a process of its own, with its files on the same disk:
//
//	flexid  built from this source, with NATS inside and a sync for every write, as it is delivered
//	peer    what a team writes in an afternoon: workers on a JetStream consumer, one document a request, repeated on failure,
//	        acknowledged after success; NATS inside at its defaults, which sync every two minutes. It promises nothing
//	limit   the durable work of flexid's promise and nothing else: what is taken, the claims before and the outcomes after each
//	        request and the results told, with a sync for every write, in groups as large as can be had. No HTTP, no rules
//
// In every round the three take turns on new files, against a fake Flexi in a process of its own. The clock of peer and limit
// begins when their documents lie in the stream, that of flexid with the first document published, since its stream is inside
// it; all end when the last result is stored. Processor time is that of the whole process, NATS inside it included. A program
// that sends one document a request is given no more of them than take it about twenty seconds. The requests of 140 ms take
// 100 ms, and 2 ms for each document: one alone takes 102 ms.
//
// The memory of a document wants -n 30000 or more: of a few thousand it is less than what the start has left uncollected.
//
// Afterwards the fake is asked about every document: one that was made twice or never is said, and the command fails.
package main
