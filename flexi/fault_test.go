package flexi

import "fmt"

// sendFault is one thing that a server does with a request that it has read, and what a write must make of it.
type sendFault struct {
	name    string
	handle  func(*rawConn)
	outcome Outcome
	speaker Speaker
}

// sendFaults is everything that the raw server knows to do after a request.
func sendFaults() []sendFault {
	after := func(f func(*rawConn)) func(*rawConn) {
		return func(c *rawConn) {
			if _, err := c.request(); err == nil {
				f(c)
			}
		}
	}
	say := func(s string) func(*rawConn) {
		return after(func(c *rawConn) { _, _ = c.Write([]byte(s)); c.hangUp() })
	}
	head := func(n int) string { return fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n", n) }
	return []sendFault{
		{"reset after the request", after((*rawConn).reset), Maybe, NoAnswer},
		{"closed after the request", after((*rawConn).hangUp), Maybe, NoAnswer},
		{"half a status line", say("HTTP/1.1 20"), Maybe, NoAnswer},
		{"no HTTP at all", say("hello\r\n\r\n"), Maybe, NoAnswer},
		{"half a head", say("HTTP/1.1 201 Created\r\nContent-Le"), Maybe, NoAnswer},
		{"half a body with a length", say(head(len(okBody)) + okBody[:60]), Maybe, NoAnswer},
		{"half a body without a length", say("HTTP/1.1 201 Created\r\n\r\n" + okBody[:60]), Maybe, NoAnswer},
		{"half a chunked body", say("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n" + okBody[:16]), Maybe, NoAnswer},
		{"whole envelope, chunks without an end", say("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n", len(okBody), okBody)), Maybe, NoAnswer},
		{"whole body without a length", say("HTTP/1.1 201 Created\r\n\r\n" + okBody), Accepted, NoAnswer},
		{"processing and then nothing", say("HTTP/1.1 102 Processing\r\n\r\n"), Maybe, NoAnswer},
		{"early hints and then the answer", say("HTTP/1.1 103 Early Hints\r\n\r\n" + head(len(okBody)) + okBody), Accepted, NoAnswer},
		{"two answers", say(head(len(okBody)) + okBody + head(len(okBody)) + okBody), Accepted, NoAnswer},
		{"HTTP/2 GOAWAY, nothing was processed", say("\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"), Maybe, NoAnswer},
		{"HTTP/2 RST_STREAM PROTOCOL_ERROR", say("\x00\x00\x04\x03\x00\x00\x00\x00\x01" + "\x00\x00\x00\x01"), Maybe, NoAnswer},
		{"empty 201", answering(201, "", ""), Maybe, NoAnswer},
		{"204", say("HTTP/1.1 204 No Content\r\n\r\n"), Maybe, NoAnswer},
		{"page behind a 200", answering(200, "", htmlBody), Maybe, NoAnswer},
		{"page behind a 404", answering(404, "", htmlBody), Maybe, NoAnswer},
		{"500 with envelope", answering(500, "", messageBody), Maybe, ServerError},
		{"500 page", answering(500, "", htmlBody), Maybe, NoAnswer},
		{"502", answering(502, "", htmlBody), Maybe, NoAnswer},
		{"503 page", answering(503, "", htmlBody), Maybe, Proxy},
		{"503 cut", say("HTTP/1.1 503 No\r\nContent-Length: 99\r\n\r\n" + messageBody[:20]), Maybe, NoAnswer},
		{"503 with envelope", answering(503, "", messageBody), Maybe, ServerError},
		{"504", answering(504, "", htmlBody), Maybe, NoAnswer},
		{"408", answering(408, "", messageBody), Maybe, NoAnswer},
		{"421", answering(421, "", ""), Refused, NoAnswer},
		{"425", answering(425, "", ""), Refused, NoAnswer},
		{"429", answering(429, "Retry-After: 1\r\n", ""), Refused, NoAnswer},
		{"401", answering(401, "", ""), Refused, NoAnswer},
		{"400 with errors", answering(400, "", errorsBody), Rejected, NoAnswer},
		{"redirect 301", answering(301, "Location: /c/demo/banka.json\r\n", ""), Maybe, NoAnswer},
		{"redirect 302", answering(302, "Location: /c/demo/banka.json\r\n", ""), Maybe, NoAnswer},
		{"redirect 303", answering(303, "Location: /c/demo/banka.json\r\n", ""), Maybe, NoAnswer},
		{"redirect 307", answering(307, "Location: /c/demo/banka.json\r\n", ""), Maybe, NoAnswer},
		{"redirect 308", answering(308, "Location: /c/demo/banka.json\r\n", ""), Maybe, NoAnswer},
		{"switching protocols", say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"), Maybe, NoAnswer},
	}
}
