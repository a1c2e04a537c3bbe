package ddb

import (
	"cmp"
	"maps"
	"slices"
)

// actionKind is a section of an update expression.
type actionKind string

const (
	actSet    actionKind = "SET"
	actRemove actionKind = "REMOVE"
	actAdd    actionKind = "ADD"
	actDelete actionKind = "DELETE"
)

// action is one clause of an update: SET at = to, REMOVE at, ADD at operand or DELETE at operand.
type action struct {
	kind    actionKind
	at      path
	to      rightSide // SET
	operand value     // ADD and DELETE
}

// update is a parsed update expression.
type update struct {
	actions []action
	paths   *pathTree // what it touches, for UPDATED_OLD and UPDATED_NEW
}

// rightSide is what SET assigns. It reads the item as it was before the update.
type rightSide interface {
	assigned(it item) (value, error)
}

type (
	// plain is an operand as it stands.
	plain struct{ of operand }
	// ifNotExists is if_not_exists(at, otherwise).
	ifNotExists struct {
		at        path
		otherwise rightSide
	}
	// listAppend is list_append(left, right).
	listAppend struct{ left, right rightSide }
	// arithmetic is left + right, or left - right.
	arithmetic struct {
		left, right rightSide
		minus       bool
	}
)

var (
	errNoAttribute  = invalid("The provided expression refers to an attribute that does not exist in the item")
	errOperandType  = invalid("An operand in the update expression has an incorrect data type")
	errUpdateTooBig = invalid("Item size to update has exceeded the maximum allowed size")
)

func (r plain) assigned(it item) (value, error) {
	v := r.of.eval(it)
	if v == nil {
		return nil, errNoAttribute
	}
	return v, nil
}

func (r ifNotExists) assigned(it item) (value, error) {
	if v := r.at.in(it); v != nil {
		return v, nil
	}
	return r.otherwise.assigned(it)
}

func (r listAppend) assigned(it item) (value, error) {
	left, right, err := both[list](it, r.left, r.right)
	if err != nil {
		return nil, err
	}
	return slices.Concat(left, right), nil
}

func (r arithmetic) assigned(it item) (value, error) {
	left, right, err := both[number](it, r.left, r.right)
	if err != nil {
		return nil, err
	}
	if r.minus {
		return asValue(left.minus(right))
	}
	return asValue(left.plus(right))
}

// asValue keeps a failed sum from becoming a non-nil interface around an empty number.
func asValue(n number, err error) (value, error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

// both evaluates two sides that must be of type T.
func both[T value](it item, l, r rightSide) (left, right T, err error) {
	lv, err := l.assigned(it)
	if err != nil {
		return left, right, err
	}
	rv, err := r.assigned(it)
	if err != nil {
		return left, right, err
	}
	left, okLeft := lv.(T)
	right, okRight := rv.(T)
	if !okLeft || !okRight {
		return left, right, errOperandType
	}
	return left, right, nil
}

// apply returns the item as it is after the update; old stays as it was. All clauses see old: values are computed before
// any is written, elements are set before others are removed, and list elements are removed from the back.
func (u *update) apply(old item) (item, error) {
	values := make([]value, len(u.actions))
	for i, a := range u.actions {
		v, err := a.result(old)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	it := maps.Clone(old)
	for _, i := range u.order(values) {
		a := u.actions[i]
		if a.kind == actDelete && values[i] == nil && a.at.in(old) == nil {
			continue // nothing to delete from
		}
		if _, err := a.at.replace(it, values[i], true); err != nil {
			return nil, err
		}
	}
	if depth(it) > maxNesting+1 {
		return nil, invalid("Nesting Levels have exceeded supported limits")
	}
	return it, nil
}

// result is the new value at the action's path; nil removes it.
func (a action) result(old item) (value, error) {
	switch a.kind {
	case actSet:
		return a.to.assigned(old)
	case actAdd:
		return a.sum(a.at.in(old))
	case actDelete:
		return a.difference(a.at.in(old))
	}
	return nil, nil
}

func (a action) sum(was value) (value, error) {
	switch was := was.(type) {
	case nil:
		return a.operand, nil
	case number:
		if n, ok := a.operand.(number); ok {
			return asValue(was.plus(n))
		}
	case set:
		if s, ok := a.operand.(set); ok && s.of == was.of {
			return was.union(s), nil
		}
	}
	return nil, errOperandType
}

func (a action) difference(was value) (value, error) {
	if was == nil {
		return nil, nil
	}
	have, ok := was.(set)
	if !ok || have.of != a.operand.kind() {
		return nil, errOperandType
	}
	left := have.minus(a.operand.(set))
	if len(left.members) == 0 {
		return nil, nil
	}
	return left, nil
}

// order gives the sequence in which values are written: what sets first, by path, then what removes, by path backwards.
func (u *update) order(values []value) []int {
	sequence := make([]int, len(values))
	for i := range sequence {
		sequence[i] = i
	}
	slices.SortStableFunc(sequence, func(i, j int) int {
		a, b := u.actions[i].at, u.actions[j].at
		removesA, removesB := values[i] == nil, values[j] == nil
		switch {
		case removesA && removesB:
			return comparePaths(b, a)
		case removesA:
			return 1
		case removesB:
			return -1
		}
		return comparePaths(a, b)
	})
	return sequence
}

func comparePaths(a, b path) int {
	return slices.CompareFunc(a, b, func(s, t step) int {
		return cmp.Or(cmp.Compare(s.name, t.name), cmp.Compare(s.index, t.index))
	})
}
