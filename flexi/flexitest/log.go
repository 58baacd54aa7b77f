package flexitest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Doc is one document that a write request names.
type Doc struct {
	Evidence string
	Keys     []string // as sent and known: "code:FV-1", "cisDosle:7", "ext:S:1", "123"
	Op       string   // write, delete, or the @action
}

// ID is the key that stays the same over all writes of the document: the external id if one is known, else the number.
func (d Doc) ID() string {
	for _, prefix := range []string{"ext:", "code:", "cisDosle:", ""} {
		for _, k := range d.Keys {
			if strings.HasPrefix(k, prefix) {
				return d.Evidence + "/" + k
			}
		}
	}
	return d.Evidence + "/?"
}

// Has says whether the document is named by key: a Flexi id, an external id, a number with or without its prefix.
func (d Doc) Has(key string) bool {
	return slices.ContainsFunc(d.Keys, func(k string) bool {
		if strings.EqualFold(k, key) {
			return true
		}
		prefix, value, ok := strings.Cut(k, ":")
		return ok && (prefix == "code" || prefix == "cisDosle") && strings.EqualFold(value, key)
	})
}

// Request is one request as the server received it.
type Request struct {
	N         int // from 1, in order of arrival
	Time      time.Time
	Duration  time.Duration
	Kind      string // Read, Write, Other
	Method    string
	Path      string
	Query     string
	Proto     string
	Header    http.Header
	Body      []byte    // the first Options.KeepBody bytes
	Bytes     int       // length of the whole body
	Docs      []Doc     // of a write
	Status    int       // 0 = none was sent
	Fault     string    // "" = healthy
	Committed bool      // may become true after the answer, for a late commit
	Effective time.Time // when it was committed; zero while it is not
}

// Has says whether the request names the document.
func (r Request) Has(key string) bool {
	return slices.ContainsFunc(r.Docs, func(d Doc) bool { return d.Has(key) })
}

type entry struct{ Request }

// requestLog and the commit counts survive a restored snapshot: they are what the tests know, not what the books say.
type requestLog struct {
	entries []*entry
	n       int
	commits map[string]int
}

func newRequestLog() requestLog { return requestLog{commits: map[string]int{}} }

func (l *requestLog) add(x *exchange, at time.Time) *entry {
	l.n++
	header := x.r.Header.Clone()
	for _, secret := range []string{"Authorization", "X-Authsessionid", "Cookie"} {
		if header.Get(secret) != "" {
			header.Set(secret, "…")
		}
	}
	e := &entry{Request{
		N: l.n, Time: at, Kind: x.kind, Method: x.r.Method, Path: x.r.URL.EscapedPath(), Query: x.r.URL.RawQuery,
		Proto: x.r.Proto, Header: header,
	}}
	l.entries = append(l.entries, e)
	return e
}

// Requests is the log so far, in order of arrival.
func (s *Server) Requests() []Request {
	return s.requests(func(*entry) bool { return true })
}

func (s *Server) requests(keep func(*entry) bool) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, e := range s.log.entries {
		if keep(e) {
			out = append(out, e.Request)
		}
	}
	return out
}

// Writes is the write requests that name a document by Flexi id, external id or number. A request that was cut before
// its body was read names nothing.
func (s *Server) Writes(key string) []Request {
	return s.requests(func(e *entry) bool { return e.Kind == Write && e.Has(key) })
}

// Count is how many requests of a kind arrived; "" counts all.
func (s *Server) Count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.log.entries {
		if kind == "" || e.Kind == kind {
			n++
		}
	}
	return n
}

// ResetLog forgets the logged requests. Commits are kept.
func (s *Server) ResetLog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.entries = nil
}

// Commits is how many creates that carried the key were committed: an external id, also when the server was told to lose
// it, or "code:X"; with the evidence before it ("faktura-vydana/ext:S:1") only creates there. More than one is the damage
// that everything here is about.
func (s *Server) Commits(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.commits[key]
}

// countCommit needs mu.
func (s *Server) countCommit(r *record) {
	keys := r.ext
	if kod := r.text("kod"); kod != "" {
		keys = append(slices.Clone(keys), "code:"+kod)
	}
	for _, k := range keys {
		s.log.commits[k]++
		s.log.commits[r.ev.path+"/"+k]++
	}
}

// docsOf names the documents of a write; it needs mu.
func (s *Server) docsOf(x *exchange) []Doc {
	var jobs []job
	if x.env != nil {
		jobs = x.env.jobs
	}
	if len(jobs) == 0 && x.rt.kind == rDetail {
		jobs = []job{{path: x.rt.evidence}}
	}
	var out []Doc
	for _, j := range jobs {
		d := Doc{Evidence: j.path, Op: "write", Keys: identifiers(j.in["id"])}
		if x.rt.kind == rDetail {
			d.Keys = append(d.Keys, x.rt.arg)
		}
		if action, _ := scalar(j.in["@action"]); action != "" {
			d.Op = action
		}
		if x.r.Method == http.MethodDelete {
			d.Op = "delete"
		}
		for _, name := range []string{"kod", "cisDosle"} {
			if v, _ := scalar(j.in[name]); v != "" {
				d.Keys = append(d.Keys, map[string]string{"kod": "code:", "cisDosle": "cisDosle:"}[name]+v)
			}
		}
		out = append(out, s.known(d))
	}
	return out
}

// known adds what the books know about a document that is named by its Flexi id. Other names are not followed: two
// senders may use one number, and their writes must not be mixed up.
func (s *Server) known(d Doc) Doc {
	ev := s.catalog.byPath[d.Evidence]
	if ev == nil {
		return d
	}
	for _, k := range slices.Clone(d.Keys) {
		if !isNumber(k) {
			continue
		}
		for _, r := range s.store.find(ev, k) {
			add := append(slices.Clone(r.ext), "code:"+r.text("kod"))
			for _, a := range add {
				if a != "code:" && !slices.Contains(d.Keys, a) {
					d.Keys = append(d.Keys, a)
				}
			}
		}
	}
	return d
}
