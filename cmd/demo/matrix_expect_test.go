package main

import "flexid/verify/ledger"

// expectations is what flexid must do in each mode; see TestDemoInEveryMode.
func expectations() map[string]expected {
	out := map[string]expected{"healthy": {}}
	for _, group := range []map[string]expected{answersExpected(), outagesExpected(), refusalsExpected(), booksExpected(), readsExpected()} {
		for name, e := range group {
			out[name] = e
		}
	}
	return out
}

// goesOn: such a server makes no difference to the run.
func goesOn(names ...string) map[string]expected {
	out := map[string]expected{}
	for _, name := range names {
		out[name] = expected{}
	}
	return out
}

// answersExpected: another shape of an answer is read all the same; what tells nothing is looked up.
func answersExpected() map[string]expected {
	out := goesOn("failed-is-zero", "native-answers", "error-strings", "wrapped-lists", "stats-in-list", "bare-errors", "exists-is-409",
		"update-is-200", "results-reversed", "chunked", "gzip", "no-request-ids", "nameless-errors", "request-ids-upper-case", "updated-beside",
		"no-stats")
	// Every answer is as good as none, so each write is looked up; admission lets one through at a time.
	out["empty-success"] = expected{stops: []string{"outage"}, later: true}
	out["nothing-saved"] = expected{stops: []string{"outage"}, parks: []ledger.Reason{ledger.Unknown}, unlucky: true}
	// Nothing can be read: nothing is sent.
	out["gzip-unasked"] = expected{stops: []string{"outage"}}
	return out
}

// outagesExpected: what was saved is found, and goes on at the pace of the looks; what was not saved waits for the breaker.
// The document that Flexi is to refuse is never refused where each answer is a 500: a person gets it.
func outagesExpected() map[string]expected {
	saved := expected{stops: []string{"outage"}, later: true, parks: []ledger.Reason{ledger.Unknown}, unlucky: true, maybes: true}
	return map[string]expected{
		"answer-500-done": saved, "answer-502-done": saved, "answer-503-done": saved, "answer-lost": saved, "commits-late": saved,
		"proxy-impatient":   saved,
		"answer-500-undone": {stops: []string{"outage"}, parks: []ledger.Reason{ledger.Unknown}, unlucky: true},
		"slow":              {later: true, stops: []string{"outage"}},
		"down-a-while":      {stops: []string{"outage"}, later: true},
		"maintenance":       {stops: []string{"outage"}, later: true},
		"writes-sick":       {stops: []string{"outage"}, later: true, parks: []ledger.Reason{ledger.Unknown}},
		"records-sick":      {stops: []string{"outage"}},
		"metadata-sick":     {stops: []string{"outage"}},
		// Nobody knows what may be imported.
		"evidence-list-sick": {stops: []string{"outage"}},
	}
}

// refusalsExpected: who is not let in says so, and goes on when he is.
func refusalsExpected() map[string]expected {
	out := goesOn("stale-role", "stale-no-import", "evidence-hidden-from-stale", "login-redirect", "login-page", "bodies-limited", "addresses-limited")
	for name, e := range map[string]expected{
		// A second try in another form would be a second wrong password.
		"login-form-only": {session: true, stops: []string{"login"}}, "login-json-only": {session: true},
		"daily-limit-429": {stops: []string{"patience"}}, "daily-limit-402": {stops: []string{"licence"}},
		"daily-limit-403": {stops: []string{"right"}},
		"one-at-a-time":   {stops: []string{"patience"}, later: true, maybes: true}, "one-at-a-time-seconds": {stops: []string{"patience"}, later: true, maybes: true},
		"one-at-a-time-date": {stops: []string{"patience"}, later: true, maybes: true},
		// An error of a record is about the document, whatever its words are in the server's language.
		"stale-is-error": {stops: []string{"outage"}, later: true, parks: []ledger.Reason{ledger.Rejected}, maybes: true},
		"stale-is-403":   {stops: []string{"right"}},
		"too-many-users": {stops: []string{"right"}, later: true},
		"no-licence":     {stops: []string{"licence"}}, "no-right": {stops: []string{"right"}},
		// The one document that is refused may be the role's fault: it waits for its evidence's breaker until another is taken.
		"bare-refusals":     {stops: []string{"refused"}, maybes: true},
		"import-refused":    {later: true, parks: []ledger.Reason{ledger.Rejected}, maybes: true},
		"import-disallowed": {parks: []ledger.Reason{ledger.Rejected}},
		"evidence-hidden":   {stops: []string{"right"}},
	} {
		out[name] = e
	}
	return out
}

// booksExpected: what the books do otherwise shows at the read-back, or in the words of a refusal.
func booksExpected() map[string]expected {
	out := goesOn("unknown-fields-dropped", "any-case-tags", "removeall-needs-rows", "rows-by-position", "rows-own-name-only",
		"code-must-exist", "numbers-per-table", "numbers-per-year", "used-numbers-refused", "burn-numbers", "lower-code-refused",
		"lower-code-kept", "one-external-id", "uuid-prefix-only", "no-fence")
	for name, e := range map[string]expected{
		"rows-common-name-only": {later: true, parks: []ledger.Reason{ledger.Rejected}, maybes: true},
		"column-read-only":      {parks: []ledger.Reason{ledger.Conflict}},
		"period-locked":         {later: true, parks: []ledger.Reason{ledger.Rejected}, maybes: true},
		"no-external-ids":       {later: true, parks: []ledger.Reason{ledger.Unknown, ledger.Conflict}, maybes: true},
	} {
		out[name] = e
	}
	return out
}

// readsExpected: a look that cannot tell is said; what shows too little or too much is judged by what it shows.
func readsExpected() map[string]expected {
	out := goesOn("rows-need-relations", "native-values", "order-reversed", "detail-moved-301", "detail-moved-302", "quotes-doubled",
		"quotes-plain", "bare-deletes", "body-limit-ignored", "body-count-ignored", "value-refused", "limit-ignored", "version-ignored", "external-ids-empty",
		"answers-limited", "records-padded")
	for _, name := range []string{"count-ignored", "unknown-ext-refused", "reads-no-ids"} {
		out[name] = expected{stops: []string{"looks"}}
	}
	out["external-ids-hidden"] = expected{later: true, parks: []ledger.Reason{ledger.Unknown, ledger.Conflict}, maybes: true, unlucky: true}
	// An update that comes before the record shows finds nothing to change, and what a person changed in the same second does
	// not show either.
	// Where Flexi draws the number, the last document in doubt waits for a later one to prove the fence.
	out["shows-late"] = expected{stops: []string{"outage"}, later: true, maybes: true, parks: []ledger.Reason{ledger.Conflict}, unlucky: true}
	out["reads-empty"] = expected{stops: []string{"outage"}, later: true,
		parks: []ledger.Reason{ledger.Unknown, ledger.Conflict}, maybes: true}
	out["reads-some"] = expected{parks: []ledger.Reason{ledger.Unknown, ledger.Conflict}, maybes: true}
	return out
}
