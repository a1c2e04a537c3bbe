package compute

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"pintu/internal/dataset"
)

// compiler makes the expressions of one definition into a program. CEL parses them and checks their
// types. In between every field and literal of the tree is replaced by a variable of its type, so that
// the checker knows neither ints nor doubles; what stood there is kept by the id of the node.
type compiler struct {
	fields   []dataset.Column
	places   map[string]int // of the fields, by name
	used     []int          // places of the fields that are referred to
	columns  []expression
	problems []Problem
}

// expression is one on its way.
type expression struct {
	dataset.Computed
	path         string
	source       common.Source
	tree         *ast.AST
	leaves       map[int64]node
	patterns     map[int64]*regexp.Regexp
	fields       []int // that it refers to
	instructions int   // of its patterns
	slots        int   // that its nodes write to
	wrong        bool  // has problems
}

func newCompiler(def *dataset.Definition) *compiler {
	c := &compiler{fields: def.Columns(), places: map[string]int{}}
	for i, f := range c.fields {
		c.places[f.Name] = i
	}
	for i, computed := range def.Computed {
		c.columns = append(c.columns, expression{Computed: computed, path: fmt.Sprintf("computed[%d].expression", i),
			source: common.NewTextSource(computed.Expression), leaves: map[int64]node{}, patterns: map[int64]*regexp.Regexp{}})
	}
	return c
}

// compile judges one expression whole, unless it finds something wrong before.
func (c *compiler) compile(e *expression, l *language) {
	if n := utf8.RuneCountInString(e.Expression); n > MaxExpression {
		c.add(e, 0, 0, "is %d characters long, more than %d", n, MaxExpression)
		return
	}
	parsed, errs := l.parser.Parse(e.source)
	if c.report(e, errs); e.wrong {
		return
	}
	e.tree = parsed
	c.rewrite(e, parsed.Expr())
	if e.instructions > MaxProgram {
		c.add(e, 0, 0, "has patterns of %d compiled instructions together, more than %d: shorten their repetitions", e.instructions, MaxProgram)
	}
	if e.wrong {
		return
	}
	checked, errs := checker.Check(parsed, e.source, l.checker)
	if c.report(e, errs); e.wrong {
		return
	}
	e.tree = checked
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(n ast.Expr) {
		if n.Kind() == ast.ListKind && n.AsList().Size() > 0 && checked.GetType(n.ID()).Parameters()[0].Kind() == types.DynKind {
			c.at(e, n, "the values of a list must be of one type")
		}
	}))
	if got := checked.GetType(checked.Expr().ID()); got.TypeName() != typeOf[e.Kind()].TypeName() {
		c.add(e, 0, 0, "gives a %s, but the type of the column is %s", got.TypeName(), e.Type)
	}
}

// program builds the nodes of all expressions, which were found to be right.
func (c *compiler) program() (*Program, error) {
	p := &Program{used: c.used}
	for _, f := range c.fields {
		p.names = append(p.names, f.Name)
	}
	for i := range c.columns {
		e := &c.columns[i]
		root, err := e.build(e.tree.Expr())
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", e.path, err)
		}
		slices.Sort(e.fields)
		p.columns = append(p.columns, column{Computed: e.Computed, root: root, fields: slices.Compact(e.fields)})
		p.slots = max(p.slots, e.slots)
	}
	return p, nil
}

func (c *compiler) add(e *expression, line, position int, reason string, args ...any) {
	e.wrong = true
	c.problems = append(c.problems, Problem{Path: e.path, Reason: clip(fmt.Sprintf(reason, args...)), Column: e.Name, Line: line, Position: position})
}

// at adds a problem with a node of the tree.
func (c *compiler) at(e *expression, n ast.Expr, reason string, args ...any) {
	info := e.tree.SourceInfo()
	where := info.GetStartLocation(n.ID())
	position := where.Column() + 1
	if n.Kind() == ast.CallKind { // CEL places a call at its parenthesis
		name := n.AsCall().FunctionName()
		source := []rune(e.Expression)
		if r, ok := info.GetOffsetRange(n.ID()); ok && int(r.Start) <= len(source) && strings.HasSuffix(string(source[:r.Start]), name) {
			position -= utf8.RuneCountInString(name)
		}
	}
	c.add(e, where.Line(), position, reason, args...)
}

// report adds what CEL found.
func (c *compiler) report(e *expression, errs *common.Errors) {
	for _, err := range errs.GetErrors() {
		c.add(e, max(err.Location.Line(), 0), max(err.Location.Column()+1, 0), "%s", plain(err.Message))
	}
}

// plain makes a message of CEL's parser or checker one for people who write formulas.
func plain(message string) string {
	message, _, _ = strings.Cut(message, " expecting {") // followed by every token there is
	what, args, mismatch := strings.Cut(strings.TrimPrefix(message, "found no matching overload for '"), "' applied to '")
	switch {
	case mismatch:
		return fmt.Sprintf("%s does not work for %s", written(what), strings.TrimSuffix(args, "'"))
	case strings.HasPrefix(message, "Syntax error: token recognition error at: '="):
		return "a single = means nothing; compare with =="
	case message == "invalid int literal" || message == "invalid uint literal":
		return `too large for a whole number; write it with .0 or an exponent`
	}
	return message
}

// written gives an operator as it is written.
func written(name string) string {
	switch name {
	case operators.Conditional:
		return "? :"
	case and:
		return "&&"
	case or:
		return "||"
	}
	if symbol, ok := operators.FindReverse(name); ok {
		return symbol
	}
	return name
}
