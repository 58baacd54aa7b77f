package config

import (
	"encoding/hex"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// check compares settings with each other and with the machine, and fills in what is derived.
func (l *loader) check(c *Config) {
	wrong := func(name, problem string) { l.fault(find(l.known, Prefix+name), problem) }
	set := func(name string) bool { return l.environ[Prefix+name] != "" }

	l.checkFlexi(&c.Flexi, wrong)
	checkNATS(c.NATS, set, wrong)
	checkHTTP(c, set, wrong)
	l.checkTimes(c)
	l.checkFiles(c)
	l.fillPlaces(c, wrong)

	if set("BATCH_DIR") != set("BATCH_SCHEDULE") {
		wrong("BATCH_SCHEDULE", "and FLEXID_BATCH_DIR need each other")
	}
	if set("WEBHOOK_ADDR") && len(c.Webhook.Sources) == 0 {
		wrong("WEBHOOK_SOURCES", "is empty while FLEXID_WEBHOOK_ADDR is set: nobody could deliver")
	}
	for name, source := range c.Webhook.Source {
		// Without its mapping every delivery of the source would be read as something that it is not.
		if source.MappingFile != "" {
			l.fault(find(l.known, sourcePrefix(name)+"MAPPING_FILE"), "is not supported by this version: the source must send documents (kind token) or events (kind standard) in flexid's own form")
		}
	}
	if !set("WEBHOOK_ADDR") && len(c.Webhook.Sources) > 0 {
		l.warn(Prefix+"WEBHOOK_SOURCES", "has no effect without FLEXID_WEBHOOK_ADDR")
	}
}

// A company is one segment of a path; the system is one part of ext:<system>.<source>:<key>; the prefix is one token
// of a subject and a part of stream names.
func isCompany(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`).MatchString(s) && strings.Trim(s, ".") != ""
}
func isSystem(s string) bool { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,20}$`).MatchString(s) }
func isPrefix(s string) bool { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`).MatchString(s) }
func isHeader(s string) bool { return regexp.MustCompile(`^[A-Za-z0-9-]+$`).MatchString(s) }

// fewRequests is a daily budget of which little would be left for documents.
const fewRequests = 500

func (l *loader) checkFlexi(f *Flexi, wrong func(name, problem string)) {
	if f.URL != "" {
		if problem := badAddress(f.URL); problem != "" {
			wrong("FLEXI_URL", problem)
		} else if strings.Contains(f.URL+"/", "/c/") {
			wrong("FLEXI_URL", "holds a company: leave /c/… out and set FLEXID_FLEXI_COMPANY")
		}
		f.URL = strings.TrimRight(f.URL, "/")
	}
	if f.Company != "" && !isCompany(f.Company) {
		wrong("FLEXI_COMPANY", "is not one part of an address")
	}
	if f.Auth == "basic" && strings.Contains(f.User, ":") {
		wrong("FLEXI_USER", "has a colon in it, which basic authentication cannot carry: set FLEXID_FLEXI_AUTH=session")
	}
	if f.DailyRequests > 0 && f.DailyRequests < fewRequests {
		l.warn("FLEXID_FLEXI_DAILY_REQUESTS", "is small: flexid itself asks some 50 times a day which company it writes to, and a document takes three requests and more")
	}
	if f.DailyRequests == 0 && f.DailyReset != 0 {
		l.warn("FLEXID_FLEXI_DAILY_RESET", "has no effect without FLEXID_FLEXI_DAILY_REQUESTS")
	}
	if !isSystem(f.System) {
		wrong("FLEXI_SYSTEM", "cannot be part of an external id")
	}
	if f.CertSHA256 != "" {
		digits := strings.ToLower(strings.ReplaceAll(f.CertSHA256, ":", ""))
		if raw, err := hex.DecodeString(digits); err != nil || len(raw) != 32 {
			wrong("FLEXI_CERT_SHA256", "is not a SHA-256 fingerprint")
		}
		f.CertSHA256 = digits
	}
	if f.Allow.String() == "none" {
		l.warn("FLEXID_FLEXI_ALLOW", "allows nothing: every event will be parked")
	}
}

// badAddress says what is wrong with the address of a server that gets our password.
func badAddress(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "is not an address"
	case u.User != nil:
		return "holds a name or password: set them in variables of their own"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "holds ? or #"
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return ""
	case u.Scheme == "http":
		return "would send the password in the clear: use https"
	}
	return "is not an https address"
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func checkNATS(n NATS, set func(string) bool, wrong func(name, problem string)) {
	for _, address := range strings.Split(n.URL, ",") {
		if n.URL == "" {
			break
		}
		u, err := url.Parse(strings.TrimSpace(address))
		switch {
		case err != nil || u.Hostname() == "" || !contains("nats,tls,ws,wss", u.Scheme):
			wrong("NATS_URL", "is not an address of a NATS server")
		case u.User != nil:
			wrong("NATS_URL", "holds a name or password: use FLEXID_NATS_CREDS_FILE, _USER and _PASSWORD, or _TOKEN")
		}
	}
	if n.Embedded() {
		for _, name := range []string{"NATS_CREDS_FILE", "NATS_USER", "NATS_CA_FILE", "NATS_CERT_FILE", "NATS_KEY_FILE"} {
			if set(name) {
				wrong(name, "has no effect without FLEXID_NATS_URL")
			}
		}
		if !n.Password.Empty() || !n.Token.Empty() {
			wrong("NATS_URL", "is not set, but a password or token for it is")
		}
		if n.Replicas > 1 {
			wrong("NATS_REPLICAS", "must be 1 for the embedded server")
		}
	} else if set("NATS_LISTEN") {
		wrong("NATS_LISTEN", "has no effect with FLEXID_NATS_URL")
	}
	if !isPrefix(n.Prefix) {
		wrong("NATS_PREFIX", "cannot be a token of a subject")
	}
	if (n.CertFile == "") != (n.KeyFile == "") {
		wrong("NATS_CERT_FILE", "and FLEXID_NATS_KEY_FILE need each other")
	}
	if (n.User == "") != n.Password.Empty() {
		wrong("NATS_USER", "and FLEXID_NATS_PASSWORD need each other")
	}
	if n.Listen != "" && !isHostPort(n.Listen) {
		wrong("NATS_LISTEN", "is not host:port")
	}
}

func isHostPort(text string) bool {
	_, port, err := net.SplitHostPort(text)
	n, portErr := strconv.Atoi(port)
	return err == nil && portErr == nil && n >= 0 && n <= 65535
}

func checkHTTP(c *Config, set func(string) bool, wrong func(name, problem string)) {
	if !isHostPort(c.HTTP.Addr) {
		wrong("HTTP_ADDR", "is not host:port")
	}
	if c.Webhook.Addr != "" && !isHostPort(c.Webhook.Addr) {
		wrong("WEBHOOK_ADDR", "is not host:port")
	}
	if c.HTTP.UserHeader != "" && !isHeader(c.HTTP.UserHeader) {
		wrong("HTTP_USER_HEADER", "is not the name of a header")
	}
	if c.HTTP.UserHeader != "" && len(c.HTTP.TrustedProxies) == 0 {
		// Without a trusted proxy anybody could write himself into the header.
		wrong("HTTP_USER_HEADER", "needs FLEXID_HTTP_TRUSTED_PROXIES")
	}
	if set("API_URL") {
		if problem := badAddress(c.API.URL); problem != "" {
			wrong("API_URL", problem)
		}
		c.API.URL = strings.TrimRight(c.API.URL, "/")
		return
	}
	c.API.URL = "http://" + reachable(c.HTTP.Addr)
}

// reachable turns an address to listen on into one to connect to.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// checkTimes warns where a deadline of ours makes unknown outcomes that the server would have told.
func (l *loader) checkTimes(c *Config) {
	if c.Flexi.WriteTimeout < 200*time.Second {
		l.warn("FLEXID_FLEXI_WRITE_TIMEOUT", "below 200s: a slow write ends as a maybe before the server or its proxy has answered")
	}
	if c.Flexi.ReadTimeout < 30*time.Second {
		l.warn("FLEXID_FLEXI_READ_TIMEOUT", "below 30s: slow look-ups fail before the server has answered")
	}
	if c.Verify.SettleNoAnswer < c.Flexi.WriteTimeout {
		l.warn("FLEXID_VERIFY_SETTLE_NO_ANSWER", "shorter than FLEXID_FLEXI_WRITE_TIMEOUT: a write may still be running at the server when it is sent again")
	}
}

func (l *loader) checkFiles(c *Config) {
	for name, path := range map[string]string{
		"FLEXI_CA_FILE": c.Flexi.CAFile, "NATS_CREDS_FILE": c.NATS.CredsFile, "NATS_CA_FILE": c.NATS.CAFile,
		"NATS_CERT_FILE": c.NATS.CertFile, "NATS_KEY_FILE": c.NATS.KeyFile,
	} {
		l.checkFile(find(l.known, Prefix+name), path)
	}
	if dir := c.Batch.Dir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			l.fault(find(l.known, "FLEXID_BATCH_DIR"), "is not a directory that can be read")
		}
	}
}

func (l *loader) checkFile(v Variable, path string) {
	if path == "" {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		l.fault(v, "cannot be read: "+err.Error())
		return
	}
	_ = f.Close()
}

func (l *loader) fillPlaces(c *Config, wrong func(name, problem string)) {
	if c.StateDir == "" {
		c.StateDir = l.stateDir()
	}
	if c.StateDir == "" {
		wrong("STATE_DIR", "is not set, and neither STATE_DIRECTORY nor HOME says where it could be")
	} else if dir, err := filepath.Abs(c.StateDir); err == nil {
		c.StateDir = dir
	}
	c.Location = l.location(c.TZ, wrong)
}

// stateDir follows systemd, which may list several directories, then the desktop's convention.
func (l *loader) stateDir() string {
	if dir, _, _ := strings.Cut(l.environ["STATE_DIRECTORY"], ":"); dir != "" {
		return dir
	}
	if dir := l.environ["XDG_STATE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "flexid")
	}
	if home := l.environ["HOME"]; home != "" {
		return filepath.Join(home, ".local", "state", "flexid")
	}
	return ""
}

// location is Europe/Prague unless the settings name another, whatever the system says: a container runs on UTC by accident,
// and invoices of the last evening of a month would carry the wrong day.
func (l *loader) location(name string, wrong func(name, problem string)) *time.Location {
	if name == "" {
		name = defaultZone
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // which zone that is would change with the machine
		wrong("TZ", "is not a time zone: name one as the time zone database does, like "+defaultZone)
		return time.UTC
	}
	return loc
}

const defaultZone = "Europe/Prague"
