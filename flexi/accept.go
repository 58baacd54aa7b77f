package flexi

import "strings"

// success is a 2xx. The status line proves nothing here: only a whole envelope that counts what was asked for and names
// our documents, and nothing else, is an acceptance.
func success(a answer, p Prepared, permit Permit, d decoded) verdict {
	switch {
	case !a.whole:
		return maybe(NoAnswer, "half an answer")
	case !d.ok:
		return maybe(NoAnswer, "a success without the ERP's envelope")
	case p.write.Op == Create && d.stats["created"] < int64(len(p.docs)) && (d.stats["updated"] > 0 || d.stats["skipped"] > 0):
		v := maybe(NoAnswer, "a create was answered as an update: the fence does not hold")
		v.broken = true
		return v
	case !d.said:
		return maybe(NoAnswer, "an envelope that does not say whether it succeeded")
	case !d.success:
		return failureInside(p, permit, d)
	case a.sent > 0 && a.sent < int64(len(p.body)):
		return maybe(NoAnswer, "a success before the request was sent whole")
	}
	if why, odd := mismatch(p, d.envelope); why != "" {
		v := maybe(NoAnswer, "a success that does not fit the request: "+why)
		v.odd = odd
		return v
	}
	return verdict{outcome: Accepted}
}

// failureInside is a success=false behind a status that says otherwise.
func failureInside(p Prepared, permit Permit, d decoded) verdict {
	switch {
	case d.counted():
		return maybe(NoAnswer, "a failure that counts something done")
	case saysNoImport(d.all()):
		return notImportable(p, permit)
	case p.write.Op == Create && saysExists(d.all()):
		return verdict{outcome: Rejected, exists: true, words: "a record with this identifier exists already"}
	case len(d.recordErrors()) > 0:
		return rejected()
	}
	return maybe(NoAnswer, "a failure that names no record")
}

// mismatch says in what the answer differs from the request; "" = it fits. odd is a difference in manners alone: the same
// work may be told so, and a look says whether it was done.
func mismatch(p Prepared, env envelope) (why string, odd bool) {
	n := int64(len(p.docs))
	switch {
	case env.odd:
		return "a counter that is no number", false
	case len(env.recordErrors()) > 0:
		return "errors in it", false
	case int64(len(env.results)) != n:
		return "not one result for each document", false
	}
	ids, requests := make(map[string]bool), make(map[int]bool)
	spelling := ""
	for _, r := range env.results {
		if !isDigits(r.id) || ids[r.id] {
			return "an id that is none, or twice the same", false
		}
		ids[r.id] = true
		if r.requestID == "" {
			continue
		}
		i := docOf(p, r.requestID)
		if i < 0 || requests[i] {
			spelling = "a request-id that was not sent"
			continue
		}
		requests[i] = true
	}
	if why := identities(p, env, ids); why != "" {
		return why, false
	}
	switch {
	case spelling != "":
		return spelling, len(env.stats) == 0 || counters(p.write.Op, env.stats, n) || beside(p.write.Op, env.stats, n)
	case counters(p.write.Op, env.stats, n):
		return "", false
	case len(env.stats) == 0:
		return "no counters", true
	}
	return "other counters", beside(p.write.Op, env.stats, n)
}

// beside: all that was asked for is counted, and something else too, such as the partner that a new document touched.
func beside(op Op, stats map[string]int64, n int64) bool {
	asked := stats["created"]
	switch op {
	case Update, Attach:
		asked = stats["updated"]
	case Storno, Delete:
		asked = max(stats["updated"], stats["deleted"])
	}
	return asked == n && stats["failed"] == 0
}

// identities compares Flexi ids and numbers with those that were sent.
func identities(p Prepared, env envelope, ids map[string]bool) string {
	codes := make(map[string]int)
	for i, d := range p.docs {
		if p.write.Op != Create && !ids[p.write.Docs[i].FlexiID] {
			return "the id of another record"
		}
		codes[d.code]++
	}
	for _, r := range env.results {
		if r.code == "" {
			continue
		}
		code := NormaliseNumber("", r.code)
		switch {
		case codes[code] > 0:
			codes[code]--
		case codes[""] > 0: // one document left its number to the ERP: any code may be its own
			codes[""]--
		default:
			return "the number of another document"
		}
	}
	return ""
}

// counters reports whether the answer counts exactly what was asked for. Missing counters are zero; all missing never
// fit. What a storno or delete counts as differs between versions of the ERP.
func counters(op Op, stats map[string]int64, n int64) bool {
	created, updated, deleted := stats["created"], stats["updated"], stats["deleted"]
	if stats["failed"] != 0 || stats["skipped"] != 0 {
		return false
	}
	switch op {
	case Create:
		return created == n && updated == 0 && deleted == 0
	case Update, Attach:
		return created == 0 && updated == n && deleted == 0
	case Storno, Delete:
		return created == 0 && updated+deleted == n
	}
	return false
}

// docOf finds the document that a request-id names: one of its identifiers, or several in brackets. -1 = none of ours.
func docOf(p Prepared, requestID string) int {
	names := []string{requestID}
	if strings.HasPrefix(requestID, "[") && strings.HasSuffix(requestID, "]") {
		names = strings.Split(requestID[1:len(requestID)-1], "][")
	}
	found := -1
	for _, name := range names {
		i := indexOf(p, name)
		if i < 0 || found >= 0 && i != found {
			return -1
		}
		found = i
	}
	return found
}

func indexOf(p Prepared, id string) int {
	for i, d := range p.docs {
		for _, own := range d.ids {
			if own == id {
				return i
			}
		}
	}
	return -1
}

// docResults gives each document of the request its part of the answer. In an answer about several, only a request-id
// says whose a result is; errors of a group are told by what they name and by place as well, since they decide nothing but
// who goes alone next.
func docResults(p Prepared, env envelope, o Outcome) []DocResult {
	out := make([]DocResult, len(p.docs))
	for i, r := range env.results {
		at := docOf(p, r.requestID)
		switch {
		case at >= 0:
		case r.requestID != "":
			continue
		case len(p.docs) == 1 && len(env.results) == 1:
			at = 0
		case o != Accepted && blamed(p, r.errors) >= 0:
			at = blamed(p, r.errors)
		case o != Accepted && len(env.results) == len(p.docs):
			out[i].Errors = append(out[i].Errors, r.errors...)
			continue
		default:
			continue
		}
		out[at].Errors = append(out[at].Errors, r.errors...)
		if o == Accepted {
			out[at].FlexiID, out[at].Number = r.id, r.code
		}
	}
	if o == Accepted && p.write.Op != Create {
		for i, d := range p.write.Docs {
			out[i].FlexiID = d.FlexiID
		}
	}
	return out
}

// blamed finds the one document that errors without a request-id name: by an identifier in the brackets of a path, or by
// the number that the ERP puts in brackets behind its words. -1 = none, or more than one.
func blamed(p Prepared, errs []Message) int {
	found := -1
	for _, m := range errs {
		at := indexOf(p, inBrackets(m.Path))
		if at < 0 {
			at = numbered(p, inBrackets(m.Text))
		}
		switch {
		case at < 0 || at == found:
		case found >= 0:
			return -1
		default:
			found = at
		}
	}
	return found
}

// inBrackets is the text in the last pair of brackets.
func inBrackets(s string) string {
	end := strings.LastIndex(s, "]")
	begin := strings.LastIndex(s[:max(end, 0)], "[")
	if begin < 0 {
		return ""
	}
	return s[begin+1 : end]
}

// numbered is the only document of a request with a number.
func numbered(p Prepared, number string) int {
	found := -1
	number = NormaliseNumber("", number)
	for i, d := range p.docs {
		if d.code == "" || d.code != number {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}
