package ddb

import (
	"slices"
	"strings"
)

// operand is what conditions compare and updates assign: a path, a literal or a function of them.
type operand interface {
	// eval returns nil for what does not exist in the item.
	eval(it item) value
}

// condition is a truth about one item; an item that does not exist is an empty one.
type condition interface{ holds(it item) bool }

type (
	// literal is a value given with the request.
	literal struct{ v value }
	// sizeCall is size(of).
	sizeCall struct{ of operand }

	and struct{ left, right condition }
	or  struct{ left, right condition }
	not struct{ of condition }
	// comparison is left op right.
	comparison struct {
		op          string
		left, right operand
	}
	between struct{ what, low, high operand }
	// oneOf is what IN (among...).
	oneOf struct {
		what  operand
		among []operand
	}
	// exists is attribute_exists(path), or attribute_not_exists with want false.
	exists struct {
		path path
		want bool
	}
	// typeIs is attribute_type(of, name).
	typeIs struct {
		of   operand
		name kind
	}
	beginsWith struct{ what, prefix operand }
	contains   struct{ what, part operand }
)

func (p path) eval(it item) value     { return p.in(it) }
func (l literal) eval(item) value     { return l.v }
func (s sizeCall) eval(it item) value { return measure(s.of.eval(it)) }

// measure is the size function: bytes, members or elements; text counts UTF-16 units. Other types have no size.
func measure(v value) value {
	switch v := v.(type) {
	case text:
		n := 0
		for _, r := range string(v) {
			n++
			if r > 0xffff {
				n++
			}
		}
		return numberOf(n)
	case binaryValue:
		return numberOf(len(v))
	case list:
		return numberOf(len(v))
	case item:
		return numberOf(len(v))
	case set:
		return numberOf(len(v.members))
	}
	return nil
}

func (c and) holds(it item) bool { return c.left.holds(it) && c.right.holds(it) }
func (c or) holds(it item) bool  { return c.left.holds(it) || c.right.holds(it) }
func (c not) holds(it item) bool { return !c.of.holds(it) }

// holds: what is missing equals nothing, so that <> is true of it and every order is false.
func (c comparison) holds(it item) bool {
	left, right := c.left.eval(it), c.right.eval(it)
	switch c.op {
	case "=":
		return left != nil && right != nil && equal(left, right)
	case "<>":
		return left == nil || right == nil || !equal(left, right)
	}
	return inOrder(left, c.op, right)
}

// inOrder compares two values of one scalar type with <, <=, > or >=; everything else is false.
func inOrder(left value, op string, right value) bool {
	if left == nil || right == nil {
		return false
	}
	order, ok := compare(left, right)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (c between) holds(it item) bool {
	v := c.what.eval(it)
	return inOrder(v, ">=", c.low.eval(it)) && inOrder(v, "<=", c.high.eval(it))
}

func (c oneOf) holds(it item) bool {
	v := c.what.eval(it)
	return v != nil && slices.ContainsFunc(c.among, func(o operand) bool {
		w := o.eval(it)
		return w != nil && equal(v, w)
	})
}

func (c exists) holds(it item) bool { return (c.path.in(it) != nil) == c.want }

func (c typeIs) holds(it item) bool {
	v := c.of.eval(it)
	return v != nil && v.kind() == c.name
}

func (c beginsWith) holds(it item) bool {
	switch prefix := c.prefix.eval(it).(type) {
	case text:
		v, ok := c.what.eval(it).(text)
		return ok && strings.HasPrefix(string(v), string(prefix))
	case binaryValue:
		v, ok := c.what.eval(it).(binaryValue)
		return ok && strings.HasPrefix(string(v), string(prefix))
	}
	return false
}

func (c contains) holds(it item) bool {
	part := c.part.eval(it)
	if part == nil {
		return false
	}
	switch v := c.what.eval(it).(type) {
	case text:
		p, ok := part.(text)
		return ok && strings.Contains(string(v), string(p))
	case binaryValue:
		p, ok := part.(binaryValue)
		return ok && strings.Contains(string(v), string(p))
	case list:
		return slices.ContainsFunc(v, func(e value) bool { return equal(e, part) })
	case set:
		return slices.ContainsFunc(v.members, func(e value) bool { return equal(e, part) })
	}
	return false
}

// walkOperands calls visit for every operand of c, those inside functions included.
func walkOperands(c condition, visit func(operand)) {
	each := func(operands ...operand) {
		for _, o := range operands {
			if s, ok := o.(sizeCall); ok {
				visit(s.of)
			}
			visit(o)
		}
	}
	switch c := c.(type) {
	case and:
		walkOperands(c.left, visit)
		walkOperands(c.right, visit)
	case or:
		walkOperands(c.left, visit)
		walkOperands(c.right, visit)
	case not:
		walkOperands(c.of, visit)
	case comparison:
		each(c.left, c.right)
	case between:
		each(c.what, c.low, c.high)
	case oneOf:
		each(c.what)
		each(c.among...)
	case exists:
		each(c.path)
	case typeIs:
		each(c.of)
	case beginsWith:
		each(c.what, c.prefix)
	case contains:
		each(c.what, c.part)
	}
}
