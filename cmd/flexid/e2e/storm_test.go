//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flexid/batch/stream"
)

// TestDeliveriesWhileNATSDies: thousands of deliveries are under way while nats-server is killed with -9 and started again.
// Every one that was answered with 2xx lies in the inbox exactly once; every other one does not, or is recognised when it is
// sent again; what was sent while there was no server is not stored later. Half of the senders give up after their first
// answer, the others send again until they are told 2xx.
func TestDeliveriesWhileNATSDies(t *testing.T) {
	t.Parallel()
	s := &storm{deliveries: make([]*delivery, 300), crashes: 1}
	if slow() {
		s.deliveries, s.crashes = make([]*delivery, 2000), 3
	}
	set := map[string]string{"FLEXID_WEBHOOK_SOURCES": "a,b,c,d,signed,shop,erp"}
	for _, name := range []string{"A", "B", "C", "D"} {
		set["FLEXID_WEBHOOK_"+name+"_KIND"], set["FLEXID_WEBHOOK_"+name+"_SECRET"] = "token", tokenSecret
		set["FLEXID_WEBHOOK_"+name+"_RATE"] = "100000"
	}
	s.bench = newWebhooks(t, set)
	for i := range s.deliveries {
		key := fmt.Sprintf("ST-%04d", i)
		s.deliveries[i] = &delivery{source: string("abcd"[i%4]), id: "storm " + key, key: key, once: i/4%2 == 0,
			body: fmt.Sprintf(`{"kod":%q,"nazev":"Bouře %d","poznam":%q}`, key, i, strings.Repeat("x", 1000))}
	}
	s.rage()
	s.verdict()
}

// storm is many senders at once.
type storm struct {
	*bench
	crashes    int
	deliveries []*delivery
	client     *http.Client
	intake     string

	stored, failed atomic.Int64 // 2xx; 503 because nothing could be stored
	dead           atomic.Int64 // number of the crash while nats-server is gone, else 0
	vain           atomic.Int64 // deliveries that were sent and answered in that time
}

// delivery is one delivery and what its sender was told.
type delivery struct {
	source, id, key, body string
	once                  bool

	taken   bool // the last answer was 2xx
	again   bool // it said that the delivery had been there
	refused int  // answers other than that
	inVain  bool // sent and answered while nats-server was gone
}

// rage sends everything at once and kills the server in the middle of it.
func (s *storm) rage() {
	transport := &http.Transport{MaxIdleConnsPerHost: len(s.deliveries)}
	defer transport.CloseIdleConnections()
	s.client, s.intake = &http.Client{Timeout: time.Minute, Transport: transport}, s.daemon.webhookURL()
	var senders sync.WaitGroup
	for i, d := range s.deliveries {
		senders.Go(func() {
			// Those that try once come one after another, so that some meet every state of the server; the others are the crowd.
			pause := 25*time.Millisecond + time.Duration(lot(d.id))*3*time.Millisecond
			if d.once {
				pause *= 10
			}
			for tries := 0; moment(s.t, pause) && tries < 1000; tries++ {
				if s.send(d); d.taken || d.once || s.t.Failed() {
					return
				}
			}
			s.t.Errorf("delivery %d was never taken", i)
		})
	}
	for crash := range s.crashes {
		goal := int64((crash + 1) * len(s.deliveries) / (2 * (s.crashes + 1)))
		eventually(s.t, time.Minute, fmt.Sprintf("%d deliveries are stored", goal), func() (bool, string) {
			n := s.stored.Load()
			return n >= goal, fmt.Sprint(n)
		})
		before := s.vain.Load()
		s.broker.proc.kill()
		s.dead.Store(int64(crash + 1))
		eventually(s.t, time.Minute, "deliveries are refused while NATS is away", func() (bool, string) {
			n := s.vain.Load() - before
			return n >= int64(len(s.deliveries)/10), fmt.Sprint(n)
		})
		s.dead.Store(0)
		s.broker.start()
	}
	senders.Wait()
}

// send sends once, and notes the answer.
func (s *storm) send(d *delivery) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.intake+"/in/"+d.source+"/adresar", strings.NewReader(d.body))
	if err != nil {
		s.t.Error(err)
		return
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + tokenSecret}, "Idempotency-Key": {d.id}}
	dead := s.dead.Load()
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Errorf("%s got no answer: %v", d.id, err)
		return
	}
	defer resp.Body.Close()
	if d.inVain = dead != 0 && s.dead.Load() == dead; d.inVain {
		s.vain.Add(1)
	}
	text, err := io.ReadAll(resp.Body)
	var answer struct {
		Again bool   `json:"again"`
		Type  string `json:"type"`
	}
	if err != nil || json.Unmarshal(text, &answer) != nil {
		s.t.Errorf("%s: %v: %s", d.id, err, text)
	}
	switch {
	case resp.StatusCode == http.StatusAccepted:
		d.taken, d.again = true, answer.Again
		s.stored.Add(1)
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "":
		d.refused++
		if answer.Type == "urn:flexid:problem:store" {
			s.failed.Add(1)
		}
	default:
		s.t.Errorf("%s: status %d: %s", d.id, resp.StatusCode, text)
	}
}

// lies counts how often a delivery lies in the inbox, with the body that it had.
func (s *storm) lies() map[*delivery]int {
	box, found := s.broker.inbox(), map[*delivery]int{}
	for _, d := range s.deliveries {
		for _, m := range box[stream.Options{}.InboxSubject(d.source, "id "+d.id)] {
			found[d]++
			if !bytes.Equal(m.Data, []byte(d.body)) || m.Header.Get("Authorization") != "" {
				s.t.Errorf("%s lies in the inbox as %s %v", d.id, m.Data, m.Header)
			}
		}
	}
	if len(found) != len(box) {
		s.t.Errorf("the inbox has %d subjects, %d of them are those of deliveries", len(box), len(found))
	}
	return found
}

func (s *storm) verdict() {
	t := s.t
	found := s.lies()
	var refused, hidden, recognised, inVain int
	for _, d := range s.deliveries {
		if d.taken && found[d] != 1 || found[d] > 1 {
			t.Errorf("%s was answered 2xx: %v; it lies in the inbox %d times", d.id, d.taken, found[d])
		}
		if d.again && d.refused == 0 {
			t.Errorf("%s was taken for a repetition the first time", d.id)
		}
		if d.again {
			recognised++
		}
		if d.taken {
			continue
		}
		refused++
		if found[d] == 1 {
			hidden++
		}
		if d.inVain {
			inVain++
		}
		if d.inVain && found[d] != 0 {
			t.Errorf("%s was refused while there was no server, and stored later", d.id)
		}
		if s.send(d); !d.taken || d.again != (found[d] == 1) {
			t.Errorf("%s, in the inbox %d times, was sent again: taken %v, as a repetition %v", d.id, found[d], d.taken, d.again)
		}
	}
	found = s.lies()
	for _, d := range s.deliveries {
		if found[d] != 1 {
			t.Errorf("%s lies in the inbox %d times in the end", d.id, found[d])
		}
	}
	t.Logf("%d deliveries, NATS killed %d times: %d answers of 503 because of it; %d senders gave up, %d of them while there was no server, and %d of their deliveries were stored all the same; %d others were recognised when sent again",
		len(s.deliveries), s.crashes, s.failed.Load(), refused, inVain, hidden, recognised)
	s.inERP()
}

// inERP: each becomes one document.
func (s *storm) inERP() {
	s.daemon.delivered(s.broker, 2*time.Minute)
	eventually(s.t, 5*time.Minute, "every document is in the ERP", func() (bool, string) {
		n := 0
		for _, d := range s.deliveries {
			n += min(1, s.erp.Commits("adresar/code:"+d.key))
		}
		return n == len(s.deliveries), fmt.Sprint(n)
	})
	for _, d := range s.deliveries {
		if n := s.erp.Commits("adresar/code:" + d.key); n != 1 {
			s.t.Errorf("%s was created %d times in the ERP", d.key, n)
		}
	}
}
