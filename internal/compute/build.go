package compute

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"pintu/internal/dataset"
)

// build makes the node of a checked tree.
func (e *expression) build(n ast.Expr) (node, error) {
	switch n.Kind() {
	case ast.IdentKind:
		return e.leaves[n.ID()], nil
	case ast.LiteralKind: // all others were replaced
		return constantNode{null}, nil
	case ast.CallKind:
		return e.buildCall(n)
	}
	return nil, fmt.Errorf("a node of kind %d", n.Kind())
}

func (e *expression) buildCall(n ast.Expr) (node, error) {
	overloads := e.tree.GetOverloadIDs(n.ID())
	if len(overloads) != 1 || functionOf[overloads[0]] == nil {
		return nil, fmt.Errorf("a call of one of %v", overloads)
	}
	f, call := functionOf[overloads[0]], n.AsCall()
	parts := call.Args()
	if call.IsMemberFunction() {
		parts = append([]ast.Expr{call.Target()}, parts...)
	}
	s := slot(e.slots)
	e.slots++
	switch f.name {
	case operators.In:
		return e.buildIn(s, parts)
	case matches:
		arg, err := e.build(parts[0])
		return &unaryNode{s, dataset.Bool, matcher(e.patterns[parts[1].ID()]), arg}, err
	}
	args, err := e.buildAll(parts)
	if err != nil {
		return nil, err
	}
	return f.node(s, args)
}

func (e *expression) buildAll(parts []ast.Expr) ([]node, error) {
	var nodes []node
	for _, part := range parts {
		n, err := e.build(part)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (e *expression) buildIn(s slot, parts []ast.Expr) (node, error) {
	arg, err := e.build(parts[0])
	if err != nil {
		return nil, err
	}
	items, err := e.buildAll(parts[1].AsList().Elements())
	return &inNode{s, arg, items}, err
}

// node makes the call of a function.
func (f *function) node(s slot, args []node) (node, error) {
	kind := kindOf[f.result]
	switch {
	case f.one != nil:
		return &unaryNode{s, kind, f.one, args[0]}, nil
	case f.two != nil:
		return &binaryNode{s, kind, f.two, args[0], args[1]}, nil
	case f.three != nil:
		return &ternaryNode{s, kind, f.three, [3]node(args)}, nil
	}
	switch f.name {
	case operators.Conditional:
		return &conditionNode{s, args[0], args[1], args[2]}, nil
	case and, or:
		return &logicNode{s, f.name == or, args[0], args[1]}, nil
	case operators.Equals, operators.NotEquals:
		return &equalNode{s, f.name == operators.NotEquals, args[0], args[1]}, nil
	}
	return nil, fmt.Errorf("nobody computes %s", f.name)
}
