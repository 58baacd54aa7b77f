package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// lookups finds documents by number, by the command and over the API alone.
func (b *bench) lookups(ctx context.Context, d *daemon, what string) error {
	for i := range 5 {
		want := number(1 + i*(b.n-1)/4)
		began := time.Now()
		cmd := exec.CommandContext(ctx, b.flexid, "docs", "list", "--number", want, "-o", "json")
		cmd.Env = append(d.env, "FLEXID_API_URL="+d.api)
		text, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("docs list: %w", err)
		}
		took := time.Since(began)
		began = time.Now()
		over, err := d.get(ctx, "/api/v1/documents?number="+want)
		if err != nil {
			return err
		}
		tookOver := time.Since(began)
		for _, answer := range [][]byte{text, over} {
			var rows []struct{ Number string }
			if err := json.Unmarshal(answer, &rows); err != nil || len(rows) != 1 || rows[0].Number != want {
				return fmt.Errorf("docs list --number %s: %v in %s", want, err, answer)
			}
		}
		b.table.add(what+"`docs list --number`, ms", "flexid", took.Seconds()*1000, false)
		b.table.add(what+"of it the daemon's answer, ms", "flexid", tookOver.Seconds()*1000, false)
	}
	return nil
}

// footprint is what a daemon takes, KiB: from the machine, and of that in use.
type footprint struct{ resident, used int }

func (f footprint) String() string {
	return fmt.Sprintf("%d KiB of which %d in use", f.resident, f.used)
}

var heapAlloc = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// footprint leaves the daemon alone for a while, and lets it collect its garbage: when it does by itself is chance.
func (d *daemon) footprint(ctx context.Context) (f footprint, err error) {
	if err := pass(ctx, d.b.rest); err != nil {
		return f, err
	}
	var text []byte
	for range 2 { // what is pooled outlives one collection
		if text, err = d.get(ctx, "/debug/pprof/heap?gc=1&debug=1"); err != nil {
			return f, err
		}
	}
	m := heapAlloc.FindSubmatch(text)
	if m == nil {
		return f, fmt.Errorf("a profile without HeapAlloc")
	}
	if f.used, err = strconv.Atoi(string(m[1])); err != nil {
		return f, err
	}
	f.used /= 1024
	f.resident, err = d.memory("VmRSS")
	return f, err
}
