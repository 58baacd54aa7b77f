package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"flexid/flexi"
)

// fill sets everything below v to something that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text%d", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, n)
		fill(e, n)
		v.SetMapIndex(k, e)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, *n))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*n), 5).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Kind())
	}
}

func fullRow() Row {
	var r Row
	n := 0
	fill(reflect.ValueOf(&r).Elem(), &n)
	r.Format, r.Revision, r.Was = Format, 0, r.State
	for i := range r.Parkings {
		r.Parkings[i].Fresh = false // not stored
	}
	for i := range r.Work.Story.Attempts {
		for j := range r.Work.Story.Attempts[i].Requests {
			r.Work.Story.Attempts[i].Requests[j].Duration = 0 // not stored
		}
	}
	return r
}

func TestRowComesBackAsItWas(t *testing.T) {
	r := fullRow()
	data, err := r.Marshal()
	noErr(t, err)
	back, err := Unmarshal(data)
	noErr(t, err)
	if !reflect.DeepEqual(r, back) {
		t.Fatalf("wrote %+v\nread  %+v", r, back)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	r := fullRow()
	c := r.Clone()
	if !reflect.DeepEqual(r, c) {
		t.Fatal("the copy differs")
	}
	n := 1000
	fillInPlace(reflect.ValueOf(&c).Elem(), &n)
	if !reflect.DeepEqual(r, fullRow()) {
		t.Fatal("a change of the copy shows in the row")
	}
	var empty Row
	if !reflect.DeepEqual(empty.Clone(), empty) {
		t.Fatal("the copy of an empty row differs")
	}
}

// fillInPlace changes what pointers, slices and maps lead to, without making new ones.
func fillInPlace(v reflect.Value, n *int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillInPlace(v.Elem(), n)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			return // never changed in place
		}
		for i := range v.Len() {
			fillInPlace(v.Index(i), n)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, n)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fillInPlace(v.Field(i), n)
		}
	default:
		fill(v, n)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"scalar, object and array": {
			`{"format":1,"id":"a","zeta":{"b":[1,2]},"alpha":"<&>","n":12345678901234567890}`,
			`"alpha":"<&>","n":12345678901234567890,"zeta":{"b":[1,2]}}`},
		"null":          {`{"format":1,"later":null}`, `"later":null}`},
		"strange name":  {`{"format":1,"a \"b\" ž":1}`, `"a \"b\" ž":1}`},
		"known in caps": {`{"format":1,"STATE":"maybe"}`, `"state":"maybe"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := Unmarshal([]byte(c.in))
			noErr(t, err)
			r.State, r.Evidence = Maybe, "banka" // and they survive a change of the row
			data, err := r.Clone().marshalled()
			noErr(t, err)
			if !strings.Contains(string(data), c.want) || !json.Valid(data) || bytes.Count(data, []byte("STATE")) > 0 {
				t.Fatalf("got %s", data)
			}
		})
	}
}

func (r Row) marshalled() ([]byte, error) { return r.Marshal() }

func TestUnknownFieldsSurviveInTheStore(t *testing.T) {
	mem := newMemory()
	l := memLedger(mem)
	row := prepared(t, mem)
	inject := func(key, field string) {
		e := mem.keys[key]
		e.value = append(append([]byte(nil), e.value[:len(e.value)-1]...), field...)
		mem.keys[key] = e
	}
	inject(rowKey(row.ID), `,"of_tomorrow":{"x":1}}`)
	inject(eventKey(row.ID, 1), `,"of_tomorrow":2}`)
	got, err := l.Append(t.Context(), *row, sampleEvent(2), nil)
	noErr(t, err)
	got.State = Sending
	noErr(t, l.Claim(t.Context(), []*Row{&got})[0])
	ev, err := l.Event(t.Context(), row.ID, 1)
	noErr(t, err)
	ev.State = Confirmed
	noErr(t, l.PutEvent(t.Context(), row.ID, ev))
	for _, key := range []string{rowKey(row.ID), eventKey(row.ID, 1)} {
		if !strings.Contains(string(mem.keys[key].value), `"of_tomorrow":`) {
			t.Fatalf("%s lost it: %s", key, mem.keys[key].value)
		}
	}
}

// TestNewerRowsAreLeftAlone: this binary reads the name of such a row and changes nothing.
func TestNewerRowsAreLeftAlone(t *testing.T) {
	mem := newMemory()
	l := memLedger(mem)
	tmpl := sampleRow("x")
	newer := []byte(`{"format":2,"id":"` + string(tmpl.ID) + `","evidence":"banka","key":"k","state":{"now":"an object"},"work":[]}`)
	mem.keys[rowKey(tmpl.ID)] = memEntry{value: newer, revision: 9}
	row, err := l.Get(t.Context(), tmpl.ID)
	if !errors.Is(err, ErrNewer) {
		t.Fatalf("got %v", err)
	}
	want(t, "evidence", row.Evidence, "banka")
	want(t, "revision", row.Revision, 9)
	if _, err := l.Append(t.Context(), tmpl, sampleEvent(1), nil); !errors.Is(err, ErrNewer) {
		t.Fatalf("append: %v", err)
	}
	if err := l.Settle(t.Context(), []*Row{&row})[0]; !errors.Is(err, ErrNewer) {
		t.Fatalf("settle: %v", err)
	}
	want(t, "updates", mem.n.Load(), 0)
	want(t, "value", string(mem.keys[rowKey(tmpl.ID)].value), string(newer))
}

func TestDamagedRow(t *testing.T) {
	for name, value := range map[string]string{
		"empty": ``, "half": `{"format":1,"id":"a"`, "text": `"x"`, "wrong type": `{"format":1,"tail":"many"}`, "html": `<html>`,
	} {
		t.Run(name, func(t *testing.T) {
			mem := newMemory()
			tmpl := sampleRow("x")
			mem.keys[rowKey(tmpl.ID)] = memEntry{value: []byte(value), revision: 3}
			l := memLedger(mem)
			row, err := l.Get(t.Context(), tmpl.ID)
			if err == nil || errors.Is(err, ErrNoRow) || row.ID != tmpl.ID {
				t.Fatalf("got %v, %v", row.ID, err)
			}
			if _, err := l.Append(t.Context(), tmpl, sampleEvent(1), nil); err == nil {
				t.Fatal("a damaged row was overwritten")
			}
			want(t, "updates", mem.n.Load(), 0)
		})
	}
}

func TestRowIDs(t *testing.T) {
	seen := map[ID]string{}
	for _, c := range [][3]string{
		{"firma", "banka", "ext:A:1"}, {"firm", "abanka", "ext:A:1"}, {"firma", "banka", "ext:A:2"}, {"Firma", "banka", "ext:A:1"},
		{"firmabanka", "", "ext:A:1"}, {"", "", ""},
	} {
		id := RowID(c[0], c[1], flexi.ExternalID(c[2]))
		if old, ok := seen[id]; ok {
			t.Fatalf("%v and %v have one id", old, c)
		}
		seen[id] = fmt.Sprint(c)
		if strings.Trim(string(id), "abcdefghijklmnopqrstuvwxyz234567") != "" || len(id) != 32 {
			t.Fatalf("id %q is not a plain token", id)
		}
	}
	// Rows of an older binary must be found for ever.
	want(t, "id", RowID("firma", "faktura-vydana", "ext:FLEXID:FV-1"), ID("dl37tod3bok2zobxtpruzidtbi3gmp7y"))
}

func FuzzUnmarshal(f *testing.F) {
	full := fullRow()
	data, err := full.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, s := range []string{`{}`, `null`, `[]`, `{"format":2}`, `{"format":1,"x":{"y":1}}`, `{"FORMAT":1,"Work":{"story":{}}}`, `{"ſtate":"x"}`,
		`{"format":1,"work":{"story":{"looks":[{"time":"2026-01-01T00:00:00Z"}]}}}`, `{"":1}`, `{"a":1,"a":2}`, "{\"a\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		row, err := Unmarshal(in)
		if err != nil {
			if row.Work != nil || row.Tail != 0 {
				t.Fatalf("an unreadable row has content: %+v", row)
			}
			return
		}
		first, err := row.Marshal()
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		again, err := Unmarshal(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := again.Marshal()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("not stable: %v\n%s\n%s", err, first, second)
		}
	})
}
