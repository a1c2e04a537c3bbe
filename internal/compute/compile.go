package compute

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"pintu/internal/dataset"
	"pintu/internal/decimal"
)

// compiler makes the expressions of one definition into programs. Between CEL's parser and its checker
// it puts its own names and values into the tree: fields become @f0, @f1…, literals become constants
// @c0, @c1… of our types, so that the checker knows neither ints nor doubles.
type compiler struct {
	base      *cel.Env
	env       *cel.Env // base, with the fields and constants of all expressions
	fields    []dataset.Column
	places    map[string]int // of the fields, by name
	columns   []expression
	constants map[string]string // name of each constant by its type and text
	declared  []cel.EnvOption
	problems  []Problem
}

// expression is one on its way.
type expression struct {
	dataset.Computed
	path         string
	ast          *cel.Ast
	fields       []int // that it refers to
	instructions int   // of its patterns
	wrong        bool  // has problems
}

func newCompiler(def *dataset.Definition) (*compiler, error) {
	base, err := language()
	if err != nil {
		return nil, err
	}
	c := &compiler{base: base, fields: def.Columns(), places: map[string]int{}, constants: map[string]string{}}
	for i, f := range c.fields {
		c.places[f.Name] = i
		c.declared = append(c.declared, cel.Variable(fieldName(i), typeOf[f.Kind]))
	}
	for i, computed := range def.Computed {
		c.columns = append(c.columns, expression{Computed: computed, path: fmt.Sprintf("computed[%d].expression", i)})
	}
	return c, nil
}

var typeOf = map[dataset.Kind]*types.Type{dataset.Number: numberType, dataset.Bool: booleanType, dataset.String: stringType}

func fieldName(place int) string { return "@f" + strconv.Itoa(place) }

// fieldOf is the inverse of fieldName.
func fieldOf(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "@f")
	place, err := strconv.Atoi(digits)
	return place, ok && err == nil
}

// parse reads one expression and puts our names and values into it.
func (c *compiler) parse(e *expression) {
	if n := utf8.RuneCountInString(e.Expression); n > MaxExpression {
		c.add(e, 0, 0, "is %d characters long, more than %d", n, MaxExpression)
		return
	}
	parsed, issues := c.base.Parse(e.Expression)
	if issues.Err() != nil {
		c.report(e, issues)
		return
	}
	e.ast = parsed
	c.rewrite(e, parsed.NativeRep().Expr())
	if e.instructions > MaxProgram {
		c.add(e, 0, 0, "has patterns of %d compiled instructions together, more than %d: shorten their repetitions", e.instructions, MaxProgram)
	}
}

// check lets CEL judge the types of the expressions that parse found nothing wrong with.
func (c *compiler) check() (err error) {
	if c.env, err = c.base.Extend(c.declared...); err != nil {
		return err
	}
	for i := range c.columns {
		e := &c.columns[i]
		if e.wrong {
			continue
		}
		checked, issues := c.env.Check(e.ast)
		if issues.Err() != nil {
			c.report(e, issues)
			continue
		}
		e.ast = checked
		if got := checked.OutputType(); got.TypeName() != typeOf[e.Kind()].TypeName() {
			c.add(e, 0, 0, "gives a %s, but the type of the column is %s", got.TypeName(), e.Type)
		}
	}
	return nil
}

func (c *compiler) add(e *expression, line, position int, reason string, args ...any) {
	e.wrong = true
	c.problems = append(c.problems, Problem{Path: e.path, Reason: clip(fmt.Sprintf(reason, args...)), Column: e.Name, Line: line, Position: position})
}

// at adds a problem with a node of the tree.
func (c *compiler) at(e *expression, n ast.Expr, reason string, args ...any) {
	info := e.ast.NativeRep().SourceInfo()
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
func (c *compiler) report(e *expression, issues *cel.Issues) {
	for _, issue := range issues.Errors() {
		c.add(e, max(issue.Location.Line(), 0), max(issue.Location.Column()+1, 0), "%s", plain(issue.Message))
	}
}

// plain makes a message of CEL's parser or checker one for people who write formulas.
func plain(message string) string {
	message, _, _ = strings.Cut(message, " expecting {") // followed by every token there is
	what, types, mismatch := strings.Cut(strings.TrimPrefix(message, "found no matching overload for '"), "' applied to '")
	switch {
	case mismatch:
		return fmt.Sprintf("%s does not work for %s", written(what), strings.TrimSuffix(types, "'"))
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

// rewrite judges a node and those below it, and gives the leaves our names and values.
func (c *compiler) rewrite(e *expression, n ast.Expr) {
	switch n.Kind() {
	case ast.LiteralKind:
		c.literal(e, n)
	case ast.IdentKind:
		c.field(e, n, n.AsIdent())
	case ast.CallKind:
		c.call(e, n)
	case ast.ListKind:
		c.at(e, n, "a list can only stand behind in")
	case ast.SelectKind:
		c.at(e, n, `a point between names is not supported; a field with a point in its name is written row["a.b"]`)
	default:
		c.at(e, n, "maps and messages are not supported")
	}
}

func (c *compiler) field(e *expression, n ast.Expr, name string) {
	place, known := c.places[name]
	switch {
	case known:
		e.fields = append(e.fields, place)
		n.SetKindCase(ast.NewExprFactory().NewIdent(n.ID(), fieldName(place)))
	case slices.ContainsFunc(c.columns, func(e expression) bool { return e.Name == name }):
		c.at(e, n, "%s is a computed column; an expression can refer to fields of the schema only", name)
	default:
		c.at(e, n, "%s is no field of the schema", name)
	}
}

func (c *compiler) call(e *expression, n ast.Expr) {
	call := n.AsCall()
	name, args := call.FunctionName(), call.Args()
	if name == operators.Index {
		c.index(e, n, args)
		return
	}
	if !c.known(e, n, call) {
		return
	}
	if ours, ok := map[string]string{operators.LogicalAnd: and, operators.LogicalOr: or}[name]; ok {
		n.SetKindCase(ast.NewExprFactory().NewCall(n.ID(), ours, args...))
	}
	if call.IsMemberFunction() {
		c.rewrite(e, call.Target())
	}
	if name == operators.Conditional {
		c.nullBranch(e, n, args)
		args = n.AsCall().Args()
	}
	for i, arg := range args {
		switch {
		case isNull(arg) && (name == operators.Equals || name == operators.NotEquals || name == operators.Conditional):
		case name == "matches":
			c.pattern(e, arg)
		case name == operators.In && i == 1:
			c.list(e, arg)
		default:
			c.rewrite(e, arg)
		}
	}
}

// nullBranch turns c ? null : x into !c ? x : null: CEL gives a condition the type of its first branch,
// and what is of type null would pass for every other type.
func (c *compiler) nullBranch(e *expression, n ast.Expr, args []ast.Expr) {
	switch {
	case isNull(args[1]) && isNull(args[2]):
		c.at(e, n, "both sides of ? : are null")
	case isNull(args[1]):
		fac, tree := ast.NewExprFactory(), e.ast.NativeRep()
		negated := fac.NewCall(ast.MaxID(tree)+1, operators.LogicalNot, args[0])
		where, _ := tree.SourceInfo().GetOffsetRange(n.ID())
		tree.SourceInfo().SetOffsetRange(negated.ID(), where)
		n.SetKindCase(fac.NewCall(n.ID(), operators.Conditional, negated, args[2], args[1]))
	}
}

func isNull(n ast.Expr) bool {
	return n.Kind() == ast.LiteralKind && n.AsLiteral() == types.NullValue
}

// index takes row["name"], which reaches every field, whatever its name.
func (c *compiler) index(e *expression, n ast.Expr, args []ast.Expr) {
	if args[0].Kind() == ast.IdentKind && args[0].AsIdent() == "row" && args[1].Kind() == ast.LiteralKind {
		if name, ok := args[1].AsLiteral().(types.String); ok {
			c.field(e, n, string(name))
			return
		}
	}
	c.at(e, n, `[ ] is only supported as row["name of a field"]`)
}

// known refuses functions that there are not, and those called in the wrong way.
func (c *compiler) known(e *expression, n ast.Expr, call ast.CallExpr) bool {
	name := call.FunctionName()
	same := func(f function) bool { return f.name == name }
	switch {
	case name == operators.LogicalAnd || name == operators.LogicalOr:
		return true
	case !slices.ContainsFunc(functions, same):
		c.at(e, n, "there is no function %s", name)
	case slices.ContainsFunc(functions, func(f function) bool { return same(f) && f.member == call.IsMemberFunction() }):
		return true
	case call.IsMemberFunction():
		c.at(e, n, "%[1]s is called as %[1]s(…)", name)
	default:
		c.at(e, n, "%[1]s is called as text.%[1]s(…)", name)
	}
	return false
}

func (c *compiler) list(e *expression, n ast.Expr) {
	if n.Kind() != ast.ListKind {
		c.at(e, n, "behind in there must be a list, such as [1, 2]")
		return
	}
	for _, item := range n.AsList().Elements() {
		c.rewrite(e, item)
	}
}

func (c *compiler) pattern(e *expression, n ast.Expr) {
	if n.Kind() == ast.LiteralKind {
		if text, ok := n.AsLiteral().(types.String); ok {
			re, instructions, err := dataset.CompileSearch(string(text))
			if err != nil {
				c.at(e, n, "the pattern %v", err)
				return
			}
			e.instructions += instructions
			c.constant(n, string(text), patternType, &pattern{re: re})
			return
		}
	}
	c.at(e, n, "the pattern of matches must be a text in quotes")
}

func (c *compiler) literal(e *expression, n ast.Expr) {
	switch v := n.AsLiteral().(type) {
	case types.Null:
		c.at(e, n, "null can only be compared by == and !=, or be a side of ? :")
	case types.String:
		c.constant(n, string(v), stringType, v)
	case types.Bool:
		c.constant(n, strconv.FormatBool(bool(v)), booleanType, v)
	case types.Int:
		c.number(e, n, strconv.FormatInt(int64(v), 10))
	case types.Uint:
		c.number(e, n, strconv.FormatUint(uint64(v), 10))
	case types.Double:
		start, _ := e.ast.NativeRep().SourceInfo().GetOffsetRange(n.ID())
		text := doubleText([]rune(e.Expression)[start.Start:])
		if f, err := strconv.ParseFloat(text, 64); err != nil || f != float64(v) {
			c.at(e, n, "the number cannot be read exactly; write number(\"…\")")
			return
		}
		c.number(e, n, text)
	default:
		c.at(e, n, "bytes are not supported")
	}
}

// number takes the digits as they were written: none goes through a float.
func (c *compiler) number(e *expression, n ast.Expr, text string) {
	canonical, err := decimal.Append(nil, []byte(text))
	if err != nil {
		c.at(e, n, "the number cannot be used: %v", err)
		return
	}
	var x number
	if err := x.parse(canonical); err != nil {
		c.at(e, n, "the number cannot be used: %v", err)
		return
	}
	c.constant(n, string(canonical), numberType, &x)
}

// doubleText cuts the literal off the beginning of a source: a sign, which white space and comments may
// follow, digits, point and exponent.
func doubleText(source []rune) string {
	var text []rune
	if len(source) > 0 && source[0] == '-' {
		text, source = append(text, '-'), source[1:]
		rest := strings.TrimLeft(string(source), " \t\r\n\f")
		for strings.HasPrefix(rest, "//") {
			_, rest, _ = strings.Cut(rest, "\n")
			rest = strings.TrimLeft(rest, " \t\r\n\f")
		}
		source = []rune(rest)
	}
	for i, r := range source {
		sign := (r == '-' || r == '+') && i > 0 && (source[i-1] == 'e' || source[i-1] == 'E')
		if !sign && !strings.ContainsRune("0123456789.eE", r) {
			break
		}
		text = append(text, r)
	}
	return string(text)
}

// constant makes a leaf a constant of one of our types.
func (c *compiler) constant(n ast.Expr, text string, t *types.Type, v ref.Val) {
	key := t.TypeName() + " " + text
	name, known := c.constants[key]
	if !known {
		name = "@c" + strconv.Itoa(len(c.constants))
		c.constants[key] = name
		c.declared = append(c.declared, cel.Constant(name, t, v))
	}
	n.SetKindCase(ast.NewExprFactory().NewIdent(n.ID(), name))
}
