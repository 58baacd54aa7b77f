package flexitest

import (
	"net/http"
	"strings"
)

// handle is the server without faults: the refusals in the order in which the real one has them, then the work. commit off
// means that nothing may stay.
func (x *exchange) handle(commit bool) answer {
	if a := x.refusal(); a != nil {
		return x.quiet(*a)
	}
	if x.kind == Write {
		return x.quiet(x.write(commit))
	}
	return x.quiet(x.other())
}

// quiet turns errors into 200 for clients that asked for it.
func (x *exchange) quiet(a answer) answer {
	if a.status >= 400 && a.status < 500 && x.flag("no-http-errors") {
		a.status = http.StatusOK
	}
	return a
}

// refusal is everything that may refuse a request before it is looked at.
func (x *exchange) refusal() *answer {
	s := x.s
	refuse := func(a answer) *answer { return &a }
	if x.badURL {
		return refuse(message(http.StatusBadRequest, "Neplatná adresa.", ""))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := x.admit(); a != nil {
		return a
	}
	switch x.rt.kind {
	case rUnknown:
		return refuse(page(http.StatusNotFound, "404"))
	case rLogin, rRenew, rStatusCheck:
		return nil
	}
	if a := x.loginForm(); a != nil {
		return a
	}
	if x.user = s.authenticate(x); x.user == "" {
		return refuse(unauthorized())
	}
	if f := x.rt.format(x.r); f != "json" && !(f == "xml" && x.speaksXML()) {
		return refuse(x.wrongFormat(f))
	}
	if x.rt.company != "" && x.rt.company != s.opt.Company {
		return refuse(message(http.StatusNotFound, "Firma '"+x.rt.company+"' neexistuje.", ""))
	}
	if x.rt.evidence != "" && (s.catalog.byPath[x.rt.evidence] == nil || s.hides(x.user, x.rt.evidence)) {
		return refuse(message(http.StatusNotFound, "Evidence '"+x.rt.evidence+"' neexistuje.", ""))
	}
	return s.rightsGate(x)
}

// rightsGate needs mu.
func (s *Server) rightsGate(x *exchange) *answer {
	refuse := func(a answer) *answer { return &a }
	switch {
	case x.kind == Write && s.stale[x.user]:
		return refuse(s.staleAnswer())
	case x.kind == Write && s.tooManyUsers():
		return refuse(message(http.StatusForbidden, "Byl překročen počet současně přihlášených uživatelů.", ""))
	case x.kind == Write && s.modes.noWrites:
		return refuse(message(http.StatusPaymentRequired, "Licence neumožňuje zápis přes REST API.", ""))
	case x.kind == Read && s.modes.noWrites:
		return refuse(message(http.StatusNotFound, "Licence neumožňuje přístup přes REST API.", ""))
	case x.rt.evidence != "" && s.modes.forbidden[x.rt.evidence]:
		return refuse(forbidden())
	}
	return nil
}

// authenticate needs mu; "" means nobody.
func (s *Server) authenticate(x *exchange) string {
	if user, password, ok := x.r.BasicAuth(); ok {
		if want, known := s.users[user]; known && want == password {
			return user
		}
		return ""
	}
	return s.userOf(x.sessionID())
}

// speaksXML names the service addresses that answer XML too: clients switch Changes on through them.
func (x *exchange) speaksXML() bool { return x.rt.kind == rChangesSwitch || x.rt.kind == rLogout }

// wrongFormat: without suffix and Accept the server makes a page, with a 200.
func (x *exchange) wrongFormat(f string) answer {
	if f == "html" && x.kind != Write {
		return page(http.StatusOK, "ABRA Flexi")
	}
	return message(http.StatusNotAcceptable, "Formát '"+f+"' není k dispozici.", "")
}

// other is everything but writes of records.
func (x *exchange) other() answer {
	switch x.rt.kind {
	case rStatusCheck:
		return answer{status: http.StatusOK, kind: "application/json", body: []byte(`{"status":"ok"}`)}
	case rLogin:
		return x.s.signIn(x)
	case rRenew:
		return x.s.renew(x)
	case rKeepAlive:
		return jsonAnswer(http.StatusOK, map[string]any{"success": true})
	case rLogout:
		return x.s.logout(x)
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	switch x.rt.kind {
	case rStatus:
		return x.s.status(x)
	case rCompanies, rCompany:
		return x.s.company()
	case rEvidences:
		return x.s.evidenceList(x.user)
	case rProperties:
		return properties(x.s.catalog.byPath[x.rt.evidence])
	case rChanges:
		return x.s.changesSince(x)
	case rChangesSwitch:
		return x.s.switchChanges(x)
	}
	if !strings.Contains("GET HEAD POST PUT", x.r.Method) {
		return message(http.StatusMethodNotAllowed, "Metoda není povolena.", "")
	}
	return x.read()
}
