package flexitest

import (
	"errors"
	"fmt"
)

// node is one part of a parsed filter.
type node struct {
	op    string // and, or, not, all; or the name of a comparison
	left  *node
	right *node
	field string
	args  []token
}

// maxDepth bounds nesting and maxTokens the length of chains, so that no filter can exhaust the stack.
const (
	maxDepth  = 200
	maxTokens = 100_000
)

type filterParser struct {
	tokens []token
	depth  int
}

// parseFilter reads the filter language of list addresses. "" is everything.
func parseFilter(s string) (*node, error) { return parseQuoted(s, quoteEscaped) }

func parseQuoted(s string, how quoting) (*node, error) {
	tokens, err := lexFilter(s, how)
	if err != nil {
		return nil, err
	}
	if len(tokens) > maxTokens {
		return nil, errors.New("filtr je příliš dlouhý")
	}
	p := &filterParser{tokens: tokens}
	if p.peek().kind == tEnd {
		return &node{op: "all"}, nil
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tEnd {
		return nil, fmt.Errorf("neočekávaný text '%s'", p.peek().text)
	}
	return n, nil
}

func (p *filterParser) peek() token { return p.tokens[0] }

func (p *filterParser) next() token {
	t := p.tokens[0]
	if t.kind != tEnd {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *filterParser) or() (*node, error) {
	return p.chain("or", func() (*node, error) { return p.chain("and", p.unary) })
}

func (p *filterParser) chain(word string, operand func() (*node, error)) (*node, error) {
	n, err := operand()
	for err == nil && p.peek().is(word) {
		p.next()
		var right *node
		right, err = operand()
		n = &node{op: word, left: n, right: right}
	}
	return n, err
}

func (p *filterParser) unary() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("filtr je příliš vnořený")
	}
	defer func() { p.depth-- }()
	switch t := p.peek(); {
	case t.is("not"):
		p.next()
		n, err := p.unary()
		return &node{op: "not", left: n}, err
	case t.op("("):
		p.next()
		if p.peek().op(")") {
			p.next()
			return &node{op: "all"}, nil
		}
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		if !p.next().op(")") {
			return nil, errors.New("chybí pravá závorka")
		}
		return n, nil
	case t.kind == tWord:
		return p.comparison()
	default:
		return nil, fmt.Errorf("očekáván název vlastnosti, je '%s'", t.text)
	}
}

// comparison reads: field operator value(s).
func (p *filterParser) comparison() (*node, error) {
	n := &node{field: p.next().text}
	t := p.next()
	switch {
	case t.kind == tOp:
		n.op = map[string]string{"=": "eq", "==": "eq", "<>": "neq", "!=": "neq", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}[t.text]
	case t.is("eq", "neq", "ne", "lt", "lte", "gt", "gte", "like", "begins", "ends", "between", "in", "is"):
		n.op = lower(t.text)
	default:
		return nil, fmt.Errorf("očekáván operátor, je '%s'", t.text)
	}
	switch n.op {
	case "":
		return nil, fmt.Errorf("očekáván operátor, je '%s'", t.text)
	case "ne":
		n.op = "neq"
	case "in":
		return n, p.list(n)
	case "is":
		return n, p.is(n)
	case "like", "begins", "ends":
		if p.peek().is("similar") {
			p.next()
			n.op += " similar"
		}
	case "between":
		if err := p.value(n); err != nil {
			return nil, err
		}
		if p.peek().is("and") {
			p.next()
		}
	}
	return n, p.value(n)
}

func (p *filterParser) value(n *node) error {
	t := p.next()
	if t.kind == tEnd || t.kind == tOp {
		return fmt.Errorf("očekávána hodnota, je '%s'", t.text)
	}
	if t.kind == tWord && p.peek().op("(") {
		p.next()
		if !p.next().op(")") {
			return errors.New("funkce nemá parametry")
		}
		t.text += "()"
	}
	n.args = append(n.args, t)
	return nil
}

func (p *filterParser) list(n *node) error {
	if !p.next().op("(") {
		return errors.New("očekáván seznam v závorkách")
	}
	for {
		if err := p.value(n); err != nil {
			return err
		}
		switch t := p.next(); {
		case t.op(")"):
			return nil
		case !t.op(","):
			return errors.New("chybí pravá závorka")
		}
	}
}

func (p *filterParser) is(n *node) error {
	t := p.next()
	not := t.is("not")
	if not {
		t = p.next()
	}
	if !t.is("null", "empty", "true", "false") {
		return fmt.Errorf("očekáváno null, empty, true nebo false, je '%s'", t.text)
	}
	n.op = "is " + lower(t.text)
	if not {
		n.op = "is not " + lower(t.text)
	}
	return nil
}
