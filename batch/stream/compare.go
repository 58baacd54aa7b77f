package stream

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// contradictions lists what makes a stream lose, hold back or rename events. These are never changed by us: the messages
// in it, or its other users, may depend on them.
func contradictions(have, want jetstream.StreamConfig) []string {
	var fields []string
	differ := func(wrong bool, field string, is, must any) {
		if wrong {
			fields = append(fields, fmt.Sprintf("%s is %v, must be %v", field, is, must))
		}
	}
	differ(have.Retention != want.Retention, "retention", have.Retention, want.Retention)
	differ(!sameSubjects(have.Subjects, want.Subjects), "subjects", have.Subjects, want.Subjects)
	differ(have.Storage != want.Storage, "storage", have.Storage, want.Storage)
	differ(have.Discard != want.Discard, "discard", have.Discard, want.Discard)
	differ(have.MaxMsgsPerSubject > 0, "max messages per subject", have.MaxMsgsPerSubject, "unlimited")
	differ(have.MaxMsgs > 0, "max messages", have.MaxMsgs, "unlimited")
	differ(want.MaxMsgSize > 0 && have.MaxAge > 0, "max age", have.MaxAge, "unlimited")
	differ(have.NoAck, "no_ack", true, false)
	differ(have.Sealed, "sealed", true, false)
	differ(have.Mirror != nil, "mirror", "set", "unset")
	differ(have.SubjectTransform != nil, "subject transform", "set", "unset")
	differ(have.PersistMode != jetstream.DefaultPersistMode, "persist mode", "async", "default")
	if is, must := have.Metadata[LedgerKey], want.Metadata[LedgerKey]; is != "" && must != "" {
		differ(is != must, "ledger", is, must)
	}
	return fields
}

func sameSubjects(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// merge keeps what an operator may have tuned and sets what we need; changed names the fields that become other ones.
func merge(have, want jetstream.StreamConfig, o Options) (merged jetstream.StreamConfig, changed []string) {
	merged = have
	set := func(differs bool, field string, apply func()) {
		if differs {
			changed = append(changed, field)
			apply()
		}
	}
	set(have.Duplicates != want.Duplicates, "duplicate window", func() { merged.Duplicates = want.Duplicates })
	set(have.AllowDirect, "allow direct", func() { merged.AllowDirect = false })
	set(want.MaxMsgSize > 0 && have.MaxMsgSize != want.MaxMsgSize, "max message size", func() { merged.MaxMsgSize = want.MaxMsgSize })
	set(have.MaxAge != want.MaxAge, "max age", func() { merged.MaxAge = want.MaxAge })
	set(o.Replicas > 0 && have.Replicas != o.Replicas, "replicas", func() { merged.Replicas = o.Replicas })
	set(o.MaxBytes > 0 && have.MaxBytes != o.MaxBytes, "max bytes", func() { merged.MaxBytes = o.MaxBytes })
	if id := want.Metadata[LedgerKey]; id != "" {
		set(have.Metadata[LedgerKey] != id, "ledger", func() {
			merged.Metadata = map[string]string{LedgerKey: id}
			for key, value := range have.Metadata {
				if key != LedgerKey {
					merged.Metadata[key] = value
				}
			}
		})
	}
	return merged, changed
}
