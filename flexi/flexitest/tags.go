package flexitest

import "strings"

// canonical gives evidence and fields of a record the spelling of the metadata where letter case does not count.
func (s *Server) canonical(j job) job {
	if !s.modes.habits.has(AnyCaseTags) {
		return j
	}
	for _, ev := range s.catalog.list {
		if strings.EqualFold(ev.path, j.path) {
			return job{path: ev.path, in: ev.canonical(j.in)}
		}
	}
	return j
}

func (e *evidence) canonical(in object) object {
	out := object{}
	for key, v := range in {
		name, attr, has := strings.Cut(key, "@")
		for _, f := range e.fields {
			if strings.EqualFold(f.name, name) {
				name = f.name
			}
		}
		for _, rows := range []string{"polozkyFaktury", "polozkyDokladu"} {
			if strings.EqualFold(rows, name) {
				name = rows
			}
		}
		if has {
			name += "@" + attr
		}
		out[name] = v
	}
	return out
}
