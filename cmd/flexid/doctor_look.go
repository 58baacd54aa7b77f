package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flexid/flexi"
)

// lookRows is how many records a look of doctor asks for: more than Flexi sends where the limit has no effect.
const lookRows = 25

// unknownKey is a key and a number that nobody gives to a document.
const unknownKey = "FLEXID-DOCTOR"

// look asks as the daemon does to find out what became of a document, and says how this server answers. Where it cannot be
// asked like that, the daemon writes nothing to the evidence: a lost answer could never be cleared up.
func (d *doctor) look(ctx context.Context, evidence string) {
	number, _ := flexi.NumberField(evidence)
	page, err := d.client.List(ctx, flexi.Query{
		Evidence: evidence, Fields: []string{"id", "external-ids", number}, Limit: lookRows, Order: "id@D", Lookup: true,
	})
	if err != nil {
		d.say("look "+evidence, resultFail, err.Error(), d.unlookable(evidence))
		return
	}
	d.lookCount(evidence, page)
	d.lookLimit(ctx, evidence, page)
	d.lookUnknown(ctx, evidence, page)
	d.lookOurs(ctx, evidence, page)
}

// unlookable is what to do where look-ups prove nothing.
func (d *doctor) unlookable(evidence string) string {
	return "flexid stops the writes of " + evidence + " while that is so: see whether a proxy before Flexi changes the request, " +
		"else ask whoever runs the server; `flexid doctor --evidence " + evidence + "` tells when it is mended"
}

func (d *doctor) lookCount(evidence string, page flexi.Page) {
	check := "look " + evidence + ", count"
	if page.RowCount < 0 {
		d.say(check, resultFail, "Flexi does not say how many rows there are: add-row-count has no effect", d.unlookable(evidence))
		return
	}
	d.say(check, resultOK, fmt.Sprintf("Flexi counts %d", page.RowCount), "")
}

// lookLimit tells whether Flexi sends as many rows as asked for, and all of them where all are asked for.
func (d *doctor) lookLimit(ctx context.Context, evidence string, page flexi.Page) {
	check := "look " + evidence + ", limit"
	n := len(page.Records)
	switch {
	case n > lookRows:
		d.say(check, resultWarn, fmt.Sprintf("%d rows came where %d were asked for", n, lookRows), "lists are larger than they need to be; flexid works all the same")
		return
	case page.RowCount >= 0 && n < min(lookRows, page.RowCount):
		d.say(check, resultWarn, fmt.Sprintf("%d rows came where %d were asked for and Flexi counts %d", n, lookRows, page.RowCount),
			"flexid asks for fewer documents at a time, which takes more requests")
		return
	case n < lookRows:
		d.say(check, resultOK, fmt.Sprintf("honoured, as far as %s can show", many(n, "record")), "")
		return
	}
	var all []flexi.Filter
	for _, r := range page.Records {
		all = append(all, flexi.IDEq(r.ID()))
	}
	got, err := d.client.List(ctx, flexi.Query{Evidence: evidence, Filter: flexi.Or(all...), Fields: []string{"id"}, Lookup: true})
	if err == nil && len(got.Records) != n {
		err = fmt.Errorf("%d rows came of %d that the filter names", len(got.Records), n)
	}
	if err != nil {
		d.say(check, resultWarn, "limit=0, for all rows: "+err.Error(), "flexid asks for fewer documents at a time, which takes more requests")
		return
	}
	d.say(check, resultOK, "honoured, and none with limit=0", "")
}

// lookUnknown asks by an external id and a number that no record has, along with a record that is there: the look before
// every first send.
func (d *doctor) lookUnknown(ctx context.Context, evidence string, page flexi.Page) {
	check := "look " + evidence + ", unknown document"
	field, _ := flexi.NumberField(evidence)
	ext := flexi.NewExternalID(d.cfg.Flexi.System, "", unknownKey)
	parts := []flexi.Filter{flexi.ExtEq(ext), flexi.Eq(field, unknownKey)}
	names := []string{"external id " + string(ext), "number " + unknownKey}
	control := ""
	if len(page.Records) > 0 {
		control = page.Records[0].ID()
		parts, names = append(parts, flexi.IDEq(control)), append(names, "id "+control)
	}
	got, err := d.ask(ctx, evidence, parts...)
	switch {
	case err != nil:
		var refused []string
		for i, p := range parts {
			if _, err := d.ask(ctx, evidence, p); err != nil {
				refused = append(refused, names[i])
			}
		}
		text := err.Error() + "; each of them alone is answered"
		if len(refused) > 0 {
			text = err.Error() + "; alone too: " + strings.Join(refused, ", ")
		}
		d.say(check, resultFail, "asking for "+strings.Join(names, " or ")+": "+text, d.unlookable(evidence))
	case control != "" && !slices.ContainsFunc(got.Records, func(r flexi.Record) bool { return r.ID() == control }):
		d.say(check, resultFail, "record "+control+", which is there, does not come along: what is not shown may be there all the same", d.unlookable(evidence))
	case control == "":
		d.say(check, resultOK, "found nothing, as it should; the evidence has no record yet", "")
	default:
		d.say(check, resultOK, "found nothing, as it should, and the record asked for along with it", "")
	}
}

func (d *doctor) ask(ctx context.Context, evidence string, parts ...flexi.Filter) (flexi.Page, error) {
	got, err := d.client.List(ctx, flexi.Query{Evidence: evidence, Filter: flexi.Or(parts...), Fields: []string{"id", "external-ids"}, Lookup: true})
	if err == nil && got.RowCount >= 0 && got.RowCount != len(got.Records) {
		err = fmt.Errorf("%d rows where Flexi counts %d", len(got.Records), got.RowCount)
	}
	return got, err
}

// lookOurs tells whether the external ids that flexid gave come back and find their record.
func (d *doctor) lookOurs(ctx context.Context, evidence string, page flexi.Page) {
	check := "look " + evidence + ", external ids"
	for _, r := range page.Records {
		for _, id := range r.ExternalIDs() {
			ext := flexi.ExternalID(id)
			if !ext.Valid() || !ext.Of(d.cfg.Flexi.System) {
				continue
			}
			got, err := d.ask(ctx, evidence, flexi.ExtEq(ext))
			if err != nil || len(got.Records) != 1 || got.Records[0].ID() != r.ID() {
				d.say(check, resultFail, fmt.Sprintf("record %s shows %s, and asking for it brings %s (%v)", r.ID(), ext, many(len(got.Records), "record"), err), d.unlookable(evidence))
				return
			}
			d.say(check, resultOK, "shown, and "+string(ext)+" finds its record", "")
			return
		}
	}
	d.say(check, resultOK, fmt.Sprintf("none of flexid's among the last %s: whether Flexi keeps and shows them is known after the first write", many(len(page.Records), "record")), "")
}
