// Command demo shows flexid at work beside a Flexi that fails on purpose. It needs nothing: the ERP is a fake, NATS runs
// inside the daemon, documents and settings are its own, and all of it lies in a directory that is removed at the end.
//
//	fake Flexi   goes wrong as the script says: what was asked is done or not done, and the answer tells nothing about it
//	daemon       the whole of `flexid serve`, in this process
//	publisher    the sample documents over NATS, as any other program would publish them
//	person       edits one document in Flexi between two events about it
//	count        what is in the books, document by document: the daemon is not asked whether it did well
//
// The script is drawn from -seed before anything is sent, so that what another client would have done with the same
// faults can be computed from it.
package main
