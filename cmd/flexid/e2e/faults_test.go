//go:build linux

package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"flexid/flexi/flexitest"
)

// size is how many documents a run has.
func size() int {
	if slow() {
		return 1000
	}
	return 120
}

// often is how many times something happens in a run of full size, and in a small one.
func often(full, small int) int {
	if slow() {
		return full
	}
	return small
}

func TestFaults(t *testing.T) {
	t.Parallel()
	r := newRun(t, "A", size(), 1, alone())
	r.publish()
	r.finish(15 * time.Minute)
}

// TestFaultsPacked: documents share requests and so each other's faults.
func TestFaultsPacked(t *testing.T) {
	t.Parallel()
	r := newPackedRun(t, "P", often(200, 60), 1, nil)
	r.publish()
	r.finish(15 * time.Minute)
	r.packed()
}

func TestFaultsWithKilledDaemon(t *testing.T) {
	t.Parallel()
	r := newRun(t, "B", size(), 1, patient())
	r.disturbed(often(20, 4), 0)
}

// TestFaultsPackedWithKilledDaemon: a kill leaves whole requests in doubt, and each of their documents is judged for itself.
func TestFaultsPackedWithKilledDaemon(t *testing.T) {
	t.Parallel()
	r := newPackedRun(t, "Q", often(500, 60), 1, map[string]string{"FLEXID_VERIFY_SENDS": "10"})
	r.disturbed(often(20, 4), 0)
	r.packed()
}

func TestFaultsWithKilledNATS(t *testing.T) {
	t.Parallel()
	r := newRun(t, "N", size(), 1, patient())
	r.disturbed(0, often(5, 2))
}

func TestFaultsWithBothKilled(t *testing.T) {
	t.Parallel()
	onlySlow(t, "killing both takes minutes")
	r := newRun(t, "K", size(), 1, patient())
	r.disturbed(20, 5)
}

func TestFaultsWithTwoDaemons(t *testing.T) {
	t.Parallel()
	r := newRun(t, "C", size(), 2, alone())
	r.publish()
	r.finish(15 * time.Minute)
}

func TestFaultsPackedWithTwoDaemons(t *testing.T) {
	t.Parallel()
	r := newPackedRun(t, "D", often(500, 60), 2, nil)
	r.publish()
	r.finish(15 * time.Minute)
	r.packed()
}

// newPackedRun is a run whose Flexi takes its time, as real ones do: documents come faster and wait for company.
func newPackedRun(t *testing.T, prefix string, documents, daemons int, more map[string]string) *run {
	t.Helper()
	r := newRun(t, prefix, documents, daemons, more)
	r.erp.Slow(200 * time.Millisecond)
	return r
}

// packed fails a run that proves nothing about shared requests because there were hardly any.
func (r *run) packed() {
	r.t.Helper()
	var requests, shared, most int
	for _, q := range r.erp.Requests() {
		if q.Kind != flexitest.Write {
			continue
		}
		if requests++; len(q.Docs) > 1 {
			shared++
		}
		most = max(most, len(q.Docs))
	}
	r.t.Logf("%d write requests, %d of them shared, the largest by %d documents", requests, shared, most)
	if shared < len(r.script.documents)/20 {
		r.t.Errorf("only %d of %d write requests were shared", shared, requests)
	}
}

// alone lets each document go in a request of its own, so that it meets its own fault and no other. Two in five have one
// here: packed, almost every request would end in a fault, and the budget for sending again would be used up.
func alone() map[string]string { return map[string]string{"FLEXID_FLEXI_PACK": "1"} }

// patient is alone, and lets an event be sent often: each kill may make a maybe of a document that had its share of faults.
func patient() map[string]string {
	set := alone()
	set["FLEXID_VERIFY_SENDS"] = "10"
	return set
}

// disturbed publishes while the daemon is killed and started again, and NATS too.
func (r *run) disturbed(daemonKills, natsKills int) {
	r.t.Helper()
	published := make(chan error, 1)
	go func() { published <- r.publishing() }()
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) // the moments are random on purpose
	upTo := func(d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
	for daemonKills+natsKills > 0 {
		if !moment(r.t, 300*time.Millisecond+upTo(2*time.Second)) {
			break
		}
		if rnd.IntN(daemonKills+natsKills) < natsKills {
			natsKills--
			r.natsCrashes++
			r.broker.crash()
			continue
		}
		daemonKills--
		r.crashes++
		d := r.daemons[0]
		d.proc.kill()
		if moment(r.t, upTo(300*time.Millisecond)) {
			d.start() // not waited for: it is killed while it starts, too
		}
	}
	if err := <-published; err != nil {
		r.t.Fatal(err)
	}
	r.finish(20 * time.Minute)
}
