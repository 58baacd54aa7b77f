package verify_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"flexid/flexi"
	"flexid/flexi/flexitest"
	"flexid/verify/ledger"
)

func prague(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Prague")
	must(t, err)
	return zone
}

// TestMomentInDateField: a moment is booked on its day in the settings' zone, whatever happens to the first write, and is
// taken for what Flexi shows afterwards.
func TestMomentInDateField(t *testing.T) {
	const evening = "2026-02-28T23:30:00Z"
	for _, tc := range []struct {
		name  string
		fault *flexitest.Fault
	}{
		{"healthy", nil},
		{"answer lost, done", &flexitest.Fault{Kind: flexitest.ResetAfterCommit}},
		{"500 not done", &flexitest.Fault{Kind: flexitest.ServerError, Status: 500}},
		{"500 done", &flexitest.Fault{Kind: flexitest.CommitThenStatus, Status: 500}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.set.Zone = prague(t)
				b.start()
				b.push(flexi.Create, "other", invoice("OTHER")) // proves the fence
				b.becomes("other", time.Minute, ledger.Confirmed, "")
				if tc.fault != nil {
					b.first("M-1", *tc.fault)
				}
				b.push(flexi.Create, "M-1", invoice("M-1", "datVyst", evening, "duzpPuv", "2026-03-01T00:00:00+01:00", "datSplat", "2026-03-14T23:59:59"))
				r := b.becomes("M-1", time.Hour, ledger.Confirmed, "")
				for field, want := range map[string]string{"datVyst": "2026-03-01", "duzpPuv": "2026-03-01", "datSplat": "2026-03-14"} {
					if got := b.field("M-1", field); !strings.HasPrefix(got, want) {
						t.Errorf("%s is booked on %s, want %s", field, got, want)
					}
				}
				if r.Date != "2026-03-01" {
					t.Errorf("lists show %s", r.Date)
				}
				if got := r.Work.Story.Days["datVyst"]; got != "2026-03-01" {
					t.Errorf("the story tells of the day %q", got)
				}
				b.pass(2 * time.Hour) // the read-back and the first late look
				b.becomes("M-1", 0, ledger.Confirmed, "")
				b.wantRecords("M-1", 1)
				// The same again, and the same moment as another clock writes it.
				b.push(flexi.Upsert, "M-1", invoice("M-1", "datVyst", "2026-03-01T00:30:00+01:00", "duzpPuv", "2026-03-01", "datSplat", "2026-03-14"))
				writes := b.writes()
				b.becomes("M-1", time.Minute, ledger.Confirmed, ledger.Adopted)
				b.wantWrites(writes)
			})
		})
	}
}

// floats are the documents of the case float-noise.
func floats(t *testing.T) map[string]doc {
	t.Helper()
	file, err := os.ReadFile("../../shared/data/cases/float-noise/invoices.ndjson")
	if err != nil {
		t.Skip("the shared cases are not here: ", err)
	}
	docs := map[string]doc{}
	for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
		var event struct{ Document doc }
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.UseNumber()
		must(t, dec.Decode(&event))
		docs[fmt.Sprint(event.Document["kod"])] = event.Document
	}
	if len(docs) != 4 {
		t.Fatalf("%d documents in the case", len(docs))
	}
	return docs
}

// TestFloatNoise: numbers as binary floats write them are what Flexi keeps of them.
func TestFloatNoise(t *testing.T) {
	docs := floats(t)
	for name, fault := range map[string]*flexitest.Fault{
		"healthy": nil, "every answer lost": {Kind: flexitest.ResetAfterCommit},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(b *bench) {
				b.start()
				if fault != nil {
					b.fake.OnWrite(0, func(flexitest.Request) bool { return true }, *fault)
				}
				for key, d := range docs {
					b.push(flexi.Upsert, key, d)
				}
				for key := range docs {
					b.becomes(key, time.Hour, ledger.Confirmed, "")
				}
				b.pass(2 * time.Hour)
				for key := range docs {
					b.becomes(key, 0, ledger.Confirmed, "")
					b.wantRecords(key, 1)
				}
				writes := b.writes()
				for key, d := range docs {
					b.push(flexi.Upsert, key, d)
					b.becomes(key, time.Minute, ledger.Confirmed, ledger.Repeated)
				}
				b.wantWrites(writes)
			})
		})
	}
	t.Run("a real difference of a hundredth is a conflict", func(t *testing.T) {
		virtual(t, func(b *bench) {
			b.start()
			typed := doc{}
			maps.Copy(typed, docs["FLOAT-4"])
			typed["sumOsv"] = "300.30"
			b.typed(typed)
			b.push(flexi.Create, "FLOAT-4", docs["FLOAT-4"])
			b.becomes("FLOAT-4", time.Minute, ledger.Parked, ledger.Conflict)
			b.wantWrites(0)
		})
	})
}

// TestManyChanges: what the first of many changes set is remembered, however many follow, and over restarts in between.
func TestManyChanges(t *testing.T) {
	virtual(t, func(b *bench) {
		b.start()
		b.created("A", invoice("A", "cisObj", "OBJ-1"))
		b.push(flexi.Update, "A", doc{"cisSml": "SML-1"})
		for n := range 130 {
			b.push(flexi.Update, "A", doc{"popis": fmt.Sprint("change ", n)})
			if n%40 == 39 {
				b.becomes("A", time.Hour, ledger.Confirmed, "")
				b.halt()
				b.start()
			}
		}
		r := b.becomes("A", time.Hour, ledger.Confirmed, "")
		if len(r.Base) > 51 {
			t.Errorf("the row names %d events that it is made of", len(r.Base))
		}
		b.pass(10 * time.Minute)
		b.becomes("A", 0, ledger.Confirmed, "")
		if len(b.notices.alerts()) > 0 {
			t.Errorf("alerts: %v", b.notices.alerts())
		}

		// What a person changes is still seen: also in a field that only an event set which is folded away by now.
		b.fake.Edit("faktura-vydana", b.records("A")[0].ID, map[string]any{"cisSml": "SML-2"})
		b.push(flexi.Update, "A", doc{"cisSml": "SML-3"})
		r = b.becomes("A", time.Minute, ledger.Parked, ledger.Conflict)
		if p := r.Work.Story.Problem; p == nil || len(p.Differ) != 1 || p.Differ[0].Field != "cisSml" || p.Differ[0].Sent != "SML-1" {
			t.Errorf("problem %+v", p)
		}
		if got := b.field("A", "cisSml"); got != "SML-2" {
			t.Errorf("cisSml is %s", got)
		}
	})
}
