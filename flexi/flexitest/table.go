package flexitest

import (
	"net/http"
	"strings"
	"time"
)

// Mode is one manner in which a server may differ from the fake as New makes it. Tests range over Modes, so that a new one
// cannot be forgotten by any of them.
type Mode struct {
	Name string
	Does string // one sentence about the server
	// Unknown is the number of the question, among those that no public source answers, to which this is the other answer;
	// 0 = it is known to happen.
	Unknown int
	On      func(*Server) // switches it on; to be called before the first request
}

// Modes is all of them.
func Modes() []Mode {
	var all []Mode
	for _, group := range [][]Mode{answerModes(), travelModes(), admissionModes(), writeModes(), readModes(), partModes(), questionModes(), standingModes()} {
		all = append(all, group...)
	}
	return all
}

func habit(name Habit, unknown int, does string) Mode {
	return Mode{Name: string(name), Does: does, Unknown: unknown, On: func(s *Server) { s.Turn(name, true) }}
}

func answerModes() []Mode {
	return []Mode{
		habit(FailedIsZero, 15, "A refusal counts 0 failed records."),
		habit(NativeAnswers, 15, "Success, counters and ids of an answer are booleans and numbers."),
		habit(ErrorStrings, 15, "A refused record has one error, a plain string."),
		habit(WrappedLists, 15, "Lists are wrapped in the name of their elements, as XML has it."),
		habit(StatsInList, 15, "The counters stand in a list of one."),
		habit(BareErrors, 5, "Errors are words only: no field, no code, no path."),
		habit(ExistsIs409, 16, "A record that exists already is a 409 instead of a 400."),
		habit(UpdateIs200, 8, "Writes that create nothing are answered 200."),
		habit(ResultsReversed, 14, "Results come in another order than the records of the request."),
		habit(EmptySuccess, 15, "A write is done, and the answer counts nothing and names nothing."),
		habit(NothingSaved, 15, "A write is not done, and the answer says success, counts nothing and names nothing."),
	}
}

func travelModes() []Mode {
	return []Mode{
		habit(Chunked, 18, "Answers come in chunks, without a length."),
		habit(Gzip, 18, "Answers are compressed for clients that take it."),
		habit(GzipUnasked, 18, "Answers are compressed for everybody."),
		{Name: "bodies-limited", Unknown: 18, Does: "Requests of more than 2000 bytes are a 413 of the box in front.",
			On: func(s *Server) { s.LimitBodies(2000) }},
		{Name: "addresses-limited", Unknown: 18, Does: "Addresses of more than 200 characters are a 414.",
			On: func(s *Server) { s.LimitAddresses(200) }},
		{Name: "proxy-impatient", Unknown: 18, Does: "Writes take 2 s, and a proxy answers 504 after one of them.",
			On: func(s *Server) { s.Slow(2 * time.Second); s.ProxyPatience(time.Second) }},
		{Name: "answer-500-done", Unknown: 17, Does: "Every write is done and answered 500.",
			On: func(s *Server) { s.OnWrite(0, nil, Fault{Kind: CommitThenStatus}) }},
		{Name: "answer-500-undone", Unknown: 17, Does: "Every write is answered 500 and not done.",
			On: func(s *Server) { s.OnWrite(0, nil, Fault{Kind: ServerError}) }},
		{Name: "answer-502-done", Unknown: 17, Does: "Every write is done and answered 502 by the proxy.",
			On: func(s *Server) { s.OnWrite(0, nil, Fault{Kind: CommitThenStatus, Status: http.StatusBadGateway}) }},
		{Name: "answer-lost", Unknown: 17, Does: "Every write is done and its connection reset.",
			On: func(s *Server) { s.OnWrite(0, nil, Fault{Kind: ResetAfterCommit}) }},
		{Name: "commits-late", Unknown: 24, Does: "Every write is answered 504 and done a second later.",
			On: func(s *Server) {
				s.OnWrite(0, nil, Fault{Kind: LateCommit, Status: http.StatusGatewayTimeout, Delay: time.Second})
			}},
		{Name: "answer-503-done", Unknown: 16, Does: "Every write is done and answered 503 by the proxy.",
			On: func(s *Server) {
				s.OnWrite(0, nil, Fault{Kind: CommitThenStatus, Status: http.StatusServiceUnavailable})
			}},
	}
}

func admissionModes() []Mode {
	return []Mode{
		{Name: "daily-limit-429", Unknown: 1, Does: "After 20 requests of a day everything is a 429 without Retry-After.",
			On: func(s *Server) { s.LimitPerDay(20, http.StatusTooManyRequests) }},
		{Name: "daily-limit-402", Unknown: 1, Does: "After 20 requests of a day everything is a 402.",
			On: func(s *Server) { s.LimitPerDay(20, http.StatusPaymentRequired) }},
		{Name: "daily-limit-403", Unknown: 1, Does: "After 20 requests of a day everything is a 403.",
			On: func(s *Server) { s.LimitPerDay(20, http.StatusForbidden) }},
		{Name: "one-at-a-time", Unknown: 2, Does: "Requests take 100 ms, and a second one at once is a 429 without Retry-After.",
			On: func(s *Server) { s.Slow(100 * time.Millisecond); s.LimitAtOnce(1, "") }},
		{Name: "one-at-a-time-seconds", Unknown: 2, Does: "Requests take 100 ms, and a second one at once is a 429 with Retry-After in seconds.",
			On: func(s *Server) { s.Slow(100 * time.Millisecond); s.LimitAtOnce(1, "2") }},
		{Name: "one-at-a-time-date", Unknown: 2, Does: "Requests take 100 ms, and a second one at once is a 429 with a date that is over as Retry-After.",
			On: func(s *Server) {
				s.Slow(100 * time.Millisecond)
				s.LimitAtOnce(1, s.now().UTC().Format(http.TimeFormat))
			}},
		{Name: "too-many-users", Unknown: 3, Does: "Every seventh write is a 403: too many users.",
			On: func(s *Server) { s.LimitUsers(7) }},
		{Name: string(StaleIsError), Unknown: 4, Does: "A stale role speaks in an error of a record that is not named; our user's role is stale at first.",
			On: func(s *Server) { s.Turn(StaleIsError, true); s.MakeStale(s.opt.User) }},
		{Name: "stale-no-import", Unknown: 4, Does: "A stale role is refused as an evidence that takes no import; our user's role is stale at first.",
			On: func(s *Server) { s.StaleSays("Import není povolen.", codeNoImport); s.MakeStale(s.opt.User) }},
		{Name: string(StaleIs403), Unknown: 4, Does: "A stale role is a 403; our user's role is stale at first.",
			On: func(s *Server) { s.Turn(StaleIs403, true); s.MakeStale(s.opt.User) }},
		{Name: "stale-role", Unknown: 4, Does: "A stale role is a 400 with a bare message; our user's role is stale at first.",
			On: func(s *Server) { s.MakeStale(s.opt.User) }},
		{Name: "maintenance", Unknown: 16, Does: "Everything is a 503 in the ERP's envelope for 20 s.",
			On: func(s *Server) { s.Maintain(20 * time.Second) }},
		habit(LoginRedirect, 0, "Requests that do not ask for HTTP authentication are sent to the login page by a 302."),
		habit(LoginPage, 0, "Requests that do not ask for HTTP authentication get the login page behind a 200."),
		habit(LoginFormOnly, 23, "Logins are read as a form only."),
		habit(LoginJSONOnly, 23, "Logins are read as JSON only."),
	}
}

func writeModes() []Mode {
	return []Mode{
		habit(DropUnknownFields, 0, "Fields that the evidence does not have are dropped without a word."),
		habit(AnyCaseTags, 11, "Names of evidences and fields are read in any letter case."),
		habit(RemoveAllNeedsRows, 13, "removeAll does nothing where nothing comes in the place of what it removes."),
		habit(RowsByPosition, 13, "Rows without an id replace those that stand in their place."),
		habit(RowsOwnNameOnly, 13, "Rows are read under the evidence's own name only."),
		habit(RowsCommonNameOnly, 13, "Rows are read as polozkyDokladu only."),
		habit(CodeMustExist, 7, "A record that is named by its code must exist."),
		habit(NumbersPerTable, 5, "Numbers are unique in all evidences that share a table."),
		habit(NumbersPerYear, 5, "Numbers are unique in a year only."),
		habit(BurnNumbers, 19, "A refused write keeps the number that it drew."),
		habit(LowerCodeRefused, 6, "A code with lower case letters is refused."),
		habit(LowerCodeKept, 6, "A code keeps its lower case letters."),
		habit(OneExternalID, 21, "A record carries one external id at most."),
		habit(UUIDPrefixOnly, 21, "The immutable identifier is named uuid:, not key:."),
	}
}

func readModes() []Mode {
	return []Mode{
		habit(RowsNeedRelations, 0, "Rows are shown with relations= only, also where detail= names them."),
		habit(NativeValues, 22, "Lists show numbers and booleans as such, not as strings."),
		habit(OrderReversed, 10, "The letters A and D of order mean the other direction."),
		habit(DetailMoved301, 9, "A record that is read by its code is moved for good (301) to its numeric address."),
		habit(DetailMoved302, 9, "A record that is read by its code is found (302) at its numeric address."),
		habit(QuotesDoubled, 12, "A quote inside a filter's string is written twice, a back-slash is itself."),
		habit(QuotesPlain, 12, "A quote cannot stand inside a filter's string that it ends, a back-slash is itself."),
		habit(BareDeletes, 20, "Changes that delete tell no identifiers but the numeric one."),
		{Name: "shows-late", Unknown: 24, Does: "Reads show what was committed after a second.",
			On: func(s *Server) { s.LookLies(Stale, time.Second) }},
	}
}

// partModes are about one evidence, or about what a refusal and an answer leave out.
func partModes() []Mode {
	const evidence = "faktura-prijata"
	return []Mode{
		{Name: "writes-sick", Does: "Writes of received invoices are a 500.",
			On: func(s *Server) { s.Sick(evidence, Writes, Fault{Kind: ServerError}) }},
		{Name: "records-sick", Does: "Lists of received invoices are a 500.",
			On: func(s *Server) { s.Sick(evidence, Records, Fault{Kind: ServerError}) }},
		{Name: "metadata-sick", Does: "The fields of received invoices cannot be read: 500.",
			On: func(s *Server) { s.Sick(evidence, Metadata, Fault{Kind: ServerError}) }},
		{Name: "evidence-list-sick", Does: "The list of evidences cannot be read: 500.",
			On: func(s *Server) { s.Sick("", Metadata, Fault{Kind: ServerError}) }},
		{Name: "import-refused", Does: "Writes of received invoices are refused: importNotAllowed.",
			On: func(s *Server) { s.RefuseImport(evidence, true) }},
		{Name: "import-disallowed", Does: "Received invoices cannot be imported, and the list of evidences says so.",
			On: func(s *Server) { s.SetImportStatus(evidence, "DISALLOWED") }},
		{Name: "evidence-hidden", Does: "Received invoices are hidden from our user: 404.",
			On: func(s *Server) { s.HideEvidence(evidence, true) }},
		{Name: "evidence-hidden-from-stale", Unknown: 4, Does: "Our user's role is stale at first and does not show received invoices.",
			On: func(s *Server) { s.HideFromStale(evidence, true); s.MakeStale(s.opt.User) }},
		{Name: "bare-refusals", Does: "Refusals of a record are a message for the whole request.",
			On: func(s *Server) { s.BareRefusals(true) }},
		{Name: "updated-beside", Does: "A create counts an updated record beside the created one.",
			On: func(s *Server) { s.UpdatedBeside(true) }},
		{Name: "no-stats", Does: "Answers leave the counters out.", On: func(s *Server) { s.OmitStats(true) }},
		{Name: "request-ids-upper-case", Does: "A request-id is written in upper case.",
			On: func(s *Server) { s.SpellRequestIDs(strings.ToUpper) }},
	}
}

// questionModes are about lists.
func questionModes() []Mode {
	return []Mode{
		{Name: "body-limit-ignored", Does: "limit has no effect in the body of a question.", On: func(s *Server) { s.IgnoreInBody("limit") }},
		{Name: "body-count-ignored", Does: "add-row-count has no effect in the body of a question.",
			On: func(s *Server) { s.IgnoreInBody("add-row-count") }},
		{Name: "limit-ignored", Does: "limit has no effect: a list has twenty rows at most.", On: func(s *Server) { s.IgnoreParams("limit") }},
		{Name: "count-ignored", Does: "add-row-count has no effect.", On: func(s *Server) { s.IgnoreParams("add-row-count") }},
		{Name: "version-ignored", Does: "add-global-version has no effect.", On: func(s *Server) { s.IgnoreParams("add-global-version") }},
		{Name: "unknown-ext-refused", Does: "A filter with or that names an unknown external id is a 400.",
			On: func(s *Server) { s.RefuseUnknownExt(true) }},
		{Name: "value-refused", Unknown: 12, Does: "A filter that names FV26-0110 is a 400.", On: func(s *Server) { s.RefuseFilterBy("FV26-0110") }},
		{Name: "external-ids-empty", Does: "Records without external ids show an empty list of them.",
			On: func(s *Server) { s.ShowEmptyExternalIDs(true) }},
		{Name: "external-ids-hidden", Does: "Every record shows an empty list of external ids.",
			On: func(s *Server) { s.HideExternalIDs(true) }},
		{Name: "answers-limited", Unknown: 18, Does: "Lists of more than 8000 bytes are a 413.",
			On: func(s *Server) { s.LimitAnswers(8000, http.StatusRequestEntityTooLarge) }},
		{Name: "records-padded", Does: "Every record of a list is 20000 bytes longer.", On: func(s *Server) { s.PadRecords(20000) }},
	}
}

// standingModes are those that are older than this table; see modes.go.
func standingModes() []Mode {
	return []Mode{
		{Name: "slow", Does: "Every request takes 500 ms, a write 20 ms more for each document.",
			On: func(s *Server) { s.Slow(500 * time.Millisecond); s.SlowDocuments(20 * time.Millisecond) }},
		{Name: "reads-empty", Does: "Lists are empty, as for a user who may not see the records.",
			On: func(s *Server) { s.LookLies(LostRights, 0) }},
		{Name: "reads-some", Does: "Records with an odd id are left out of lists.", On: func(s *Server) { s.LookLies(OnlySome, 0) }},
		{Name: "reads-no-ids", Does: "Records that are asked for by their numeric id are left out.",
			On: func(s *Server) { s.LookLies(LoseControl, 0) }},
		{Name: "no-fence", Does: `"@update":"fail" is taken for "ok".`, On: func(s *Server) { s.IgnoreFence(true) }},
		{Name: "no-external-ids", Does: "External ids of writes are lost.", On: func(s *Server) { s.DropExternalIDs(true) }},
		{Name: "no-request-ids", Does: "Answers leave out which record a result belongs to.", On: func(s *Server) { s.OmitRequestIDs(true) }},
		{Name: "nameless-errors", Does: "Refusals leave out which record they are about.", On: func(s *Server) { s.NamelessErrors(true) }},
		{Name: "no-licence", Does: "The licence does not cover writing: writes are 402, reads of records 404.",
			On: func(s *Server) { s.SetLicence(false) }},
		{Name: "no-right", Does: "The user has no right to received invoices: 403.", On: func(s *Server) { s.SetRight("faktura-prijata", false) }},
		{Name: "column-read-only", Does: "The user may not write the column datSplat of issued invoices; it is dropped.",
			On: func(s *Server) { s.ReadOnlyColumns("faktura-vydana", "datSplat") }},
		{Name: "period-locked", Does: "The first week of March 2026 is locked.", On: func(s *Server) { s.LockPeriod("2026-03-01", "2026-03-07") }},
		{Name: "down-a-while", Does: "The port is closed for 20 s.", On: func(s *Server) { s.DownFor(20 * time.Second) }},
		{Name: "used-numbers-refused", Unknown: 5, Does: "A number that another record of the evidence has is refused.",
			On: func(s *Server) { s.AllowUsedNumbers(false) }},
	}
}
