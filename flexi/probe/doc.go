// Package probe measures amplification: how many requests one call becomes. A client that counts its own requests cannot
// see what a layer below it or a box on the way sends again, so the probe brings a server that counts too:
//
//	calls    asked for by whoever uses the client
//	wire     requests the client put on the wire, as flexi.Options.Observe tells them (Tally)
//	server   requests that arrived (Server); known for the scripted server only
//
//	wire / calls > 1      the client's own retries: fine for a read, none for a write
//	server > wire         somebody hidden sends again
//	server < wire         a request was lost on the way, or its head never came whole
//
// The server is no net/http server: that would hide broken requests and answer some by itself. Its script is a list of
// steps, one for each request in order of arrival; when the list is over every request is answered healthily:
//
//	200 … 599     this status; 4xx and 500 with the ERP's envelope, other errors with a page of a proxy
//	429:2         with Retry-After: 2 (any status)
//	stale         the 400 with only a message, of a stale role
//	reset close   the request is read, then the connection is reset, or ended in order
//	silence       the request is read and never answered
//	half          half of a healthy answer, then the end
//	html          a page for people behind a 200
//	commit…       before any of these (commit500, commitreset): the write was done nevertheless
//	…*  …*3       the step for ever, or three times
//
// A write is sent once whatever comes back, as everywhere in flexid. What a refused one waits for before the daemon sends
// it again, from its queue and under a claim of its own, is part of the report. After a 429 the client is throttled for
// the next calls too: what does not fit in front of it ends not_sent, without a request.
package probe
