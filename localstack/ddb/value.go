package ddb

import (
	"slices"
	"strings"
)

// kind is a data type by its name on the wire.
type kind string

const (
	kindS    kind = "S"
	kindN    kind = "N"
	kindB    kind = "B"
	kindBOOL kind = "BOOL"
	kindNULL kind = "NULL"
	kindL    kind = "L"
	kindM    kind = "M"
	kindSS   kind = "SS"
	kindNS   kind = "NS"
	kindBS   kind = "BS"
)

// value is one attribute value. Values are never changed once made: tables, answers and the log share them.
type value interface{ kind() kind }

type (
	text        string // S
	binaryValue string // B, the bytes themselves
	// number is N in the form DynamoDB returns it: no exponent, no leading or trailing zeros, "0" for zero.
	number  string
	boolean bool
	null    struct{}
	list    []value
	// item is M, and also a whole item.
	item map[string]value
	// set is SS, NS or BS; members are sorted, distinct and at least one.
	set struct {
		of      kind // kindSS, kindNS or kindBS
		members []value
	}
)

func (text) kind() kind        { return kindS }
func (number) kind() kind      { return kindN }
func (binaryValue) kind() kind { return kindB }
func (boolean) kind() kind     { return kindBOOL }
func (null) kind() kind        { return kindNULL }
func (list) kind() kind        { return kindL }
func (item) kind() kind        { return kindM }
func (s set) kind() kind       { return s.of }

// equal compares deeply. Numbers are equal by value, sets without order.
func equal(a, b value) bool {
	if a.kind() != b.kind() {
		return false
	}
	switch a := a.(type) {
	case list:
		return slices.EqualFunc(a, b.(list), equal)
	case item:
		return equalItems(a, b.(item))
	case set:
		return slices.EqualFunc(a.members, b.(set).members, equal)
	}
	return a == b
}

func equalItems(a, b item) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		w, ok := b[name]
		if !ok || !equal(v, w) {
			return false
		}
	}
	return true
}

// compare orders two scalars of one type among S, N and B; ok is false for any other pair.
func compare(a, b value) (order int, ok bool) {
	switch a := a.(type) {
	case text:
		if b, is := b.(text); is {
			return strings.Compare(string(a), string(b)), true
		}
	case binaryValue:
		if b, is := b.(binaryValue); is {
			return strings.Compare(string(a), string(b)), true
		}
	case number:
		if b, is := b.(number); is {
			return compareNumbers(a, b), true
		}
	}
	return 0, false
}

// newSet sorts members and reports whether two of them were equal.
func newSet(of kind, members []value) (s set, duplicate bool) {
	slices.SortFunc(members, compareMembers)
	for i := 1; i < len(members); i++ {
		if members[i] == members[i-1] {
			return set{}, true
		}
	}
	return set{of, members}, false
}

func compareMembers(a, b value) int {
	order, _ := compare(a, b)
	return order
}

func (s set) has(v value) bool {
	_, found := slices.BinarySearchFunc(s.members, v, compareMembers)
	return found
}

// union returns s with the members of t, which is of the same kind.
func (s set) union(t set) set {
	members := slices.Concat(s.members, t.members)
	slices.SortFunc(members, compareMembers)
	return set{s.of, slices.Compact(members)}
}

// minus returns s without the members of t; it may be empty.
func (s set) minus(t set) set {
	var left []value
	for _, v := range s.members {
		if !t.has(v) {
			left = append(left, v)
		}
	}
	return set{s.of, left}
}

// sizeOf is the stored size in bytes by the developer guide's rules: text and binary by length, numbers about one byte per
// two digits, 3 bytes for a list or map and 1 more for each of its elements.
func sizeOf(v value) int {
	switch v := v.(type) {
	case text:
		return len(v)
	case binaryValue:
		return len(v)
	case number:
		return v.size()
	case list:
		n := 3
		for _, e := range v {
			n += 1 + sizeOf(e)
		}
		return n
	case item:
		return 3 + len(v) + itemSize(v)
	case set:
		n := 0
		for _, e := range v.members {
			n += sizeOf(e)
		}
		return n
	}
	return 1
}

// itemSize is the size of an item: names and values, no overhead.
func itemSize(it item) int {
	n := 0
	for name, v := range it {
		n += len(name) + sizeOf(v)
	}
	return n
}

// depth counts the containers one inside the other; a scalar has none.
func depth(v value) int {
	deepest := -1
	switch v := v.(type) {
	case list:
		deepest = 0
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	case item:
		deepest = 0
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	}
	return deepest + 1
}
