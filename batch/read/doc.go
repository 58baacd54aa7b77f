// Package read splits files into events without holding them in memory. What an event says is judged by batch.Decoder.
//
//	begins with           is read as
//	[                     a list, one event an element
//	{"winstrom":          Flexi's envelope: the key beside the version is the evidence, one event a document
//	a line that is JSON   NDJSON, one event a line; always so for *.ndjson and *.jsonl
//	{                     one object over several lines, or several one after another
//
// NDJSON goes on after a broken line, so that all faults of a file are found at once. In the other forms a fault inside an
// element is left to the decoder and the next element follows; where brackets or quotes do not close, nobody knows where
// the next one begins, and the file ends there.
package read
