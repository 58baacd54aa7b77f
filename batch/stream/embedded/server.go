package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
)

// Options of Start.
type Options struct {
	Dir      string // where streams and buckets are kept, made if missing
	Listen   string // host:port; "" = a free port of 127.0.0.1
	Private  bool   // no listener at all: only this process reaches the server (tests in virtual time, a lone command)
	MaxStore int64  // bytes; 0 = what the disk has free
	InfoFile string // where address and token are written for other programs; "" = nowhere
	Log      zerolog.Logger
}

// Server is a running NATS server.
type Server struct {
	nats  *server.Server
	token string
	log   *logger
	done  chan struct{} // closed when the starting goroutine has ended
}

// Start starts the server and returns when it takes connections. A token that InfoFile already holds is kept, because
// senders outside were given it.
func Start(o Options) (*Server, error) {
	token := keptToken(o.InfoFile)
	host, port, err := listenAddress(o.Listen)
	if err != nil {
		return nil, err
	}
	ns, err := server.NewServer(&server.Options{
		ServerName: "flexid", Host: host, Port: port, DontListen: o.Private, Authorization: token,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true,
		JetStreamMaxStore: o.MaxStore, JetStreamMaxMemory: 16 << 20,
		MaxPayload: 1 << 20, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the embedded NATS server: %w", err)
	}
	log := &logger{log: o.Log}
	ns.SetLoggerV2(log, false, false, false)
	s := &Server{nats: ns, token: token, log: log, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		ns.Start()
	}()
	if err := s.ready(o, log); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("starting the embedded NATS server: %w", err), s.Stop(ctx))
	}
	return s, nil
}

func listenAddress(listen string) (host string, port int, err error) {
	if listen == "" {
		return "127.0.0.1", server.RANDOM_PORT, nil
	}
	host, text, err := net.SplitHostPort(listen)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("address of the embedded NATS server %q is not host:port: %w", listen, err)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func (s *Server) ready(o Options, log *logger) error {
	const slice, slices = 50 * time.Millisecond, 200 // 10 s in all
	up := false
	for i := 0; i < slices && !up && log.firstFatal() == ""; i++ {
		up = s.nats.ReadyForConnections(slice)
	}
	if fatal := log.firstFatal(); fatal != "" {
		return errors.New(fatal)
	}
	if !up {
		return errors.New("it did not take connections within 10 s")
	}
	if o.InfoFile == "" || o.Private {
		return nil
	}
	if err := writeInfo(o.InfoFile, Info{URL: s.URL(), Token: s.token}); err != nil {
		return fmt.Errorf("writing %s: %w", o.InfoFile, err)
	}
	return nil
}

// URL is where other programs of this machine connect to.
func (s *Server) URL() string { return s.nats.ClientURL() }

// Token is what every client must send, also one in this process: without it the connection just breaks.
func (s *Server) Token() string { return s.token }

// Broken is why the server does not write any more and what to do about it; both empty while it does.
func (s *Server) Broken() (why, remedy string) {
	if why = s.log.brokenBy(); why != "" {
		remedy = afterFullDisk
	}
	return why, remedy
}

// InProcessConn connects without a socket; it makes Server a nats.InProcessConnProvider.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.InProcessConn() }

// MaxStore is how many bytes all streams together may take; their limits are reserved from it.
func (s *Server) MaxStore() int64 { return s.nats.JetStreamConfig().MaxStore }

// Stop shuts the server down and waits until it is down, or until ctx ends.
func (s *Server) Stop(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() { // ends with the server; when ctx ends first, the process ends next
		defer close(stopped)
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
		<-s.done
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping the embedded NATS server: %w", context.Cause(ctx))
	}
}
