package config

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secret looks for a secret where it is safest first. A variable and its twin at once is a fault: which of two passwords
// is meant cannot be known, and the wrong one may lock the account.
func (l *loader) secret(v Variable) (string, bool) {
	plain, file := l.environ[v.Name], l.environ[v.Name+"_FILE"]
	if l.credentials != "" {
		if value, found, err := readSecret(filepath.Join(l.credentials, v.Name)); found {
			// The twin file may stand there for shells: one env file serves both, and it is likely the credential's source.
			if plain != "" {
				l.warn(v.Name, "is also set in the environment; the file in the credentials directory is used")
			}
			return l.secretFrom(v, v.Name+" in the credentials directory", value, err)
		}
	}
	switch {
	case plain != "" && file != "":
		l.fault(v, "is set, and "+v.Name+"_FILE too: remove one of them")
		return "", false
	case file != "":
		value, found, err := readSecret(file)
		if !found {
			err = fmt.Errorf("%s: no such file", file)
		}
		if Exposed(file) {
			l.warn(v.Name+"_FILE", "may be read by every user of this machine: chmod 600 "+file)
		}
		return l.secretFrom(v, v.Name+"_FILE", value, err)
	}
	return plain, plain != ""
}

// Exposed says whether every user of this machine may read a file. That its group may is taken for meant.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0
}

func (l *loader) secretFrom(v Variable, where, value string, err error) (string, bool) {
	switch {
	case err != nil:
		l.fault(v, where+" cannot be read: "+err.Error())
	case value == "":
		l.fault(v, where+" is empty")
	}
	return value, err == nil && value != ""
}

// readSecret takes one line end away: editors and echo add it, and a password with it is another password.
func readSecret(path string) (value string, found bool, err error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return "", false, nil
	}
	if err != nil {
		return "", true, err
	}
	defer f.Close()
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fs.ErrInvalid}
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), true, err
}

// sources checks the names of the webhook sources and gives those whose variables can be told apart.
func (l *loader) sources(names List) []string {
	list := find(l.known, Prefix+"WEBHOOK_SOURCES")
	taken := map[string]string{}
	for _, v := range l.known {
		taken[v.Name] = "a setting of flexid"
	}
	var good []string
	for _, name := range names {
		if !isSourceName(name) {
			l.fault(list, fmt.Sprintf("%q is not a name for a source", name))
			continue
		}
		if other := collision(taken, name); other != "" {
			l.fault(list, fmt.Sprintf("the variables of source %q cannot be told from those of %s", name, other))
			continue
		}
		for _, v := range sourceVariables(name) {
			taken[v.Name] = "source " + name
			if v.Secret {
				taken[v.Name+"_FILE"] = "source " + name
			}
		}
		good = append(good, name)
	}
	return good
}

func collision(taken map[string]string, name string) string {
	for _, v := range sourceVariables(name) {
		if other := taken[v.Name]; other != "" {
			return other
		}
	}
	return ""
}

// isSourceName holds for names that are one token of a subject, of an external id and of a path.
func isSourceName(name string) bool {
	return isEvidence(name) && name[0] != '-' && len(name) <= 20
}

// unknown refuses variables that nothing reads. Their values are not shown: a misspelt name may hold a secret.
func (l *loader) unknown() {
	names := map[string]bool{}
	for _, v := range l.known {
		names[v.Name] = true
		if v.Secret {
			names[v.Name+"_FILE"] = true
		}
	}
	var strange []string
	for name := range l.environ {
		if strings.HasPrefix(name, Prefix) && !names[name] {
			strange = append(strange, name)
		}
	}
	slices.Sort(strange)
	for _, name := range strange {
		problem := "no setting has this name"
		if near := nearest(name, names); near != "" {
			problem += "; did you mean " + near + "?"
		}
		l.faults = append(l.faults, Fault{Variable: name, Problem: problem, Allowed: "the variables that flexid config docs lists"})
	}
}

func find(variables []Variable, name string) Variable {
	for _, v := range variables {
		if v.Name == name {
			return v
		}
	}
	return Variable{Name: name}
}
