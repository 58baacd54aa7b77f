//go:build linux

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// standIn is the part of the public nats command that the pages use: pub -J and sub --stream … --last --count 1. It is run by
// this test binary under the name nats where the tool itself is not at hand.
func standIn(args []string) error {
	global := flag.NewFlagSet("nats", flag.ContinueOnError)
	url, token := global.String("s", "", ""), global.String("user", "", "")
	if err := global.Parse(args); err != nil {
		return err
	}
	rest := global.Args()
	if len(rest) == 0 {
		return errors.New("no command")
	}
	nc, err := nats.Connect(*url, nats.Token(*token))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	switch rest[0] {
	case "pub":
		return standInPub(ctx, js, rest[1:])
	case "sub":
		return standInSub(ctx, js, rest[1:])
	}
	return fmt.Errorf("%s is not understood", rest[0])
}

func standInPub(ctx context.Context, js jetstream.JetStream, args []string) error {
	fs := flag.NewFlagSet("pub", flag.ContinueOnError)
	stored := fs.Bool("J", false, "")
	m := &nats.Msg{Header: nats.Header{}}
	fs.Func("H", "", func(s string) error {
		name, value, ok := strings.Cut(s, ":")
		if !ok {
			return errors.New("no colon")
		}
		m.Header.Add(name, value)
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 2 || !*stored {
		return errors.New("usage: pub -J [-H name:value] SUBJECT BODY")
	}
	m.Subject, m.Data = fs.Arg(0), []byte(fs.Arg(1))
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return err
	}
	fmt.Printf("Stored in Stream: %s Sequence: %d\n", ack.Stream, ack.Sequence)
	return nil
}

func standInSub(ctx context.Context, js jetstream.JetStream, args []string) error {
	fs := flag.NewFlagSet("sub", flag.ContinueOnError)
	stream, last, count := fs.String("stream", "", ""), fs.Bool("last", false, ""), fs.Int("count", 0, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 1 || !*last || *count != 1 {
		return errors.New("usage: sub --stream NAME --last --count 1 SUBJECT")
	}
	c, err := js.OrderedConsumer(ctx, *stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{fs.Arg(0)}, DeliverPolicy: jetstream.DeliverLastPolicy})
	if err != nil {
		return err
	}
	m, err := c.Next(jetstream.FetchMaxWait(15 * time.Second))
	if err != nil {
		return err
	}
	fmt.Printf("Received on %q\n%s\n", m.Subject(), m.Data())
	return nil
}
