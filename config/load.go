package config

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a container without zone files must still know the zones that FLEXID_TZ may name

	"github.com/caarlos0/env/v11"
)

// Load reads all settings from environ (as os.Environ gives it) and from credentialsDir (systemd's
// CREDENTIALS_DIRECTORY, "" = none). Its error is Faults; the settings that are right are filled in even then.
func Load(environ []string, credentialsDir string) (Config, Warnings, error) {
	l := loader{environ: env.ToMap(environ), credentials: credentialsDir}
	cfg := l.load()
	l.sort()
	if len(l.faults) > 0 {
		return cfg, l.warnings, l.faults
	}
	return cfg, l.warnings, nil
}

// LoadClient is Load for commands that only ask the daemon: what is missing or wrong elsewhere does not concern them.
func LoadClient(environ []string, credentialsDir string) (Config, Warnings, error) {
	cfg, _, err := Load(environ, credentialsDir)
	var all, mine Faults
	if !errors.As(err, &all) {
		return cfg, nil, err
	}
	for _, fault := range all {
		switch strings.TrimSuffix(fault.Variable, "_FILE") {
		case "FLEXID_API_URL", "FLEXID_API_TOKEN", "FLEXID_STATE_DIR", "FLEXID_HTTP_ADDR", "FLEXID_TZ", "FLEXID_LOG_LEVEL", "FLEXID_LOG_FORMAT":
			mine = append(mine, fault)
		}
	}
	if len(mine) == 0 {
		return cfg, nil, nil
	}
	return cfg, nil, mine
}

// loader is one run of Load.
type loader struct {
	environ     map[string]string
	credentials string
	known       []Variable
	faults      Faults
	warnings    Warnings
}

func (l *loader) load() Config {
	var cfg Config
	l.known = variablesOf(reflect.TypeFor[Config](), Prefix, nil)
	l.parse(&cfg, l.known, Prefix)

	cfg.Webhook.Source = map[string]Source{}
	for _, name := range l.sources(cfg.Webhook.Sources) {
		var source Source
		variables := sourceVariables(name)
		l.parse(&source, variables, sourcePrefix(name))
		cfg.Webhook.Source[name] = source
		l.known = append(l.known, variables...)
	}
	l.unknown()
	l.check(&cfg)
	return cfg
}

// parse fills target from its variables. Each is tried alone first: the library says which field is wrong, not which
// variable, and a person changes variables.
func (l *loader) parse(target any, variables []Variable, prefix string) {
	good := map[string]string{}
	for _, v := range variables {
		value, ok := l.value(v)
		if !ok {
			continue
		}
		scratch := reflect.New(reflect.TypeOf(target).Elem())
		if err := env.ParseWithOptions(scratch.Interface(), options(map[string]string{v.Name: value}, prefix)); err != nil {
			l.fault(v, reason(err))
			continue
		}
		if problem := outOfRange(scratch.Elem().FieldByIndex(v.index), v); problem != "" {
			l.fault(v, problem)
			continue
		}
		good[v.Name] = value
	}
	if err := env.ParseWithOptions(target, options(good, prefix)); err != nil {
		l.faults = append(l.faults, Fault{Variable: prefix + "*", Problem: reason(err)})
	}
}

// value finds what a variable is set to; ok is false when the default stands. Set but empty counts as unset, as it does
// in compose files and units that pass a variable through.
func (l *loader) value(v Variable) (value string, ok bool) {
	if v.Secret {
		value, ok = l.secret(v)
	} else {
		value = strings.TrimSpace(l.environ[v.Name])
		ok = value != ""
	}
	if !ok && v.Required && !l.faulty(v.Name) {
		l.fault(v, "is required and not set")
	}
	if ok && v.oneof != "" && !contains(v.oneof, value) {
		l.fault(v, "is not one of the allowed words")
		return "", false
	}
	return value, ok
}

func options(environ map[string]string, prefix string) env.Options {
	return env.Options{Environment: environ, Prefix: prefix, FuncMap: map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[time.Duration](): func(text string) (any, error) { return parseDuration(text) },
	}}
}

// reason is the innermost cause, because the outer ones name struct fields and repeat the value.
func reason(err error) string {
	var parse env.ParseError
	if errors.As(err, &parse) {
		err = parse.Err
	}
	var number *strconv.NumError
	if errors.As(err, &number) {
		return "is not a whole number in range"
	}
	return err.Error()
}

// outOfRange compares a number, duration or size with the limits of its tags.
func outOfRange(value reflect.Value, v Variable) string {
	for _, limit := range []struct {
		text, problem string
		broken        func(n, limit int64) bool
	}{
		{v.min, "is below " + v.min, func(n, limit int64) bool { return n < limit }},
		{v.max, "is above " + v.max, func(n, limit int64) bool { return n > limit }},
	} {
		if limit.text != "" && limit.broken(value.Int(), bound(value, limit.text)) {
			return limit.problem
		}
	}
	return ""
}

// bound reads a limit as the type of the value it limits; a limit that cannot be read is found by the tests.
func bound(value reflect.Value, text string) int64 {
	switch value.Interface().(type) {
	case time.Duration:
		d, _ := parseDuration(text)
		return int64(d)
	case Size:
		var size Size
		_ = size.UnmarshalText([]byte(text))
		return int64(size)
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func contains(list, word string) bool {
	for allowed := range strings.SplitSeq(list, ",") {
		if allowed == word {
			return true
		}
	}
	return false
}

// fault notes what is wrong with a variable, once: what follows from a first fault is not another one.
func (l *loader) fault(v Variable, problem string) {
	if l.faulty(v.Name) {
		return
	}
	f := Fault{Variable: v.Name, Problem: problem, Allowed: v.Allowed}
	if value := l.environ[v.Name]; !v.Secret && !strings.Contains(value, "@") {
		// An address may carry a password before the @.
		f.Value = shorten(value)
	}
	if v.Example != "" {
		f.Example = v.Name + "=" + v.Example
	}
	if v.Secret {
		f.Example = v.Name + "_FILE=/etc/flexid/secrets/" + strings.ToLower(strings.TrimPrefix(v.Name, Prefix))
	}
	l.faults = append(l.faults, f)
}

func (l *loader) faulty(name string) bool {
	for _, f := range l.faults {
		if f.Variable == name {
			return true
		}
	}
	return false
}

func (l *loader) warn(variable, text string) {
	l.warnings = append(l.warnings, Warning{Variable: variable, Text: text})
}

// sort puts faults in the order of the documentation, unknown names last.
func (l *loader) sort() {
	place := map[string]int{}
	for i, v := range l.known {
		place[v.Name] = i - len(l.known)
	}
	slices.SortStableFunc(l.faults, func(a, b Fault) int { return cmp.Compare(place[a.Variable], place[b.Variable]) })
}

func shorten(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return s
}
