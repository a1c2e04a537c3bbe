package ddb

import (
	"encoding/binary"
	"math"
	"strconv"
	"sync"
)

// maxItemBytes is the largest item: names and values, 400 KB.
const maxItemBytes = 400 << 10

// table is one table with its indexes. Its key schema never changes; everything else is guarded by mu.
type table struct {
	name   string
	schema keySchema

	mu      sync.RWMutex
	def     definition
	rows    *ordered
	indexes []*index
	expiry  *ordered // rows with a TTL, by expiry time; empty when TTL is off
	dropped bool
	billed  account
}

// index is a global secondary index. It holds the items that have all its key attributes, cut down to its projection.
type index struct {
	name   string
	schema keySchema
	all    bool // the projection is ALL
	covers map[string]bool
	rows   *ordered
}

func newTable(def definition) *table {
	t := &table{name: def.Name, schema: def.schema(def.KeySchema), def: def, rows: newOrdered(), expiry: newOrdered()}
	for _, one := range def.Indexes {
		t.indexes = append(t.indexes, newIndex(def, one))
	}
	return t
}

func newIndex(def definition, one indexDef) *index {
	ix := &index{name: one.Name, schema: def.schema(one.KeySchema), all: one.Projection.Type == "ALL", covers: map[string]bool{}, rows: newOrdered()}
	for _, elements := range [][]keyElement{def.KeySchema, one.KeySchema} {
		for _, e := range elements {
			ix.covers[e.Name] = true
		}
	}
	for _, name := range one.Projection.Include {
		ix.covers[name] = true
	}
	return ix
}

// row is the entry of it in the index; ok is false when the item lacks one of the index's key attributes.
func (ix *index) row(t *table, it item) (r row, ok bool) {
	for _, part := range ix.schema.parts() {
		v := it[part.name]
		if v == nil || v.kind() != part.kind || emptyKey(v) != "" {
			return row{}, false
		}
	}
	r.key = ix.schema.encode(it) + t.schema.encode(it)
	r.item = it
	if !ix.all {
		r.item = item{}
		for name, v := range it {
			if ix.covers[name] {
				r.item[name] = v
			}
		}
	}
	r.size = itemSize(r.item)
	return r, true
}

// checkIndexKeys refuses an item whose index key attributes are of another type, empty or too long. updated says that the
// values come from an update expression, for which the texts differ.
func (t *table) checkIndexKeys(it item, updated bool) error {
	for _, ix := range t.indexes {
		for _, part := range ix.schema.parts() {
			v := it[part.name]
			if v == nil || t.schema.has(part.name) {
				continue
			}
			limit := maxSortKeyBytes
			if part == ix.schema.hash {
				limit = maxHashKeyBytes
			}
			if err := checkIndexKey(ix.name, part, v, limit, updated); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkIndexKey(index string, part keyPart, v value, limit int, updated bool) error {
	empty := emptyKey(v)
	switch {
	case v.kind() != part.kind && updated:
		return invalidValue("The update expression attempted to update the secondary index key to unsupported type")
	case v.kind() != part.kind:
		return invalidValue("Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", part.name, part.kind, v.kind(), index)
	case empty != "" && updated:
		return invalid("One or more parameter values are not valid. The update expression attempted to update a secondary index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty %s value.", empty)
	case empty != "":
		return invalid("One or more parameter values are not valid. A value specified for a secondary index key is not supported. The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", empty, index, part.name)
	case sizeOf(v) > limit && updated:
		return invalid("The update expression attempted to update the secondary index key beyond allowed size limits")
	case sizeOf(v) > limit:
		return invalidValue("Size of index key has exceeded the maximum size limit of %d bytes. IndexName: %s, IndexKey: %s", limit, index, part.name)
	}
	return nil
}

// change is one item before and after a write; nil means that it does not exist. Both nil, or both the same, is a check or
// an update that changes nothing.
type change struct {
	t        *table
	key      string
	old, new item
	oldSize  int
	newSize  int
}

// apply writes the change to the table and its indexes and returns what it costs, before any doubling for transactions.
// The caller holds t.mu.
func (c *change) apply() usage {
	t := c.t
	cost := usage{own: writeUnits(max(c.oldSize, c.newSize))}
	for _, ix := range t.indexes {
		if n := c.applyTo(ix); n > 0 {
			cost.addIndex(ix.name, n)
		}
	}
	c.applyExpiry()
	if c.new == nil {
		t.rows.delete(c.key)
		return cost
	}
	t.rows.put(row{c.key, c.new, c.newSize})
	return cost
}

// applyTo writes the change to one index: nothing when the entry stays as it is, one write when it comes, goes or changes
// under the same key, two when it moves.
func (c *change) applyTo(ix *index) (units float64) {
	was, had := row{}, false
	if c.old != nil {
		was, had = ix.row(c.t, c.old)
	}
	is, has := row{}, false
	if c.new != nil {
		is, has = ix.row(c.t, c.new)
	}
	if had && has && was.key == is.key {
		if equalItems(was.item, is.item) {
			return 0
		}
		ix.rows.put(is)
		return writeUnits(max(was.size, is.size))
	}
	if had {
		ix.rows.delete(was.key)
		units += writeUnits(was.size)
	}
	if has {
		ix.rows.put(is)
		units += writeUnits(is.size)
	}
	return units
}

func (c *change) applyExpiry() {
	attribute := c.t.def.TTL
	if attribute == "" {
		return
	}
	if key, ok := expiryKey(attribute, c.old, c.key); ok {
		c.t.expiry.delete(key)
	}
	if key, ok := expiryKey(attribute, c.new, c.key); ok {
		c.t.expiry.put(row{key: key, item: c.new})
	}
}

// expiryKey orders items by the second at which they expire. Items whose attribute is missing or no number never do.
func expiryKey(attribute string, it item, key string) (string, bool) {
	n, ok := it[attribute].(number)
	if !ok {
		return "", false
	}
	seconds, err := strconv.ParseFloat(string(n), 64)
	if err != nil || seconds < 0 || seconds >= math.MaxInt64 {
		return "", false
	}
	return string(binary.BigEndian.AppendUint64(nil, uint64(seconds))) + key, true
}

// rebuild fills every index and the expiry order from the rows. Items with key attributes of the
// wrong type stay out. The caller holds t.mu.
func (t *table) rebuild() {
	t.expiry = newOrdered()
	for _, ix := range t.indexes {
		ix.rows = newOrdered()
	}
	for n := t.rows.firstFrom(""); n != nil; n = n.next[0] {
		c := change{t: t, key: n.key, new: n.item}
		for _, ix := range t.indexes {
			c.applyTo(ix)
		}
		c.applyExpiry()
	}
}

// index finds an index by name.
func (t *table) index(name string) (*index, error) {
	for _, ix := range t.indexes {
		if ix.name == name {
			return ix, nil
		}
	}
	return nil, invalid("The table does not have the specified index: %s", name)
}

// table finds a table by name or ARN.
func (s *Server) table(name string) (*table, error) {
	name = tableName(name)
	s.mu.RLock()
	t := s.tables[name]
	s.mu.RUnlock()
	if t == nil {
		return nil, noSuchTable()
	}
	return t, nil
}

// lock takes the table for writing, unless it has been deleted meanwhile.
func (t *table) lock() error {
	t.mu.Lock()
	if t.dropped {
		t.mu.Unlock()
		return noSuchTable()
	}
	return nil
}

// rlock is lock for reading.
func (t *table) rlock() error {
	t.mu.RLock()
	if t.dropped {
		t.mu.RUnlock()
		return noSuchTable()
	}
	return nil
}

var errItemTooBig = invalid("Item size has exceeded the maximum allowed size")
