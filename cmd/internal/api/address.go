package api

import (
	"net/url"
	"strings"

	"flexid/flexi"
	"flexid/verify"
	"flexid/verify/ledger"
)

// ParseAddress reads EVIDENCE/[SOURCE:]KEY. The text is ambiguous where a key itself holds a colon: the reading with a
// source comes first, the whole text as a key second. "EVIDENCE/:KEY" says that there is no source. ok is false where
// evidence or key is missing.
func ParseAddress(s string) (readings []verify.Address, ok bool) {
	evidence, rest, found := strings.Cut(s, "/")
	if !found || evidence == "" || rest == "" {
		return nil, false
	}
	source, key, colon := strings.Cut(rest, ":")
	switch {
	case colon && source == "" && key != "":
		return []verify.Address{{Evidence: evidence, Key: key}}, true
	case colon && key != "":
		return []verify.Address{{Evidence: evidence, Source: source, Key: key}, {Evidence: evidence, Key: rest}}, true
	}
	return []verify.Address{{Evidence: evidence, Key: rest}}, true
}

// Path is the address as the tail of an API path. Slashes of the key are escaped, and so are segments of dots: net/http
// would answer "a/../b" with a redirect to another document.
func Path(a verify.Address) string {
	key := a.Key
	if a.Source != "" || strings.Contains(key, ":") {
		key = a.Source + ":" + key
	}
	key = url.PathEscape(key)
	if strings.Trim(key, ".") == "" || strings.Contains(key, "..") {
		key = strings.ReplaceAll(key, ".", "%2E")
	}
	return url.PathEscape(a.Evidence) + "/" + key
}

// rowID is where the ledger keeps the document of a.
func (s *Server) rowID(a verify.Address) ledger.ID {
	company := s.o.Company
	if b := s.current.Load(); b != nil && b.Company != "" {
		company = b.Company
	}
	return ledger.RowID(company, a.Evidence, flexi.NewExternalID(s.o.System, a.Source, a.Key))
}
