package config

import "time"

// Prefix is what every variable begins with.
const Prefix = "FLEXID_"

// DefaultEnvFile is read by the commands when it exists and no other file is named.
const DefaultEnvFile = "/etc/flexid/flexid.env"

// Config is every setting of flexid. Times are durations; a zero value never means "no limit" unless it is said.
type Config struct {
	Flexi   Flexi   `envPrefix:"FLEXI_"`
	NATS    NATS    `envPrefix:"NATS_"`
	HTTP    HTTP    `envPrefix:"HTTP_"`
	API     API     `envPrefix:"API_"`
	Webhook Webhook `envPrefix:"WEBHOOK_"`
	Verify  Verify  `envPrefix:"VERIFY_"`
	Batch   Batch   `envPrefix:"BATCH_"`
	Log     Log     `envPrefix:"LOG_"`

	// StateDir is absolute; it may not exist yet.
	StateDir      string        `env:"STATE_DIR" doc:"where the embedded NATS server, the lock and the tokens are kept" shown:"systemd's STATE_DIRECTORY, else the user's state directory" allowed:"a directory" example:"/var/lib/flexid"`
	OperatorsFile string        `env:"OPERATORS_FILE" doc:"who may work on the operator page; no effect in this version" shown:"nobody but the administrator's token" allowed:"a file" example:"/etc/flexid/operators.json"`
	TZ            string        `env:"TZ" doc:"time zone in which a moment in a date field becomes a day, of the schedule, the quota day and dates in reports; the ledger keeps the first one" shown:"Europe/Prague" allowed:"a name of the time zone database" example:"Europe/Prague"`
	KeepBodies    time.Duration `env:"KEEP_BODIES" envDefault:"400d" doc:"how long bodies and wire details of finished documents are kept; no effect in this version" allowed:"a duration, d is a day" example:"400d" min:"2d"`
	DrainTimeout  time.Duration `env:"DRAIN_TIMEOUT" envDefault:"30s" doc:"how long a stop may take" allowed:"a duration" example:"30s" min:"1s" max:"1h"`

	// Location is TZ, or what stands in for it.
	Location *time.Location `env:"-" json:"-"`
}

// Flexi is the ERP.
type Flexi struct {
	URL           string        `env:"URL" doc:"address of the ERP, without company" allowed:"an https address without name and password (http only for this machine)" example:"https://demo.flexibee.eu:5434" required:"true"`
	Company       string        `env:"COMPANY" doc:"company at that address: the last part of its address in Flexi" allowed:"letters, digits, . _ -" example:"firma_s_r_o_" required:"true"`
	User          string        `env:"USER" doc:"our user in the ERP; his rights are what flexid may do" allowed:"a login" example:"flexid" required:"true"`
	Password      Secret        `env:"PASSWORD" doc:"its password" required:"true"`
	Auth          string        `env:"AUTH" envDefault:"basic" doc:"how to log in" oneof:"basic,session" example:"basic"`
	CAFile        string        `env:"CA_FILE" doc:"authority that signed the ERP's certificate, PEM" shown:"the system's roots" allowed:"a readable file" example:"/etc/flexid/flexi-ca.pem"`
	CertSHA256    string        `env:"CERT_SHA256" doc:"fingerprint of the ERP's certificate, for self-signed ones; flexid doctor prints it" shown:"not pinned" allowed:"64 hexadecimal digits, with or without colons" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	System        string        `env:"SYSTEM" envDefault:"FLEXID" doc:"system part of our external ids; fixed once documents are in Flexi" allowed:"1 to 20 letters, digits, _ -" example:"FLEXID"`
	Allow         Allow         `env:"ALLOW" envDefault:"create,update,upsert,storno" doc:"operations allowed; evidence:op+op replaces the list for one evidence, evidence:none forbids all" allowed:"create, update, upsert, storno, delete, evidence:op+op, separated by commas" example:"create,update,faktura-vydana:create+storno"`
	Concurrency   int           `env:"CONCURRENCY" envDefault:"4" doc:"most writes in flight (starts at 1)" allowed:"a whole number" example:"4" min:"1" max:"64"`
	WriteTimeout  time.Duration `env:"WRITE_TIMEOUT" envDefault:"200s" doc:"deadline of a whole write; longer than the server's and the proxy's own" allowed:"a duration" example:"200s" min:"1s" max:"1h"`
	ReadTimeout   time.Duration `env:"READ_TIMEOUT" envDefault:"30s" doc:"deadline of a whole read" allowed:"a duration" example:"30s" min:"1s" max:"1h"`
	Pause         time.Duration `env:"PAUSE" envDefault:"5s" doc:"first pause of new writes during an outage; it doubles up to a minute" allowed:"a duration" example:"5s" min:"100ms" max:"1m"`
	Pack          int           `env:"PACK" envDefault:"20" doc:"most documents in one write" allowed:"a whole number" example:"20" min:"1" max:"200"`
	DailyRequests int           `env:"DAILY_REQUESTS" envDefault:"0" doc:"request budget of the licence, 0 = none" allowed:"a whole number" example:"5000" min:"0" max:"1000000000"`
	DailyReset    Clock         `env:"DAILY_RESET" envDefault:"00:00" doc:"when the day of that budget begins" allowed:"a time of day" example:"00:00"`
}

// NATS is the server that holds events and ledger: an external one, or ours in the state directory when URL is empty.
type NATS struct {
	URL       string `env:"URL" doc:"external NATS server" shown:"embedded server in the state directory" allowed:"nats://, tls:// or ws(s):// addresses without name and password, separated by commas" example:"nats://nats.example.com:4222"`
	CredsFile string `env:"CREDS_FILE" doc:"credentials for it" allowed:"a readable file" example:"/etc/flexid/nats.creds"`
	User      string `env:"USER" doc:"user for it, where it has no credentials file" allowed:"a name" example:"flexid"`
	Password  Secret `env:"PASSWORD" doc:"password of that user"`
	Token     Secret `env:"TOKEN" doc:"token for it, where it has neither"`
	CAFile    string `env:"CA_FILE" doc:"authority that signed its certificate, PEM" shown:"the system's roots" allowed:"a readable file" example:"/etc/flexid/nats-ca.pem"`
	CertFile  string `env:"CERT_FILE" doc:"our certificate for it, PEM" allowed:"a readable file" example:"/etc/flexid/nats.pem"`
	KeyFile   string `env:"KEY_FILE" doc:"key of our certificate, PEM" allowed:"a readable file" example:"/etc/flexid/nats.key"`
	Replicas  int    `env:"REPLICAS" envDefault:"1" doc:"copies of every stream and bucket" oneof:"1,3,5" example:"3"`
	Prefix    string `env:"PREFIX" envDefault:"flexi" doc:"first token of our subjects, marks streams and buckets; one prefix = one company" allowed:"1 to 32 letters, digits, _ -" example:"flexi"`
	Listen    string `env:"LISTEN" doc:"where the embedded server listens; address and token stand in nats.json in the state directory" shown:"a free port of 127.0.0.1" allowed:"host:port" example:"127.0.0.1:4222"`
}

// Embedded says that NATS runs inside the daemon.
func (n NATS) Embedded() bool { return n.URL == "" }

// HTTP is the operator page, the API, metrics and health.
type HTTP struct {
	Addr           string   `env:"ADDR" envDefault:"127.0.0.1:8480" doc:"where API, metrics and health are served" allowed:"host:port" example:"127.0.0.1:8480"`
	Hosts          List     `env:"HOSTS" doc:"host names under which the API is asked for, besides localhost and the address itself" allowed:"names separated by commas" example:"flexid.example.com"`
	TrustedProxies Networks `env:"TRUSTED_PROXIES" doc:"proxies whose headers are believed" shown:"none" allowed:"addresses or networks separated by commas" example:"10.0.0.0/8,192.0.2.1"`
	UserHeader     string   `env:"USER_HEADER" doc:"header in which a trusted proxy names the person; no effect in this version" shown:"none" allowed:"a header name; needs FLEXID_HTTP_TRUSTED_PROXIES" example:"X-Forwarded-User"`
	Pprof          bool     `env:"PPROF" envDefault:"false" doc:"serve Go's profiles of the daemon at /debug/pprof/, for who has the token of the API" oneof:"true,false" example:"true"`
}

// API is where the commands find the daemon.
type API struct {
	// URL is never empty after Load.
	URL   string `env:"URL" doc:"where commands find the daemon" shown:"from FLEXID_HTTP_ADDR" allowed:"an https address (http only for this machine)" example:"http://127.0.0.1:8480"`
	Token Secret `env:"TOKEN" doc:"token of the API" shown:"admin.token in the state directory"`
}

// Webhook is the intake over HTTP.
type Webhook struct {
	Addr    string `env:"ADDR" doc:"where deliveries are received" shown:"off" allowed:"host:port" example:"0.0.0.0:8490"`
	Sources List   `env:"SOURCES" doc:"names of the sources; each has its own variables FLEXID_WEBHOOK_<NAME>_…" shown:"none" allowed:"names of small letters, digits and -, separated by commas" example:"eshop,flexi"`

	// Source holds the settings of each name in Sources.
	Source map[string]Source `env:"-"`
}

// Source is one sender of webhooks.
type Source struct {
	Kind           string        `env:"KIND" doc:"how its deliveries are authenticated and read" oneof:"flexi,standard,token" example:"token" required:"true"`
	Secret         Secret        `env:"SECRET" doc:"secret shared with the sender" required:"true"`
	PreviousSecret Secret        `env:"PREVIOUS_SECRET" doc:"the secret before, accepted while the sender changes over"`
	MappingFile    string        `env:"MAPPING_FILE" doc:"jq program from its payload to events; not supported by this version" shown:"none" allowed:"not to be set"`
	Networks       Networks      `env:"NETWORKS" doc:"where its deliveries may come from" shown:"anywhere" allowed:"addresses or networks separated by commas" example:"198.51.100.0/24"`
	MaxBytes       Size          `env:"MAX_BYTES" envDefault:"512KiB" doc:"largest delivery" allowed:"a number of bytes, KiB or MiB" example:"512KiB" min:"1KiB" max:"1016KiB"`
	Rate           int           `env:"RATE" envDefault:"50" doc:"most deliveries a second" allowed:"a whole number" example:"50" min:"1" max:"100000"`
	Tolerance      time.Duration `env:"TOLERANCE" envDefault:"5m" doc:"how old a signed delivery may be" allowed:"a duration" example:"5m" min:"1s" max:"24h"`
}

// Verify is how a write whose outcome is not known is cleared up.
type Verify struct {
	Looks             Durations     `env:"LOOKS" envDefault:"0s,2s,10s,30s,2m,5m,15m" doc:"when to look a maybe up, counted from the end of the attempt" allowed:"rising durations separated by commas" example:"0s,2s,10s,30s,2m,5m,15m"`
	SettleServerError time.Duration `env:"SETTLE_SERVER_ERROR" envDefault:"30s" doc:"how long a write may still take effect after the ERP's own 500 or 503" allowed:"a duration" example:"30s" min:"100ms" max:"24h"`
	SettleNoAnswer    time.Duration `env:"SETTLE_NO_ANSWER" envDefault:"15m" doc:"the same without an answer" allowed:"a duration" example:"15m" min:"100ms" max:"24h"`
	SettleProxy       time.Duration `env:"SETTLE_PROXY" envDefault:"5s" doc:"the same after a 503 that is not the ERP's" allowed:"a duration" example:"5s" min:"100ms" max:"24h"`
	Sends             int           `env:"SENDS" envDefault:"8" doc:"most sends of one event that may have taken effect; from the third on each waits twice as long as the one before" allowed:"a whole number" example:"8" min:"1" max:"10"`
	LookFirst         bool          `env:"LOOK_FIRST" envDefault:"true" doc:"look a document up before its first send" oneof:"true,false" example:"true"`
	Overwrite         bool          `env:"OVERWRITE" envDefault:"false" doc:"updates pass over what a person changed in Flexi" oneof:"true,false" example:"false"`
}

// Batch is the nightly folder.
type Batch struct {
	Dir      string `env:"DIR" doc:"folder whose files are pushed; no effect in this version" shown:"off" allowed:"a directory" example:"/srv/flexid/in"`
	Schedule *Clock `env:"SCHEDULE" doc:"when, each day; no effect in this version" shown:"off" allowed:"a time of day" example:"02:30"`
}

// Log is what the daemon writes to standard error.
type Log struct {
	Level  string `env:"LEVEL" envDefault:"info" doc:"least level that is written" oneof:"trace,debug,info,warn,error" example:"info"`
	Format string `env:"FORMAT" doc:"form of the lines" shown:"json (console on a terminal)" oneof:"json,console" example:"json"`
}
