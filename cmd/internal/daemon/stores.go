package daemon

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"flexid/batch/stream"
	"flexid/cmd/internal/api"
	"flexid/verify/ledger"
)

// watchStores looks after what NATS keeps for us, also while nothing happens: that ledger and streams are those of before,
// that what may be lost is made again, and that there is room.
func (c *core) watchStores(ctx context.Context) {
	said := ""
	for sleep(ctx, ledgerPause) {
		err := c.lookAtStores(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case ledgerGone(err):
			c.gone(err)
			return
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			c.d.log.Warn().Err(err).Msg("NATS cannot be looked after just now")
		}
	}
}

// lookAtStores is one look. What is ours for good comes first: nothing is made beside a ledger that is not ours.
func (c *core) lookAtStores(ctx context.Context) error {
	meta, revision, err := c.ledger.Meta(ctx)
	if err == nil && (revision == 0 || meta.Ledger != c.ledger.LedgerID()) {
		err = &ledger.OtherError{Bucket: c.ledger.Bucket(), Before: c.ledger.LedgerID(), Now: meta.Ledger}
	}
	if err != nil {
		return fmt.Errorf("looking at the ledger: %w", err)
	}
	// FLEXID_OUT is made again: it holds nothing that the ledger does not know.
	if _, err := stream.Ensure(ctx, c.d.js, c.d.streams); err != nil {
		return fmt.Errorf("looking at the streams: %w", err)
	}
	if _, err := ledger.OpenState(ctx, c.d.js, c.d.ledgerOptions()); err != nil {
		return fmt.Errorf("looking at the state bucket: %w", err)
	}
	for _, name := range []string{c.d.streams.Names().Push, c.d.streams.Names().Inbox} {
		cursor, err := c.cursor(ctx, name)
		if err != nil {
			return err
		}
		if _, err := stream.Trim(ctx, c.d.js, c.d.streams, cursor, false); err != nil {
			return fmt.Errorf("making room in %s: %w", name, err)
		}
	}
	return c.lookForRoom(ctx)
}

// cursor reads how far a stream was taken. A cursor behind one that was seen before it was read means that the ledger was set back.
func (c *core) cursor(ctx context.Context, name string) (ledger.Cursor, error) {
	return c.d.notBefore(name, func() (ledger.Cursor, error) { return c.ledger.Cursor(ctx, name) })
}

// notBefore compares with what was noted when the reading began: intake goes on meanwhile, and what it notes until the answer is
// looked at is no loss.
func (d *daemon) notBefore(name string, read func() (ledger.Cursor, error)) (ledger.Cursor, error) {
	before := d.noteTaken(nil)[name]
	cursor, err := read()
	if err != nil {
		return cursor, err
	}
	d.noteTaken(map[string]uint64{name: cursor.Seq})
	if cursor.Seq < before {
		return cursor, &stream.SetBackError{Stream: name, Taken: cursor.Seq, Before: before}
	}
	return cursor, nil
}

// lookForRoom pauses intake before the store lacks room for what becomes of the claims, and resumes it.
func (c *core) lookForRoom(ctx context.Context) error {
	room, err := c.ledger.Room(ctx)
	if err != nil {
		return fmt.Errorf("looking for room in the ledger: %w", err)
	}
	free, where, remedy := room.Free, "the ledger's bucket in NATS", "raise the limit of the bucket, or of the account, at NATS"
	keep := keepFree(c.d.cfg.Flexi.Concurrency, c.d.cfg.Flexi.Pack)
	if c.d.cfg.NATS.Embedded() {
		if disk, err := diskFree(c.d.cfg.StateDir); err == nil && (free < 0 || disk < free) {
			free, where, remedy = disk, "the disk of the state directory", "make room on the disk that holds FLEXID_STATE_DIR"
		}
	}
	c.narrow = tooNarrow(free, keep, c.narrow)
	if !c.narrow {
		c.d.standing.setRoom(nil)
		c.consumer.Resume()
		c.inbox.Resume()
		return nil
	}
	text := fmt.Sprintf("intake is paused: %s has %d KiB left, of which %d KiB are kept for what becomes of documents already taken", where, free>>10, keep>>10)
	c.d.standing.setRoom(&api.Trouble{Part: api.PartDisk, Text: text, Remedy: remedy + "; intake goes on by itself"})
	c.consumer.Pause(text + "; " + remedy)
	c.inbox.Pause(text + "; " + remedy)
	return nil
}

// keepFree is how much room is kept: each document in flight may have its row written twice before an old one goes.
func keepFree(concurrency, pack int) int64 {
	const row, rest = 32 << 10, 4 << 20
	return int64(concurrency)*int64(pack)*2*row + rest
}

// tooNarrow says whether intake must pause. It goes on at a good deal more than it stopped at, so that it does not flutter;
// free below zero is without a limit.
func tooNarrow(free, keep int64, was bool) bool {
	if free < 0 {
		return false
	}
	if was {
		return free < keep+keep/4
	}
	return free < keep
}

// diskFree is how much this user may still write to the disk of a directory.
func diskFree(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("looking at the disk of %s: %w", dir, err)
	}
	if fs.Bsize <= 0 {
		return 0, errors.New("the disk tells no block size")
	}
	return int64(min(fs.Bavail, 1<<40)) * fs.Bsize, nil
}
