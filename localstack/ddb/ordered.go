package ddb

import "math/rand/v2"

// row is one entry of a table or index: its encoded key, what is stored there and its size in bytes.
type row struct {
	key  string
	item item
	size int
}

// ordered keeps rows by key: a hash map for single keys and a skip list for ranges in both directions. The caller locks.
type ordered struct {
	byKey map[string]*node
	head  node
	last  *node
	bytes int // sum of the rows' sizes
}

// maxLevel is enough for 4^12 (16 million) rows at one level in four.
const maxLevel = 12

type node struct {
	row
	prev *node // nil for the first
	next []*node
}

func newOrdered() *ordered {
	return &ordered{byKey: map[string]*node{}, head: node{next: make([]*node, maxLevel)}}
}

func (o *ordered) len() int { return len(o.byKey) }

func (o *ordered) get(key string) (row, bool) {
	n := o.byKey[key]
	if n == nil {
		return row{}, false
	}
	return n.row, true
}

func (o *ordered) put(r row) {
	o.bytes += r.size
	if n := o.byKey[r.key]; n != nil {
		o.bytes -= n.size
		n.row = r
		return
	}
	before := o.before(r.key)
	n := &node{row: r, next: make([]*node, randomLevel())}
	for level := range n.next {
		n.next[level] = before[level].next[level]
		before[level].next[level] = n
	}
	if before[0] != &o.head {
		n.prev = before[0]
	}
	if after := n.next[0]; after != nil {
		after.prev = n
	} else {
		o.last = n
	}
	o.byKey[r.key] = n
}

func (o *ordered) delete(key string) {
	n := o.byKey[key]
	if n == nil {
		return
	}
	before := o.before(key)
	for level := range n.next {
		before[level].next[level] = n.next[level]
	}
	if after := n.next[0]; after != nil {
		after.prev = n.prev
	} else {
		o.last = n.prev
	}
	o.bytes -= n.size
	delete(o.byKey, key)
}

// before gives, for every level, the last node whose key is less than key.
func (o *ordered) before(key string) [maxLevel]*node {
	var path [maxLevel]*node
	n := &o.head
	for level := maxLevel - 1; level >= 0; level-- {
		for next := n.next[level]; next != nil && next.key < key; next = n.next[level] {
			n = next
		}
		path[level] = n
	}
	return path
}

// firstFrom is the first node with a key of at least key, or nil.
func (o *ordered) firstFrom(key string) *node { return o.before(key)[0].next[0] }

// lastBefore is the last node with a key less than key, or nil; an empty key means no bound.
func (o *ordered) lastBefore(key string) *node {
	if key == "" {
		return o.last
	}
	n := o.before(key)[0]
	if n == &o.head {
		return nil
	}
	return n
}

func randomLevel() int {
	level := 1
	for level < maxLevel && rand.Uint32()&3 == 0 {
		level++
	}
	return level
}
