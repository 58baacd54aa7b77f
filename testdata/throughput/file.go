package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// file lets a file go through push, then starts the daemon again over what it has finished.
func (b *bench) file(ctx context.Context) error {
	if !b.wanted(fileCase) {
		return nil
	}
	dir, err := b.folder()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := b.pushed(ctx, dir); err != nil {
		return fmt.Errorf("%s: %w", fileCase, err)
	}
	return b.publishedByLimit(ctx)
}

func (b *bench) pushed(ctx context.Context, dir string) error {
	l := load{name: fileCase, pack: 20, atOnce: 4}
	e, err := b.startERP(ctx, l, dir)
	if err != nil {
		return err
	}
	defer e.end()
	d, err := b.startDaemon(ctx, dir, e, l, false)
	if err != nil {
		return err
	}
	defer func() { d.end() }() // the one that runs then
	// What one document takes is the difference of two daemons that were started over finished ones and have sent one since.
	if _, err := d.sendsAgain(ctx, e, b.n+1); err != nil {
		return err
	}
	few, err := d.footprint(ctx)
	if err != nil {
		return err
	}
	if err := b.push(ctx, d, dir); err != nil {
		return err
	}
	if err := d.told(ctx, b.n+1); err != nil {
		return err
	}
	most, err := d.memory("VmHWM")
	if err != nil {
		return err
	}
	again, err := d.sendsAgain(ctx, e, b.n+2)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s finished: ", short(float64(b.n)))
	b.table.add(what+"most memory of the daemon before a restart, MiB", "flexid", float64(most)/1024, false)
	b.table.add(what+"sends again after a restart, s", "flexid", again.Seconds(), false)
	many, err := d.footprint(ctx)
	if err != nil {
		return err
	}
	each := func(many, few int) float64 { return float64(many-few) / float64(b.n) }
	b.table.add(what+"memory after a restart, KiB a document", "flexid", each(many.resident, few.resident), false)
	b.table.add(what+"of it in use, KiB a document", "flexid", each(many.used, few.used), false)
	if err := b.lookups(ctx, d, what); err != nil {
		return err
	}
	fmt.Fprintf(b.talk, "%s, flexid: with one document %v, with all %v, sends again after %v\n", fileCase, few, many, again.Round(time.Millisecond))
	return b.judge(ctx, e, fileCase+", flexid", b.n+2)
}

// push publishes the file. How fast is read from the stream, since push checks its input before and reports afterwards.
func (b *bench) push(ctx context.Context, d *daemon, dir string) error {
	name := filepath.Join(dir, "documents.ndjson")
	if err := writeFile(name, b.n); err != nil {
		return err
	}
	nc, err := d.connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	in, err := js.Stream(ctx, "FLEXID_PUSH")
	if err != nil {
		return err
	}
	began := time.Now()
	p, err := b.start(ctx, child{name: "push", dir: dir, env: append(d.env, "FLEXID_API_URL="+d.api, "TMPDIR="+dir),
		args: []string{b.flexid, "push", "--quiet", "--wait", "0", name}})
	if err != nil {
		return err
	}
	defer p.end()
	w := pushed{process: p, in: in, before: in.CachedInfo().State.LastSeq, n: uint64(b.n), first: began}
	if err := w.watch(ctx); err != nil {
		return p.fault(err)
	}
	took := time.Since(began)
	if w.last.IsZero() {
		return p.fault(fmt.Errorf("not all was published: %w", cmp.Or(p.err, errors.New("it ended"))))
	}
	if p.err != nil && p.cmd.ProcessState.ExitCode() != 75 { // some still wait
		return p.fault(p.err)
	}
	rate := float64(b.n) / w.last.Sub(w.first).Seconds()
	fmt.Fprintf(b.talk, "%s, push: %s/s\n", fileCase, short(rate))
	b.table.add("push: published/s", "flexid", rate, true)
	b.table.add("push: documents/s, with the check of the file before and the report afterwards", "flexid", float64(b.n)/took.Seconds(), true)
	b.table.add("push: most memory, MiB", "flexid", float64(w.peak)/1024, false)
	return nil
}

// pushed is a push that is watched from outside.
type pushed struct {
	*process
	in        jetstream.Stream
	before, n uint64

	first, last time.Time // nothing was there yet, all was
	peak        int       // the most memory it had, KiB
}

// watch returns when push has ended.
func (w *pushed) watch(ctx context.Context) error {
	const most = 10 * time.Minute // while it checks a large file, nothing moves
	ended := false
	return until(ctx, "push publishes", most, func() (bool, any) {
		if ended {
			return true, nil
		}
		select {
		case <-w.done:
			ended = true // what it did last is still to be seen
		default:
		}
		if kib, err := w.memory("VmHWM"); err == nil { // one that has just ended has none
			w.peak = kib
		}
		now := time.Now()
		info, err := w.in.Info(ctx)
		if err != nil {
			return false, err.Error()
		}
		stored := info.State.LastSeq - w.before
		switch {
		case stored == 0:
			w.first = now
		case stored >= w.n && w.last.IsZero():
			w.last = time.Now()
		}
		return false, stored
	})
}

func writeFile(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(w, `{"evidence":%q,"document":%s}`+"\n", evidence, document(i))
	}
	if err := w.Flush(); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}

// publishedByLimit is how fast events can be stored durably at all.
func (b *bench) publishedByLimit(ctx context.Context) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := b.startLimit(ctx, load{pack: 1, atOnce: 1}, dir, false)
	if err != nil {
		return err
	}
	defer p.end()
	spent, err := p.between("ready", "published", b.n)
	b.table.add("push: published/s", "limit", spent.rate(), true)
	return err
}

// sendsAgain starts the daemon anew and is the time from there to the moment in which a new document is in Flexi. It is
// published as soon as NATS takes it, as a sender does who was waiting for that.
func (d *daemon) sendsAgain(ctx context.Context, e *fakeERP, fresh int) (time.Duration, error) {
	if err := d.restart(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	published := false
	err := until(ctx, "a document is sent after a restart", 5*time.Minute, func() (bool, any) {
		if !published {
			err := d.publish(ctx, fresh, fresh)
			published = err == nil
			return false, fmt.Sprint(err)
		}
		t, err := e.count(ctx, fresh, fresh)
		return err == nil && t.Lost == 0, fmt.Sprint(t, err)
	})
	return time.Since(began), d.fault(err)
}
