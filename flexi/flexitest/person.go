package flexitest

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Record is one record of the books, as a test sees it.
type Record struct {
	Evidence    string
	ID          int64
	Number      string // kod
	ExternalIDs []string
	// Fields are rendered as the server writes them ("350.0", "code:CZK"), without @ref and @showAs. Rows are
	// []map[string]any under the evidence's own key.
	Fields     map[string]any
	Created    time.Time
	LastUpdate time.Time
}

// export needs mu.
func (s *Server) export(r *record) Record {
	out := Record{
		Evidence: r.ev.path, ID: r.id, Number: r.text("kod"), ExternalIDs: slices.Clone(r.ext),
		Fields: map[string]any{}, Created: r.created, LastUpdate: r.updated,
	}
	for _, f := range r.ev.fields {
		if r.fields[f.name] != nil && r.fields[f.name] != "" {
			m := map[string]any{}
			s.renderField(m, f, r.fields[f.name])
			out.Fields[f.name] = m[f.name]
		}
	}
	if r.ev.doc == nil {
		return out
	}
	rows := []map[string]any{}
	for _, item := range r.rows {
		m := map[string]any{"id": strconv.FormatInt(item.id, 10)}
		for _, f := range s.catalog.row.fields {
			if item.fields[f.name] != nil && item.fields[f.name] != "" {
				s.renderField(m, f, item.fields[f.name])
			}
		}
		for k := range maps.Clone(m) {
			if _, plain := s.catalog.row.byName[k]; !plain {
				delete(m, k)
			}
		}
		rows = append(rows, m)
	}
	out.Fields[r.ev.doc.rows] = rows
	return out
}

// Records is all records of an evidence by id, as they are, whatever reads are told.
func (s *Server) Records(evidence string) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Record
	for _, r := range s.store.sorted(evidence) {
		out = append(out, s.export(r))
	}
	return out
}

// Find is the records that an identifier names: "123", "code:X", "ext:S:1".
func (s *Server) Find(evidence, ref string) []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	ev := s.catalog.byPath[evidence]
	if ev == nil {
		return nil
	}
	var out []Record
	for _, r := range s.store.find(ev, ref) {
		out = append(out, s.export(r))
	}
	return out
}

// Type is a person who types a record at the ERP: no faults, no log. It returns the new id, or 0 when the ERP refuses it.
func (s *Server) Type(evidence string, fields map[string]any) int64 {
	return s.byHand(evidence, fields, "")
}

// Edit is a person who changes fields of a record; false when the ERP refuses it. Rows are appended, as for everyone.
func (s *Server) Edit(evidence string, id int64, fields map[string]any) bool {
	return s.byHand(evidence, fields, strconv.FormatInt(id, 10)) != 0
}

// Remove is a person who deletes a record; false when the ERP refuses it.
func (s *Server) Remove(evidence string, id int64) bool {
	return s.byHand(evidence, map[string]any{"@action": "delete"}, strconv.FormatInt(id, 10)) != 0
}

// Lock is a person who locks a record against changes.
func (s *Server) Lock(evidence string, id int64) bool {
	return s.byHand(evidence, map[string]any{"@action": "lock"}, strconv.FormatInt(id, 10)) != 0
}

func (s *Server) byHand(evidence string, fields map[string]any, id string) int64 {
	raw, err := json.Marshal(fields)
	if err != nil {
		return 0
	}
	in, err := decodeObject(raw)
	if err != nil || !s.lockSeries() {
		return 0
	}
	defer s.unlockSeries()
	s.mu.Lock()
	defer s.mu.Unlock()
	ev := s.catalog.byPath[evidence]
	if ev == nil {
		return 0
	}
	t := s.beginTx(s.opt.User)
	res, bad := t.apply(ev, in, id)
	if bad != nil {
		t.rollback()
		return 0
	}
	t.commit()
	return res.id
}

// Pay is a payment that was paired with an invoice: from then on the ERP guards what matters for it.
func (s *Server) Pay(evidence string, id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.store.get(evidence, id)
	if old == nil || old.ev.doc == nil || !old.ev.doc.paid {
		return false
	}
	t := s.beginTx(s.opt.User)
	next := old.clone()
	next.updated = t.at
	next.fields["juhSum"], next.fields["zbyvaUhradit"] = next.text("sumCelkem"), "0"
	next.fields["stavUhrK"] = "stavUhr.uhrazeno"
	next.fields["datUhr"] = t.at.In(s.zone).Format(time.DateOnly)
	t.put(old, next)
	t.logRecord(next, "update", nil)
	t.commit()
	return true
}

// Snapshot is a backup of the books.
type Snapshot struct{ store *store }

// Snapshot makes a backup.
func (s *Server) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{s.store.clone()}
}

// Restore puts the books back to a backup: later records are gone, ids and @globalVersion fall. The log and Commits are
// kept.
func (s *Server) Restore(from Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = from.store.clone()
}

// RestoreUnseen is Restore of which nobody hears: others have worked on the books until @globalVersion was above the old one
// again. Ids are given again all the same, the next record that somebody types gets the id of one that is gone.
func (s *Server) RestoreUnseen(from Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.store.version
	s.store = from.store.clone()
	s.store.version = max(s.store.version, version)
}

// SetCompany changes what the company is called, as after a rename or when another one was restored in its place.
func (s *Server) SetCompany(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.CompanyName = name
}

// SetIdentity changes what the server tells about the company besides its name, as when another one was set up in its
// place; "" leaves a field. The registration number is the field ic of evidence nastaveni, see Edit.
func (s *Server) SetIdentity(id, createdAt string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		s.companyID = id
	}
	if createdAt != "" {
		s.companyMade = createdAt
	}
}

// GlobalVersion is the version of the last change.
func (s *Server) GlobalVersion() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.version
}
