package config_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flexid/config"
)

// base is the least environment that is complete.
func base(extra ...string) []string {
	return append([]string{
		"FLEXID_FLEXI_URL=https://flexi.example:5434/", "FLEXID_FLEXI_COMPANY=firma", "FLEXID_FLEXI_USER=flexid",
		"FLEXID_FLEXI_PASSWORD=hunter2hunter2", "HOME=/home/flexid", "PATH=/bin",
	}, extra...)
}

func TestLoadDefaults(t *testing.T) {
	c, _, err := config.Load(base(), "")
	if err != nil {
		t.Fatal(err)
	}
	looks := config.Durations{0, 2 * time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute}
	for name, ok := range map[string]bool{
		"url without slash":   c.Flexi.URL == "https://flexi.example:5434",
		"password":            c.Flexi.Password.Reveal() == "hunter2hunter2",
		"system":              c.Flexi.System == "FLEXID",
		"auth":                c.Flexi.Auth == "basic",
		"write timeout":       c.Flexi.WriteTimeout == 200*time.Second,
		"read timeout":        c.Flexi.ReadTimeout == 30*time.Second,
		"concurrency":         c.Flexi.Concurrency == 4 && c.Flexi.Pack == 20,
		"allow":               c.Flexi.Allow.String() == "create,update,upsert,storno",
		"no delete":           !c.Flexi.Allow.Allowed("faktura-vydana", "delete"),
		"embedded":            c.NATS.Embedded() && c.NATS.Prefix == "flexi" && c.NATS.Replicas == 1,
		"state dir":           c.StateDir == "/home/flexid/.local/state/flexid",
		"http":                c.HTTP.Addr == "127.0.0.1:8480" && !c.HTTP.Pprof,
		"api url":             c.API.URL == "http://127.0.0.1:8480",
		"looks":               len(c.Verify.Looks) == len(looks) && c.Verify.Looks[6] == looks[6] && c.Verify.Looks[0] == 0,
		"settle":              c.Verify.SettleServerError == 30*time.Second && c.Verify.SettleNoAnswer == 15*time.Minute && c.Verify.SettleProxy == 5*time.Second,
		"sends":               c.Verify.Sends == 8 && c.Verify.LookFirst && !c.Verify.Overwrite,
		"keep bodies":         c.KeepBodies == 400*24*time.Hour,
		"drain":               c.DrainTimeout == 30*time.Second,
		"location":            c.Location != nil,
		"no batch":            c.Batch.Schedule == nil,
		"log":                 c.Log.Level == "info" && c.Log.Format == "",
		"no webhook":          len(c.Webhook.Source) == 0,
		"quota day":           c.Flexi.DailyReset == 0 && c.Flexi.DailyRequests == 0,
		"empty is not secret": c.API.Token.Empty() && c.API.Token.Reveal() == "",
	} {
		if !ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestLoadReadsEveryKind(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.creds")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := config.Load(base(
		"FLEXID_FLEXI_CERT_SHA256="+strings.Repeat("AB:", 31)+"CD", "FLEXID_FLEXI_DAILY_RESET=06:30", "FLEXID_FLEXI_DAILY_REQUESTS=5000",
		"FLEXID_FLEXI_AUTH=session", "FLEXID_FLEXI_USER=firma:flexid",
		"FLEXID_FLEXI_ALLOW= create, faktura-vydana:create+delete, banka:none",
		"FLEXID_NATS_URL=nats://a:4222,tls://b:4222", "FLEXID_NATS_CREDS_FILE="+file, "FLEXID_NATS_REPLICAS=3", "FLEXID_NATS_PREFIX=acme",
		"FLEXID_STATE_DIR=relative", "FLEXID_HTTP_ADDR=:9000", "FLEXID_HTTP_TRUSTED_PROXIES=10.0.0.0/8, 192.0.2.1", "FLEXID_HTTP_USER_HEADER=X-User",
		"FLEXID_VERIFY_LOOKS=1s, 90s", "FLEXID_BATCH_DIR="+dir, "FLEXID_BATCH_SCHEDULE=02:30", "FLEXID_TZ=Asia/Tokyo",
		"FLEXID_LOG_LEVEL=debug", "FLEXID_KEEP_BODIES=30d", "FLEXID_DRAIN_TIMEOUT=", "FLEXID_VERIFY_OVERWRITE=true",
	), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"fingerprint":      c.Flexi.CertSHA256 == strings.Repeat("ab", 31)+"cd",
		"reset":            c.Flexi.DailyReset.String() == "06:30",
		"allow create":     c.Flexi.Allow.Allowed("adresar", "create") && !c.Flexi.Allow.Allowed("adresar", "delete"),
		"allow own":        c.Flexi.Allow.Allowed("faktura-vydana", "delete") && !c.Flexi.Allow.Allowed("faktura-vydana", "update"),
		"allow none":       !c.Flexi.Allow.Allowed("banka", "create"),
		"external":         !c.NATS.Embedded() && c.NATS.Replicas == 3,
		"absolute":         filepath.IsAbs(c.StateDir) && filepath.Base(c.StateDir) == "relative",
		"api url":          c.API.URL == "http://127.0.0.1:9000",
		"proxies":          c.HTTP.TrustedProxies.Contains(netip.MustParseAddr("::ffff:10.1.2.3")) && !c.HTTP.TrustedProxies.Contains(netip.MustParseAddr("192.0.2.2")),
		"looks":            len(c.Verify.Looks) == 2 && c.Verify.Looks[1] == 90*time.Second,
		"schedule":         c.Batch.Schedule != nil && c.Batch.Schedule.String() == "02:30",
		"zone":             c.Location.String() == "Asia/Tokyo",
		"days":             c.KeepBodies == 30*24*time.Hour,
		"empty is default": c.DrainTimeout == 30*time.Second,
		"overwrite":        c.Verify.Overwrite,
		"no warnings":      len(warnings) == 0,
	} {
		if !ok {
			t.Errorf("%s: %+v %v", name, c, warnings)
		}
	}
}

// TestLoadFaults has one fault per case; each must name the variable, and a line that is accepted.
func TestLoadFaults(t *testing.T) {
	for _, tc := range []struct {
		name, variable, says string
		environ              []string
	}{
		{"url missing", "FLEXID_FLEXI_URL", "required", []string{"FLEXID_FLEXI_URL="}},
		{"url without scheme", "FLEXID_FLEXI_URL", "not an address", []string{"FLEXID_FLEXI_URL=flexi.example"}},
		{"url of another kind", "FLEXID_FLEXI_URL", "https", []string{"FLEXID_FLEXI_URL=ftp://flexi.example"}},
		{"url in the clear", "FLEXID_FLEXI_URL", "in the clear", []string{"FLEXID_FLEXI_URL=http://flexi.example"}},
		{"url with company", "FLEXID_FLEXI_URL", "FLEXID_FLEXI_COMPANY", []string{"FLEXID_FLEXI_URL=https://flexi.example/c/firma"}},
		{"url with query", "FLEXID_FLEXI_URL", "? or #", []string{"FLEXID_FLEXI_URL=https://flexi.example?a=b"}},
		{"url with password", "FLEXID_FLEXI_URL", "name or password", []string{"FLEXID_FLEXI_URL=https://u:sesame99@flexi.example"}},
		{"company with slash", "FLEXID_FLEXI_COMPANY", "one part", []string{"FLEXID_FLEXI_COMPANY=a/b"}},
		{"company of dots", "FLEXID_FLEXI_COMPANY", "one part", []string{"FLEXID_FLEXI_COMPANY=.."}},
		{"password missing", "FLEXID_FLEXI_PASSWORD", "required", []string{"FLEXID_FLEXI_PASSWORD="}},
		{"system with dot", "FLEXID_FLEXI_SYSTEM", "external id", []string{"FLEXID_FLEXI_SYSTEM=A.B"}},
		{"auth", "FLEXID_FLEXI_AUTH", "allowed words", []string{"FLEXID_FLEXI_AUTH=digest"}},
		{"colon in a user of basic authentication", "FLEXID_FLEXI_USER", "FLEXID_FLEXI_AUTH=session", []string{"FLEXID_FLEXI_USER=firma:flexid"}},
		{"fingerprint", "FLEXID_FLEXI_CERT_SHA256", "fingerprint", []string{"FLEXID_FLEXI_CERT_SHA256=abcd"}},
		{"ca file", "FLEXID_FLEXI_CA_FILE", "cannot be read", []string{"FLEXID_FLEXI_CA_FILE=/no/such/file"}},
		{"operation", "FLEXID_FLEXI_ALLOW", "remove", []string{"FLEXID_FLEXI_ALLOW=create,remove"}},
		{"operation empty", "FLEXID_FLEXI_ALLOW", "empty", []string{"FLEXID_FLEXI_ALLOW=create,,update"}},
		{"evidence twice", "FLEXID_FLEXI_ALLOW", "twice", []string{"FLEXID_FLEXI_ALLOW=banka:create,banka:update"}},
		{"evidence", "FLEXID_FLEXI_ALLOW", "evidence", []string{"FLEXID_FLEXI_ALLOW=Banka:create"}},
		{"evidence without operations", "FLEXID_FLEXI_ALLOW", "missing", []string{"FLEXID_FLEXI_ALLOW=banka:"}},
		{"concurrency zero", "FLEXID_FLEXI_CONCURRENCY", "below 1", []string{"FLEXID_FLEXI_CONCURRENCY=0"}},
		{"concurrency above", "FLEXID_FLEXI_CONCURRENCY", "above 64", []string{"FLEXID_FLEXI_CONCURRENCY=65"}},
		{"concurrency word", "FLEXID_FLEXI_CONCURRENCY", "whole number", []string{"FLEXID_FLEXI_CONCURRENCY=many"}},
		{"write timeout zero", "FLEXID_FLEXI_WRITE_TIMEOUT", "below 1s", []string{"FLEXID_FLEXI_WRITE_TIMEOUT=0s"}},
		{"write timeout without unit", "FLEXID_FLEXI_WRITE_TIMEOUT", "unit", []string{"FLEXID_FLEXI_WRITE_TIMEOUT=200"}},
		{"read timeout negative", "FLEXID_FLEXI_READ_TIMEOUT", "negative", []string{"FLEXID_FLEXI_READ_TIMEOUT=-1s"}},
		{"pack", "FLEXID_FLEXI_PACK", "below 1", []string{"FLEXID_FLEXI_PACK=0"}},
		{"daily", "FLEXID_FLEXI_DAILY_REQUESTS", "below 0", []string{"FLEXID_FLEXI_DAILY_REQUESTS=-1"}},
		{"reset", "FLEXID_FLEXI_DAILY_RESET", "time of day", []string{"FLEXID_FLEXI_DAILY_RESET=25:00"}},
		{"nats url", "FLEXID_NATS_URL", "NATS server", []string{"FLEXID_NATS_URL=http://nats.example"}},
		{"nats url with password", "FLEXID_NATS_URL", "name or password", []string{"FLEXID_NATS_URL=nats://u:sesame99@nats.example"}},
		{"creds without url", "FLEXID_NATS_CREDS_FILE", "no effect", []string{"FLEXID_NATS_CREDS_FILE=/etc/hostname"}},
		{"token without url", "FLEXID_NATS_URL", "token", []string{"FLEXID_NATS_TOKEN=sesame99"}},
		{"user without password", "FLEXID_NATS_USER", "need each other", []string{"FLEXID_NATS_URL=nats://n", "FLEXID_NATS_USER=u"}},
		{"cert without key", "FLEXID_NATS_CERT_FILE", "need each other", []string{"FLEXID_NATS_URL=nats://n", "FLEXID_NATS_CERT_FILE=/etc/hostname"}},
		{"replicas", "FLEXID_NATS_REPLICAS", "allowed words", []string{"FLEXID_NATS_REPLICAS=2"}},
		{"replicas embedded", "FLEXID_NATS_REPLICAS", "embedded", []string{"FLEXID_NATS_REPLICAS=3"}},
		{"prefix", "FLEXID_NATS_PREFIX", "subject", []string{"FLEXID_NATS_PREFIX=a.b"}},
		{"listen", "FLEXID_NATS_LISTEN", "host:port", []string{"FLEXID_NATS_LISTEN=4222"}},
		{"listen with url", "FLEXID_NATS_LISTEN", "no effect", []string{"FLEXID_NATS_URL=nats://n", "FLEXID_NATS_LISTEN=127.0.0.1:4222"}},
		{"http address", "FLEXID_HTTP_ADDR", "host:port", []string{"FLEXID_HTTP_ADDR=localhost"}},
		{"proxies", "FLEXID_HTTP_TRUSTED_PROXIES", "item 2", []string{"FLEXID_HTTP_TRUSTED_PROXIES=10.0.0.0/8,proxy"}},
		{"user header alone", "FLEXID_HTTP_USER_HEADER", "FLEXID_HTTP_TRUSTED_PROXIES", []string{"FLEXID_HTTP_USER_HEADER=X-User"}},
		{"user header", "FLEXID_HTTP_USER_HEADER", "header", []string{"FLEXID_HTTP_TRUSTED_PROXIES=10.0.0.1", "FLEXID_HTTP_USER_HEADER=X User"}},
		{"api url", "FLEXID_API_URL", "in the clear", []string{"FLEXID_API_URL=http://flexid.example"}},
		{"looks not rising", "FLEXID_VERIFY_LOOKS", "item 3", []string{"FLEXID_VERIFY_LOOKS=0s,2s,2s"}},
		{"looks a storm", "FLEXID_VERIFY_LOOKS", "repeated", []string{"FLEXID_VERIFY_LOOKS=0s"}},
		{"looks not durations", "FLEXID_VERIFY_LOOKS", "item 1", []string{"FLEXID_VERIFY_LOOKS=now"}},
		{"settle zero", "FLEXID_VERIFY_SETTLE_NO_ANSWER", "below", []string{"FLEXID_VERIFY_SETTLE_NO_ANSWER=0s"}},
		{"sends", "FLEXID_VERIFY_SENDS", "below 1", []string{"FLEXID_VERIFY_SENDS=0"}},
		{"bool", "FLEXID_VERIFY_LOOK_FIRST", "allowed words", []string{"FLEXID_VERIFY_LOOK_FIRST=maybe"}},
		{"batch without schedule", "FLEXID_BATCH_SCHEDULE", "need each other", []string{"FLEXID_BATCH_DIR=/"}},
		{"batch dir", "FLEXID_BATCH_DIR", "directory", []string{"FLEXID_BATCH_DIR=/etc/hostname", "FLEXID_BATCH_SCHEDULE=02:30"}},
		{"zone", "FLEXID_TZ", "time zone", []string{"FLEXID_TZ=Mars/Base"}},
		{"the machine's zone", "FLEXID_TZ", "time zone", []string{"FLEXID_TZ=Local"}},
		{"keep bodies", "FLEXID_KEEP_BODIES", "below 2d", []string{"FLEXID_KEEP_BODIES=1d"}},
		{"drain", "FLEXID_DRAIN_TIMEOUT", "below 1s", []string{"FLEXID_DRAIN_TIMEOUT=0s"}},
		{"log level", "FLEXID_LOG_LEVEL", "allowed words", []string{"FLEXID_LOG_LEVEL=loud"}},
		{"no state dir", "FLEXID_STATE_DIR", "HOME", []string{"HOME="}},
		{"unknown", "FLEXID_FLEXI_TIMEOUT", "FLEXID_FLEXI_READ_TIMEOUT", []string{"FLEXID_FLEXI_TIMEOUT=sesame99"}},
		{"unknown, a letter off", "FLEXID_VERIFY_LOOK", "FLEXID_VERIFY_LOOKS", []string{"FLEXID_VERIFY_LOOK=1s"}},
		{"unknown, a part left out", "FLEXID_PASSWORD", "FLEXID_FLEXI_PASSWORD?", []string{"FLEXID_PASSWORD=sesame99"}},
		{"unknown, nothing near", "FLEXID_XYZZYXYZZY", "no setting", []string{"FLEXID_XYZZYXYZZY=sesame99"}},
		{"a twin where there is none", "FLEXID_FLEXI_URL_FILE", "no setting", []string{"FLEXID_FLEXI_URL_FILE=/x"}},
		{"webhook without sources", "FLEXID_WEBHOOK_SOURCES", "empty", []string{"FLEXID_WEBHOOK_ADDR=127.0.0.1:1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := config.Load(base(tc.environ...), "")
			var faults config.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("no faults but %v", err)
			}
			if len(faults) != 1 || faults[0].Variable != tc.variable || !strings.Contains(faults[0].Problem, tc.says) {
				t.Fatalf("want one fault of %s that says %q, got:\n%v", tc.variable, tc.says, err)
			}
			if faults[0].Allowed == "" {
				t.Errorf("no word about what is allowed: %v", err)
			}
			if strings.Contains(err.Error(), "sesame99") {
				t.Errorf("a value that may be a secret is shown: %v", err)
			}
		})
	}
}

func TestLoadTellsAllFaultsAtOnceInOrder(t *testing.T) {
	_, _, err := config.Load([]string{"FLEXID_NONSENSE=1", "FLEXID_LOG_LEVEL=loud", "FLEXID_FLEXI_PACK=0", "HOME=/x"}, "")
	var faults config.Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var names []string
	for _, f := range faults {
		names = append(names, strings.TrimPrefix(f.Variable, "FLEXID_"))
	}
	want := "FLEXI_URL FLEXI_COMPANY FLEXI_USER FLEXI_PASSWORD FLEXI_PACK LOG_LEVEL NONSENSE"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !strings.HasPrefix(err.Error(), "7 settings are wrong\n") || !strings.Contains(err.Error(), `FLEXID_FLEXI_PACK="0": is below 1; allowed: a whole number, 1 to 200; example: FLEXID_FLEXI_PACK=20`) {
		t.Errorf("text:\n%v", err)
	}
}

// Every deadline of zero and every first pause above its cap is refused, all of them at once.
func TestLoadRefusesDeadlinesThatAreNone(t *testing.T) {
	environ := []string{"FLEXID_FLEXI_PAUSE=2m"} // it doubles up to a minute
	for _, name := range []string{"FLEXI_WRITE_TIMEOUT", "FLEXI_READ_TIMEOUT", "VERIFY_LOOKS", "VERIFY_SETTLE_SERVER_ERROR",
		"VERIFY_SETTLE_NO_ANSWER", "VERIFY_SETTLE_PROXY", "DRAIN_TIMEOUT", "KEEP_BODIES"} {
		environ = append(environ, "FLEXID_"+name+"=0s")
	}
	_, _, err := config.Load(base(environ...), "")
	var faults config.Faults
	if !errors.As(err, &faults) || len(faults) != len(environ) {
		t.Fatalf("%d faults of %d:\n%v", len(faults), len(environ), err)
	}
	for _, f := range faults {
		if !strings.Contains(f.Problem, "below ") && !strings.Contains(f.Problem, "above ") && !strings.Contains(f.Problem, "at least ") {
			t.Errorf("%s: %s", f.Variable, f.Problem)
		}
	}
}

func TestLoadWarnings(t *testing.T) {
	for _, tc := range []struct {
		name, variable string
		environ        []string
	}{
		{"short write timeout", "FLEXID_FLEXI_WRITE_TIMEOUT", []string{"FLEXID_FLEXI_WRITE_TIMEOUT=199s"}},
		{"short read timeout", "FLEXID_FLEXI_READ_TIMEOUT", []string{"FLEXID_FLEXI_READ_TIMEOUT=29s"}},
		{"settle shorter than the write", "FLEXID_VERIFY_SETTLE_NO_ANSWER", []string{"FLEXID_VERIFY_SETTLE_NO_ANSWER=199s"}},
		{"small budget", "FLEXID_FLEXI_DAILY_REQUESTS", []string{"FLEXID_FLEXI_DAILY_REQUESTS=499"}},
		{"reset of no budget", "FLEXID_FLEXI_DAILY_RESET", []string{"FLEXID_FLEXI_DAILY_RESET=06:00"}},
		{"nothing allowed", "FLEXID_FLEXI_ALLOW", []string{"FLEXID_FLEXI_ALLOW=none"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, warnings, err := config.Load(base(append(tc.environ, "TZ=UTC")...), "")
			if err != nil || len(warnings) != 1 || warnings[0].Variable != tc.variable {
				t.Errorf("%v, %v", warnings, err)
			}
		})
	}
}

// TestLoadZone: the day of a moment must not depend on how a container was started.
func TestLoadZone(t *testing.T) {
	for _, tc := range []struct {
		name, environ, want string
	}{
		{"none given", "TZ=America/New_York", "Europe/Prague"},
		{"one given", "FLEXID_TZ=Europe/Bratislava", "Europe/Bratislava"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, warnings, err := config.Load(base(tc.environ), "")
			if err != nil || len(warnings) > 0 || c.Location.String() != tc.want {
				t.Errorf("%v, %v, %v", c.Location, warnings, err)
			}
		})
	}
}

func TestLoadAllowsPlainHTTPForThisMachineOnly(t *testing.T) {
	for _, url := range []string{"http://localhost:5434", "http://127.0.0.9", "http://[::1]:80"} {
		if _, _, err := config.Load(base("FLEXID_FLEXI_URL="+url), ""); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"http://10.0.0.1", "http://localhost.example", "http://[::2]"} {
		if _, _, err := config.Load(base("FLEXID_FLEXI_URL="+url), ""); err == nil {
			t.Errorf("%s: the password would go over the network in the clear", url)
		}
	}
}

func TestStateDirFollowsTheSystem(t *testing.T) {
	for _, tc := range []struct{ environ, want string }{
		{"STATE_DIRECTORY=/var/lib/flexid:/var/lib/other", "/var/lib/flexid"},
		{"XDG_STATE_HOME=/xdg", "/xdg/flexid"},
		{"XDG_STATE_HOME=relative", "/home/flexid/.local/state/flexid"},
		{"FLEXID_STATE_DIR=/srv/flexid", "/srv/flexid"},
	} {
		c, _, err := config.Load(base(tc.environ), "")
		if err != nil || c.StateDir != tc.want {
			t.Errorf("%s: %s, %v", tc.environ, c.StateDir, err)
		}
	}
}

func TestLoadClientNeedsNoERP(t *testing.T) {
	c, _, err := config.LoadClient([]string{"HOME=/x", "FLEXID_API_TOKEN=t0ken", "FLEXID_FLEXI_PACK=0", "FLEXID_OTHER=1"}, "")
	if err != nil || c.API.URL != "http://127.0.0.1:8480" || c.API.Token.Reveal() != "t0ken" {
		t.Errorf("%+v, %v", c.API, err)
	}
	if _, _, err := config.LoadClient([]string{"HOME=/x", "FLEXID_API_URL=http://far.example"}, ""); err == nil {
		t.Error("its own settings are checked")
	}
}
