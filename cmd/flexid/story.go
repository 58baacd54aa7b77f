package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"flexid/cmd/internal/api"
	"flexid/flexi"
	"flexid/verify/ledger"
)

// story prints one document: JSON for scripts, one line in CSV, else its history in the order of time.
func (p *program) story(s *api.Story) error {
	if p.format == "csv" {
		return p.storyTable(s)
	}
	return p.object(s, func(w io.Writer) { printStory(w, s, p.language()) })
}

func (p *program) storyTable(s *api.Story) error {
	pr := p.printer("time", "event", "what", "text")
	for _, l := range chronicle(s) {
		pr.row(l, l.at.UTC().Format(time.RFC3339Nano), fmt.Sprint(l.event), l.what, l.text)
	}
	return pr.end()
}

// line is one thing that happened.
type line struct {
	at    time.Time
	event int
	what  string
	text  string
	more  []string // indented below
}

// language is Czech where the environment says so: the people who put a rejected document right are not always the ones
// who set up the server.
func (p *program) language() string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := p.lookup(name); v != "" {
			if strings.HasPrefix(v, "cs") {
				return "cs"
			}
			return "en"
		}
	}
	return "en"
}

// revision is what a decision may name so that it holds for the document as it is shown, "" where none is known.
func revision(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func printStory(w io.Writer, s *api.Story, language string) {
	address := s.Evidence + "/" + s.Key
	if s.Source != "" {
		address = s.Evidence + "/" + s.Source + ":" + s.Key
	}
	fmt.Fprintln(w, clean(address))
	for _, f := range [][2]string{
		{"state", joined(s.State, s.Reason, s.Cause)}, {"number", s.Number}, {"external id", s.ExternalID}, {"Flexi id", s.FlexiID},
		{"partner", s.Partner}, {"amount", strings.TrimSpace(s.Amount + " " + s.Currency)}, {"date", s.Date}, {"owner", s.Owner},
		{"sends", fmt.Sprint(s.Sends)}, {"updated", stamp(s.Updated)}, {"next", stamp(s.Next)}, {"settled", stamp(s.Settled)},
		{"revision", revision(s.Revision)},
	} {
		if f[1] != "" {
			fmt.Fprintf(w, "  %-12s %s\n", f[0], clean(f[1]))
		}
	}
	if s.SenderKey != "" {
		fmt.Fprintf(w, "  %-12s %s\n", "sender's key", clean(s.SenderKey))
	}
	for _, a := range s.Aside {
		fmt.Fprintf(w, "  %-12s %s\n", "set aside", clean(a.Evidence+"/"+a.Key))
	}
	for _, l := range problemLines(s.Problem) {
		fmt.Fprintf(w, "  %-12s %s\n", "because", clean(l))
	}
	if s.Waits != "" && (s.Problem == nil || s.Waits != s.Problem.Text) {
		fmt.Fprintf(w, "  %-12s %s\n", "waits", clean(s.Waits))
	}
	if s.Who != "" {
		fmt.Fprintf(w, "  %-12s %s\n", "who acts", clean(joinedBy(": ", s.Who, strings.Join(s.Can, ", "))))
	}
	if s.Cause != "" {
		fmt.Fprintf(w, "  %-12s %s\n", "to do", clean(flexi.Cause(s.Cause).Hint(language)))
	}
	fmt.Fprintln(w)
	if s.Earlier > 0 {
		fmt.Fprintf(w, "  (%d earlier events are not shown)\n", s.Earlier)
	}
	for _, l := range chronicle(s) {
		fmt.Fprintf(w, "  %s  #%d %-9s %s\n", l.at.UTC().Format("2006-01-02T15:04:05.000Z"), l.event, l.what, clean(l.text))
		for _, m := range l.more {
			fmt.Fprintf(w, "  %24s    %s\n", "", clean(m))
		}
	}
	if s.Cut > 0 {
		fmt.Fprintf(w, "  (%d entries were left out to keep the row small)\n", s.Cut)
	}
	if len(s.Sent) > 0 {
		fmt.Fprintf(w, "\nthe document\n  %s\n", clean(compact(s.Sent)))
	}
}

// chronicle is everything in the order of time; what has no time of its own stands under what caused it.
func chronicle(s *api.Story) []line {
	var all []line
	for _, e := range s.Events {
		text := joined("asks for "+string(e.Op), "id "+e.EventID)
		if e.Version != "" {
			text = joined(text, "version "+e.Version)
		}
		happened := line{at: e.Received, event: e.N, what: "event", text: joined(text, e.Subject)}
		if s.Problem == nil || e.Problem != nil && e.Problem.Text != s.Problem.Text {
			// The problem of the shown event stands at the top already.
			happened.more = problemLines(e.Problem)
		}
		if e.Reason == string(ledger.Behind) {
			happened.more = append(happened.more, "queued behind the event before it")
		}
		all = append(all, happened)
		if !e.Done.IsZero() {
			all = append(all, line{at: e.Done, event: e.N, what: "ended", text: joined(e.State, e.Reason, e.Cause)})
		}
	}
	for _, a := range s.Attempts {
		all = append(all, attemptLines(a)...)
	}
	for _, l := range s.Looks {
		text := joined(l.Why+": "+l.Verdict, l.Text)
		if len(l.Found) > 0 {
			text = joined(text, "found "+strings.Join(l.Found, " "))
		}
		all = append(all, line{at: l.Time, event: l.Event, what: "look", text: text})
	}
	for _, d := range s.Decisions {
		text := d.By + ": " + d.What
		if d.Why != "" {
			text += " (" + d.Why + ")"
		}
		all = append(all, line{at: d.Time, event: d.Event, what: "decision", text: joined(text, d.Result)})
	}
	slices.SortStableFunc(all, func(a, b line) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.event, b.event)) })
	return all
}

func attemptLines(a api.StoryAttempt) []line {
	text := fmt.Sprintf("%d: %s claimed", a.N, a.Op)
	if a.Size > 1 {
		text += fmt.Sprintf(", in one request with %d others", a.Size-1)
	}
	out := []line{{at: a.Claimed, event: a.Event, what: "attempt", text: text}}
	for _, r := range a.Requests {
		out = append(out, line{at: r.Time, event: a.Event, what: "request", text: wire(r)})
	}
	if a.Ended.IsZero() {
		return out
	}
	text = fmt.Sprintf("%d: %s", a.N, joined(a.Outcome, a.Speaker, a.Text))
	end := line{at: a.Ended, event: a.Event, what: "outcome", text: text}
	for _, m := range a.Errors {
		if !strings.Contains(a.Text, m.Text) {
			end.more = append(end.more, m.String())
		}
	}
	return append(out, end)
}

// wire is one request on the wire, in one line.
func wire(r flexi.Request) string {
	status := "no answer"
	if r.Status != 0 {
		status = fmt.Sprint(r.Status)
	}
	text := fmt.Sprintf("%s %s: %s, %s, %d bytes out, %d in, %d ms", r.Method, r.URL, status, r.Outcome, r.Sent, r.Received, r.Millis)
	if r.Status != 0 {
		return text // what the server said stands with the outcome
	}
	return joined(text, r.Error)
}

// compact is a document in one line, its numbers as they were written.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

func problemLines(p *ledger.Problem) []string {
	if p == nil {
		return nil
	}
	out := []string{p.Text}
	for _, m := range p.Errors {
		out = append(out, "Flexi says: "+m.String())
	}
	for _, d := range p.Differ {
		out = append(out, fmt.Sprintf("%s: sent %q, Flexi shows %q", d.Field, d.Sent, d.Found))
	}
	if p.Link != "" {
		out = append(out, "see "+p.Link)
	}
	return out
}

func joined(parts ...string) string {
	kept := slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" })
	return strings.Join(kept, ", ")
}
