package ledger

import "github.com/nats-io/nats.go/jetstream"

// Error codes of nats-server, which its client has no names for, or not for all of its versions.
const (
	CodeAccountStorage   jetstream.ErrorCode = 10002 // the account's storage is used up
	CodeNoSpace          jetstream.ErrorCode = 10023 // insufficient resources
	CodeMemoryExceeded   jetstream.ErrorCode = 10028
	CodeStorageExceeded  jetstream.ErrorCode = 10047
	CodeMessageTooLarge  jetstream.ErrorCode = 10054
	CodeSubjectsOverlap  jetstream.ErrorCode = 10065
	CodeWrongSequence    jetstream.ErrorCode = 10071 // a compare-and-set lost
	CodeStoreFailed      jetstream.ErrorCode = 10077 // "maximum bytes exceeded", "no space left on device", "message too large", …
	CodeWrongSequenceAll jetstream.ErrorCode = 10164 // CodeWrongSequence of a replicated stream; in a batch also a subject that comes twice

	// Of atomic batches.
	CodeBatchesOff        jetstream.ErrorCode = 10174
	CodeBatchNoSequence   jetstream.ErrorCode = 10175
	CodeBatchIncomplete   jetstream.ErrorCode = 10176
	CodeBatchBadID        jetstream.ErrorCode = 10179
	CodeBatchTooLarge     jetstream.ErrorCode = 10199
	CodeBatchBadCommit    jetstream.ErrorCode = 10200
	CodeBatchIDUsed       jetstream.ErrorCode = 10201
	CodeBatchTooManyTaken jetstream.ErrorCode = 10210 // too many batches under way
)
