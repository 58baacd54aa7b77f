package main

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"flexid/flexi"
	"flexid/flexi/flexitest"
)

// TestPeerAgreesWithTheFake plays each mishap to a client that does retry as go-retryablehttp does, and compares what it
// did to the books with what is computed. Time is virtual.
func TestPeerAgreesWithTheFake(t *testing.T) {
	all := append(mishaps(), &mishap{name: "nothing"})
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				erp := flexitest.New(flexitest.Options{AllowUsedNumbers: true})
				defer erp.Close()
				fault := m.fault
				if fault.Kind == flexitest.Silence || fault.Kind == flexitest.SilenceAfterCommit {
					fault.Delay = time.Minute // the server breaks the connection at last
				}
				erp.Script(fault)
				status := blindly(t, erp)
				time.Sleep(time.Hour) // virtual: late commits have landed
				var p peer
				p.add(&event{op: flexi.Create, doc: &document{}, mishap: orNil(m)})
				if got := erp.Count(flexitest.Write); got != p.wire {
					t.Errorf("%d requests, computed %d", got, p.wire)
				}
				if got := max(0, len(erp.Find("faktura-vydana", "code:D-1"))-1); got != p.duplicates {
					t.Errorf("%d records too many, computed %d", got, p.duplicates)
				}
				if gaveUp := status >= 300; gaveUp != (p.gaveUp == 1) {
					t.Errorf("it ends with %d, computed: gave up %d times", status, p.gaveUp)
				}
			})
		})
	}
}

func orNil(m *mishap) *mishap {
	if m.name == "nothing" {
		return nil
	}
	return m
}

// blindly posts one document until the policy is content, and gives the last status.
func blindly(t *testing.T, erp *flexitest.Server) int {
	client := &http.Client{Transport: &http.Transport{DialContext: erp.Dial, DisableKeepAlives: true}}
	body := `{"winstrom":{"faktura-vydana":[{"kod":"D-1","varSym":"1","typDokl":"code:FAKTURA"}]}}`
	status := 0
	for attempt := 0; attempt <= retryMax; attempt++ {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, erp.URL()+"/c/firma/faktura-vydana.json", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("flexid", "secret")
		status = 0
		if resp, err := client.Do(req); err == nil {
			status = resp.StatusCode
			_ = resp.Body.Close()
		}
		if !again(status) {
			break
		}
		time.Sleep(time.Second << attempt) // virtual
	}
	return status
}

func TestPolicyOfThePeer(t *testing.T) {
	tests := map[int]bool{0: true, 200: false, 201: false, 400: false, 404: false, 408: false, 429: true, 500: true, 501: false, 502: true, 503: true, 504: true}
	for status, want := range tests {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			if got := again(status); got != want {
				t.Errorf("again(%d) = %v", status, got)
			}
		})
	}
}

func TestPeerTriesARefusedDocumentOnce(t *testing.T) {
	var p peer
	p.add(&event{op: flexi.Create, doc: &document{refused: true}})
	if p != (peer{wire: 1}) {
		t.Errorf("%+v", p)
	}
}
