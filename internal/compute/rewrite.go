package compute

import (
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"pintu/internal/dataset"
	"pintu/internal/decimal"
)

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
		e.leaf(n, c.fields[place].Kind, c.reading(place))
	case slices.ContainsFunc(c.columns, func(e expression) bool { return e.Name == name }):
		c.at(e, n, "%s is a computed column; an expression can refer to fields of the schema only", name)
	default:
		c.at(e, n, "%s is no field of the schema", name)
	}
}

// reading gives the node of a field.
func (c *compiler) reading(place int) fieldNode {
	i := slices.Index(c.used, place)
	if i < 0 {
		i = len(c.used)
		c.used = append(c.used, place)
	}
	return fieldNode(i)
}

// leaf puts a variable of a type into the place of a field or literal.
func (e *expression) leaf(n ast.Expr, kind dataset.Kind, leaf node) {
	e.leaves[n.ID()] = leaf
	n.SetKindCase(ast.NewExprFactory().NewIdent(n.ID(), variableOf(kind)))
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
		case name == matches:
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
		fac, info := ast.NewExprFactory(), e.tree.SourceInfo()
		negated := fac.NewCall(ast.MaxID(e.tree)+1, operators.LogicalNot, args[0])
		where, _ := info.GetOffsetRange(n.ID())
		info.SetOffsetRange(negated.ID(), where)
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
			e.patterns[n.ID()] = re
			e.leaf(n, dataset.String, nil)
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
		e.leaf(n, dataset.String, constantNode{&value{kind: dataset.String, text: []byte(v)}})
	case types.Bool:
		e.leaf(n, dataset.Bool, constantNode{&value{kind: dataset.Bool, truth: bool(v)}})
	case types.Int:
		c.number(e, n, strconv.FormatInt(int64(v), 10))
	case types.Uint:
		c.number(e, n, strconv.FormatUint(uint64(v), 10))
	case types.Double:
		start, _ := e.tree.SourceInfo().GetOffsetRange(n.ID())
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
	v := &value{kind: dataset.Number}
	if why := v.number.parse(canonical); why != "" {
		c.at(e, n, "the number cannot be used: %s", why)
		return
	}
	e.leaf(n, dataset.Number, constantNode{v})
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
