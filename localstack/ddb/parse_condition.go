package ddb

// parseCondition reads a condition, filter or key condition; parameter is its name in messages.
func parseCondition(parameter, src string, ph *placeholders) (condition, error) {
	p, err := newParser(parameter, src, ph)
	if err != nil {
		return nil, err
	}
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if err := p.wantCondition(e); err != nil {
		return nil, err
	}
	return e.cond, p.finish()
}

// expr is what a piece of text turned out to be: an operand or a condition. Only one is set; which it must be shows when the
// next token is known, because parentheses may hold either.
type expr struct {
	op   operand
	cond condition
	call string // the function it is, if it is one
}

// wantCondition refuses an operand where a truth is needed: size() by name, anything else as bad syntax.
func (p *parser) wantCondition(e expr) error {
	if e.cond != nil {
		return nil
	}
	if e.call == "" {
		return p.syntaxError()
	}
	p.misused(e.call)
	return nil
}

// wantOperand refuses a condition where a value is needed: functions by name, anything else as bad syntax.
func (p *parser) wantOperand(e expr) (operand, error) {
	if e.op != nil {
		return e.op, nil
	}
	if e.call == "" {
		return nil, p.syntaxError()
	}
	p.misused(e.call)
	return literal{null{}}, nil
}

func (p *parser) misused(call string) {
	p.fault(faultMisused, "The function is not allowed to be used this way in an expression; function: %s", call)
}

func (p *parser) or() (expr, error) {
	return p.joined("OR", p.and, func(l, r condition) condition { return or{l, r} })
}

func (p *parser) and() (expr, error) {
	return p.joined("AND", p.not, func(l, r condition) condition { return and{l, r} })
}

// joined reads one or more of part with keyword between them, from left to right.
func (p *parser) joined(keyword string, part func() (expr, error), join func(l, r condition) condition) (expr, error) {
	left, err := part()
	for err == nil && p.atKeyword(keyword) {
		if err = p.wantCondition(left); err != nil {
			break
		}
		p.pos++
		p.operators++
		var right expr
		if right, err = part(); err != nil {
			break
		}
		err = p.wantCondition(right)
		left = expr{cond: join(left.cond, right.cond)}
	}
	return left, err
}

func (p *parser) not() (expr, error) {
	if !p.accept("NOT") {
		return p.predicate()
	}
	p.operators++
	inner, err := p.not()
	if err == nil {
		err = p.wantCondition(inner)
	}
	return expr{cond: not{inner.cond}}, err
}

var comparators = map[string]bool{"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true}

// predicate reads an atom and the comparison it may begin.
func (p *parser) predicate() (expr, error) {
	left, err := p.atom()
	if err != nil {
		return left, err
	}
	t := p.peek()
	switch {
	case t.kind == tokSymbol && comparators[p.textOf(t)]:
		return p.comparison(left)
	case p.atKeyword("BETWEEN"):
		return p.between(left)
	case p.atKeyword("IN"):
		return p.oneOf(left)
	}
	return left, nil
}

func (p *parser) comparison(left expr) (expr, error) {
	l, err := p.wantOperand(left)
	if err != nil {
		return expr{}, err
	}
	op := p.textOf(p.take())
	p.operators++
	r, err := p.operand()
	if err != nil {
		return expr{}, err
	}
	p.distinct(op, l, r)
	if op != "=" && op != "<>" {
		p.orderable(op, l, r)
	}
	return expr{cond: comparison{op, l, r}}, nil
}

func (p *parser) between(left expr) (expr, error) {
	what, err := p.wantOperand(left)
	if err != nil {
		return expr{}, err
	}
	p.pos++
	p.operators++
	low, err := p.operand()
	if err != nil {
		return expr{}, err
	}
	if err := p.expect("AND"); err != nil {
		return expr{}, err
	}
	high, err := p.operand()
	if err != nil {
		return expr{}, err
	}
	p.orderable("BETWEEN", what, low, high)
	p.bounds(low, high)
	return expr{cond: between{what, low, high}}, nil
}

// bounds checks two literal bounds against each other.
func (p *parser) bounds(low, high operand) {
	l, ok := low.(literal)
	if !ok {
		return
	}
	h, ok := high.(literal)
	if !ok {
		return
	}
	const shown = "lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s"
	if l.v.kind() != h.v.kind() {
		p.fault(faultOperand, "The BETWEEN operator requires same data type for lower and upper bounds; "+shown, describe(l.v), describe(h.v))
		return
	}
	if inOrder(l.v, ">", h.v) {
		p.fault(faultOperand, "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "+shown, describe(l.v), describe(h.v))
	}
}

func (p *parser) oneOf(left expr) (expr, error) {
	what, err := p.wantOperand(left)
	if err != nil {
		return expr{}, err
	}
	var among []operand
	_, err = p.call(func() error {
		o, err := p.operand()
		among = append(among, o)
		return err
	})
	if len(among) > maxInOperands {
		p.fault(faultOperand, "The IN operator is provided with too many operands; number of operands: %d", len(among))
	}
	return expr{cond: oneOf{what, among}}, err
}

// operand reads an atom that must be a value.
func (p *parser) operand() (operand, error) {
	e, err := p.atom()
	if err != nil {
		return nil, err
	}
	return p.wantOperand(e)
}

// atom reads a parenthesis, a function call, a literal or a path.
func (p *parser) atom() (expr, error) {
	switch {
	case p.atSymbol("("):
		var e expr
		err := p.grouped(func() (err error) { e, err = p.or(); return err })
		return e, err
	case p.atCall():
		return p.function()
	case p.peek().kind == tokValue:
		v, err := p.value()
		return expr{op: literal{v}}, err
	case p.partiql && p.atLiteral():
		v, err := p.literal()
		return expr{op: literal{v}}, err
	case p.peek().kind == tokWord && p.atAnyKeyword("AND", "OR", "NOT", "IN", "BETWEEN"):
		return expr{}, p.syntaxError()
	}
	path, err := p.path()
	return expr{op: path}, err
}

func (p *parser) atAnyKeyword(words ...string) bool {
	for _, w := range words {
		if p.atKeyword(w) {
			return true
		}
	}
	return false
}

// functionArity lists the functions of conditions and how many operands each takes.
var functionArity = map[string]int{
	"attribute_exists": 1, "attribute_not_exists": 1, "attribute_type": 2, "begins_with": 2, "contains": 2, "size": 1,
}

func (p *parser) function() (expr, error) {
	var args []operand
	name, err := p.call(func() error {
		o, err := p.operand()
		args = append(args, o)
		return err
	})
	if err != nil {
		return expr{}, err
	}
	e := expr{call: name}
	switch arity, known := functionArity[name]; {
	case !known:
		p.fault(faultFunction, "Invalid function name; function: %s", name)
	case arity != len(args):
		p.wrongArity(name, len(args))
	default:
		return p.build(name, args), nil
	}
	// A stand-in for a function in error, good for either use, so that parsing can go on.
	e.op, e.cond = literal{null{}}, or{}
	return e, nil
}

func (p *parser) wrongArity(name string, got int) {
	p.fault(faultOperand, "Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, got)
}

func (p *parser) build(name string, args []operand) expr {
	e := expr{call: name}
	switch name {
	case "attribute_exists", "attribute_not_exists":
		at, ok := args[0].(path)
		if !ok {
			p.fault(faultOperand, "Operator or function requires a document path; operator or function: %s", name)
		}
		e.cond = exists{at, name == "attribute_exists"}
	case "attribute_type":
		e.cond = typeIs{args[0], p.typeName(args[1])}
	case "begins_with":
		p.distinct(name, args[0], args[1])
		p.literalsOf(name, args, kindS, kindB)
		e.cond = beginsWith{args[0], args[1]}
	case "contains":
		p.distinct(name, args[0], args[1])
		e.cond = contains{args[0], args[1]}
	case "size":
		p.literalsOf(name, args, kindS, kindB, kindL, kindM, kindSS, kindNS, kindBS)
		e.op = sizeCall{args[0]}
	}
	return e
}

// typeName checks the second operand of attribute_type.
func (p *parser) typeName(o operand) kind {
	l, ok := o.(literal)
	if !ok {
		p.fault(faultOperand, "Incorrect operand type for operator or function; operator or function: attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}")
		return ""
	}
	name, ok := l.v.(text)
	if !ok {
		p.wrongType("attribute_type", l.v.kind())
		return ""
	}
	switch k := kind(name); k {
	case kindS, kindN, kindB, kindBOOL, kindNULL, kindL, kindM, kindSS, kindNS, kindBS:
		return k
	}
	p.fault(faultOperand, "Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", name)
	return ""
}

func (p *parser) wrongType(name string, k kind) {
	p.fault(faultOperand, "Incorrect operand type for operator or function; operator or function: %s, operand type: %s", name, k)
}

// literalsOf wants every literal among args to be of one of kinds.
func (p *parser) literalsOf(name string, args []operand, kinds ...kind) {
	for _, a := range args {
		if l, ok := a.(literal); ok && !containsKind(kinds, l.v.kind()) {
			p.wrongType(name, l.v.kind())
		}
	}
}

func containsKind(kinds []kind, k kind) bool {
	for _, one := range kinds {
		if one == k {
			return true
		}
	}
	return false
}

// orderable wants literals that have an order.
func (p *parser) orderable(op string, operands ...operand) {
	for _, o := range operands {
		if l, ok := o.(literal); ok && !containsKind([]kind{kindS, kindN, kindB}, l.v.kind()) {
			p.fault(faultOperand, "Incorrect operand type for operator or function; operator: %s, operand type: %s", op, l.v.kind())
		}
	}
}

// distinct refuses to compare a path with itself.
func (p *parser) distinct(op string, left, right operand) {
	l, ok := left.(path)
	if !ok {
		return
	}
	if r, ok := right.(path); ok && l.String() == r.String() {
		p.fault(faultOperand, "The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", op, l)
	}
}
