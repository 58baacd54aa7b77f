package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexid/flexi"
)

// explain says what to do about an error of a read.
func (d *doctor) explain(err error) string {
	var fe *flexi.Error
	if !errors.As(err, &fe) {
		return ""
	}
	switch fe.Status {
	case 401:
		return "Flexi refuses the login: set FLEXID_FLEXI_USER and FLEXID_FLEXI_PASSWORD (or _PASSWORD_FILE)"
	case 402:
		return "the licence has no REST API for writing: order it"
	case 403:
		return "give the user " + d.cfg.Flexi.User + " the right in Flexi, or the licence forbids it"
	case 404:
		return "nothing is there: check FLEXID_FLEXI_COMPANY; a licence without the REST API answers like this too"
	}
	return "see whether the server is well; `flexid doctor` can be repeated at any time"
}

func (d *doctor) login(ctx context.Context) (flexi.Company, bool) {
	c, err := d.client.Company(ctx)
	if err != nil {
		check := "login"
		var fe *flexi.Error
		if errors.As(err, &fe) && fe.Status == 404 {
			check = "company"
		}
		d.say(check, resultFail, err.Error(), d.explain(err))
		return c, false
	}
	d.say("login", resultOK, "as "+d.cfg.Flexi.User, "")
	return c, true
}

func (d *doctor) company(c flexi.Company) {
	text := fmt.Sprintf("%q (%s, id %s, made %s)", c.Name, c.DBName, c.ID, c.CreatedAt)
	if c.State != "" && c.State != "ESTABLISHED" {
		d.say("company", resultWarn, text+" is "+c.State, "wait until it is set up; flexid waits too")
		return
	}
	d.say("company", resultOK, text, "")
}

// Skews of the ERP's clock. The Date header has whole seconds.
const (
	skewWarn = 5 * time.Second
	skewFail = 5 * time.Minute
)

// server checks licence and clock, which one answer tells.
func (d *doctor) server(ctx context.Context) {
	before := d.now()
	s, err := d.client.Server(ctx)
	if err != nil {
		d.say("licence", resultWarn, err.Error(), "without the status of the server, licence and clock are not known; flexid works all the same")
		return
	}
	licence := s.LicenseName
	if licence == "" {
		licence = "not told"
	}
	d.say("licence", resultOK, fmt.Sprintf("%s, Flexi %s; whether it may write shows at the first write (402 if not)", licence, s.Version), "")
	if s.Date.IsZero() {
		d.say("clock", resultSkip, "the server does not tell its time", "")
		return
	}
	// The answer was made at some moment between before and now.
	skew := s.Date.Sub(before.Add(d.now().Sub(before) / 2)).Round(time.Second)
	result, do := resultOK, ""
	if skew.Abs() >= skewWarn {
		result, do = resultWarn, "set both clocks by NTP: dates near midnight and Retry-After come out wrong"
	}
	if skew.Abs() >= skewFail {
		result = resultFail
	}
	d.say("clock", result, fmt.Sprintf("Flexi's differs by %s", skew), do)
}

func (d *doctor) changes(c flexi.Company) {
	if c.WatchingChanges {
		d.say("changes", resultOK, "the Changes API is on", "")
		return
	}
	d.say("changes", resultWarn, "the Changes API is off; writing works without it",
		"to hear of changes, switch it on in Flexi (Changes API, enable) while nobody else is logged in")
}

func (d *doctor) known(ctx context.Context) (map[string]flexi.EvidenceInfo, bool) {
	list, err := d.client.Evidences(ctx)
	if err != nil {
		d.say("evidences", resultFail, err.Error(), d.explain(err))
		return nil, false
	}
	known := map[string]flexi.EvidenceInfo{}
	for _, e := range list {
		known[e.Path] = e
	}
	return known, true
}

// rights reads what a write of the evidence needs: the list of fields depends on the user's rights, and so do the rows.
func (d *doctor) rights(ctx context.Context, evidence string, known map[string]flexi.EvidenceInfo) (readable bool) {
	check := "rights " + evidence
	info, ok := known[evidence]
	switch {
	case !ok:
		d.say(check, resultFail, "Flexi does not list this evidence for the user", "check the name, the licence and the user's rights")
		return false
	case !info.Importable():
		d.say(check, resultFail, "Flexi takes no import into it ("+info.ImportStatus+")", "it cannot be written over the REST API")
		return false
	}
	props, err := d.client.Properties(ctx, evidence)
	if err == nil {
		_, err = d.client.List(ctx, flexi.Query{Evidence: evidence, Fields: []string{"id"}, Limit: 1})
	}
	if err != nil {
		d.say(check, resultFail, err.Error(), d.explain(err))
		return false
	}
	if !info.ExtIDs {
		d.say(check, resultWarn, "it keeps no external ids: a lost answer cannot be cleared up by flexid alone",
			"expect documents of this evidence in `flexid maybe list` after an outage")
		return true
	}
	number, _ := flexi.NumberField(evidence)
	if p, ok := props.ByName[number]; ok && !p.Writable {
		d.say(check, resultWarn, "the user may not write the field "+number+": Flexi drops it in silence", "give the right, or let Flexi draw the number")
		return true
	}
	d.say(check, resultOK, fmt.Sprintf("read, %d fields, keeps external ids", len(props.ByName)), "")
	return true
}

// types lists what a document's typDokl and series may be.
func (d *doctor) types(ctx context.Context, known map[string]flexi.EvidenceInfo) {
	for _, e := range []struct{ check, evidence, do string }{
		{"document types, issued", "typ-faktury-vydane", "make one in Flexi: an invoice without typDokl is refused"},
		{"document types, received", "typ-faktury-prijate", "make one in Flexi: an invoice without typDokl is refused"},
		{"series, issued", "rada-faktury-vydane", "make a series of its own for flexid, so that nobody else draws from it"},
	} {
		if _, ok := known[e.evidence]; !ok {
			d.say(e.check, resultSkip, "Flexi does not list "+e.evidence+" for the user", "")
			continue
		}
		page, err := d.client.List(ctx, flexi.Query{Evidence: e.evidence, Fields: []string{"id", "kod"}})
		if err != nil {
			d.say(e.check, resultFail, err.Error(), d.explain(err))
			continue
		}
		var codes []string
		for _, r := range page.Records {
			codes = append(codes, r.Text("kod"))
		}
		slices.Sort(codes)
		if len(codes) == 0 {
			d.say(e.check, resultWarn, "there is none", e.do)
			continue
		}
		more := ""
		if len(codes) > 10 {
			more, codes = fmt.Sprintf(" and %d more", len(codes)-10), codes[:10]
		}
		d.say(e.check, resultOK, strings.Join(codes, " ")+more, "")
	}
}
