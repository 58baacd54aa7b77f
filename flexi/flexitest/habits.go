package flexitest

import "maps"

// Habit is a standing way of this server that is otherwise than the fake's own, and that a client may meet at a real one:
// see Modes for what each of them does.
type Habit string

// The habits. Each group stands in the file that carries it out.
const (
	// How answers to writes look (answers.go).
	FailedIsZero    Habit = "failed-is-zero"
	NativeAnswers   Habit = "native-answers"
	ErrorStrings    Habit = "error-strings"
	WrappedLists    Habit = "wrapped-lists"
	StatsInList     Habit = "stats-in-list"
	BareErrors      Habit = "bare-errors"
	UpdateIs200     Habit = "update-is-200"
	ResultsReversed Habit = "results-reversed"
	EmptySuccess    Habit = "empty-success"
	NothingSaved    Habit = "nothing-saved"
	ExistsIs409     Habit = "exists-is-409"

	// How bytes travel (deliver.go).
	Chunked     Habit = "chunked"
	Gzip        Habit = "gzip"
	GzipUnasked Habit = "gzip-unasked"

	// Who is let in (admission.go).
	LoginRedirect Habit = "login-redirect"
	LoginPage     Habit = "login-page"
	LoginFormOnly Habit = "login-form-only"
	LoginJSONOnly Habit = "login-json-only"
	StaleIsError  Habit = "stale-is-error"
	StaleIs403    Habit = "stale-is-403"

	// What a write does (write.go, assign.go, rows.go, number.go).
	DropUnknownFields  Habit = "unknown-fields-dropped"
	AnyCaseTags        Habit = "any-case-tags"
	RemoveAllNeedsRows Habit = "removeall-needs-rows"
	RowsByPosition     Habit = "rows-by-position"
	RowsOwnNameOnly    Habit = "rows-own-name-only"
	RowsCommonNameOnly Habit = "rows-common-name-only"
	CodeMustExist      Habit = "code-must-exist"
	NumbersPerTable    Habit = "numbers-per-table"
	NumbersPerYear     Habit = "numbers-per-year"
	BurnNumbers        Habit = "burn-numbers"
	LowerCodeRefused   Habit = "lower-code-refused"
	LowerCodeKept      Habit = "lower-code-kept"
	OneExternalID      Habit = "one-external-id"
	UUIDPrefixOnly     Habit = "uuid-prefix-only"

	// How reads answer (read.go, render.go, filter_lex.go, changes.go).
	RowsNeedRelations Habit = "rows-need-relations"
	NativeValues      Habit = "native-values"
	OrderReversed     Habit = "order-reversed"
	DetailMoved301    Habit = "detail-moved-301"
	DetailMoved302    Habit = "detail-moved-302"
	QuotesDoubled     Habit = "quotes-doubled"
	QuotesPlain       Habit = "quotes-plain"
	BareDeletes       Habit = "bare-deletes"
)

// habits are the ones in force. The map is replaced, never changed.
type habits struct {
	on     map[Habit]bool
	limits limits
}

// has needs Server.mu.
func (h habits) has(name Habit) bool { return h.on[name] }

// Turn switches a habit on or off.
func (s *Server) Turn(name Habit, on bool) {
	s.setMode(func(m *modes) {
		next := maps.Clone(m.habits.on)
		if next == nil {
			next = map[Habit]bool{}
		}
		next[name] = on
		m.habits.on = next
	})
}

// has is for those who do not hold Server.mu.
func (x *exchange) has(name Habit) bool {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.modes.habits.has(name)
}
