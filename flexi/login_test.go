package flexi

import (
	"strings"
	"testing"
)

// The server's words about a login are shown, the password in them is not, and no answer makes a session that is none.
func TestLoginAnswers(t *testing.T) {
	const good = `{"success":true,"authSessionId":"abc123"}`
	for name, tc := range map[string]struct {
		status        int
		headers, body string
		want          Outcome
		says          string
	}{
		"good":                          {200, "", good, Accepted, ""},
		"text for true":                 {200, "", `{"success":"true","authSessionId":"abc123","refreshToken":"r"}`, Accepted, ""},
		"nothing about it":              {201, "", `{"authSessionId":"abc123"}`, Accepted, ""},
		"refused":                       {401, "", `{"success":false,"errors":{"reason":"heslo tajne nesedí"}}`, Blocked, "heslo … nesedí"},
		"refused in the ERP's envelope": {401, "", `{"winstrom":{"success":"false","message":"tajne"}}`, Blocked, ": …"},
		"refused by a 200":              {200, "", `{"success":false,"errors":{"reason":"ne"}}`, Blocked, "ne"},
		"too many users":                {403, "", `{"success":false,"errors":{"reason":"plno"}}`, Blocked, "plno"},
		"another session":               {302, "Location: /login-logout/login\r\n", "", Blocked, "redirect"},
		"busy":                          {429, "", "", Refused, "429"},
		"trouble":                       {500, "", "", Refused, "500"},
		"a page":                        {200, "", htmlBody, Refused, "no session"},
		"no id":                         {200, "", `{"success":true}`, Refused, "no session"},
		"an id that breaks its header":  {200, "", `{"success":true,"authSessionId":"a\r\nX: y"}`, Refused, "no session"},
		"a token that does":             {200, "", `{"success":true,"authSessionId":"a","refreshToken":"r; x"}`, Refused, "no session"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRaw(t, func(c *rawConn) {
				r, err := c.request()
				switch {
				case err != nil:
				case strings.HasPrefix(r.head, "POST /login-logout/login.json "):
					c.answerWith(tc.status, tc.headers, tc.body)
				default:
					c.answer(200, `{"companies":{"company":{"dbNazev":"demo","id":"1"}}}`)
				}
			})
			c := testClient(t, s.url(), func(o *Options) { o.Session, o.User = true, "joe:x" })
			conn, err := c.Dial(t.Context())
			if tc.want == Accepted {
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				return
			}
			e := asError(t, err)
			if e.Outcome != NotSent || OutcomeOf(e.Err) != tc.want || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "tajne") {
				t.Errorf("%s in %s: %v", OutcomeOf(e.Err), e.Outcome, err)
			}
			_, _, reqs := s.seen()
			if len(reqs) != 1 || string(reqs[0].body) != `{"password":"tajne","username":"joe:x"}` || reqs[0].header("Authorization") != "" {
				t.Errorf("requests %+v", reqs)
			}
		})
	}
}

func FuzzHeaderValue(f *testing.F) {
	f.Add("abc")
	f.Add("a\r\nb")
	f.Fuzz(func(t *testing.T, s string) {
		if headerValue(s) && (s == "" || strings.ContainsAny(s, "\r\n\x00 ;,\"")) {
			t.Errorf("%q would break out of its header", s)
		}
	})
}
