package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"flexid/flexi"
)

func storyRow(attempts, looks, text int) Row {
	r := sampleRow("x")
	r.Format, r.Work = Format, &Work{N: 1, Op: flexi.Create}
	s := &r.Work.Story
	for i := range attempts {
		s.Attempts = append(s.Attempts, Attempt{
			N: i + 1, Op: flexi.Create, Claimed: time.Unix(int64(i), 0).UTC(), Outcome: "maybe", Text: strings.Repeat("ž", text),
			Requests: []flexi.Request{{Kind: "write", Method: "POST", URL: "/c/firma/faktura-vydana.json", Status: 500}},
		})
	}
	for i := range looks {
		s.Looks = append(s.Looks, Look{Time: time.Unix(int64(i), 0).UTC(), Why: "settle", Verdict: "absent"})
	}
	return r
}

func TestStoryIsCutInTheMiddle(t *testing.T) {
	cases := map[string]struct {
		row   Row
		check func(t *testing.T, s Story)
	}{
		"small stays": {storyRow(3, 40, 10), func(t *testing.T, s Story) {
			want(t, "looks", len(s.Looks), 40)
			want(t, "cut", s.Cut, 0)
		}},
		"many looks": {storyRow(3, 1000, 10), func(t *testing.T, s Story) {
			want(t, "attempts", len(s.Attempts), 3)
			want(t, "looks", len(s.Looks), 30)
			want(t, "cut", s.Cut, 970)
			want(t, "ninth", s.Looks[9].Time.Unix(), 9)
			want(t, "eleventh", s.Looks[10].Time.Unix(), 980)
			want(t, "last", s.Looks[29].Time.Unix(), 999)
		}},
		"many attempts": {storyRow(200, 0, 10), func(t *testing.T, s Story) {
			want(t, "attempts", len(s.Attempts), 30)
			want(t, "cut", s.Cut, 170)
			want(t, "last attempt", s.Attempts[29].N, 200)
		}},
		"long texts": {storyRow(30, 30, 5000), func(t *testing.T, s Story) {
			last := s.Attempts[len(s.Attempts)-1]
			want(t, "last attempt", last.N, 30)
			if len(last.Text) > 1000 || !utf8.ValidString(last.Text) || !strings.HasSuffix(last.Text, "…") {
				t.Fatalf("text has %d bytes", len(last.Text))
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			shared := c.row.Clone()
			data, err := shared.fit(cutAt, maxRow)
			noErr(t, err)
			if len(data) > cutAt {
				t.Fatalf("%d bytes", len(data))
			}
			c.check(t, shared.Work.Story)
			stored, err := Unmarshal(data)
			noErr(t, err)
			want(t, "stored looks", len(stored.Work.Story.Looks), len(shared.Work.Story.Looks))
		})
	}
}

// TestFitChangesNoSharedSlice: the caller's row may share its story with copies that others hold.
func TestFitChangesNoSharedSlice(t *testing.T) {
	r := storyRow(100, 100, 3000)
	r.Work.Reject = &Problem{Text: strings.Repeat("x", 9000)}
	before := r.Clone()
	shallow := r
	_, err := shallow.fit(cutAt, maxRow)
	noErr(t, err)
	if !reflect.DeepEqual(r, before) {
		t.Fatal("the row from which the copy came has changed")
	}
}

// TestGrowingRow: a document that is looked at for ever never outgrows its key, and its history is counted right.
func TestGrowingRow(t *testing.T) {
	mem := newMemory()
	l := memLedger(mem)
	row := prepared(t, mem)
	row.Work = &Work{N: 1}
	const n = 400
	for i := range n {
		row.Work.Story.Looks = append(row.Work.Story.Looks, Look{Time: time.Unix(int64(i), 0).UTC(), Why: "late", Verdict: "absent", Text: strings.Repeat("t", 900)})
		noErr(t, l.Settle(t.Context(), []*Row{row})[0])
		if size := len(mem.keys[rowKey(row.ID)].value); size > cutAt {
			t.Fatalf("%d bytes", size)
		}
	}
	s := row.Work.Story
	want(t, "looks in all", len(s.Looks)+s.Cut, n)
	want(t, "first", s.Looks[0].Time.Unix(), 0)
	want(t, "last", s.Looks[len(s.Looks)-1].Time.Unix(), n-1)
}

func TestRowThatCannotFit(t *testing.T) {
	mem := newMemory()
	row := prepared(t, mem)
	updates := mem.n.Load()
	row.Work = &Work{Before: map[string]string{}}
	for i := range 500 {
		row.Work.Before[fmt.Sprint(i)] = strings.Repeat("v", 100)
	}
	var tooLarge *TooLargeError
	if err := memLedger(mem).Claim(t.Context(), []*Row{row})[0]; !errors.As(err, &tooLarge) || tooLarge.Limit != cutAt {
		t.Fatalf("got %v", err)
	}
	want(t, "updates", mem.n.Load(), updates)
}

func TestShort(t *testing.T) {
	for _, c := range []struct{ in, want string }{{"abc", "abc"}, {"abcdefgh", "abc…"}, {"žžžž", "ž…"}, {"\xff\xff\xff\xff\xff\xff\xff\xff", "\xff\xff\xff…"}} {
		want(t, c.in, short(c.in, 6), c.want)
	}
	want(t, "tiny", short("abcdef", 3), "…")
}
