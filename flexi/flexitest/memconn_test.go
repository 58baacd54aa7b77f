package flexitest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemConnHoldsBytes(t *testing.T) {
	a, b := memPipe()
	if _, err := a.Write([]byte("nobody reads yet")); err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	got, err := io.ReadAll(b)
	equal(t, "read", string(got), "nobody reads yet")
	equal(t, "error", err, nil)
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to a closed peer: %v", err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of a closed end: %v", err)
	}
}

func TestMemConnReset(t *testing.T) {
	a, b := memPipe()
	_, _ = a.Write([]byte("lost"))
	a.abort()
	if n, err := b.Read(make([]byte, 10)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("write: %v", err)
	}
}

func TestMemConnWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memPipe()
		big := bytes.Repeat([]byte("x"), 3*window)
		done := make(chan error, 1)
		go func() {
			_, err := a.Write(big)
			_ = a.Close()
			done <- err
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("wrote more than the window")
		default:
		}
		got, err := io.ReadAll(b)
		equal(t, "bytes", len(got), len(big))
		equal(t, "errors", errors.Join(err, <-done), nil)

		a, b = memPipe()
		_ = b.SetReadDeadline(time.Now().Add(time.Minute))
		began := time.Now()
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		equal(t, "waited", time.Since(began), time.Minute)
		_ = a.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := a.Write(big)
		var ne net.Error
		if n != window || !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("write: %d bytes, %v", n, err)
		}
	})
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	l := newPipeListener()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("dial: %v", err)
	}
}
