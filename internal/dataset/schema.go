package dataset

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"pintu/internal/fault"
)

// Schema is a definition made ready for checking rows. It is safe for concurrent use.
type Schema struct {
	columns     []*column
	computed    int // columns behind the fields
	evaluator   Evaluator
	keys        []int    // of the key fields, in key order
	hashOrder   []int    // of all fields and computed columns, in order of their names
	hashPrefix  [][]byte // per field or computed column: what goes into the hash before its text
	byName      map[string]int
	fieldsMatch string
}

// Compile makes the definition ready. It fails only for a definition that Parse did not make.
func (d *Definition) Compile() (*Schema, error) {
	if len(d.fields) == 0 || len(d.primaryKey) == 0 {
		return nil, fault.New(fault.InvalidSchema, "a dataset definition needs fields and a primary key")
	}
	s := &Schema{fieldsMatch: d.fieldsMatch, byName: map[string]int{}, computed: len(d.Computed)}
	for i := range d.fields {
		c, err := newColumn(&d.fields[i], d.missingValues)
		if err != nil {
			return nil, fault.Wrap(err, fault.InvalidSchema, "a dataset definition cannot be compiled")
		}
		s.columns = append(s.columns, c)
		s.byName[foldName(c.name)] = i
		s.hashPrefix = append(s.hashPrefix, hashPrefix(c.name, c.kind))
	}
	for _, c := range d.Computed {
		s.hashPrefix = append(s.hashPrefix, hashPrefix(c.Name, c.Kind()))
	}
	s.hashOrder = hashOrder(d.ColumnNames())
	for _, name := range d.primaryKey {
		s.keys = append(s.keys, s.byName[foldName(name)])
	}
	return s, nil
}

func hashPrefix(name string, kind Kind) []byte {
	prefix := binary.AppendUvarint(nil, uint64(len(name)))
	return append(append(prefix, name...), byte(kind))
}

func hashOrder(names []string) []int {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(names[a], names[b]) })
	return order
}

// AppendCell writes a value as a cell of the field (by its place in the schema) would hold it: in the
// field's own format, so that reading it gives the value again (but for a value whose text is one of
// the field's missing values: "-1" is null where "-1.0" was not). Null is written as the first missing
// value of the field. Quoting is the writer's.
func (s *Schema) AppendCell(dst []byte, field int, v Value) []byte {
	c := s.columns[field]
	if v.Kind != Null {
		return c.appendCell(dst, v.Text)
	}
	if len(c.missing) > 0 {
		dst = append(dst, c.missing[0]...)
	}
	return dst
}

// describe names a field of the schema at the head of a message.
func (c *column) describe(reason string) string { return clip(fmt.Sprintf("%s %s", c.name, reason)) }
