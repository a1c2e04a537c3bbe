package compute

import (
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// The types of the language. They are opaque to CEL, which lets null stand for a value of each of them
// and names them in messages as the schema does.
var (
	numberType  = types.NewOpaqueType("number")
	stringType  = types.NewOpaqueType("string")
	booleanType = types.NewOpaqueType("boolean")
	patternType = types.NewOpaqueType("pattern")
	anyType     = types.NewTypeParamType("A")
)

// CEL's own && and || insist on its own bool, which cannot be null: ours stand in their place.
const (
	and = "@and"
	or  = "@or"
)

// function is an operator or a function with one list of arguments.
type function struct {
	name   string
	member bool // called as argument.name(…)
	args   []*types.Type
	result *types.Type
	bind   cel.OverloadOpt // nil: CEL knows it
}

// functions is the whole language: CEL's own library is left out.
var functions = func() []function {
	n, s, b := numberType, stringType, booleanType
	return []function{
		{operators.Conditional, false, list(b, anyType, anyType), anyType, nil},
		{and, false, list(b, b), b, lenient(cel.BinaryBinding(both))},
		{or, false, list(b, b), b, lenient(cel.BinaryBinding(either))},
		{operators.LogicalNot, false, list(b), b, unary(not)},
		{operators.Equals, false, list(anyType, anyType), b, nil},
		{operators.NotEquals, false, list(anyType, anyType), b, nil},
		{operators.In, false, list(anyType, types.NewListType(anyType)), b, cel.BinaryBinding(in)},

		{operators.Less, false, list(n, n), b, binary(func(x, y *number) (types.Bool, error) { return compare(x, y) < 0, nil })},
		{operators.LessEquals, false, list(n, n), b, binary(func(x, y *number) (types.Bool, error) { return compare(x, y) <= 0, nil })},
		{operators.Greater, false, list(n, n), b, binary(func(x, y *number) (types.Bool, error) { return compare(x, y) > 0, nil })},
		{operators.GreaterEquals, false, list(n, n), b, binary(func(x, y *number) (types.Bool, error) { return compare(x, y) >= 0, nil })},
		{operators.Less, false, list(s, s), b, binary(func(x, y types.String) (types.Bool, error) { return x < y, nil })},
		{operators.LessEquals, false, list(s, s), b, binary(func(x, y types.String) (types.Bool, error) { return x <= y, nil })},
		{operators.Greater, false, list(s, s), b, binary(func(x, y types.String) (types.Bool, error) { return x > y, nil })},
		{operators.GreaterEquals, false, list(s, s), b, binary(func(x, y types.String) (types.Bool, error) { return x >= y, nil })},

		{operators.Add, false, list(n, n), n, binary(add)},
		{operators.Subtract, false, list(n, n), n, binary(subtract)},
		{operators.Multiply, false, list(n, n), n, binary(multiply)},
		{operators.Divide, false, list(n, n), n, binary(divide)},
		{operators.Modulo, false, list(n, n), n, binary(remainder)},
		{operators.Negate, false, list(n), n, unary(negate)},
		{"round", false, list(n), n, unary(round)},
		{"round", false, list(n, n), n, binary(roundPlaces)},
		{"floor", false, list(n), n, unary(floor)},
		{"ceil", false, list(n), n, unary(ceil)},
		{"number", false, list(s), n, unary(toNumber)},

		{operators.Add, false, list(s, s), s, binary(concat)},
		{"string", false, list(n), s, unary(toText)},
		{"size", false, list(s), n, unary(size)},
		{"size", true, list(s), n, unary(size)},
		{"startsWith", true, list(s, s), b, binary(startsWith)},
		{"endsWith", true, list(s, s), b, binary(endsWith)},
		{"contains", true, list(s, s), b, binary(contains)},
		{"matches", true, list(s, patternType), b, binary(matches)},
		{"lowerAscii", true, list(s), s, unary(lower)},
		{"upperAscii", true, list(s), s, unary(upper)},
		{"trim", true, list(s), s, unary(trim)},
		{"substring", true, list(s, n), s, binary(substringFrom)},
		{"substring", true, list(s, n, n), s, cel.FunctionBinding(substringBetween)},
	}
}()

func list(args ...*types.Type) []*types.Type { return args }

// id names an overload; CEL wants it to be unique.
func (f function) id() string {
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

func (f function) declare() cel.EnvOption {
	overload := cel.Overload
	if f.member {
		overload = cel.MemberOverload
	}
	var bind []cel.OverloadOpt
	if f.bind != nil {
		bind = append(bind, f.bind)
	}
	return cel.Function(f.name, overload(f.id(), f.args, f.result, bind...), decls.DisableTypeGuards(true)) // the bindings judge their arguments, null among them
}

// unary lets CEL call f, which sees no null.
func unary[A, R ref.Val](f func(A) (R, error)) cel.OverloadOpt {
	return cel.UnaryBinding(func(arg ref.Val) ref.Val {
		a, ok := arg.(A)
		if !ok {
			return types.WrapErr(errNull)
		}
		return result(f(a))
	})
}

// binary is unary for two arguments.
func binary[A, B, R ref.Val](f func(A, B) (R, error)) cel.OverloadOpt {
	return cel.BinaryBinding(func(left, right ref.Val) ref.Val {
		a, ok := left.(A)
		b, okRight := right.(B)
		if !ok || !okRight {
			return types.WrapErr(errNull)
		}
		return result(f(a, b))
	})
}

func result[R ref.Val](value R, err error) ref.Val {
	if err != nil {
		return types.WrapErr(err)
	}
	return value
}

// lenient lets CEL call a binding with errors for arguments.
func lenient(bind cel.OverloadOpt) cel.OverloadOpt {
	return func(o *decls.OverloadDecl) (*decls.OverloadDecl, error) {
		o, err := bind(o)
		if err != nil {
			return nil, err
		}
		return cel.OverloadIsNonStrict()(o)
	}
}

// both is &&. As CEL has it, one false side decides, whatever the other one is or fails with.
func both(a, b ref.Val) ref.Val { return decide(a, b, types.False) }

// either is ||, which one true side decides.
func either(a, b ref.Val) ref.Val { return decide(a, b, types.True) }

func decide(a, b ref.Val, decisive types.Bool) ref.Val {
	x, okX := a.(types.Bool)
	y, okY := b.(types.Bool)
	switch {
	case okX && x == decisive || okY && y == decisive:
		return decisive
	case types.IsError(a):
		return a
	case types.IsError(b):
		return b
	case !okX || !okY:
		return types.WrapErr(errNull)
	}
	return !decisive
}

func not(b types.Bool) (types.Bool, error) { return !b, nil }

// in compares as == does: null is in a list that has null.
func in(value, list ref.Val) ref.Val {
	items := list.(traits.Lister)
	for it := items.Iterator(); it.HasNext() == types.True; {
		if types.Equal(value, it.Next()) == types.True {
			return types.True
		}
	}
	return types.False
}

func substringFrom(text types.String, start *number) (types.String, error) {
	end, err := size(text)
	if err != nil {
		return "", err
	}
	return substring(text, start, end)
}

func substringBetween(args ...ref.Val) ref.Val {
	text, ok := args[0].(types.String)
	start, okStart := args[1].(*number)
	end, okEnd := args[2].(*number)
	if !ok || !okStart || !okEnd {
		return types.WrapErr(errNull)
	}
	return result(substring(text, start, end))
}

// language is CEL's parser and checker with our functions instead of its own, without macros and with
// bounds.
var language = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{cel.ClearMacros(), cel.HomogeneousAggregateLiterals(),
		cel.ParserExpressionSizeLimit(MaxExpression), cel.ParserRecursionLimit(MaxDepth)}
	for _, f := range functions {
		options = append(options, f.declare())
	}
	return cel.NewCustomEnv(options...)
})
