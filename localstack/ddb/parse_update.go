package ddb

// parseUpdate reads an update expression: sections SET, REMOVE, ADD and DELETE in any order, each at most once.
func parseUpdate(src string, ph *placeholders) (*update, error) {
	p, err := newParser("UpdateExpression", src, ph)
	if err != nil {
		return nil, err
	}
	u := &update{paths: &pathTree{}}
	seen := map[actionKind]bool{}
	for {
		kind, ok := p.section()
		if !ok {
			return nil, p.syntaxError()
		}
		if seen[kind] {
			p.fault(faultSection, `The "%s" section can only be used once in an update expression;`, kind)
		}
		seen[kind] = true
		if err := p.actions(u, kind); err != nil {
			return nil, err
		}
		if p.peek().kind == tokEOF {
			return u, p.finish()
		}
	}
}

// section takes a section's keyword.
func (p *parser) section() (actionKind, bool) {
	for _, kind := range []actionKind{actSet, actRemove, actAdd, actDelete} {
		if p.atKeyword(string(kind)) {
			p.pos++
			return kind, true
		}
	}
	return "", false
}

// actions reads the comma-separated clauses of a section.
func (p *parser) actions(u *update, kind actionKind) error {
	for {
		if p.atAnyKeyword("SET", "REMOVE", "ADD", "DELETE") {
			return p.syntaxError()
		}
		at, err := p.path()
		if err != nil {
			return err
		}
		p.addPath(u.paths, at)
		a := action{kind: kind, at: at}
		switch kind {
		case actSet:
			a.to, err = p.assignment()
		case actAdd, actDelete:
			a.operand, err = p.setOperand(kind)
		}
		if err != nil {
			return err
		}
		u.actions = append(u.actions, a)
		if !p.accept(",") {
			return nil
		}
	}
}

// typeNames are the types as update expressions' messages call them.
var typeNames = map[kind]string{
	kindS: "STRING", kindN: "NUMBER", kindB: "BINARY", kindNULL: "NULL", kindBOOL: "BOOLEAN", kindL: "LIST", kindM: "MAP",
}

// setOperand reads what ADD adds (a number or set) or DELETE deletes (a set).
func (p *parser) setOperand(kind actionKind) (value, error) {
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if name, scalar := typeNames[v.kind()]; scalar && !(kind == actAdd && v.kind() == kindN) {
		p.fault(faultOperand, "Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", kind, name, kind)
	}
	return v, nil
}

// assignment reads = and a right side: one term, or two with + or - between them.
func (p *parser) assignment() (rightSide, error) {
	if err := p.expect("="); err != nil {
		return nil, err
	}
	return p.sum()
}

func (p *parser) sum() (rightSide, error) {
	left, err := p.term()
	if err != nil {
		return nil, err
	}
	minus := p.atSymbol("-")
	if !minus && !p.atSymbol("+") {
		return left, nil
	}
	op := p.textOf(p.take())
	p.operators++
	right, err := p.term()
	if err != nil {
		return nil, err
	}
	p.termsOf(op, kindN, left, right)
	return arithmetic{left, right, minus}, nil
}

// term reads a parenthesis, a function, a literal or a path.
func (p *parser) term() (rightSide, error) {
	switch {
	case p.atSymbol("("):
		var r rightSide
		err := p.grouped(func() (err error) { r, err = p.sum(); return err })
		return r, err
	case p.atCall():
		return p.updateFunction()
	case p.peek().kind == tokValue:
		v, err := p.value()
		return plain{literal{v}}, err
	}
	at, err := p.path()
	return plain{at}, err
}

func (p *parser) updateFunction() (rightSide, error) {
	var args []rightSide
	name, err := p.call(func() error {
		r, err := p.term()
		args = append(args, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	stand := plain{literal{null{}}} // good enough to parse on after an error
	_, conditional := functionArity[name]
	switch {
	case conditional:
		p.fault(faultFunction, "The function is not allowed in an update expression; function: %s", name)
		return stand, nil
	case name != "if_not_exists" && name != "list_append":
		p.fault(faultFunction, "Invalid function name; function: %s", name)
		return stand, nil
	case len(args) != 2:
		p.wrongArity(name, len(args))
		return stand, nil
	case name == "list_append":
		p.termsOf(name, kindL, args...)
		return listAppend{args[0], args[1]}, nil
	}
	of, _ := args[0].(plain)
	at, ok := of.of.(path)
	if !ok {
		p.fault(faultOperand, "Operator or function requires a document path; operator or function: %s", name)
	}
	return ifNotExists{at, args[1]}, nil
}

// termsOf wants the literals among terms to be of kind k.
func (p *parser) termsOf(name string, k kind, terms ...rightSide) {
	for _, t := range terms {
		of, _ := t.(plain)
		if l, ok := of.of.(literal); ok && l.v.kind() != k {
			p.wrongType(name, l.v.kind())
		}
	}
}
