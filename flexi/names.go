package flexi

// names tells when an object holds a name twice. One reader takes the first, the next the last, and the document that was checked would
// not be the one that is sent.
type names struct {
	few  []string
	many map[string]bool // in place of few
}

const fewNames = 16

// again says that the name was there before, and keeps it.
func (n *names) again(name string) bool {
	if n.many != nil {
		before := n.many[name]
		n.many[name] = true
		return before
	}
	for _, other := range n.few {
		if other == name {
			return true
		}
	}
	if n.few = append(n.few, name); len(n.few) > fewNames {
		n.many = make(map[string]bool, 2*len(n.few))
		for _, other := range n.few {
			n.many[other] = true
		}
	}
	return false
}

// RepeatedName is the first name that an object of a JSON text holds twice, among lists and objects that lie no deeper than some levels
// (1 = the outermost one alone). deeper says that the text has deeper ones. Of what is not JSON it tells what is in front of the fault.
func RepeatedName(text []byte, levels int) (name string, twice, deeper bool) {
	w := nameWalk{scanner: scanner{text: text}, levels: levels}
	for !w.over() && w.walk() {
	}
	return w.name, w.twice, w.deeper
}

type nameWalk struct {
	scanner
	levels        int
	name          string
	twice, deeper bool
}

func (w *nameWalk) walk() bool {
	c := w.next()
	nested := c == '{' || c == '['
	w.deeper = w.deeper || nested && w.depth >= w.levels
	switch {
	case !nested || w.depth >= w.levels:
		_, ok := w.value()
		return ok
	case c == '[':
		return w.items(func(int) bool { return w.walk() })
	}
	var seen names
	return w.members(func(name string) bool {
		if seen.again(name) {
			w.name, w.twice = name, true
			return false
		}
		return w.walk()
	})
}
