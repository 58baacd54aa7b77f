package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// peer is the part that does what people do without flexid.
func peer(ctx context.Context, args []string, s *stage) error {
	f := flag.NewFlagSet("peer", flag.ContinueOnError)
	dir, n := f.String("dir", ".", "where NATS keeps its files"), f.Int("n", 1000, "documents")
	atOnce, erp := f.Int("at-once", 16, "workers"), f.String("erp", "", "address of Flexi")
	if err := f.Parse(args); err != nil {
		return err
	}
	nc, stop, err := startNATS(server.Options{StoreDir: *dir})
	if err != nil {
		return err
	}
	defer stop()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "WORK", Subjects: []string{"invoice"}, Retention: jetstream.WorkQueuePolicy, AllowAtomicPublish: true})
	if err != nil {
		return err
	}
	if err := publish(ctx, nc, "WORK", "invoice", 1, *n); err != nil {
		return err
	}
	if err := s.reach("published"); err != nil {
		return err
	}
	if err := workOff(ctx, js, *n, *atOnce, newSender(*erp)); err != nil {
		return err
	}
	return s.reach("done")
}

// startNATS runs a server in this process that only this process reaches.
func startNATS(o server.Options) (*nats.Conn, func(), error) {
	o.JetStream, o.DontListen, o.NoLog, o.NoSigs = true, true, true, true
	ns, err := server.NewServer(&o)
	if err != nil {
		return nil, nil, err
	}
	ns.Start()
	stop := func() { ns.Shutdown(); ns.WaitForShutdown() }
	if !ns.ReadyForConnections(10 * time.Second) {
		stop()
		return nil, nil, errors.New("NATS does not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(ns))
	if err != nil {
		stop()
		return nil, nil, err
	}
	return nc, func() { nc.Close(); stop() }, nil
}

// workOff lets workers take messages until all are acknowledged.
func workOff(ctx context.Context, js jetstream.JetStream, n, workers int, s *sender) error {
	consumer, err := js.CreateConsumer(ctx, "WORK", jetstream.ConsumerConfig{Durable: "peer", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(4 * workers))
	if err != nil {
		return err
	}
	var done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range workers {
		g.Go(func() error {
			for ctx.Err() == nil {
				m, err := messages.Next(jetstream.NextContext(ctx))
				if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
					return nil
				}
				if err != nil {
					return err
				}
				if err := s.send(ctx, m.Data()); err != nil {
					return err
				}
				if err := m.Ack(); err != nil {
					return err
				}
				if done.Add(1) == int64(n) {
					messages.Stop() // for all workers
				}
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}

// sender writes one document a request, and again when that fails: four times, a second apart at first, then twice as long each
// time. That is what the usual libraries do with a PUT.
type sender struct {
	url    string
	client http.Client
}

func newSender(erp string) *sender {
	return &sender{url: erp + "/c/firma/" + evidence + ".json", client: http.Client{
		Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

func (s *sender) send(ctx context.Context, document []byte) error {
	body := fmt.Appendf(nil, `{"winstrom":{%q:[%s]}}`, evidence, document)
	var err error
	for wait := time.Second; wait <= 16*time.Second; wait *= 2 {
		var again bool
		if again, err = s.once(ctx, body); !again {
			return err
		}
		timer := time.NewTimer(wait + rand.N(wait/4))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return err
}

// once says with its error whether the request is worth repeating.
func (s *sender) once(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.SetBasicAuth("flexid", "secret")
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return true, err
	}
	if resp.StatusCode >= 300 {
		return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, fmt.Errorf("%s: %s", resp.Status, text)
	}
	return false, nil
}
