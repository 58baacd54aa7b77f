package ledger

import (
	"context"
	"fmt"
)

// Room is how much the bucket holds and may hold, in bytes.
type Room struct {
	Used int64
	Free int64 // -1 = NATS names no limit; then only the server's disk bounds it
}

// Room asks the server. Intake must stop while there is still room for the outcomes of what is claimed (DESIGN 5.4).
func (l *Ledger) Room(ctx context.Context) (Room, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	s, err := l.js.Stream(ctx, "KV_"+l.bucket)
	if err != nil {
		if classify(err) == gone {
			return Room{}, &MissingError{Bucket: l.bucket}
		}
		return Room{}, fmt.Errorf("asking for the room in bucket %s: %w", l.bucket, err)
	}
	info := s.CachedInfo()
	room := Room{Used: int64(info.State.Bytes), Free: -1}
	if limit := info.Config.MaxBytes; limit > 0 {
		room.Free = max(limit-room.Used, 0)
	}
	// The account's limit counts too where we may ask for it; without the permission the bucket's own has to do.
	if account, err := l.js.AccountInfo(ctx); err == nil && account.Limits.MaxStore > 0 {
		free := max(account.Limits.MaxStore-int64(account.Store), 0)
		if room.Free < 0 || free < room.Free {
			room.Free = free
		}
	}
	return room, nil
}
