package ledger

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Metadata of the bucket's stream. The intake stream carries the same id (DESIGN 5.3).
const (
	metaLedgerID = "flexid.ledger"
	metaFormat   = "flexid.format"
)

// revisionsKept is how many revisions of a key the bucket keeps. Readers take the last. With one, a power cut in the middle of a
// batch loses acknowledged rows: while it is stored the server does not sync, but it removes the revisions that are replaced.
const revisionsKept = 2

// bucketName marks the bucket with a prefix that is not the default one: one prefix, one company.
func bucketName(base, prefix string) (string, error) {
	if prefix == "" || prefix == "flexi" {
		return base, nil
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(prefix) {
		return "", fmt.Errorf("prefix %q: only letters, digits, - and _ can be part of a bucket's name", prefix)
	}
	return base + "_" + prefix, nil
}

// streamConfig is the bucket as the ledger needs it. It is made as a stream because CreateKeyValue insists on AllowDirect:
// with it a follower that lags behind answers reads.
func streamConfig(bucket string, o Options, meta map[string]string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:               "KV_" + bucket,
		Description:        "flexid: what was sent to the ERP and what became of it. Never purge.",
		Subjects:           []string{"$KV." + bucket + ".>"},
		MaxMsgsPerSubject:  revisionsKept,
		MaxMsgs:            -1,
		MaxBytes:           max(o.MaxBytes, -1),
		MaxConsumers:       -1,
		MaxMsgSize:         -1,
		Storage:            jetstream.FileStorage,
		Discard:            jetstream.DiscardNew,
		Replicas:           max(o.Replicas, 1),
		Duplicates:         100 * time.Millisecond,
		AllowRollup:        true,
		AllowAtomicPublish: true,
		DenyDelete:         true,
		Metadata:           meta,
	}
}

// ensure finds the bucket's stream, or makes it if it may. It returns the configuration that is in force.
func ensure(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, o Options, create bool) (jetstream.StreamConfig, error) {
	for n := 1; ; n++ {
		have, err := ensureOnce(ctx, js, want, o.Timeout, create)
		if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
			return have, err
		}
		// A time-out of a creation says nothing: the stream may be there the next time.
		if n == 3 || ctx.Err() != nil {
			return have, fmt.Errorf("stream %s (NATS does not answer, or the permission for $JS.API.STREAM.INFO.%s or .CREATE is missing): %w",
				want.Name, want.Name, err)
		}
		wait(ctx, pause)
	}
}

func ensureOnce(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, timeout time.Duration, create bool) (jetstream.StreamConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	st, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) && create {
		// Another replica may be faster; its ledger id counts then, and the next round reads it.
		st, err = js.CreateStream(ctx, want)
	}
	if err != nil {
		return jetstream.StreamConfig{}, err
	}
	return st.CachedInfo().Config, nil
}

// contradictions lists what makes an existing bucket unfit, each with what it would do to us.
func contradictions(c, want jetstream.StreamConfig) []string {
	var faults []string
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	bad(len(c.Subjects) != 1 || c.Subjects[0] != want.Subjects[0], "subjects are %v, not %v", c.Subjects, want.Subjects)
	bad(c.Mirror != nil || len(c.Sources) > 0, "it copies another stream: a compare-and-set in a copy decides nothing")
	bad(c.Storage != jetstream.FileStorage, "it is kept in memory: a restart would forget what was sent")
	bad(c.PersistMode == jetstream.AsyncPersistMode, "persist mode is async: an acknowledged claim may not be stored")
	bad(c.Retention != jetstream.LimitsPolicy, "retention is %v, not limits", c.Retention)
	bad(c.MaxMsgsPerSubject != want.MaxMsgsPerSubject, "history is %d, not %d: a power cut inside a batch would lose rows (a bucket with 1 is of "+
		"an older flexid, which this one does not read: finish there, then begin with an empty one)", c.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	bad(c.MaxAge != 0, "values expire after %v: an expired claim is a licence to send twice", c.MaxAge)
	bad(c.MaxMsgs > 0, "at most %d keys", c.MaxMsgs)
	bad(c.Discard != jetstream.DiscardNew, "a full bucket drops its oldest rows instead of refusing new ones")
	bad(c.AllowDirect, "AllowDirect is on: followers that lag behind answer reads (some tool updated the bucket; `nats stream edit --no-allow-direct` puts it right)")
	bad(c.Sealed, "it is sealed")
	return faults
}

// format of the bucket as a whole; a higher one than ours must not be touched.
func checkMetadata(c jetstream.StreamConfig) []string {
	var faults []string
	if c.Metadata[metaLedgerID] == "" {
		faults = append(faults, "it carries no "+metaLedgerID+": it was not made by flexid")
	}
	if f, err := strconv.Atoi(c.Metadata[metaFormat]); err != nil || f > Format {
		faults = append(faults, fmt.Sprintf("its %s is %q, this flexid knows up to %d: use a newer flexid", metaFormat, c.Metadata[metaFormat], Format))
	}
	return faults
}

func ledgerMetadata(id string) map[string]string {
	return map[string]string{metaLedgerID: id, metaFormat: strconv.Itoa(Format)}
}
