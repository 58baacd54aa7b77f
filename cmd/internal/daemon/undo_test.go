package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

func TestUndoRunsInReverseAndJoinsErrors(t *testing.T) {
	var order []string
	u := &undo{log: zerolog.Nop()}
	one, two := errors.New("one"), errors.New("two")
	for name, err := range map[string]error{"a": one} {
		u.push(name, func(context.Context) error { order = append(order, name); return err })
	}
	u.push("b", func(context.Context) error { order = append(order, "b"); return nil })
	u.push("c", func(context.Context) error { order = append(order, "c"); return two })
	err := u.run(time.Second)
	if strings.Join(order, "") != "cba" {
		t.Errorf("order %v", order)
	}
	if !errors.Is(err, one) || !errors.Is(err, two) || !strings.Contains(err.Error(), "stopping c: two") {
		t.Errorf("error %v", err)
	}
	if u.run(time.Second) != nil || len(order) != 3 {
		t.Error("done twice")
	}
}

func TestUndoHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &undo{log: zerolog.Nop()}
		var second error
		u.push("last", func(ctx context.Context) error { second = ctx.Err(); return nil })
		u.push("stuck", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		begun := time.Now()
		err := u.run(3 * time.Second)
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || second == nil {
			t.Errorf("%v; the step after a stuck one had %v", err, second)
		}
	})
}
