package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"flexid/verify"
)

// maxBody bounds the body of a decision: a name and a sentence.
const maxBody = 64 << 10

func readAct(w http.ResponseWriter, r *http.Request) (Act, error) {
	var a Act
	if err := readBody(w, r, maxBody, &a); err != nil {
		return a, err
	}
	return checkAct(a)
}

// readBody reads one JSON value of at most the given size; an empty body leaves into as it is.
func readBody(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d KiB", most>>10), "")
	case err != nil && !errors.Is(err, io.EOF):
		return newProblem(http.StatusBadRequest, "the body is not readable: "+err.Error(), `send {"by":"your name","why":"the reason"}`)
	}
	return nil
}

func checkAct(a Act) (Act, error) {
	a.By, a.Why = strings.TrimSpace(a.By), strings.TrimSpace(a.Why)
	if a.By == "" {
		return a, newProblem(http.StatusUnprocessableEntity, "who decides is not said", `set "by" to your name (flag --by)`)
	}
	return a, nil
}

// needWhy: an act that changes what becomes of a document or stops everybody's work is no use in a history without its
// reason.
func needWhy(a Act) error {
	if a.Why == "" {
		return newProblem(http.StatusUnprocessableEntity, "no reason is given", `set "why" to the reason (flag --why)`)
	}
	return nil
}

func (s *Server) decide(w http.ResponseWriter, r *http.Request) error {
	b, err := s.backend()
	if err != nil {
		return err
	}
	rest := r.PathValue("rest")
	cut := strings.LastIndexByte(rest, '/')
	if cut < 0 {
		return newProblem(http.StatusNotFound, "no decision in the address", "POST /api/v1/queue/{evidence}/{key}/{decision}")
	}
	what := verify.What(rest[cut+1:])
	if err := knownDecision(what); err != nil {
		return err
	}
	act, err := readAct(w, r)
	if err != nil {
		return err
	}
	if what != verify.DecideLook {
		if err := needWhy(act); err != nil {
			return err
		}
	}
	a, err := s.find(r.Context(), b.Ledger, r.PathValue("evidence")+"/"+rest[:cut])
	if err != nil {
		return err
	}
	row, err := b.Decider.Decide(r.Context(), a, verify.Decision{What: what, By: act.By, Why: act.Why, Revision: act.Revision})
	if err != nil {
		return err
	}
	s.o.Log.Info().Str("document", a.String()).Str("decision", string(what)).Str("by", act.By).Str("why", act.Why).Msg("decision taken")
	return answer(w, RowOf(&row))
}

func knownDecision(what verify.What) error {
	if slices.Contains(verify.Decisions(), what) {
		return nil
	}
	return newProblem(http.StatusNotFound, "unknown decision "+string(what), "one of look, confirm, resend, drop, note")
}

func (s *Server) writes(w http.ResponseWriter, r *http.Request) error {
	b, err := s.backend()
	if err != nil {
		return err
	}
	act, err := readAct(w, r)
	if err != nil {
		return err
	}
	if err := needWhy(act); err != nil {
		return err
	}
	switch verb := r.PathValue("verb"); verb {
	case "stop":
		err = b.Operator.StopWrites(r.Context(), act.Evidence, act.By, act.Why)
	case "resume":
		err = b.Operator.ResumeWrites(r.Context(), act.Evidence, act.By, act.Why)
	default:
		return newProblem(http.StatusNotFound, "unknown act "+verb, "one of stop, resume")
	}
	if err != nil {
		return err
	}
	return answer(w, s.status())
}

func (s *Server) acceptCompany(w http.ResponseWriter, r *http.Request) error {
	b, err := s.backend()
	if err != nil {
		return err
	}
	act, err := readAct(w, r)
	if err != nil {
		return err
	}
	if err := needWhy(act); err != nil {
		return err
	}
	if act.How != "new" && act.How != "restored" {
		return newProblem(http.StatusUnprocessableEntity, `"how" is neither new nor restored`,
			"new: another company took the name; restored: the same company, set back to an earlier state")
	}
	if err := s.asksFor(b, act); err != nil {
		return err
	}
	if err := b.Operator.AcceptCompany(r.Context(), act.How, act.By, act.Why); err != nil {
		return err
	}
	return answer(w, s.status())
}

// asksFor refuses to call the company a new one where nothing says that it is: all that the ledger knows would be history
// by a slip. Who means it names the company.
func (s *Server) asksFor(b *Backend, act Act) error {
	if act.How != "new" || act.Company == s.o.Company {
		return nil
	}
	for _, g := range b.Reporter.Status().Stops {
		if !g.Open && (g.Reason == "company" || g.Reason == "restored") {
			return nil
		}
	}
	return newProblem(http.StatusConflict, "nothing asks for it: Flexi shows the company that the ledger was begun with",
		"nothing was changed; if it is another company all the same, name it: --company "+s.o.Company)
}

func (s *Server) acceptEmpty(w http.ResponseWriter, r *http.Request) error {
	act, err := readAct(w, r)
	if err != nil {
		return err
	}
	if err := needWhy(act); err != nil {
		return err
	}
	if err := s.o.AcceptEmpty(r.Context(), act.By, act.Why); err != nil {
		return err
	}
	return answer(w, s.status())
}
