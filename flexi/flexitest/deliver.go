package flexitest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// cutBody reads what the fault lets in and resets the connection.
func (x *exchange) cutBody(f Fault) {
	if f.Kind == ResetMiddle && f.Bytes > 0 {
		body, _ := io.ReadAll(io.LimitReader(x.r.Body, int64(f.Bytes)))
		x.s.mu.Lock()
		x.entry.Body, x.entry.Bytes = body, len(body)
		x.s.mu.Unlock()
	}
	x.abort()
}

// deliver says ans, or what the fault says instead.
func (x *exchange) deliver(f Fault, ans answer) {
	switch f.Kind {
	case TooMany, Unauthorized, ServerError, HTML200, Redirect:
		x.send(f.answer())
	case RefuseConnection, ResetBefore, ResetMiddle, ResetAnswer:
		x.abort()
	case Silence:
		if f.Delay == 0 {
			select {
			case <-x.r.Context().Done():
			case <-x.s.done:
			}
		}
		x.abort()
	case HalfAnswer:
		x.half(f, ans)
	case OtherDocument:
		x.send(otherDocument(ans))
	case SlowBody:
		x.drip(f, ans)
	default:
		x.send(ans)
	}
}

// answer is what an error fault says.
func (f Fault) answer() answer {
	f = f.plain()
	switch f.Kind {
	case TooMany:
		a := message(http.StatusTooManyRequests, "Příliš mnoho souběžných požadavků.", "")
		if f.RetryAfter != "" {
			a.header = map[string]string{"Retry-After": f.RetryAfter}
		}
		return a
	case Unauthorized:
		return unauthorized()
	case HTML200:
		return page(http.StatusOK, "Přihlášení")
	case Redirect:
		a := page(f.Status, "Přesunuto")
		a.header = map[string]string{"Location": f.Location}
		return a
	}
	status := f.Status
	says := f.Says
	if says == Auto {
		says = Page
		if status == http.StatusInternalServerError || status < 500 {
			says = Envelope
		}
	}
	switch says {
	case Envelope:
		return message(status, "Na serveru došlo k neočekávané chybě.", "")
	case Nothing:
		return answer{status: status}
	}
	return page(status, http.StatusText(status))
}

func page(status int, title string) answer {
	body := fmt.Sprintf("<!DOCTYPE html>\n<html><head><title>%s</title></head><body><h1>%s</h1></body></html>\n", title, title)
	return answer{status: status, kind: "text/html; charset=utf-8", body: []byte(body)}
}

func (x *exchange) sent(status int) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.entry.Status = status
	x.entry.Duration = x.s.now().Sub(x.entry.Time)
}

func (x *exchange) send(a answer) {
	x.sent(a.status)
	h := x.w.Header()
	h.Set("Cache-Control", "private, max-age=0, no-cache")
	h.Set("Vary", "Accept")
	if a.kind != "" {
		h.Set("Content-Type", a.kind)
	}
	for k, v := range a.header {
		h.Set(k, v)
	}
	x.writeBody(a)
}

// writeBody writes the body as the habits of this server have it: whole, compressed, or in chunks without a length.
func (x *exchange) writeBody(a answer) {
	h := x.w.Header()
	asked := strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip")
	if len(a.body) > 0 && (x.has(GzipUnasked) || asked && x.has(Gzip)) {
		a.body = compressed(a.body)
		h.Set("Content-Encoding", "gzip")
	}
	parts := [][]byte{a.body}
	if x.has(Chunked) {
		parts = [][]byte{a.body[:len(a.body)/2], a.body[len(a.body)/2:]}
	} else {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	x.w.WriteHeader(a.status)
	if x.r.Method == http.MethodHead {
		return
	}
	for _, part := range parts {
		_, _ = x.w.Write(part)
		if len(parts) > 1 {
			_ = http.NewResponseController(x.w).Flush()
		}
	}
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// abort resets the connection without an answer.
func (x *exchange) abort() {
	x.s.mu.Lock()
	x.entry.Duration = x.s.now().Sub(x.entry.Time)
	x.s.mu.Unlock()
	if c, _, err := x.hijack(); err == nil {
		abort(c)
		return
	}
	panic(http.ErrAbortHandler)
}

func (x *exchange) hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(x.w).Hijack()
}

// half sends the head and a part of the body, then ends the connection.
func (x *exchange) half(f Fault, a answer) {
	x.sent(a.status)
	c, _, err := x.hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	n := f.Bytes
	if n <= 0 || n > len(a.body) {
		n = len(a.body) / 2
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n", a.status, http.StatusText(a.status), a.kind)
	if f.Unbounded {
		b.WriteString("Connection: close\r\n\r\n")
	} else {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(a.body))
	}
	b.Write(a.body[:n])
	_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = c.Write(b.Bytes())
	_ = c.Close()
}

// drip sends the answer in small pieces.
func (x *exchange) drip(f Fault, a answer) {
	size, every := f.Bytes, f.Delay
	if size <= 0 {
		size = 16
	}
	if every <= 0 {
		every = time.Second
	}
	x.sent(a.status)
	h := x.w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	x.w.WriteHeader(a.status)
	rc := http.NewResponseController(x.w)
	for body := a.body; len(body) > 0; {
		n := min(size, len(body))
		if _, err := x.w.Write(body[:n]); err != nil || rc.Flush() != nil {
			return
		}
		body = body[n:]
		if len(body) > 0 && !x.s.pause(x.r.Context(), every) {
			panic(http.ErrAbortHandler)
		}
	}
}

// otherDocument makes an answer name other documents than the ones that were sent.
func otherDocument(a answer) answer {
	var doc struct {
		Winstrom map[string]any `json:"winstrom"`
	}
	if json.Unmarshal(a.body, &doc) != nil || doc.Winstrom == nil {
		return a
	}
	results, _ := doc.Winstrom["results"].([]any)
	for i, r := range results {
		if m, ok := r.(map[string]any); ok {
			id := strconv.Itoa(990000 + i)
			m["id"], m["request-id"], m["code"] = id, "ext:OTHER:"+id, "CIZI-"+id
			if ref, ok := m["ref"].(string); ok {
				m["ref"] = ref[:strings.LastIndex(ref, "/")+1] + id + ".json"
			}
		}
	}
	a.body, _ = json.Marshal(doc)
	delete(a.header, "Location")
	return a
}
