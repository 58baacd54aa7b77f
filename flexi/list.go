package flexi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Query is a list request.
type Query struct {
	Evidence  string
	Filter    Filter
	Fields    []string // detail=custom; nil = the summary; nested rows as "polozkyFaktury(kod,nazev)"
	Relations []string
	Limit     int // 0 = all
	Start     int
	Order     string // "id@D"
	Lookup    bool   // counted as a look-up instead of a read
	// GlobalVersion asks for the number of the company's last change.
	GlobalVersion bool
}

// Page is the answer to a Query.
type Page struct {
	Records       []Record
	RowCount      int   // rows that the filter selects; -1 = the ERP did not say
	GlobalVersion int64 // 0 = not told
}

// List reads records. The question goes in a body (query.json): in an address, a proxy may rewrite what the filter says.
// A missing list and a row count that contradicts the rows are errors, since "absent" is drawn from what is not there.
// Rows must be judged by the identifiers they carry: a server may ignore a filter.
func (c *Client) List(ctx context.Context, q Query) (Page, error) {
	ask, err := c.listAsk(q)
	if err != nil {
		return Page{}, &Error{Op: "list " + q.Evidence, Outcome: Rejected, Err: err}
	}
	var page Page
	ask.take = func(a answer) error {
		var err error
		page, err = decodePage(q, a.body)
		return err
	}
	if err := c.read(ctx, ask); err != nil {
		return Page{}, err
	}
	return page, nil
}

func (c *Client) listAsk(q Query) (ask, error) {
	switch {
	case !evidenceName.MatchString(q.Evidence):
		return ask{}, fmt.Errorf("%q is not an evidence", q.Evidence)
	case q.Filter.err != nil:
		return ask{}, q.Filter.err
	case q.Limit < 0 || q.Start < 0:
		return ask{}, errors.New("limit or start is negative")
	}
	w := map[string]any{
		"@version":      "1.0",
		"detail":        "summary",
		"limit":         strconv.Itoa(q.Limit), // always: without it the ERP sends twenty rows and no hint of more
		"start":         strconv.Itoa(q.Start),
		"add-row-count": "true",
	}
	if len(q.Fields) > 0 {
		w["detail"] = "custom:" + strings.Join(q.Fields, ",")
	}
	if f := q.Filter.String(); f != "" {
		w["filter"] = f
	}
	if q.Order != "" {
		w["order"] = []string{q.Order}
	}
	if len(q.Relations) > 0 {
		w["relations"] = strings.Join(q.Relations, ",")
	}
	if q.GlobalVersion {
		w["add-global-version"] = "true"
	}
	body, err := plainJSON(map[string]any{"winstrom": w})
	if err != nil {
		return ask{}, err
	}
	kind := "read"
	if q.Lookup {
		kind = "lookup"
	}
	return ask{op: "list " + q.Evidence, kind: kind, method: http.MethodPost,
		path: c.companyPath("/" + q.Evidence + "/query.json?" + addressOf(q)), body: body}, nil
}

// addressOf says in the address too what decides about the validity of a list: a server may not honour it in a body. A proxy
// that rewrites the address can do no harm, since rows and count are compared.
func addressOf(q Query) string {
	s := "auth=http&limit=" + strconv.Itoa(q.Limit) + "&start=" + strconv.Itoa(q.Start) + "&add-row-count=true"
	if q.GlobalVersion {
		s += "&add-global-version=true"
	}
	return s
}

// UnfitError is a list from which nothing can be concluded, though the ERP gave it with success: it will give the same answer
// to the same question again.
type UnfitError struct{ Text string }

func (e *UnfitError) Error() string { return e.Text }

// Unfit says whether an error of List is about the question or its answer, not about how the server is: asked again as it is
// it will fail again. Size is set where a question about less may do.
func Unfit(err error) (size, unfit bool) {
	var u *UnfitError
	if errors.As(err, &u) || errors.Is(err, errAnswerLimit) {
		return true, true
	}
	var e *Error
	if !errors.As(err, &e) {
		return false, false
	}
	switch e.Status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return true, true
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return false, true
	}
	return false, false
}

func decodePage(q Query, body []byte) (Page, error) {
	in, err := root(body, "winstrom")
	if err != nil {
		return Page{}, fmt.Errorf("not a list of the ERP: %w", err)
	}
	w := object(in)
	if w == nil {
		return Page{}, errors.New("not a list of the ERP")
	}
	if ok, said := truth(w["success"]); said && !ok {
		return Page{}, errors.New("the ERP says that it failed")
	}
	page := Page{RowCount: -1}
	if raw, there := w["@rowCount"]; there {
		n, ok := number(raw)
		if !ok || n < 0 {
			return Page{}, fmt.Errorf("row count %q is no number", text(raw))
		}
		page.RowCount = int(n)
	}
	page.GlobalVersion, _ = number(w["@globalVersion"])
	rows, there := w[q.Evidence]
	if !there && page.RowCount != 0 {
		return Page{}, errors.New("an answer without the list that was asked for")
	}
	all := elements(rows)
	for _, raw := range all {
		m := object(raw)
		if m == nil {
			return Page{}, errors.New("a row that is no record")
		}
		page.Records = append(page.Records, Record(m))
	}
	if want := max(page.RowCount-q.Start, 0); q.Limit == 0 && page.RowCount >= 0 && want != len(all) {
		return Page{}, &UnfitError{fmt.Sprintf("the ERP counts %d rows and sent %d", want, len(all))}
	}
	return page, nil
}
