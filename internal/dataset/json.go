package dataset

import (
	"bytes"
	"fmt"
	"slices"

	"pintu/internal/fault"
)

// jsonBinding is what a Binding by names adds: how JSON scalars that are no strings are read, per field.
type jsonBinding struct {
	numbers []*column // nil: the field takes no JSON number
	bools   []*column // nil: the field takes no JSON boolean
	members []string  // name of each field as a member
	closed  bool      // fieldsMatch allows no other members
	all     bool      // fieldsMatch wants every member
}

// BindNames binds the schema to JSON objects, whose members are matched by name as columns are. found are
// the names seen in the first objects of a file: those the dataset does not have give the warning
// COLUMN_IGNORED, and HEADER_INVALID refuses the file when it has none of them. What is missing, or not
// allowed by fieldsMatch, is judged row by row, but for the order of members, which means nothing.
func (s *Schema) BindNames(found []string) (*Binding, []Warning, error) {
	b := &Binding{schema: s, json: &jsonBinding{
		closed: s.fieldsMatch == "exact" || s.fieldsMatch == "equal" || s.fieldsMatch == "superset",
		all:    s.fieldsMatch == "exact" || s.fieldsMatch == "equal" || s.fieldsMatch == "subset",
	}}
	for _, c := range s.columns {
		b.json.numbers = append(b.json.numbers, c.ofNumbers())
		b.json.bools = append(b.json.bools, c.ofBools())
		b.json.members = append(b.json.members, c.name)
	}
	var unknown []string
	known := 0
	for _, name := range found {
		folded := foldName(name)
		switch _, is := s.lookup(folded); {
		case is:
			known++
		case folded != "" && !slices.Contains(reserved, folded):
			unknown = append(unknown, folded)
		}
	}
	if known == 0 && len(unknown) > 0 {
		return nil, nil, fault.New(fault.HeaderInvalid, "%s",
			clip(fmt.Sprintf("no field of the dataset is in the first rows: expected %s; found %s", s.names(), list(unknown))))
	}
	return b, ignored(unknown), nil
}

// ofNumbers reads JSON numbers into the field: with a point, without groups, whatever its texts have.
func (c *column) ofNumbers() *column {
	switch {
	case c.kind == Number:
		with := *c
		with.cast = newNumberCaster(&field{typ: c.typ, decimalChar: ".", bareNumber: true})
		return &with
	case c.typ == "year" || c.typ == "any":
		return c
	}
	return nil
}

// ofBools reads true and false as they are, whatever words the field's texts have for them.
func (c *column) ofBools() *column {
	switch {
	case c.kind == Bool:
		with := *c
		with.cast = textCaster(nil, "")
		return &with
	case c.typ == "any":
		return c
	}
	return nil
}

// While an object is read, Value.Kind of a field is what its member is, and Value.Text the member's text.
const (
	noMember   Kind = 0x80 + iota
	nullMember      // also: a member that is not there but may be
	textMember      // without quotes and escapes
	numberMember
	boolMember
	nestedMember // an array or object
)

var memberNames = map[Kind]string{textMember: "a string", numberMember: "a number", boolMember: "a boolean", nestedMember: "an array or object"}

// CheckJSON is Check for one line of JSON, of a Binding made by BindNames. A string is read as a cell with its
// text would be; a number goes digit by digit into number, integer, year and any; true and false into
// boolean and any; null, and a member that is not there, are null. What is no object, has a member of
// the schema twice, or escapes no Unicode text is MALFORMED_ROW. The line must be UTF-8.
func (b *Binding) CheckJSON(line []byte, row *Row) *Violation {
	row.text = row.text[:0]
	fields := slices.Grow(row.Values[:0], len(b.schema.columns))[:len(b.schema.columns)]
	row.Values = fields
	for i := range fields {
		fields[i] = Value{Kind: noMember}
	}
	p := jsonParser{b: b, row: row, in: line}
	if p.object(); p.bad != "" {
		return &Violation{Code: fault.MalformedRow, Class: ClassData, Message: p.bad}
	}
	if p.unknown && b.json.closed {
		return &Violation{Code: fault.WrongColumnCount, Class: ClassData,
			Message: fmt.Sprintf("has members that the dataset does not have; fieldsMatch %s allows none", b.schema.fieldsMatch)}
	}
	for i, c := range b.schema.columns {
		v := b.member(row, i, c)
		if v != nil {
			return v
		}
	}
	if v := row.key(b.schema); v != nil {
		return v
	}
	if v := b.schema.compute(row); v != nil {
		return v
	}
	row.seal(b.schema)
	return nil
}

// member turns what was read of one field into its value.
func (b *Binding) member(row *Row, i int, c *column) *Violation {
	m := &row.Values[i]
	as := c
	switch m.Kind {
	case textMember:
		if c.isMissing(m.Text) {
			m.Kind = nullMember
		}
	case numberMember:
		as = b.json.numbers[i]
	case boolMember:
		as = b.json.bools[i]
	case nestedMember:
		as = nil
	case noMember:
		if b.json.all {
			return violation(fault.MissingValue, c, "is not there; fieldsMatch "+b.schema.fieldsMatch+" wants every field")
		}
		m.Kind = nullMember
	}
	switch {
	case as == nil:
		return violation(fault.TypeMismatch, c, "is "+memberNames[m.Kind]+", expected "+c.typ)
	case m.Kind == nullMember && c.required:
		return violation(fault.MissingValue, c, "is missing")
	case m.Kind == nullMember:
		*m = Value{}
		return nil
	case c.anyText:
		m.Kind = String
		return nil
	}
	value, v := as.check(row, m.Text)
	row.Values[i] = value
	return v
}

// Member gives the text of one member of an object: of a string its text, of any other value its JSON. It is
// nil when the member is null or not there, or the line no object.
func Member(line []byte, name string) []byte {
	c := &column{name: name, typ: "any"}
	s := &Schema{columns: []*column{c}, byName: map[string]int{foldName(name): 0}}
	row := Row{Values: []Value{{Kind: noMember}}}
	p := jsonParser{b: &Binding{schema: s, json: &jsonBinding{members: []string{name}}}, row: &row, in: line}
	if p.object(); p.bad != "" || row.Values[0].Kind == nullMember || row.Values[0].Kind == noMember {
		return nil
	}
	return row.Values[0].Text
}

// field finds the field of a member. Objects of a file mostly have their members in one order: the field
// behind the last one is tried first.
func (p *jsonParser) field(name []byte) int {
	members := p.b.json.members
	if p.next < len(members) && string(name) == members[p.next] {
		p.next++
		return p.next - 1
	}
	i, known := p.b.schema.byName[string(name)]
	if !known && !plainName(name) {
		i, known = p.b.schema.lookup(foldName(string(name)))
	}
	if !known {
		p.unknown = p.unknown || !isReserved(name)
		return -1
	}
	p.next = i + 1
	return i
}

// plainName tells that a name is in the form in which names are compared.
func plainName(name []byte) bool {
	return isASCII(name) && len(bytes.TrimSpace(name)) == len(name)
}

func isReserved(name []byte) bool {
	for _, r := range reserved {
		if string(name) == r {
			return true
		}
	}
	return false
}

// set keeps a member of the schema.
func (p *jsonParser) set(i int, kind Kind, text []byte) {
	v := &p.row.Values[i]
	if v.Kind != noMember {
		p.fail("a field stands twice in the object: " + p.b.schema.columns[i].name)
		return
	}
	*v = Value{kind, text}
}
