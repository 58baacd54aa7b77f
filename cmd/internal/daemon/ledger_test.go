package daemon

import (
	"context"
	"strings"
	"testing"

	"flexid/flexi/flexitest"
)

func (r *running) deleteLedger() {
	r.t.Helper()
	nc, js := r.nats()
	defer nc.Close()
	if err := js.DeleteStream(r.t.Context(), "KV_flexid_ledger"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) notReady() {
	r.t.Helper()
	eventually(r.t, "not ready, with both ways out", func() bool {
		code, text := r.do("GET", "/readyz", "")
		return code == 503 && strings.Contains(text, "restore NATS's files") && strings.Contains(text, "accept-empty")
	})
}

func TestLedgerDeletedUnderARunningDaemon(t *testing.T) {
	t.Parallel()
	erp := startERP(t, flexitest.Options{})
	r := begin(t, settings(t, erp, t.TempDir()))
	r.push("FV-1")
	r.becomes("FV-1", "confirmed")
	if code, text := r.do("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"by mistake"}`); code != 409 {
		t.Errorf("an empty ledger accepted in place of a good one: %d %s", code, text)
	}
	before := r.status().Ledger
	r.deleteLedger()
	r.notReady()
	eventually(t, "the log says so", func() bool { return r.log.line(`"level":"error"`, "restore NATS's files") != "" })
	if code, text := r.do("GET", "/api/v1/documents", ""); code != 503 || !strings.Contains(text, "accept-empty") {
		t.Errorf("documents: %d %s", code, text)
	}
	r.push("FV-2")
	r.push("FV-1")
	if n := erp.Count("write"); n != 1 {
		t.Errorf("%d writes without a ledger", n)
	}
	if code, text := r.do("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"the disk is lost"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	r.becomes("FV-2", "confirmed")
	// The ledger knows nothing of FV-1 any more. Its event is taken from the stream again and looked up, never sent; the one that
	// was pushed since repeats it.
	s := r.becomes("FV-1", "confirmed")
	if s.Reason != "repeated" || erp.Count("write") != 2 || len(erp.Find("faktura-vydana", "code:FV-1")) != 1 {
		t.Errorf("FV-1 is %s, %d records", s.Reason, len(erp.Find("faktura-vydana", "code:FV-1")))
	}
	if after := r.status(); after.Ledger == before || !after.Ready {
		t.Errorf("%+v", after)
	}
}

func TestLedgerMissingAtStart(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	r := begin(t, settings(t, erp, dir))
	r.deleteLedger()
	was := r.info
	r.end()

	r, ready := launch(t, settings(t, erp, dir, "FLEXID_HTTP_ADDR="+strings.TrimPrefix(was.HTTP, "http://")))
	eventually(t, "the API is up", func() bool { return r.log.line("API, metrics and health") != "" })
	r.info = was
	r.notReady()
	select {
	case <-ready:
		t.Fatal("ready without a ledger")
	default:
	}
	if code, text := r.do("POST", "/api/v1/ledger/accept-empty", `{"by":"jana","why":"begin anew"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	r.info = <-ready
	r.push("FV-1")
	r.becomes("FV-1", "confirmed")
}

func TestLedgerOfAnotherStream(t *testing.T) {
	erp := startERP(t, flexitest.Options{})
	dir := t.TempDir()
	r := begin(t, settings(t, erp, dir))
	nc, js := r.nats()
	s, err := js.Stream(t.Context(), "FLEXID_PUSH")
	if err != nil {
		t.Fatal(err)
	}
	// The NATS server itself is not safe against a stream that changes while its consumer is made.
	eventually(t, "the intake's consumer is there", func() bool {
		info, err := s.Info(t.Context())
		return err == nil && info.State.Consumers > 0
	})
	cfg := s.CachedInfo().Config
	cfg.Metadata["flexid.ledger"] = "ANOTHER"
	if _, err := js.UpdateStream(context.WithoutCancel(t.Context()), cfg); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	r.end()
	r, _ = launch(t, settings(t, erp, dir))
	eventually(t, "the contradiction is told", func() bool { return r.log.line("ANOTHER", `"level":"error"`) != "" })
}
