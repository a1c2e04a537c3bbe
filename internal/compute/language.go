package compute

import (
	"bytes"
	"strings"
	"sync"

	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"pintu/internal/dataset"
)

// The types of the language. They are opaque to CEL, which lets null stand for a value of each of them
// and names them in messages as the schema does.
var (
	numberType  = types.NewOpaqueType("number")
	stringType  = types.NewOpaqueType("string")
	booleanType = types.NewOpaqueType("boolean")
	anyType     = types.NewTypeParamType("A")
)

var (
	typeOf = map[dataset.Kind]*types.Type{dataset.Number: numberType, dataset.String: stringType, dataset.Bool: booleanType}
	kindOf = map[*types.Type]dataset.Kind{numberType: dataset.Number, stringType: dataset.String, booleanType: dataset.Bool}
)

// CEL's own && and || insist on its own bool, which cannot be null: ours stand in their place. matches
// has its pattern taken away when that is compiled.
const (
	and     = "@and"
	or      = "@or"
	matches = "matches"
)

// function is an operator or a function with one list of arguments. One of the last three computes it
// from values that are there; without any it is a kind of node of its own.
type function struct {
	name   string
	member bool // called as argument.name(…)
	args   []*types.Type
	result *types.Type
	one    func(out, a *value) failure
	two    func(out, a, b *value) failure
	three  func(out, a, b, c *value) failure
}

// functions is the whole language: CEL's own library is left out.
var functions = func() []function {
	n, s, b := numberType, stringType, booleanType
	args := func(args ...*types.Type) []*types.Type { return args }
	return []function{
		{name: operators.Conditional, args: args(b, anyType, anyType), result: anyType},
		{name: and, args: args(b, b), result: b},
		{name: or, args: args(b, b), result: b},
		{name: operators.LogicalNot, args: args(b), result: b, one: not},
		{name: operators.Equals, args: args(anyType, anyType), result: b},
		{name: operators.NotEquals, args: args(anyType, anyType), result: b},
		{name: operators.In, args: args(anyType, types.NewListType(anyType)), result: b},

		{name: operators.Less, args: args(n, n), result: b, two: byNumber(func(c int) bool { return c < 0 })},
		{name: operators.LessEquals, args: args(n, n), result: b, two: byNumber(func(c int) bool { return c <= 0 })},
		{name: operators.Greater, args: args(n, n), result: b, two: byNumber(func(c int) bool { return c > 0 })},
		{name: operators.GreaterEquals, args: args(n, n), result: b, two: byNumber(func(c int) bool { return c >= 0 })},
		{name: operators.Less, args: args(s, s), result: b, two: byText(func(c int) bool { return c < 0 })},
		{name: operators.LessEquals, args: args(s, s), result: b, two: byText(func(c int) bool { return c <= 0 })},
		{name: operators.Greater, args: args(s, s), result: b, two: byText(func(c int) bool { return c > 0 })},
		{name: operators.GreaterEquals, args: args(s, s), result: b, two: byText(func(c int) bool { return c >= 0 })},

		{name: operators.Add, args: args(n, n), result: n, two: ofNumbers((*number).add)},
		{name: operators.Subtract, args: args(n, n), result: n, two: ofNumbers((*number).subtract)},
		{name: operators.Multiply, args: args(n, n), result: n, two: ofNumbers((*number).multiply)},
		{name: operators.Divide, args: args(n, n), result: n, two: ofNumbers((*number).divide)},
		{name: operators.Modulo, args: args(n, n), result: n, two: ofNumbers((*number).remainder)},
		{name: operators.Negate, args: args(n), result: n, one: ofNumber((*number).negate)},
		{name: "round", args: args(n), result: n, one: ofNumber((*number).round)},
		{name: "round", args: args(n, n), result: n, two: ofNumbers((*number).roundPlaces)},
		{name: "floor", args: args(n), result: n, one: ofNumber((*number).floor)},
		{name: "ceil", args: args(n), result: n, one: ofNumber((*number).ceil)},
		{name: "number", args: args(s), result: n, one: toNumber},

		{name: operators.Add, args: args(s, s), result: s, two: concat},
		{name: "string", args: args(n), result: s, one: toText},
		{name: "size", args: args(s), result: n, one: size},
		{name: "size", member: true, args: args(s), result: n, one: size},
		{name: "startsWith", member: true, args: args(s, s), result: b, two: startsWith},
		{name: "endsWith", member: true, args: args(s, s), result: b, two: endsWith},
		{name: "contains", member: true, args: args(s, s), result: b, two: contains},
		{name: matches, member: true, args: args(s, s), result: b},
		{name: "lowerAscii", member: true, args: args(s), result: s, one: lower},
		{name: "upperAscii", member: true, args: args(s), result: s, one: upper},
		{name: "trim", member: true, args: args(s), result: s, one: trim},
		{name: "substring", member: true, args: args(s, n), result: s, two: substringFrom},
		{name: "substring", member: true, args: args(s, n, n), result: s, three: substring},
	}
}()

// id names an overload; CEL wants it to be unique.
func (f *function) id() string {
	var b strings.Builder
	b.WriteString(f.name)
	if f.member {
		b.WriteString("_member")
	}
	for _, arg := range f.args {
		b.WriteByte('_')
		b.WriteString(arg.TypeName())
	}
	return b.String()
}

var functionOf = func() map[string]*function {
	byID := map[string]*function{}
	for i := range functions {
		byID[functions[i].id()] = &functions[i]
	}
	return byID
}()

// language is CEL without its own library, its macros and its own bounds.
type language struct {
	parser  *parser.Parser
	checker *checker.Env
}

var celLanguage = sync.OnceValues(func() (*language, error) {
	p, err := parser.NewParser(parser.Macros(), parser.ExpressionSizeCodePointLimit(MaxExpression), parser.MaxRecursionDepth(MaxDepth))
	if err != nil {
		return nil, err
	}
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	env, err := checker.NewEnv(containers.DefaultContainer, registry)
	if err != nil {
		return nil, err
	}
	for kind, t := range typeOf {
		if err := env.AddIdents(decls.NewVariable(variableOf(kind), t)); err != nil {
			return nil, err
		}
	}
	for i := range functions {
		decl, err := functions[i].declare()
		if err != nil {
			return nil, err
		}
		if err := env.AddFunctions(decl); err != nil {
			return nil, err
		}
	}
	return &language{p, env}, nil
})

// variableOf names what stands for any field or literal of a kind. It cannot be written.
func variableOf(kind dataset.Kind) string { return "@" + typeOf[kind].TypeName() }

func (f *function) declare() (*decls.FunctionDecl, error) {
	overload := decls.Overload
	if f.member {
		overload = decls.MemberOverload
	}
	return decls.NewFunction(f.name, overload(f.id(), f.args, f.result))
}

func not(out, a *value) failure {
	out.truth = !a.truth
	return ""
}

// byNumber and byText make an operator of what the comparison of its operands means to it.
func byNumber(holds func(order int) bool) func(out, a, b *value) failure {
	return func(out, a, b *value) failure {
		out.truth = holds(compare(&a.number, &b.number))
		return ""
	}
}

func byText(holds func(order int) bool) func(out, a, b *value) failure {
	return func(out, a, b *value) failure {
		out.truth = holds(bytes.Compare(a.text, b.text))
		return ""
	}
}

func ofNumber(do func(z, x *number) failure) func(out, a *value) failure {
	return func(out, a *value) failure { return do(&out.number, &a.number) }
}

func ofNumbers(do func(z, x, y *number) failure) func(out, a, b *value) failure {
	return func(out, a, b *value) failure { return do(&out.number, &a.number, &b.number) }
}
