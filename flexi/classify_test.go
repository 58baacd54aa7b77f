package flexi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// bodies of an answer, by what they are.
func bodies() map[string]answer {
	return map[string]answer{
		"ok":      {body: []byte(okBody), whole: true},
		"errors":  {body: []byte(errorsBody), whole: true},
		"message": {body: []byte(messageBody), whole: true},
		"html":    {body: []byte(htmlBody), whole: true},
		"empty":   {whole: true},
		"cut":     {body: []byte(errorsBody[:70]), err: errors.New("unexpected EOF")},
	}
}

// expectation is the table of DESIGN 3 written down a second time, by hand and in another shape than the product's: row
// by row, each with the outcome for every kind of body.
func expectation(status int, body string) (Outcome, Speaker) {
	envelope := body == "ok" || body == "errors" || body == "message"
	switch status {
	case 429, 421, 425, 401:
		return Refused, NoAnswer
	case 402, 403:
		return Blocked, NoAnswer
	case 404, 405, 406:
		if body == "errors" || body == "message" {
			return Blocked, NoAnswer
		}
		return Maybe, NoAnswer // without the envelope, or with one that counts something created
	case 400:
		return map[string]Outcome{"errors": Rejected, "message": Refused}[body], NoAnswer
	case 408:
		return Maybe, NoAnswer
	case 500, 503:
		switch {
		case envelope:
			return Maybe, ServerError
		case status == 503 && body != "cut":
			return Maybe, Proxy
		}
		return Maybe, NoAnswer
	}
	if status >= 400 && status < 500 && body == "errors" {
		return Rejected, NoAnswer
	}
	if status >= 200 && status < 300 {
		return map[string]Outcome{"ok": Accepted, "errors": Rejected}[body], NoAnswer
	}
	return Maybe, NoAnswer
}

func TestClassifyEveryStatusAndBody(t *testing.T) {
	p := mustPrepare(t, createWrite())
	for status := 100; status <= 599; status++ {
		for name, a := range bodies() {
			a.status, a.sent, a.header = status, int64(len(p.body))+200, http.Header{}
			r := classify(a, p, Permit{})
			outcome, speaker := expectation(status, name)
			if r.Outcome != outcome || r.Speaker != speaker {
				t.Errorf("%d with %s: %s by %s, want %s by %s", status, name, r.Outcome, r.Speaker, outcome, speaker)
			}
			checkResult(t, fmt.Sprintf("%d with %s", status, name), r)
		}
	}
	for _, status := range []int{0, 99, 600, 999, -1} {
		if r := classify(answer{status: status, sent: 1, whole: true, body: []byte(okBody)}, p, Permit{}); r.Outcome != Maybe {
			t.Errorf("status %d: %s", status, r.Outcome)
		}
	}
}

// checkResult is what holds for every result.
func checkResult(t *testing.T, name string, r Result) {
	t.Helper()
	if (r.Err == nil) != (r.Outcome == Accepted) || OutcomeOf(r.Err) != r.Outcome {
		t.Errorf("%s: error %v for %s", name, r.Err, r.Outcome)
	}
	if (r.Scope != ScopeNone) != (r.Outcome == Blocked) || (r.Remedy != "") != (r.Outcome == Blocked) {
		t.Errorf("%s: scope %d and remedy %q for %s", name, r.Scope, r.Remedy, r.Outcome)
	}
	if (r.Cause != "") != (r.Outcome == Rejected) {
		t.Errorf("%s: cause %q for %s", name, r.Cause, r.Outcome)
	}
	if r.Refresh != RefreshNone && r.Outcome != Refused || r.NeedLook && r.Outcome != Rejected {
		t.Errorf("%s: %+v", name, r)
	}
}

func withStats(stats, rest string) string {
	return `{"winstrom":{"@version":"1.0",` + rest + `,"stats":{` + stats + `}}}`
}

// One row of the table each, with the words of DESIGN in the name.
func TestClassifyRows(t *testing.T) {
	const (
		good     = `"success":"true","results":[{"id":"805"}]`
		failed   = `"success":"false","results":[{"errors":[{"message":"m","for":"typDokl"}]}]`
		noRecord = `"success":"false","message":"m"`
	)
	maybe, odd := Result{Outcome: Maybe}, Result{Outcome: Maybe, Odd: true}
	cases := []struct {
		name   string
		a      answer
		permit Permit
		op     Op
		want   Result
	}{
		{"no byte left", answer{err: errors.New("x")}, Permit{}, Create, Result{Outcome: NotSent}},
		{"bytes left, no answer", answer{sent: 1, err: errors.New("x")}, Permit{}, Create, maybe},
		{"first 401", answer{status: 401}, Permit{}, Create, Result{Outcome: Refused, Refresh: RefreshUser}},
		{"second 401", answer{status: 401}, Permit{PriorAuth: 1}, Create, Result{Outcome: Blocked, Scope: ScopeAll}},
		{"401 after bare messages", answer{status: 401}, Permit{PriorMessage: 2}, Create, Result{Outcome: Refused, Refresh: RefreshUser}},
		{"402", answer{status: 402}, Permit{}, Create, Result{Outcome: Blocked, Scope: ScopeAll}},
		{"403", answer{status: 403}, Permit{}, Create, Result{Outcome: Blocked, Scope: ScopeEvidence}},
		{"404 with the envelope", answer{status: 404, body: []byte(messageBody), whole: true}, Permit{}, Create,
			Result{Outcome: Blocked, Scope: ScopeEvidence}},
		{"404 that counts something", answer{status: 404, body: []byte(withStats(`"created":"1"`, noRecord)), whole: true}, Permit{}, Create, maybe},
		{"first bare 400", answer{status: 400, body: []byte(messageBody), whole: true}, Permit{}, Create,
			Result{Outcome: Refused, Refresh: RefreshUser}},
		{"second bare 400", answer{status: 400, body: []byte(messageBody), whole: true}, Permit{PriorMessage: 1}, Create,
			Result{Outcome: Refused, Refresh: RefreshUser}},
		{"third bare 400", answer{status: 400, body: []byte(messageBody), whole: true}, Permit{PriorMessage: 2}, Create,
			Result{Outcome: Blocked, Scope: ScopeEvidence}},
		{"no import into the evidence", answer{status: 400, body: []byte(noImportBody), whole: true}, Permit{}, Create,
			Result{Outcome: Refused, Refresh: RefreshUser}},
		{"no import, after one refusal", answer{status: 400, body: []byte(noImportBody), whole: true}, Permit{PriorMessage: 1}, Create,
			Result{Outcome: Rejected, Whole: true, Cause: NotImportable}},
		{"no import, behind a 200", answer{status: 200, body: []byte(noImportBody), whole: true}, Permit{PriorMessage: 1}, Create,
			Result{Outcome: Rejected, Whole: true, Cause: NotImportable}},
		{"no import, but something was created", answer{status: 400, whole: true,
			body: []byte(withStats(`"created":"1"`, `"success":"false","message":"m","message@messageCode":"importNotAllowed"`))}, Permit{PriorMessage: 1}, Create, maybe},
		{"400 without a word", answer{status: 400, body: []byte(`{"winstrom":{"success":"false"}}`), whole: true}, Permit{}, Create, maybe},
		{"400 that counts something created", answer{status: 400, body: []byte(withStats(`"created":"1"`, failed)), whole: true}, Permit{}, Create, maybe},
		{"400 that counts something unreadable", answer{status: 400, body: []byte(withStats(`"created":"one"`, failed)), whole: true}, Permit{}, Create, maybe},
		{"400 that says success", answer{status: 400, body: []byte(withStats(`"created":"0"`, good)), whole: true}, Permit{}, Create, maybe},
		{"400 about a field", answer{status: 400, body: []byte(withStats(`"failed":"1"`, failed)), whole: true}, Permit{}, Create,
			Result{Outcome: Rejected, Cause: TypeMissing}},
		{"400 about no field", answer{status: 400, body: []byte(`{"winstrom":{"success":false,"results":{"errors":"m"}}}`), whole: true},
			Permit{}, Create, Result{Outcome: Rejected, Cause: OtherCause, NeedLook: true}},
		{"400 about kod", answer{status: 400, whole: true, body: []byte(`{"winstrom":{"success":false,"results":[{"errors":[` +
			`{"message":"Kód již používá jiný záznam","for":"kod","code":"INVALID"}]}]}}`)},
			Permit{}, Create, Result{Outcome: Rejected, Cause: NumberTaken, NeedLook: true}},
		{"409 with errors", answer{status: 409, body: []byte(errorsBody), whole: true}, Permit{}, Create,
			Result{Outcome: Rejected, Cause: TypeMissing}},
		{"409 with a bare message", answer{status: 409, body: []byte(messageBody), whole: true}, Permit{}, Create, maybe},
		{"exists", answer{status: 400, body: []byte(existsBody), whole: true}, Permit{}, Create,
			Result{Outcome: Rejected, Cause: NumberTaken, NeedLook: true, Exists: true}},
		{"exists, said without a record", answer{status: 400, whole: true,
			body: []byte(`{"winstrom":{"success":"false","message":"m","message@messageCode":"importXmlUpdateNeniPovolen"}}`)},
			Permit{}, Create, Result{Outcome: Rejected, Cause: NumberTaken, NeedLook: true, Exists: true}},
		{"exists behind a 200", answer{status: 200, body: []byte(existsBody), whole: true}, Permit{}, Create,
			Result{Outcome: Rejected, Cause: NumberTaken, NeedLook: true, Exists: true}},
		{"exists is only said of a create", answer{status: 400, body: []byte(existsBody), whole: true}, Permit{}, Update,
			Result{Outcome: Rejected, Cause: NumberTaken, NeedLook: true}},
		{"absent, said without a record", answer{status: 400, whole: true,
			body: []byte(`{"winstrom":{"success":"false","message":"m","message@messageCode":"importXmlCreateNeniPovolen"}}`)},
			Permit{}, Update, Result{Outcome: Rejected, Cause: OtherCause, NeedLook: true}},
		{"200 with record errors and counters", answer{status: 200, body: []byte(withStats(`"created":"1"`, failed)), whole: true}, Permit{}, Create, maybe},
		{"200 with a bare failure", answer{status: 200, body: []byte(messageBody), whole: true}, Permit{}, Create, maybe},
		{"all counters zero and no result", answer{status: 201, whole: true,
			body: []byte(withStats(`"created":"0","updated":"0"`, `"success":"true","results":[]`))}, Permit{}, Create, maybe},
		{"create answered as updated", answer{status: 201, body: []byte(withStats(`"updated":"1"`, good)), whole: true}, Permit{}, Create,
			Result{Outcome: Maybe, FenceBroken: true}},
		{"create answered as skipped", answer{status: 201, body: []byte(withStats(`"skipped":1`, good)), whole: true}, Permit{}, Create,
			Result{Outcome: Maybe, FenceBroken: true}},
		{"created 0 and skipped", answer{status: 201, whole: true,
			body: []byte(withStats(`"created":"0","updated":"0","skipped":"1"`, good))}, Permit{}, Create, Result{Outcome: Maybe, FenceBroken: true}},
		{"updated beside created", answer{status: 201, body: []byte(withStats(`"created":1,"updated":1`, good)), whole: true}, Permit{}, Create, odd},
		{"skipped beside created", answer{status: 201, body: []byte(withStats(`"created":1,"skipped":1`, good)), whole: true}, Permit{}, Create, odd},
		{"failed beside created", answer{status: 201, body: []byte(withStats(`"created":1,"failed":1`, good)), whole: true}, Permit{}, Create, maybe},
		{"two created", answer{status: 201, body: []byte(withStats(`"created":2`, good)), whole: true}, Permit{}, Create, maybe},
		{"no counters", answer{status: 201, body: []byte(`{"winstrom":{` + good + `}}`), whole: true}, Permit{}, Create, odd},
		{"no counters and no result", answer{status: 201, body: []byte(`{"winstrom":{"success":"true"}}`), whole: true}, Permit{}, Create, maybe},
		{"no counters, another record", answer{status: 200, whole: true, body: []byte(`{"winstrom":{"success":true,"results":[{"id":"806"}]}}`)}, Permit{}, Update, maybe},
		{"no counters, our record", answer{status: 200, body: []byte(`{"winstrom":{` + good + `}}`), whole: true}, Permit{}, Update, odd},
		{"request-id in another spelling", answer{status: 201, whole: true,
			body: []byte(withStats(`"created":1`, `"success":true,"results":[{"id":"805","request-id":"EXT:flexid:K1"}]`))}, Permit{}, Create, odd},
		{"request-id in another spelling, code of another", answer{status: 201, whole: true,
			body: []byte(withStats(`"created":1`, `"success":true,"results":[{"id":"805","code":"X","request-id":"EXT:flexid:K1"}]`))}, Permit{}, Create, maybe},
		{"update answered as created", answer{status: 201, body: []byte(withStats(`"created":"1"`, good)), whole: true}, Permit{}, Update, maybe},
		{"update", answer{status: 200, body: []byte(withStats(`"updated":1`, good)), whole: true}, Permit{}, Update, Result{Outcome: Accepted}},
		{"update of another record", answer{status: 200, whole: true,
			body: []byte(withStats(`"updated":1`, `"success":true,"results":[{"id":"806"}]`))}, Permit{}, Update, maybe},
		{"storno counted as updated", answer{status: 200, body: []byte(withStats(`"updated":1`, good)), whole: true}, Permit{}, Storno, Result{Outcome: Accepted}},
		{"delete counted as deleted", answer{status: 200, body: []byte(withStats(`"deleted":"1"`, good)), whole: true}, Permit{}, Delete, Result{Outcome: Accepted}},
		{"update that failed as well", answer{status: 200, body: []byte(withStats(`"updated":1,"failed":1`, good)), whole: true}, Permit{}, Update, maybe},
		{"update that was skipped as well", answer{status: 200, body: []byte(withStats(`"updated":1,"skipped":1`, good)), whole: true}, Permit{}, Update, odd},
		{"400 about a field, then the connection broke", answer{status: 400, body: []byte(errorsBody), err: errors.New("x")}, Permit{}, Create, maybe},
		{"500 with the envelope, then the connection broke", answer{status: 500, body: []byte(messageBody), err: errors.New("x")}, Permit{}, Create, maybe},
		{"delete counted as nothing", answer{status: 200, body: []byte(withStats(`"deleted":"0"`, good)), whole: true}, Permit{}, Delete, maybe},
		{"attach", answer{status: 201, body: []byte(withStats(`"updated":"1"`, good)), whole: true}, Permit{}, Attach, Result{Outcome: Accepted}},
		{"attach skipped", answer{status: 201, body: []byte(withStats(`"skipped":"1"`, good)), whole: true}, Permit{}, Attach, maybe},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			w := createWrite()
			if tc.op != Create {
				w = Write{Evidence: "banka", Op: tc.op, Docs: []Doc{{FlexiID: "805", Ext: testExt}}}
				if tc.op == Update {
					w.Docs[0].Body = []byte(`{"popis":"x"}`)
				}
			}
			tc.a.header = http.Header{}
			r := classify(tc.a, mustPrepare(t, w), tc.permit)
			checkResult(t, tc.name, r)
			got := Result{Outcome: r.Outcome, Whole: r.Whole, Odd: r.Odd, Scope: r.Scope, Refresh: r.Refresh, Exists: r.Exists, NeedLook: r.NeedLook,
				FenceBroken: r.FenceBroken, Cause: r.Cause, Speaker: r.Speaker}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tc.want) {
				t.Errorf("got  %+v\nwant %+v\nerror %v", got, tc.want, r.Err)
			}
		})
	}
}

func TestSuccessMustNameTheDocument(t *testing.T) {
	cases := []struct {
		name, results string
		want          Outcome
	}{
		{"id, code and request-id", `[{"id":"805","code":"FV-1","request-id":"ext:FLEXID:k1"}]`, Accepted},
		{"id alone", `[{"id":805}]`, Accepted},
		{"one result, not in a list", `{"id":"805"}`, Accepted},
		{"wrapped as in XML", `{"result":[{"id":"805"}]}`, Accepted},
		{"code in another case", `[{"id":"805","code":"fv-1"}]`, Accepted},
		{"several identifiers in brackets", `[{"id":"805","request-id":"[ext:FLEXID:k1]"}]`, Accepted},
		{"another code", `[{"id":"805","code":"FV-2"}]`, Maybe},
		{"another request-id", `[{"id":"805","request-id":"ext:FLEXID:k2"}]`, Maybe},
		{"ours and another in brackets", `[{"id":"805","request-id":"[ext:FLEXID:k1][ext:FLEXID:k2]"}]`, Maybe},
		{"no id", `[{"code":"FV-1"}]`, Maybe},
		{"an id that is none", `[{"id":"code:FV-1"}]`, Maybe},
		{"no result", `[]`, Maybe},
		{"two results", `[{"id":"805"},{"id":"806"}]`, Maybe},
		{"errors in it", `[{"id":"805","errors":[{"message":"m"}]}]`, Maybe},
		{"warnings in it", `[{"id":"805","warnings":[{"for":"radekDph","message":"m"}]}]`, Accepted},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			body := withStats(`"created":"1"`, `"success":"true","results":`+tc.results)
			r := classify(answer{status: 201, body: []byte(body), whole: true}, mustPrepare(t, createWrite()), Permit{})
			if r.Outcome != tc.want || r.FenceBroken {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
		})
	}
}

// A payable's number is the supplier's; the code in the answer is the ERP's own.
func TestSuccessOfAPayable(t *testing.T) {
	w := Write{Evidence: "faktura-prijata", Op: Create, Docs: []Doc{{Ext: testExt, Number: "2024/17",
		Body: []byte(`{"cisDosle":"2024/17","firma":"code:ACME"}`)}}}
	body := withStats(`"created":"1"`, `"success":"true","results":[{"id":"1","code":"PF0001/2024"}]`)
	r := classify(answer{status: 201, body: []byte(body), whole: true}, mustPrepare(t, w), Permit{})
	if r.Outcome != Accepted || r.Docs[0].Number != "PF0001/2024" {
		t.Errorf("%s %+v: %v", r.Outcome, r.Docs, r.Err)
	}
}

func group(t testing.TB, n int) Prepared {
	w := Write{Evidence: "banka", Op: Create}
	for i := range n {
		w.Docs = append(w.Docs, Doc{Ext: NewExternalID("FLEXID", "", fmt.Sprintf("k%d", i)), Number: fmt.Sprintf("B%d", i),
			Body: fmt.Appendf(nil, `{"kod":"B%d"}`, i)})
	}
	return mustPrepare(t, w)
}

func TestGroups(t *testing.T) {
	p := group(t, 3)
	ask := func(status int, stats, rest string) Result {
		return classify(answer{status: status, body: []byte(withStats(stats, rest)), whole: true}, p, Permit{})
	}
	t.Run("told by request-id, in any order", func(t *testing.T) {
		r := ask(201, `"created":"3"`, `"success":"true","results":[{"id":"12","request-id":"ext:FLEXID:k2"},`+
			`{"id":"10","request-id":"ext:FLEXID:k0"},{"id":"11","request-id":"ext:FLEXID:k1"}]`)
		if r.Outcome != Accepted || r.Docs[0].FlexiID != "10" || r.Docs[1].FlexiID != "11" || r.Docs[2].FlexiID != "12" {
			t.Errorf("%s %+v: %v", r.Outcome, r.Docs, r.Err)
		}
	})
	t.Run("without request-id an id counts for nobody", func(t *testing.T) {
		r := ask(201, `"created":"3"`, `"success":"true","results":[{"id":"10"},{"id":"11"},{"id":"12"}]`)
		if r.Outcome != Accepted || len(r.Docs) != 3 || r.Docs[0].FlexiID != "" {
			t.Errorf("%s %+v: %v", r.Outcome, r.Docs, r.Err)
		}
	})
	for name, results := range map[string]string{
		"one id twice":         `[{"id":"10"},{"id":"10"},{"id":"12"}]`,
		"one request-id twice": `[{"id":"10","request-id":"ext:FLEXID:k0"},{"id":"11","request-id":"ext:FLEXID:k0"},{"id":"12"}]`,
		"one result missing":   `[{"id":"10"},{"id":"11"}]`,
		"one code twice":       `[{"id":"10","code":"B0"},{"id":"11","code":"B0"},{"id":"12","code":"B2"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			if r := ask(201, `"created":"3"`, `"success":"true","results":`+results); r.Outcome != Maybe {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
		})
	}
	t.Run("two of three created", func(t *testing.T) {
		if r := ask(201, `"created":"2"`, `"success":"true","results":[{"id":"10"},{"id":"11"},{"id":"12"}]`); r.Outcome != Maybe {
			t.Errorf("%s: %v", r.Outcome, r.Err)
		}
	})
	t.Run("rejected, told by place", func(t *testing.T) {
		r := ask(400, `"failed":"1"`, `"success":"false","results":[{},{"errors":[{"message":"m","for":"firma"}]},{}]`)
		if r.Outcome != Rejected || len(r.Docs[1].Errors) != 1 || len(r.Docs[0].Errors) != 0 || r.Cause != PartnerMissing {
			t.Errorf("%s %+v: %v", r.Outcome, r.Docs, r.Err)
		}
	})
	for name, c := range map[string]struct {
		errors string
		blamed int
	}{
		"named by an identifier in the path":      {`{"message":"m","path":"banka[ext:FLEXID:k2].firma"}`, 2},
		"named by the number behind the words":    {`{"message":"Pole musí být vyplněno [B1]","path":"banka[temporary-id=null].firma"}`, 1},
		"two errors that name the same":           {`{"message":"m [B1]"},{"message":"n","path":"banka[ext:FLEXID:k1].mena"}`, 1},
		"two errors that name two":                {`{"message":"m [B1]"},{"message":"n [B2]"}`, -1},
		"a number that nobody has":                {`{"message":"m [B7]"}`, -1},
		"brackets that do not close":              {`{"message":"m ] [B1"}`, -1},
		"half of a number":                        {`{"message":"m [B]"}`, -1},
		"one error of many names it, others none": {`{"message":"m"},{"message":"n [B0]"}`, 0},
	} {
		t.Run("rejected, "+name, func(t *testing.T) {
			r := ask(400, `"failed":"1"`, `"success":"false","results":[{"errors":[`+c.errors+`]}]`)
			for i, d := range r.Docs {
				if got := len(d.Errors) > 0; got != (i == c.blamed) {
					t.Errorf("document %d blamed: %v", i, got)
				}
			}
			if r.Outcome != Rejected {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
		})
	}
	t.Run("rejected, one error for nobody known", func(t *testing.T) {
		r := ask(400, `"failed":"1"`, `"success":"false","results":[{"errors":[{"message":"m","for":"firma"}]}]`)
		if r.Outcome != Rejected || len(r.Docs) != 3 || len(r.Docs[0].Errors) != 0 || len(r.Errors) != 1 {
			t.Errorf("%s %+v: %v", r.Outcome, r.Docs, r.Err)
		}
	})
}

// Numbers drawn by the ERP fit any code.
func TestGroupWithDrawnNumbers(t *testing.T) {
	w := Write{Evidence: "banka", Op: Create, Docs: []Doc{
		{Ext: NewExternalID("FLEXID", "", "a"), Number: "B1", Body: []byte(`{"kod":"B1"}`)},
		{Ext: NewExternalID("FLEXID", "", "b"), Body: []byte(`{"popis":"x"}`)},
	}}
	p := mustPrepare(t, w)
	for codes, want := range map[string]Outcome{"B1 X9": Accepted, "X9 B1": Accepted, "X9 X8": Maybe} {
		a, b, _ := strings.Cut(codes, " ")
		body := withStats(`"created":2`, `"success":"true","results":[{"id":"1","code":"`+a+`"},{"id":"2","code":"`+b+`"}]`)
		if r := classify(answer{status: 201, body: []byte(body), whole: true}, p, Permit{}); r.Outcome != want {
			t.Errorf("codes %s: %s, %v", codes, r.Outcome, r.Err)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, b := range []string{okBody, errorsBody, messageBody, existsBody, htmlBody, "", "null", `{"winstrom":[{"success":"ok"}]}`,
		`{"winstrom":{"success":true,"stats":[{"created":1e0}],"results":{"result":{"id":1}}}}`} {
		f.Add(201, b, true)
		f.Add(400, b, false)
	}
	p := group(f, 1)
	f.Fuzz(func(t *testing.T, status int, body string, whole bool) {
		r := classify(answer{status: status, body: []byte(body), whole: whole, sent: 1, header: http.Header{}}, p, Permit{})
		checkResult(t, "fuzz", r)
		if len(r.Docs) != 1 {
			t.Errorf("%d results for one document", len(r.Docs))
		}
		if r.Outcome == Accepted && (!whole || status/100 != 2) {
			t.Errorf("accepted %d, whole %v: %q", status, whole, body)
		}
		if r.Outcome == NotSent && status != 0 {
			t.Errorf("not sent with status %d", status)
		}
	})
}
