package probe

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// What the server says. The healthy answers fit every evidence: an empty list, and one record written.
const (
	emptyList   = `{"winstrom":{"@version":"1.0","success":"true","@rowCount":"0"}}`
	oneCreated  = `{"winstrom":{"@version":"1.0","success":"true","stats":{"created":"1","updated":"0","deleted":"0","skipped":"0","failed":"0"},"results":[{"id":"1"}]}}`
	oneRejected = `{"winstrom":{"@version":"1.0","success":"false","stats":{"created":"0","failed":"1"},"results":[{"errors":[{"message":"odmítnuto podle scénáře","for":"nazev"}]}]}}`
	bareMessage = `{"winstrom":{"@version":"1.0","success":"false","message":"chyba podle scénáře"}}`
	proxyPage   = `<!DOCTYPE html><html><head><title>%d %s</title></head><body>by the script</body></html>`
)

// deliver does what the step says and reports whether the connection can go on.
func deliver(conn net.Conn, st step, write bool) bool {
	switch st.kind {
	case reset:
		if tc, ok := conn.(*net.TCPConn); ok {
			_ = tc.SetLinger(0) // a close is then seen as a reset
		}
		return false
	case hangUp:
		return false
	case silence:
		// Until the client leaves or the server is closed: no deadline of ours may speak first.
		_ = conn.SetReadDeadline(time.Time{})
		_, _ = io.Copy(io.Discard, conn)
		return false
	case half:
		body := healthy(write)
		_ = send(conn, head(st, len(body))+body[:len(body)/2])
		return false
	}
	body := st.body(write)
	return send(conn, head(st, len(body))+body) == nil
}

// send is bounded: a client that does not read must not hold the server's goroutine.
func send(conn net.Conn, text string) error {
	_ = conn.SetWriteDeadline(time.Now().Add(idleTime))
	_, err := io.WriteString(conn, text)
	return err
}

func head(st step, length int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", st.status, http.StatusText(st.status))
	if st.retryAfter != "" {
		b.WriteString("Retry-After: " + st.retryAfter + "\r\n")
	}
	if st.status >= 300 && st.status < 400 && st.status != http.StatusNotModified {
		b.WriteString("Location: /elsewhere\r\n")
	}
	if !bodyless(st.status) {
		media := "application/json"
		if st.page() {
			media = "text/html; charset=utf-8"
		}
		fmt.Fprintf(&b, "Content-Type: %s\r\nContent-Length: %d\r\n", media, length)
	}
	b.WriteString("\r\n")
	return b.String()
}

func bodyless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// page reports whether something else than the ERP speaks: it answers 4xx and 500 itself, and a proxy the rest.
func (st step) page() bool {
	return st.kind == html || st.status >= 300 && st.status < 400 || st.status > 500
}

func (st step) body(write bool) string {
	switch {
	case bodyless(st.status):
		return ""
	case st.page():
		return fmt.Sprintf(proxyPage, st.status, http.StatusText(st.status))
	case st.kind == stale:
		return bareMessage
	case st.status == http.StatusBadRequest && write:
		return oneRejected
	case st.status >= 300:
		return bareMessage
	}
	return healthy(write)
}

func healthy(write bool) string {
	if write {
		return oneCreated
	}
	return emptyList
}
