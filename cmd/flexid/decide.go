package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"flexid/cmd/internal/api"
	"flexid/verify"

	"github.com/spf13/cobra"
)

// deciding is one call of a decision.
type deciding struct {
	p    *program
	c    *cobra.Command
	what verify.What
	act  api.Act
	cl   *client

	dryRun, yes bool
	count       int    // -1 = not said
	revision    uint64 // of the one document, as it was seen; 0 = not said
}

func (p *program) decision(what verify.What, short string) *cobra.Command {
	c := &cobra.Command{
		Use: string(what) + " [EVIDENCE/[SOURCE:]KEY…]", Short: short,
		Long: short + ".\n\nName documents, or choose from what `flexid maybe list` shows with filters. What filters choose is listed with\n" +
			"--dry-run; else their number has to be confirmed, in a script with --yes or --count. Each of several documents is decided\n" +
			"as it was seen: one that changed meanwhile is left alone and said; a single one too with --revision, which\n" +
			"`flexid docs show` tells.\n\n" +
			"Exit: 0 all were decided, 3 nothing matches, 75 some can be decided later, 1 some were refused.",
		Example: fmt.Sprintf("  flexid maybe %s faktura-vydana/FV-1 --why 'checked in Flexi'\n"+
			"  flexid maybe %s --reason conflict --cause gone --dry-run", what, what),
	}
	c.ValidArgsFunction = p.completeWaiting
	p.filterFlags(c)
	act := p.person(c)
	d := deciding{p: p, c: c, what: what}
	c.Flags().BoolVar(&d.dryRun, "dry-run", false, "show what would be decided, and decide nothing")
	c.Flags().BoolVarP(&d.yes, "yes", "y", false, "do not ask")
	c.Flags().IntVar(&d.count, "count", -1, "decide only if the filters choose so many documents; asks nothing")
	c.Flags().Uint64Var(&d.revision, "revision", 0, "of one document, as `flexid docs show` told it: decide only if it is still that")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("revision") && (len(args) != 1 || d.dryRun || d.revision == 0) {
			return usagef("--revision is of the one document that is decided")
		}
		if c.Flags().Changed("count") && d.count < 0 {
			return usagef("--count is a number of documents, not %d", d.count)
		}
		var err error
		if d.act, err = act(); err != nil && !d.dryRun { // a dry run decides nothing, so nobody has to stand for it
			return err
		}
		return d.run(args)
	}
	return c
}

func (d *deciding) run(args []string) error {
	d.ownReason()
	q, filtered, err := filterValues(d.c.Flags())
	switch {
	case err != nil:
		return err
	case len(args) == 0 && !filtered:
		return usagef("usage: %s; or choose documents with filters such as --reason and --cause", d.c.UseLine())
	case len(args) > 0 && filtered:
		return usagef("name documents or choose them with filters, not both")
	}
	args = unique(args) // a document named twice would have changed when its second turn came
	paths := make([]string, len(args))
	for i, arg := range args {
		if paths[i], err = addressPath(arg); err != nil {
			return err
		}
	}
	if d.what != verify.DecideLook && !d.dryRun {
		if err := needReason(d.act); err != nil {
			return err
		}
	}
	if d.cl, err = d.p.client(); err != nil {
		return err
	}
	if len(args) == 1 && !d.dryRun {
		return d.one(paths[0])
	}
	request := api.DecideRequest{DryRun: true}
	if filtered {
		request.Filter = queueFilter(q)
	}
	for _, arg := range args {
		request.Documents = append(request.Documents, api.Target{Address: arg})
	}
	return d.many(request)
}

// unique leaves out what stands there a second time.
func unique(words []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		again := seen[w]
		seen[w] = true
		return again
	})
}

// ownReason takes --reason as the person's own reason where --why is not said and no reason of a document is meant, as it
// was before documents could be chosen.
func (d *deciding) ownReason() {
	flag := d.c.Flags().Lookup("reason")
	words, err := d.c.Flags().GetStringArray("reason")
	meant := func(w string) bool {
		first, _, _ := strings.Cut(w, ",")
		return slices.Contains(api.Reasons(), first)
	}
	if err != nil || d.act.Why != "" || d.dryRun || slices.ContainsFunc(words, meant) {
		return
	}
	d.act.Why = strings.TrimSpace(strings.Join(words, " "))
	flag.Changed = false
}

// one decides about a single document, whose row is then the answer.
func (d *deciding) one(path string) error {
	var row api.Row
	d.act.Revision = d.revision
	if err := d.cl.post(d.c.Context(), "/api/v1/queue/"+path+"/"+string(d.what), d.act, &row); unheard(err) {
		return &exitError{exitTryAgain, fmt.Errorf("%w; whether it was decided is not known: `flexid docs show` tells", err)}
	} else if err != nil {
		return err
	}
	return d.p.rowNow(row)
}

// unheard: the request may have reached the daemon, and no whole answer came back.
func unheard(err error) bool {
	var said *api.Problem
	var code *exitError
	var wire *net.OpError
	return err != nil && !errors.As(err, &said) && !errors.As(err, &code) && !(errors.As(err, &wire) && wire.Op == "dial")
}

// many looks first at what there is to decide, and decides then what it has seen.
func (d *deciding) many(request api.DecideRequest) error {
	pr := d.p.printer("evidence", "source", "key", "number", "state", "reason", "cause", "result", "text")
	show := func(x *api.Decided) {
		pr.row(x, x.Evidence, x.Source, x.Key, x.Number, x.State, x.Reason, x.Cause, x.Result, x.Text)
	}
	var targets []api.Target
	counts := map[string]int{}
	err := d.ask(request, func(x api.Decided) {
		counts[x.Result]++
		if d.dryRun || x.Result != api.ResultWould {
			show(&x)
		}
		if x.Result == api.ResultWould {
			targets = append(targets, api.Target{Evidence: x.Evidence, Source: x.Source, Key: x.Key, Revision: x.Revision})
		}
	})
	if err != nil && d.c.Context().Err() != nil {
		return &exitError{exitTryAgain, errors.New("stopped; nothing was decided")}
	} else if err != nil {
		return err
	}
	if d.dryRun {
		if err := pr.end(); err != nil {
			return err
		}
		d.p.say("%s: %s, nothing was changed", d.what, many(len(targets), "document"))
		return d.p.nothing(pr.n, "nothing matches")
	}
	if request.Filter != nil && len(targets) > 0 {
		if err := d.confirmed(len(targets)); err != nil {
			return err
		}
	}
	delete(counts, api.ResultWould)
	const chunk = 1000 // each has the time limit of one request
	heard := 0
	for part := range slices.Chunk(targets, chunk) {
		err := d.ask(api.DecideRequest{By: d.act.By, Why: d.act.Why, Documents: part}, func(x api.Decided) {
			counts[x.Result]++
			heard++
			show(&x)
		})
		if err != nil {
			_ = pr.end() // what is known is shown; the error says that it is not all
			return d.cutOff(counts, len(targets)-heard, err)
		}
	}
	if err := pr.end(); err != nil {
		return err
	}
	return d.ended(counts)
}

// confirmed asks for the number: it shows that somebody has read how many documents it is about.
func (d *deciding) confirmed(n int) error {
	switch {
	case d.count >= 0 && d.count != n:
		return &exitError{exitFailed, fmt.Errorf("%s match, not %d: nothing was changed; --dry-run shows them", many(n, "document"), d.count)}
	case d.count == n || d.yes:
		return nil
	}
	if !d.p.canAsk() {
		return usagef("%s match: nothing was changed; --yes or --count %d decides about them, --dry-run shows them", many(n, "document"), n)
	}
	line, err := d.p.ask(fmt.Sprintf("%s %s as %s? Type %d to go on: ", d.what, many(n, "document"), d.act.By, n))
	if err != nil {
		return err
	}
	if line != strconv.Itoa(n) {
		return &exitError{exitFailed, errors.New("nothing was changed")}
	}
	return nil
}

func (d *deciding) ask(request api.DecideRequest, each func(api.Decided)) error {
	resp, err := d.cl.do(d.c.Context(), http.MethodPost, "/api/v1/queue/"+string(d.what)+"?format=ndjson", request)
	if err != nil {
		return err
	}
	return lines(resp, each)
}

// cutOff says what is known of a decision whose answer broke off, at the daemon or by Ctrl-C. Of the rest some may have been
// decided all the same.
func (d *deciding) cutOff(counts map[string]int, unheard int, err error) error {
	d.p.say("%s was cut off: %s", d.what, joinedBy(", ", results(counts), fmt.Sprintf("%d not heard of, which may be decided or not", unheard)))
	return &exitError{exitTryAgain, fmt.Errorf("%w; %s", err, d.repeat())}
}

// repeat says how to go on with what is not decided yet.
func (d *deciding) repeat() string {
	text := "the same command may be repeated"
	switch d.what {
	case verify.DecideLook:
	case verify.DecideNote:
		text += ": what is done gets the note once more"
	default:
		text += ": what is decided already is left alone"
	}
	if d.count >= 0 {
		text += "; --count is then the number of the rest"
	}
	return text
}

// results is how many went which way.
func results(counts map[string]int) string {
	var parts []string
	for _, r := range []string{api.ResultDone, api.ResultRefused, api.ResultChanged, api.ResultLater, api.ResultMissing, api.ResultFailed} {
		if n := counts[r]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, r))
		}
	}
	return strings.Join(parts, ", ")
}

// ended says how many went which way, and gives the exit code.
func (d *deciding) ended(counts map[string]int) error {
	text := results(counts)
	if text == "" {
		return d.p.nothing(0, "nothing matches; `flexid maybe list` shows what waits")
	}
	d.p.say("%s: %s", d.what, text)
	if counts[api.ResultChanged]+counts[api.ResultLater]+counts[api.ResultFailed] > 0 {
		d.p.say("%s", d.repeat())
	}
	switch {
	case counts[api.ResultRefused]+counts[api.ResultFailed] > 0:
		return &exitError{code: exitFailed}
	case counts[api.ResultChanged]+counts[api.ResultLater] > 0:
		return &exitError{code: exitTryAgain}
	case counts[api.ResultDone] == 0:
		return &exitError{code: exitNothing}
	case counts[api.ResultMissing] > 0:
		return &exitError{code: exitFailed}
	}
	return nil
}
