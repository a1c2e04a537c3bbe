package dataset

import (
	"slices"
	"strconv"
)

// Canonical returns the definition as JSON with its defaults filled in: definitions of equal meaning
// and equal annotations have equal bytes, and Parse of it gives the same definition again. PUT
// compares its hash; stores keep it.
func (d *Definition) Canonical() []byte {
	root := node{kind: objectNode, members: []member{
		{"schema", d.schemaNode()},
		{"dialect", d.dialectNode()},
		{"computed", d.computedNode()},
		{"on_conflict", stringOf(d.OnConflict)},
		{"duplicates", stringOf(d.Duplicates)},
	}}
	return root.append(nil)
}

func (d *Definition) schemaNode() node {
	fields := node{kind: arrayNode}
	for i := range d.fields {
		fields.items = append(fields.items, d.fields[i].node())
	}
	return node{kind: objectNode, members: append(slices.Clone(d.notes),
		member{"fields", fields},
		member{"primaryKey", stringsNode(d.primaryKey)},
		member{"missingValues", stringsNode(d.missingValues)},
		member{"fieldsMatch", stringOf(d.fieldsMatch)},
	)}
}

func (f *field) node() node {
	members := append(slices.Clone(f.notes), member{"name", stringOf(f.name)}, member{"type", stringOf(f.typ)}, member{"format", stringOf(f.format)})
	if f.typ == "number" || f.typ == "integer" {
		members = append(members, member{"bareNumber", boolNode(f.bareNumber)})
	}
	if f.decimalChar != "" {
		members = append(members, member{"decimalChar", stringOf(f.decimalChar)})
	}
	if f.groupChar != "" {
		members = append(members, member{"groupChar", stringOf(f.groupChar)})
	}
	if f.typ == "boolean" {
		members = append(members, member{"trueValues", stringsNode(f.trueValues)}, member{"falseValues", stringsNode(f.falseValues)})
	}
	if f.missingValues != nil {
		members = append(members, member{"missingValues", stringsNode(f.missingValues)})
	}
	if constraints := f.constraintMembers(); len(constraints) > 0 {
		members = append(members, member{"constraints", node{kind: objectNode, members: constraints}})
	}
	return node{kind: objectNode, members: members}
}

// constraintMembers leaves out unique: where it is allowed, the primary key says it.
func (f *field) constraintMembers() []member {
	var members []member
	if f.required {
		members = append(members, member{"required", boolNode(true)})
	}
	if f.minLength >= 0 {
		members = append(members, member{"minLength", numberOf(f.minLength)})
	}
	if f.maxLength >= 0 {
		members = append(members, member{"maxLength", numberOf(f.maxLength)})
	}
	if f.pattern != "" {
		members = append(members, member{"pattern", stringOf(f.pattern)})
	}
	if len(f.bounds) == 0 && f.enum == nil {
		return members
	}
	c := newCaster(f)
	for _, name := range boundNames {
		if text, ok := f.bounds[name]; ok {
			members = append(members, member{name, c.literalNode(text)})
		}
	}
	if f.enum != nil {
		values := node{kind: arrayNode}
		for _, text := range f.enum {
			values.items = append(values.items, c.literalNode(text))
		}
		members = append(members, member{"enum", values})
	}
	return members
}

// literalNode is the inverse of literal.
func (c *column) literalNode(text string) node {
	switch c.kind {
	case Number:
		return node{kind: numberNode, text: text}
	case Bool:
		return boolNode(text == "true")
	default:
		return stringOf(string(c.appendCell(nil, []byte(text))))
	}
}

func boolNode(value bool) node {
	if value {
		return node{kind: trueNode}
	}
	return node{kind: falseNode}
}

func numberOf(n int) node { return node{kind: numberNode, text: strconv.Itoa(n)} }
