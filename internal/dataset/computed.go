package dataset

import (
	"fmt"
	"strings"

	"pintu/internal/fault"
)

// MaxComputed bounds the computed columns of a definition.
const MaxComputed = 100

// Computed is a computed column. Only the form is known here: whether Expression means anything, and
// a value of Type, is for the Evaluator's maker to judge.
type Computed struct {
	Name       string
	Type       string // integer, number, string or boolean
	Expression string
}

// computedTypes are the types of computed columns and the kinds of their values.
var computedTypes = map[string]Kind{"integer": Number, "number": Number, "string": String, "boolean": Bool}

const computedTypeNames = "integer, number, string, boolean"

// ClassCode is the class of violations whose row may be legitimate: the computed column or the schema
// was not ready for it.
const ClassCode = "code"

// Evaluator computes the computed columns of one definition. It is safe for concurrent use with
// different rows.
type Evaluator interface {
	// Eval adds to a row whose schema values are checked the values of the computed columns, in the
	// order of Definition.Computed, or returns the first reason why one cannot be computed.
	Eval(row *Row) *Violation
}

// WithEvaluator returns the schema with e to compute its computed columns. Without one, a schema that
// has computed columns refuses every row.
func (s *Schema) WithEvaluator(e Evaluator) *Schema {
	with := *s
	with.evaluator = e
	return &with
}

// Add appends a value to the row. It copies the text, which must be canonical for its kind.
func (row *Row) Add(v Value) {
	if v.Kind != Null {
		start := len(row.text)
		row.text = append(row.text, v.Text...)
		v.Text = row.text[start:len(row.text):len(row.text)]
	}
	row.Values = append(row.Values, v)
}

// compute completes a checked row.
func (s *Schema) compute(row *Row) *Violation {
	if s.computed == 0 {
		return nil
	}
	if s.evaluator == nil {
		return &Violation{Code: fault.Internal, Class: ClassCode, Message: "the computed columns of this dataset are not computed here"}
	}
	if v := s.evaluator.Eval(row); v != nil {
		return v
	}
	if len(row.Values) != len(s.columns)+s.computed {
		return &Violation{Code: fault.Internal, Class: ClassCode, Message: "the computed columns of this dataset were not all computed"}
	}
	return nil
}

// computed takes the computed columns, after the schema: their names must differ from its fields.
func (p *parser) computed(d *Definition, n node) {
	switch {
	case n.kind != arrayNode:
		p.badRequest = true
		p.add("computed", "must be an array, is %s", kindNames[n.kind])
		return
	case len(n.items) > MaxComputed:
		p.add("computed", "holds more than %d columns", MaxComputed)
		return
	}
	taken := map[string]string{}
	for _, name := range d.FieldNames() {
		taken[foldName(name)] = "a field of the schema"
	}
	for i, item := range n.items {
		path := fmt.Sprintf("computed[%d]", i)
		c, ok := p.computedColumn(item, path)
		if !ok {
			continue
		}
		if by, found := taken[foldName(c.Name)]; found {
			p.add(path+".name", "is the name of %s too", by)
		}
		taken[foldName(c.Name)] = path
		d.Computed = append(d.Computed, c)
	}
}

func (p *parser) computedColumn(n node, path string) (c Computed, ok bool) {
	o := p.object(n, path)
	if n.kind != objectNode {
		return c, false
	}
	before := len(p.problems)
	c.Name = p.fieldName(o)
	c.Type = p.required(o, "type")
	if _, known := computedTypes[c.Type]; !known && c.Type != "" {
		p.add(o.at("type"), "%s is not supported; supported: %s", clip(c.Type), computedTypeNames)
	}
	c.Expression = p.required(o, "expression")
	o.refuseRest("is not supported")
	return c, len(p.problems) == before
}

// required takes a text that must be there and not be blank.
func (p *parser) required(o *object, name string) string {
	before := len(p.problems)
	text := o.text(name, "")
	if len(p.problems) == before && strings.TrimSpace(text) == "" {
		p.add(o.at(name), "is required")
	}
	return text
}

func (d *Definition) computedNode() node {
	n := node{kind: arrayNode}
	for _, c := range d.Computed {
		n.items = append(n.items, node{kind: objectNode, members: []member{
			{"name", stringOf(c.Name)}, {"type", stringOf(c.Type)}, {"expression", stringOf(c.Expression)},
		}})
	}
	return n
}

// Column is what an expression may refer to by name: a field of the schema.
type Column struct {
	Name string
	Kind Kind // of its values that are not null
}

// Columns returns the fields of the schema, in the order of Row.Values.
func (d *Definition) Columns() []Column {
	columns := make([]Column, len(d.fields))
	for i := range d.fields {
		columns[i] = Column{d.fields[i].name, newCaster(&d.fields[i]).kind}
	}
	return columns
}

// Kind returns the kind of the column's values.
func (c Computed) Kind() Kind { return computedTypes[c.Type] }
