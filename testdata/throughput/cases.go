package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// load is a case: how long a request takes, and how much may go at once.
type load struct {
	name        string
	fixed, each time.Duration // a request takes fixed, and each more for every document in it
	pack        int           // most documents in a request
	atOnce      int           // most requests
}

func loads() []load {
	return []load{
		{"pack20", 0, 0, 20, 4},
		{"pack100", 0, 0, 100, 4},
		{"single", 20 * time.Millisecond, 0, 1, 16},
		{"slow", 100 * time.Millisecond, 2 * time.Millisecond, 20, 4},
	}
}

// fileCase is a file that goes through push, and a restart afterwards.
const fileCase = "file"

func caseNames() (names []string) {
	for _, l := range loads() {
		names = append(names, l.name)
	}
	return append(names, fileCase)
}

// request is how long one of the given size takes.
func (l load) request(documents int) time.Duration { return l.fixed + time.Duration(documents)*l.each }

func (l load) title() string {
	return fmt.Sprintf("%d ms a request, %d in it, %d at once", l.request(l.pack).Milliseconds(), l.pack, l.atOnce)
}

// singles is how many documents a program gets that sends one a request: as many as take it about twenty seconds.
func (l load) singles(n int) int {
	const most = 20 * time.Second
	if one := l.request(1); one > 0 {
		n = min(n, l.atOnce*int(most/one))
	}
	return n
}

// load measures one program under one load. Under strace only the syncs count: it slows down everything else.
func (b *bench) load(ctx context.Context, l load, program string, traced bool) error {
	if !b.wanted(l.name) {
		return nil
	}
	dir, err := b.folder()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var spent figures
	switch r := (run{b, l, dir, traced}); program {
	case "flexid":
		spent, err = r.flexid(ctx)
	case "peer":
		spent, err = r.peer(ctx)
	case "limit":
		spent, err = r.limit(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s, %s: %w", l.name, program, err)
	}
	fmt.Fprintf(b.talk, "%s, %s: %s\n", l.name, program, spent)
	if traced {
		b.table.add(l.title()+": syncs a document", program, spent.syncsEach(), false)
		return nil
	}
	b.table.add(l.title()+": documents/s", program, spent.rate(), true)
	b.table.add(l.title()+": processor, ms a document", program, spent.processorEach(), false)
	return nil
}

// run is one program under one load, on new files.
type run struct {
	b      *bench
	load   load
	dir    string
	traced bool
}

// peer and limit say when they have published and when they are done, and wait each time until that has been noted.
func (r run) peer(ctx context.Context) (spent figures, err error) {
	erp, err := r.b.startERP(ctx, r.load, r.dir)
	if err != nil {
		return spent, err
	}
	defer erp.end()
	n := r.load.singles(r.b.n)
	p, err := r.b.start(ctx, child{name: "peer", dir: r.dir, traced: r.traced, args: []string{r.b.self, "peer",
		"-dir", r.dir, "-n", fmt.Sprint(n), "-at-once", fmt.Sprint(r.load.atOnce), "-erp", erp.url}})
	if err != nil {
		return spent, err
	}
	defer p.end()
	begin, err := erp.moment()
	if err != nil {
		return spent, err
	}
	if spent, err = p.between("published", "done", n); err != nil {
		return spent, err
	}
	end, err := erp.moment()
	spent.fake = end.processor - begin.processor
	return spent, errors.Join(err, r.b.judge(ctx, erp, r.load.name+", peer", n))
}

func (r run) limit(ctx context.Context) (spent figures, err error) {
	p, err := r.b.startLimit(ctx, r.load, r.dir, r.traced)
	if err != nil {
		return spent, err
	}
	defer p.end()
	if err := p.pass("ready"); err != nil {
		return spent, err
	}
	return p.between("published", "done", r.b.n)
}

func (b *bench) startLimit(ctx context.Context, l load, dir string, traced bool) (*process, error) {
	return b.start(ctx, child{name: "limit", dir: dir, traced: traced, args: []string{b.self, "limit", "-dir", dir, "-n", fmt.Sprint(b.n),
		"-pack", fmt.Sprint(l.pack), "-at-once", fmt.Sprint(l.atOnce), "-fixed", l.fixed.String(), "-each", l.each.String()}})
}

func (r run) flexid(ctx context.Context) (spent figures, err error) {
	erp, err := r.b.startERP(ctx, r.load, r.dir)
	if err != nil {
		return spent, err
	}
	defer erp.end()
	d, err := r.b.startDaemon(ctx, r.dir, erp, r.load, r.traced)
	if err != nil {
		return spent, err
	}
	defer d.end()
	stopProfiles := r.b.profile(ctx, d, r.load.name)
	defer stopProfiles()
	erpBegin, err := erp.moment()
	begin, err2 := d.moment()
	if err := errors.Join(err, err2); err != nil {
		return spent, err
	}
	if err := d.publish(ctx, 1, r.b.n); err != nil {
		return spent, err
	}
	stalled := d.told(ctx, r.b.n)
	end, err := d.moment()
	erpEnd, err2 := erp.moment()
	spent = begin.to(end, r.b.n)
	spent.fake = erpEnd.processor - erpBegin.processor
	// The judgement comes in any case: what is lost is why it stalled.
	return spent, errors.Join(err, err2, r.b.judge(ctx, erp, r.load.name+", flexid", r.b.n), stalled)
}
