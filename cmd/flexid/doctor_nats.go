package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"flexid/batch/stream"
	"flexid/batch/stream/embedded"
	"flexid/config/statedir"
	"flexid/verify/ledger"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// nats asks the server that serve would use. An embedded one runs only while serve does: before, there is nothing to ask
// and nothing is wrong.
func (d *doctor) nats(ctx context.Context) {
	n := d.cfg.NATS
	o := stream.ConnOptions{URL: n.URL, CredsFile: n.CredsFile, User: n.User, Password: n.Password.Reveal(), Token: n.Token.Reveal(),
		CAFile: n.CAFile, CertFile: n.CertFile, KeyFile: n.KeyFile, Name: "flexid doctor", Log: zerolog.Nop()}
	if n.Embedded() {
		info, err := embedded.ReadInfo(filepath.Join(d.cfg.StateDir, "nats.json"))
		if errors.Is(err, fs.ErrNotExist) {
			d.say("nats", resultOK, "embedded; it starts with `flexid serve` in "+d.cfg.StateDir, "")
			return
		}
		if err != nil {
			d.say("nats", resultFail, err.Error(), "run this as the user flexid runs as")
			return
		}
		o.URL, o.Token = info.URL, info.Token
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nc, err := stream.Connect(ctx, o)
	if err != nil {
		if n.Embedded() {
			d.say("nats", resultWarn, "embedded; it does not answer: "+err.Error(), "start `flexid serve`")
			return
		}
		d.say("nats", resultFail, err.Error(), "see that the server runs; check FLEXID_NATS_URL and the login")
		return
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.AccountInfo(ctx)
	}
	if err != nil {
		d.say("nats", resultFail, "JetStream: "+err.Error(), "switch JetStream on, and allow the user $JS.API.>")
		return
	}
	ledgerID, exists, err := stream.PushLedger(ctx, js, stream.Options{Prefix: n.Prefix})
	known, knownErr := statedir.ReadKnown(d.cfg.StateDir, n.Prefix)
	const waysOut = "restore NATS's files from a backup, or begin with an empty one by `flexid ledger accept-empty`"
	switch {
	case err != nil:
		d.say("nats", resultFail, err.Error(), "")
	case knownErr != nil:
		d.say("nats", resultFail, knownErr.Error(), "")
	case known.Ledger != "" && !exists:
		d.say("nats", resultFail, "the streams are gone; the ledger of before was "+known.Ledger, waysOut)
	case known.Ledger != "" && known.Ledger != ledgerID:
		d.say("nats", resultFail, "the ledger is "+ledgerID+", the one of before was "+known.Ledger, waysOut)
	case !exists:
		d.say("nats", resultOK, nc.ConnectedServerName()+" with JetStream; the streams are made by the first `flexid serve`", "")
	default:
		d.say("nats", resultOK, nc.ConnectedServerName()+" with JetStream; streams are there, ledger "+ledgerID, "")
	}
	switch batches, err := ledger.BatchesAt(ctx, js, n.Prefix); {
	case err != nil:
		d.say("nats batches", resultWarn, err.Error(), "allow the user $JS.API.STREAM.INFO.>")
	case !batches:
		d.say("nats batches", resultWarn, "NATS stores what belongs together one by one ("+nc.ConnectedServerName()+" "+nc.ConnectedServerVersion()+"): everything holds, slower",
			"use NATS 2.12 or newer, set allow_atomic on the stream of the bucket flexid_ledger, and restart flexid")
	default:
		d.say("nats batches", resultOK, "NATS stores what belongs together in one step", "")
	}
	if most := nc.MaxPayload(); most < stream.WantPayload {
		d.say("nats messages", resultWarn, fmt.Sprintf("NATS takes messages of %d bytes at most: events that do not fit with what flexid notes about them are parked", most),
			"set max_payload: 1MB at the NATS server")
	}
}
