package ddb

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// step is one element of a document path: a map key, or with no name an index into a list.
type step struct {
	name  string
	index int
}

// path leads from an item to one of its values; its first step is a name.
type path []step

func (p path) String() string {
	shown := make([]string, len(p))
	for i, s := range p {
		shown[i] = s.name
		if s.name == "" {
			shown[i] = "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return "[" + strings.Join(shown, ", ") + "]"
}

// in returns the value p leads to, or nil.
func (p path) in(it item) value {
	var v value = it
	for _, s := range p {
		if v = s.of(v); v == nil {
			return nil
		}
	}
	return v
}

// of returns the element of a container, or nil.
func (s step) of(v value) value {
	switch v := v.(type) {
	case item:
		if s.name != "" {
			return v[s.name]
		}
	case list:
		if s.name == "" && s.index < len(v) {
			return v[s.index]
		}
	}
	return nil
}

// errPath is the answer to an update whose path goes through something missing or of another type.
var errPath = invalid("The document path provided in the update expression is invalid for update")

// replace returns container with the value at p set to v, or removed when v is nil. Containers on the way are copied, the
// outermost one is not when owned says that nobody else has it. A list index past the end appends.
func (p path) replace(container, v value, owned bool) (value, error) {
	s, rest := p[0], p[1:]
	child := v
	if len(rest) > 0 {
		inner := s.of(container)
		if inner == nil {
			return nil, errPath
		}
		var err error
		if child, err = rest.replace(inner, v, false); err != nil {
			return nil, err
		}
	}
	switch c := container.(type) {
	case item:
		if s.name != "" {
			return c.with(s.name, child, owned), nil
		}
	case list:
		if s.name == "" {
			return c.with(s.index, child), nil
		}
	}
	return nil, errPath
}

func (it item) with(name string, v value, owned bool) item {
	if !owned {
		it = maps.Clone(it)
	}
	if v == nil {
		delete(it, name)
	} else {
		it[name] = v
	}
	return it
}

func (l list) with(index int, v value) list {
	switch {
	case v == nil && index >= len(l):
		return l
	case v == nil:
		return slices.Delete(slices.Clone(l), index, index+1)
	case index >= len(l):
		return append(slices.Clip(l), v)
	}
	l = slices.Clone(l)
	l[index] = v
	return l
}

// pathTree holds the paths of one expression: to find two that overlap, and to project.
type pathTree struct {
	path   path // the path that ends here, or the first that went through
	ends   bool
	fields map[string]*pathTree
	elems  map[int]*pathTree
}

// add inserts p and returns the earlier path that it overlaps, or whose container it takes for one of the other type.
func (t *pathTree) add(p path) (earlier path, problem string) {
	for _, s := range p {
		if t.ends {
			return t.path, "overlap"
		}
		var child *pathTree
		if s.name != "" {
			if t.elems != nil {
				return t.path, "conflict"
			}
			child = grow(&t.fields, s.name)
		} else {
			if t.fields != nil {
				return t.path, "conflict"
			}
			child = grow(&t.elems, s.index)
		}
		if child.path == nil {
			child.path = p
		}
		t = child
	}
	if t.ends || t.fields != nil || t.elems != nil {
		return t.path, "overlap"
	}
	t.path, t.ends = p, true
	return nil, ""
}

func grow[K comparable](children *map[K]*pathTree, key K) *pathTree {
	if *children == nil {
		*children = map[K]*pathTree{}
	}
	if (*children)[key] == nil {
		(*children)[key] = &pathTree{}
	}
	return (*children)[key]
}

// project keeps of it what the tree's paths reach; lists keep the order of their elements.
func (t *pathTree) project(it item) item {
	if v := t.keep(it); v != nil {
		return v.(item)
	}
	return item{}
}

func (t *pathTree) keep(v value) value {
	if t.ends {
		return v
	}
	switch v := v.(type) {
	case item:
		kept := item{}
		for name, child := range t.fields {
			if inner := v[name]; inner != nil {
				if k := child.keep(inner); k != nil {
					kept[name] = k
				}
			}
		}
		if len(kept) > 0 {
			return kept
		}
	case list:
		var kept list
		for _, i := range slices.Sorted(maps.Keys(t.elems)) {
			if i < len(v) {
				if k := t.elems[i].keep(v[i]); k != nil {
					kept = append(kept, k)
				}
			}
		}
		if len(kept) > 0 {
			return kept
		}
	}
	return nil
}

// addPath inserts p into the expression's tree and notes an overlap.
func (p *parser) addPath(t *pathTree, added path) {
	if earlier, problem := t.add(added); problem != "" {
		p.fault(faultOverlap, "Two document paths %s with each other; must remove or rewrite one of these paths; path one: %s, path two: %s",
			problem, earlier, added)
	}
}

// parseProjection reads a comma-separated list of paths.
func parseProjection(src string, ph *placeholders) (*pathTree, error) {
	p, err := newParser("ProjectionExpression", src, ph)
	if err != nil {
		return nil, err
	}
	tree := &pathTree{}
	for {
		one, err := p.path()
		if err != nil {
			return nil, err
		}
		p.addPath(tree, one)
		if !p.accept(",") {
			return tree, p.finish()
		}
	}
}
