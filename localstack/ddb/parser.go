package ddb

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of one expression.
const (
	maxExpressionBytes = 4096
	maxOperators       = 300
	maxInOperands      = 100
)

// placeholders are the names and values an operation's expressions may use. DynamoDB refuses those that none uses, so use is
// recorded.
type placeholders struct {
	names  map[string]string
	values item

	usedNames  map[string]bool
	usedValues map[string]bool
}

// newPlaceholders refuses placeholders that are misspelt or mean nothing.
func newPlaceholders(names map[string]string, values item) (*placeholders, error) {
	if err := checkPlaceholders("ExpressionAttributeNames", '#', names); err != nil {
		return nil, err
	}
	if err := checkPlaceholders("ExpressionAttributeValues", ':', values); err != nil {
		return nil, err
	}
	for key, name := range names {
		if name == "" {
			return nil, invalid("ExpressionAttributeNames contains invalid value: Empty attribute name; key: %s", key)
		}
	}
	return &placeholders{names, values, make(map[string]bool, len(names)), make(map[string]bool, len(values))}, nil
}

func checkPlaceholders[V any](parameter string, mark byte, given map[string]V) error {
	if given != nil && len(given) == 0 {
		return invalid("%s must not be empty", parameter)
	}
	for key := range given {
		if len(key) < 2 || key[0] != mark || span(key, 1, isWord) != len(key) {
			return invalid("%s contains invalid key: Syntax error; key: \"%s\"", parameter, key)
		}
	}
	return nil
}

// checkUsed refuses placeholders given without any expression, or used by none. It is called when all of an operation's
// expressions are parsed; some is whether there was one.
func (p *placeholders) checkUsed(some bool) error {
	if p.names != nil && !some {
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	if p.values != nil && !some {
		return invalid("ExpressionAttributeValues can only be specified when using expressions: expressions are null")
	}
	if err := checkUsed("ExpressionAttributeNames", p.names, p.usedNames); err != nil {
		return err
	}
	return checkUsed("ExpressionAttributeValues", p.values, p.usedValues)
}

func checkUsed[V any](parameter string, given map[string]V, used map[string]bool) error {
	if len(used) == len(given) {
		return nil
	}
	var unused []string
	for _, key := range sortedKeys(given) {
		if !used[key] {
			unused = append(unused, key)
		}
	}
	return invalid("Value provided in %s unused in expressions: keys: {%s}", parameter, strings.Join(unused, ", "))
}

// faultRank orders the errors of one expression: DynamoDB reports the lowest it finds, wherever it stands in the text.
// Syntax errors come before all of them, because they end parsing.
type faultRank int

const (
	faultParens faultRank = iota
	faultFunction
	faultMisused
	faultReserved
	faultSection
	faultUndefined
	faultOverlap
	faultOperand
	faultRanks
)

// parser reads one expression. Methods that meet a syntax error return it; every other error is noted in faults, so that a
// syntax error further on still comes first.
type parser struct {
	parameter string // as the caller knows it: ConditionExpression, ...
	src       string
	toks      []token
	pos       int
	ph        *placeholders
	partiql   bool
	params    []value // PartiQL's ? in order
	operators int
	faults    [faultRanks]error

	groupOpen, groupClose int // token positions of the last pair of parentheses closed
}

func newParser(parameter, src string, ph *placeholders) (*parser, error) {
	if strings.TrimSpace(src) == "" {
		return nil, invalid("Invalid %s: The expression can not be empty;", parameter)
	}
	if len(src) > maxExpressionBytes {
		return nil, invalid("Invalid %s: Expression size has exceeded the maximum allowed size; expression size: %d", parameter, len(src))
	}
	return &parser{parameter: parameter, src: src, toks: lex(src, false), ph: ph, groupOpen: -1, groupClose: -1}, nil
}

func (p *parser) errorf(format string, args ...any) *apiError {
	return invalid("Invalid %s: %s", p.parameter, fmt.Sprintf(format, args...))
}

func (p *parser) fault(rank faultRank, format string, args ...any) {
	if p.faults[rank] == nil {
		p.faults[rank] = p.errorf(format, args...)
	}
}

// finish wants the end of the text and returns the first fault noted.
func (p *parser) finish() error {
	if p.peek().kind != tokEOF {
		return p.syntaxError()
	}
	for _, err := range p.faults {
		if err != nil {
			return err
		}
	}
	if p.operators > maxOperators {
		return p.errorf("The expression contains more operators and functions than are allowed; operator count: %d", p.operators)
	}
	return nil
}

func (p *parser) peek() token { return p.toks[p.pos] }

func (p *parser) textOf(t token) string { return p.src[t.start:t.end] }

// take returns the current token and steps over it.
func (p *parser) take() token {
	t := p.toks[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) atSymbol(symbol string) bool {
	t := p.peek()
	return t.kind == tokSymbol && p.textOf(t) == symbol
}

func (p *parser) atKeyword(word string) bool {
	t := p.peek()
	return t.kind == tokWord && t.end-t.start == len(word) && strings.EqualFold(p.textOf(t), word)
}

// accept steps over the symbol or keyword if it is next.
func (p *parser) accept(what string) bool {
	if !p.atSymbol(what) && !p.atKeyword(what) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) expect(what string) error {
	if !p.accept(what) {
		return p.syntaxError()
	}
	return nil
}

// syntaxError is about the current token and shows it with its neighbours.
func (p *parser) syntaxError() error {
	at := p.peek()
	shown := p.textOf(at)
	if at.kind == tokEOF {
		shown = "<EOF>"
	}
	from, to := at.start, at.end
	if p.pos > 0 {
		from = p.toks[p.pos-1].start
	}
	if p.pos+1 < len(p.toks) {
		to = p.toks[p.pos+1].end
	}
	return p.errorf(`Syntax error; token: "%s", near: "%s"`, shown, p.src[from:to])
}

// path reads a document path: name, then .name or [index] any number of times.
func (p *parser) path() (path, error) {
	first, err := p.pathName()
	if err != nil {
		return nil, err
	}
	steps := path{first}
	for {
		switch {
		case p.accept("."):
			s, err := p.pathName()
			if err != nil {
				return nil, err
			}
			steps = append(steps, s)
		case p.accept("["):
			s, err := p.pathIndex()
			if err != nil {
				return nil, err
			}
			steps = append(steps, s)
		default:
			return steps, nil
		}
	}
}

func (p *parser) pathName() (step, error) {
	t := p.peek()
	word := p.textOf(t)
	switch t.kind {
	case tokQuoted:
		word = unquote(word)
	case tokWord:
		if p.partiql {
			break
		}
		if isReserved(word) {
			p.fault(faultReserved, "Attribute name is a reserved keyword; reserved keyword: %s", word)
		}
	case tokName:
		name, ok := p.ph.names[word]
		if !ok {
			p.fault(faultUndefined, "An expression attribute name used in the document path is not defined; attribute name: %s", word)
		}
		p.ph.usedNames[word] = true
		word = name
	default:
		return step{}, p.syntaxError()
	}
	p.pos++
	return step{name: word}, nil
}

func (p *parser) pathIndex() (step, error) {
	t := p.peek()
	if t.kind != tokInteger {
		return step{}, p.syntaxError()
	}
	index, err := strconv.Atoi(p.textOf(t))
	if err != nil {
		return step{}, p.syntaxError()
	}
	p.pos++
	return step{index: index}, p.expect("]")
}

// value reads a :placeholder.
func (p *parser) value() (value, error) {
	t := p.peek()
	if t.kind != tokValue {
		return nil, p.syntaxError()
	}
	p.pos++
	word := p.textOf(t)
	v, ok := p.ph.values[word]
	if !ok {
		p.fault(faultUndefined, "An expression attribute value used in expression is not defined; attribute value: %s", word)
		return null{}, nil
	}
	p.ph.usedValues[word] = true
	return v, nil
}

// call reads a function's arguments, each by argument; its name is the current token.
func (p *parser) call(argument func() error) (name string, err error) {
	name = p.textOf(p.take())
	p.operators++
	if err := p.expect("("); err != nil {
		return name, err
	}
	for {
		if err := argument(); err != nil {
			return name, err
		}
		if !p.accept(",") {
			return name, p.expect(")")
		}
	}
}

// atCall says whether a function call is next.
func (p *parser) atCall() bool {
	return p.peek().kind == tokWord && p.toks[p.pos+1].kind == tokSymbol && p.textOf(p.toks[p.pos+1]) == "("
}

// grouped reads what stands between parentheses and notes doubled ones.
func (p *parser) grouped(inner func() error) error {
	open := p.pos
	if err := p.expect("("); err != nil {
		return err
	}
	if err := inner(); err != nil {
		return err
	}
	closing := p.pos
	if err := p.expect(")"); err != nil {
		return err
	}
	if p.groupOpen == open+1 && p.groupClose == closing-1 {
		p.fault(faultParens, "The expression has redundant parentheses;")
	}
	p.groupOpen, p.groupClose = open, closing
	return nil
}
