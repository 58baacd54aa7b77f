package stream_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
)

// guarded is a server with an administrator and a user whose rights a test chooses.
func guarded(t *testing.T, publish, subscribe []string) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		JetStream: true, StoreDir: t.TempDir(), DontListen: true, NoSigs: true, NoLog: true,
		Users: []*server.User{
			{Username: "admin", Password: "a"},
			{Username: "flexid", Password: "f", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("no server")
	}
	return s
}

func login(t *testing.T, s *server.Server, user string, log zerolog.Logger) *nats.Conn {
	t.Helper()
	nc, err := stream.Connect(t.Context(), stream.ConnOptions{InProcess: s, User: user, Password: user[:1], Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestADeniedPermissionIsNamed(t *testing.T) {
	t.Parallel()
	s := guarded(t, []string{"$JS.API.STREAM.INFO.FLEXID_PUSH"}, []string{"_INBOX.>"})
	log := &logs{}
	js := newJS(t, login(t, s, "flexid", log.logger()))
	_, err := stream.Ensure(t.Context(), js, stream.Options{})
	const missing = "$JS.API.STREAM.CREATE.FLEXID_PUSH"
	var unavailable *stream.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Subject != missing || !unavailable.Denied || !strings.Contains(err.Error(), "permission for "+missing+" is missing") {
		t.Errorf("got %v", err)
	}
	if log.count("denies a permission") != 1 || log.count(missing) != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// TestLeastPermissions runs everything with the rights of a user who may not create, change or read anything else.
func TestLeastPermissions(t *testing.T) {
	publish := []string{
		"$JS.API.STREAM.INFO.FLEXID_PUSH", "$JS.API.STREAM.INFO.FLEXID_INBOX", "$JS.API.STREAM.INFO.FLEXID_OUT",
		"$JS.API.CONSUMER.CREATE.FLEXID_PUSH.>", "$JS.API.CONSUMER.DELETE.FLEXID_PUSH.>", "$JS.API.CONSUMER.MSG.NEXT.FLEXID_PUSH.>",
		"$JS.API.STREAM.MSG.GET.FLEXID_PUSH", "flexi.push.>", "flexi.done.>", "flexi.alert.>", "flexi.change.>",
	}
	s := guarded(t, publish, []string{"_INBOX.>"})
	admin := newJS(t, login(t, s, "admin", zerolog.Nop()))
	ensure(t, admin, stream.Options{})
	log := &logs{}
	js := newJS(t, login(t, s, "flexid", log.logger()))
	s1 := newShelf(t, js)
	r := run(t, js, stream.ReaderOptions{Taker: s1, Log: log.logger()})
	for _, body := range []string{"x", "y"} { // behind the second one the message of the first is looked at
		push(t, js, stream.Options{}, body)
		next(t, s1.got)
	}
	if err := stream.NewPublisher(js, stream.Options{}).Notify(t.Context(), "done", "banka", "1", nil); err != nil {
		t.Error(err)
	}
	if err := r.stop(); err != nil || log.count("permission") != 0 {
		t.Errorf("%v\n%s", err, log)
	}
}

func TestConnectWaitsForNATS(t *testing.T) {
	bubble(t, func(t *testing.T) {
		host := newHost(t)
		host.stop()
		log := &logs{}
		type connected struct {
			nc  *nats.Conn
			err error
		}
		done := make(chan connected, 1)
		go func() {
			nc, err := stream.Connect(t.Context(), stream.ConnOptions{InProcess: host, Token: host.token, Log: log.logger()})
			done <- connected{nc, err}
		}()
		<-time.After(10 * time.Minute)
		select {
		case c := <-done:
			t.Fatalf("gave up: %v", c.err)
		default:
		}
		host.start()
		c := <-done
		if c.err != nil {
			t.Fatal(c.err)
		}
		if log.count("cannot be reached") != 1 || log.count("NATS is connected") != 1 {
			t.Errorf("each change once:\n%s", log)
		}
		host.stop()
		<-time.After(time.Minute)
		host.start()
		<-time.After(time.Minute)
		if !c.nc.IsConnected() || log.count("NATS is gone") != 1 || log.count("NATS is connected") != 2 {
			t.Errorf("%v\n%s", c.nc.Status(), log)
		}
		c.nc.Close()
		host.stop()
	})
}

func TestARefusedLoginIsSaidAndTriedAgain(t *testing.T) {
	dir := t.TempDir()
	s, err := embedded.Start(embedded.Options{Dir: dir, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(context.Background()) }()
	log := &logs{}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := stream.Connect(ctx, stream.ConnOptions{URL: s.URL(), Token: "wrong", Log: log.logger()})
		ended <- err
	}()
	for deadline := time.Now().Add(30 * time.Second); log.count("refuses the login") == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("nothing was said")
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("gave up: %v", err)
	default:
	}
	cancel(errors.New("told to stop"))
	if err := <-ended; !strings.Contains(err.Error(), "told to stop") || !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("got %v", err)
	}
}

// TestNothingIsSentLater: what failed while NATS was away must not appear after it is back.
func TestNothingIsSentLater(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	js := host.connect(zerolog.Nop())
	ensure(t, js, stream.Options{})
	p := stream.NewPublisher(js, stream.Options{})
	host.stop()
	if _, err := p.Push(t.Context(), "banka", "", nil, []byte("failed")); err == nil {
		t.Fatal("pushed to nobody")
	}
	host.start()
	pushUntilStored(t, js, stream.Options{}, "stored")
	if n, err := stream.Waiting(t.Context(), js, stream.Options{}); n != 1 || err != nil {
		t.Errorf("%d events, %v: the failed one took effect", n, err)
	}
}

func TestConnectRefusesFilesThatAreNotThere(t *testing.T) {
	for name, o := range map[string]stream.ConnOptions{
		"authority":   {URL: "nats://127.0.0.1:1", CAFile: "absent.pem"},
		"certificate": {URL: "nats://127.0.0.1:1", CertFile: "absent.pem", KeyFile: "absent.key"},
		"address":     {URL: "nats://a b"},
	} {
		if _, err := stream.Connect(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
