package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"flexid/flexi/flexitest"
)

// erp is the part that is the fake Flexi. It says where it listens, and ends when nobody needs it any more.
func erp(_ context.Context, args []string, s *stage) error {
	f := flag.NewFlagSet("erp", flag.ContinueOnError)
	fixed, each := f.Duration("fixed", 0, "what a request takes"), f.Duration("each", 0, "and for every document in it")
	if err := f.Parse(args); err != nil {
		return err
	}
	// Without uniqueness of numbers a document that is written twice shows as two.
	srv := flexitest.New(flexitest.Options{AllowUsedNumbers: true, KeepBody: 1})
	defer srv.Close()
	if err := srv.Start(); err != nil {
		return err
	}
	srv.Slow(*fixed)
	srv.SlowDocuments(*each)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	asked := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := strconv.Atoi(r.FormValue("from"))
		to, err2 := strconv.Atoi(r.FormValue("to"))
		if err := errors.Join(err, err2); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(count(srv, from, to))
	})}
	served := make(chan error, 1)
	go func() { served <- asked.Serve(l) }()
	if _, err := fmt.Fprintln(s.out, srv.URL()+"\n"+"http://"+l.Addr().String()); err != nil {
		return err
	}
	err = s.released()
	return errors.Join(err, asked.Close(), ended(<-served))
}

func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// tally is what the fake has of some documents.
type tally struct {
	Made, Doubled, Lost int
	Strange             int // records that none of them is
	Writes              int // requests
}

// count counts those with numbers from one to another.
func count(srv *flexitest.Server, from, to int) tally {
	t := tally{Writes: srv.Count(flexitest.Write)}
	for i := from; i <= to; i++ {
		switch commits := srv.Commits(evidence + "/code:" + number(i)); commits {
		case 0:
			t.Lost++
		default:
			t.Made++
			t.Doubled += commits - 1
		}
	}
	t.Strange = len(srv.Records(evidence)) - t.Made - t.Doubled
	return t
}

// fakeERP is that part, seen from the measuring.
type fakeERP struct {
	*process
	url, control string
}

func (b *bench) startERP(ctx context.Context, l load, dir string) (*fakeERP, error) {
	p, err := b.start(ctx, child{name: "erp", dir: dir, args: []string{b.self, "erp", "-fixed", l.fixed.String(), "-each", l.each.String()}})
	if err != nil {
		return nil, err
	}
	e := &fakeERP{process: p}
	if e.url, err = p.line(); err == nil {
		e.control, err = p.line()
	}
	if err != nil {
		p.end()
		return nil, err
	}
	return e, nil
}

func (e *fakeERP) count(ctx context.Context, from, to int) (t tally, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/?from=%d&to=%d", e.control, from, to), nil)
	if err != nil {
		return t, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return t, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return t, fmt.Errorf("the fake answers %s", resp.Status)
	}
	return t, json.NewDecoder(resp.Body).Decode(&t)
}

// judge notes what became of the documents 1 to n, unless each was made once.
func (b *bench) judge(ctx context.Context, e *fakeERP, who string, n int) error {
	t, err := e.count(ctx, 1, n)
	if err != nil {
		return err
	}
	if t.Doubled != 0 || t.Lost != 0 || t.Strange != 0 {
		b.faults = append(b.faults, fmt.Errorf("%s: of %d documents %d were doubled, %d lost; %d strange ones", who, n, t.Doubled, t.Lost, t.Strange))
	}
	return nil
}
