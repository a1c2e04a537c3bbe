package compute

import (
	"bytes"

	"pintu/internal/dataset"
)

// value is what a node of an expression comes to for one row.
type value struct {
	kind    dataset.Kind
	failure failure // not empty: there is no value, and this is why
	number  number
	text    []byte
	truth   bool

	buf []byte // memory for text, used again
}

// null is the literal.
var null = &value{}

// read takes a field of a row. Its texts are canonical.
func (v *value) read(in dataset.Value) {
	v.kind, v.failure = in.Kind, ""
	switch in.Kind {
	case dataset.Number:
		v.failure = v.number.parse(in.Text)
	case dataset.Bool:
		v.truth = in.Text[0] == 't'
	case dataset.String:
		v.text = in.Text
	}
}

// equal compares as == does: null equals null alone, numbers are compared by value.
func (v *value) equal(w *value) bool {
	switch {
	case v.kind != w.kind:
		return false
	case v.kind == dataset.Number:
		return compare(&v.number, &w.number) == 0
	case v.kind == dataset.String:
		return bytes.Equal(v.text, w.text)
	case v.kind == dataset.Bool:
		return v.truth == w.truth
	}
	return true
}

// frame holds what the nodes of a program come to. The values of its slots hold until the next column.
type frame struct {
	program *Program
	fields  []value // those that the expressions refer to
	slots   []value // one per call of the largest expression
	text    []byte
}

// node is one node of an expression: a field, a constant or a call.
type node interface {
	// eval gives the value for the row that the frame was filled with. It is not to be changed.
	eval(f *frame) *value
}

type fieldNode int // place in frame.fields

func (n fieldNode) eval(f *frame) *value { return &f.fields[n] }

type constantNode struct{ value *value }

func (n constantNode) eval(*frame) *value { return n.value }

// slot is where a call puts its value.
type slot int

func (s slot) fail(f *frame, why failure) *value {
	out := &f.slots[s]
	out.failure = why
	return out
}

func (s slot) truth(f *frame, truth bool) *value {
	out := &f.slots[s]
	out.kind, out.failure, out.truth = dataset.Bool, "", truth
	return out
}

// unaryNode, binaryNode and ternaryNode call functions that need the values of all their arguments.
type unaryNode struct {
	slot
	kind dataset.Kind
	do   func(out, a *value) failure
	arg  node
}

func (n *unaryNode) eval(f *frame) *value {
	a := n.arg.eval(f)
	switch {
	case a.failure != "":
		return a
	case a.kind == dataset.Null:
		return n.fail(f, errNull)
	}
	out := &f.slots[n.slot]
	out.kind = n.kind
	out.failure = n.do(out, a)
	return out
}

type binaryNode struct {
	slot
	kind        dataset.Kind
	do          func(out, a, b *value) failure
	left, right node
}

func (n *binaryNode) eval(f *frame) *value {
	a := n.left.eval(f)
	if a.failure != "" {
		return a
	}
	b := n.right.eval(f)
	switch {
	case b.failure != "":
		return b
	case a.kind == dataset.Null || b.kind == dataset.Null:
		return n.fail(f, errNull)
	}
	out := &f.slots[n.slot]
	out.kind = n.kind
	out.failure = n.do(out, a, b)
	return out
}

type ternaryNode struct {
	slot
	kind dataset.Kind
	do   func(out, a, b, c *value) failure
	args [3]node
}

func (n *ternaryNode) eval(f *frame) *value {
	var args [3]*value
	for i, arg := range n.args {
		args[i] = arg.eval(f)
		if args[i].failure != "" {
			return args[i]
		}
	}
	if args[0].kind == dataset.Null || args[1].kind == dataset.Null || args[2].kind == dataset.Null {
		return n.fail(f, errNull)
	}
	out := &f.slots[n.slot]
	out.kind = n.kind
	out.failure = n.do(out, args[0], args[1], args[2])
	return out
}

// logicNode is && or ||. As CEL has it, one side that decides is enough, whatever the other one is or
// fails with.
type logicNode struct {
	slot
	decisive    bool // false decides &&, true ||
	left, right node
}

func (n *logicNode) eval(f *frame) *value {
	a := n.left.eval(f)
	if n.decides(a) {
		return a
	}
	b := n.right.eval(f)
	switch {
	case n.decides(b):
		return b
	case a.failure != "":
		return a
	case b.failure != "":
		return b
	case a.kind == dataset.Null || b.kind == dataset.Null:
		return n.fail(f, errNull)
	}
	return b
}

func (n *logicNode) decides(v *value) bool {
	return v.failure == "" && v.kind == dataset.Bool && v.truth == n.decisive
}

// conditionNode is ? :.
type conditionNode struct {
	slot
	condition, yes, no node
}

func (n *conditionNode) eval(f *frame) *value {
	c := n.condition.eval(f)
	switch {
	case c.failure != "":
		return c
	case c.kind == dataset.Null:
		return n.fail(f, errNull)
	case c.truth:
		return n.yes.eval(f)
	}
	return n.no.eval(f)
}

// equalNode is == or !=, which null may be compared by.
type equalNode struct {
	slot
	not         bool
	left, right node
}

func (n *equalNode) eval(f *frame) *value {
	a := n.left.eval(f)
	if a.failure != "" {
		return a
	}
	b := n.right.eval(f)
	if b.failure != "" {
		return b
	}
	return n.truth(f, a.equal(b) != n.not)
}

// inNode is in. It compares as == does.
type inNode struct {
	slot
	arg   node
	items []node
}

func (n *inNode) eval(f *frame) *value {
	a := n.arg.eval(f)
	if a.failure != "" {
		return a
	}
	found := false
	for _, item := range n.items {
		b := item.eval(f)
		if b.failure != "" {
			return b
		}
		found = found || a.equal(b)
	}
	return n.truth(f, found)
}
