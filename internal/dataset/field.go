package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"pintu/internal/decimal"
)

// field is one field of a schema. Texts in bounds and enum are canonical.
type field struct {
	name, typ, format       string
	decimalChar, groupChar  string
	bareNumber              bool
	trueValues, falseValues []string
	missingValues           []string // nil: the schema's
	required, unique, inKey bool
	minLength, maxLength    int // -1: none
	bounds                  map[string]string
	pattern                 string // empty: none
	enum                    []string
	notes                   []member
}

// types and the formats each knows besides "default". Dates and times take patterns instead.
var types = map[string][]string{"string": {"email", "uri", "uuid"}, "integer": nil, "number": nil, "boolean": nil,
	"date": nil, "time": nil, "datetime": nil, "year": nil, "yearmonth": nil, "any": nil}

const typeNames = "string, integer, number, boolean, date, time, datetime, year, yearmonth, any"

// appliesTo names the types for which a property or constraint means something.
var appliesTo = map[string]string{
	"decimalChar": "number", "groupChar": "number integer", "bareNumber": "number integer",
	"trueValues": "boolean", "falseValues": "boolean",
	"minLength": "string any", "maxLength": "string any", "pattern": "string any",
	"minimum": ordered, "maximum": ordered, "exclusiveMinimum": ordered, "exclusiveMaximum": ordered,
}

const ordered = "integer number date time datetime year yearmonth"

func applies(name, typ string) bool { return slices.Contains(strings.Fields(appliesTo[name]), typ) }

// boundNames in the order in which they are checked and written.
var boundNames = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}

func (p *parser) field(n node, path string, missing []string) field {
	o := p.object(n, path)
	f := field{typ: "any", format: "default", bareNumber: true, minLength: -1, maxLength: -1}
	if n.kind != objectNode {
		return f
	}
	f.name = p.fieldName(o)
	f.typ = o.text("type", "any")
	f.notes = o.notes(fieldNotes)
	if _, known := types[f.typ]; !known {
		p.add(o.at("type"), "%s is not supported; supported: %s", clip(f.typ), typeNames)
		return f // what its other members mean depends on the type
	}
	before := len(p.problems)
	p.format(&f, o)
	p.properties(&f, o)
	if own := o.texts("missingValues", nil); own != nil && !slices.Equal(own, missing) {
		f.missingValues = own
	}
	constraints, constrained := o.take("constraints")
	o.refuseRest("is not supported")
	if constrained {
		c := newCaster(&f)
		if len(p.problems) > before {
			c = nil // bounds cannot be read while the format is wrong
		}
		p.constraints(&f, constraints, o.at("constraints"), c)
	}
	return f
}

func (p *parser) fieldName(o *object) string {
	before := len(p.problems)
	name := o.text("name", "")
	switch {
	case len(p.problems) > before:
	case name == "":
		p.add(o.at("name"), "is required")
	case slices.Contains(reserved, name):
		p.add(o.at("name"), "%s is a column of rejected.csv", name)
	case len(name) > MaxNameLength:
		p.add(o.at("name"), "longer than %d bytes", MaxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl):
		p.add(o.at("name"), "holds a control character")
	case cleanName(name) != name:
		p.add(o.at("name"), "begins or ends with white space, or holds invisible characters: headers are matched without them")
	}
	return name
}

// format takes the format: a name for strings, a strptime pattern for dates and times.
func (p *parser) format(f *field, o *object) {
	f.format = o.text("format", "default")
	dated := f.typ == "date" || f.typ == "time" || f.typ == "datetime"
	switch {
	case f.format == "default" || slices.Contains(types[f.typ], f.format):
	case dated && f.format == "any":
		p.add(o.at("format"), "any is not supported: it would guess; name a pattern such as %%d/%%m/%%Y")
	case dated:
		if _, err := newLayout(f.format, f.typ); err != nil {
			p.add(o.at("format"), "%s: %v", clip(f.format), err)
		}
	default:
		p.add(o.at("format"), "%s is not supported for type %s; supported: %s", clip(f.format), f.typ,
			strings.Join(append([]string{"default"}, types[f.typ]...), ", "))
	}
}

// properties takes what says how numbers and booleans are written.
func (p *parser) properties(f *field, o *object) {
	for _, name := range []string{"decimalChar", "groupChar", "bareNumber", "trueValues", "falseValues"} {
		if _, ok := o.take(name); ok && !applies(name, f.typ) {
			p.add(o.at(name), "has no meaning for type %s", f.typ)
		}
	}
	if f.typ == "number" || f.typ == "integer" {
		f.bareNumber = o.flag("bareNumber", true)
		f.groupChar = p.separator(o, "groupChar", "")
	}
	if f.typ == "number" {
		f.decimalChar = p.separator(o, "decimalChar", ".")
		if f.decimalChar == f.groupChar {
			p.add(o.at("groupChar"), "is the decimalChar too")
		}
	}
	if f.typ != "boolean" {
		return
	}
	f.trueValues = o.texts("trueValues", []string{"true", "True", "TRUE", "1"})
	f.falseValues = o.texts("falseValues", []string{"false", "False", "FALSE", "0"})
	if len(f.trueValues) == 0 || len(f.falseValues) == 0 {
		p.add(o.path, "trueValues and falseValues must each hold at least one text")
	}
	for _, text := range f.trueValues {
		if slices.Contains(f.falseValues, text) {
			p.add(o.at("falseValues"), "holds %s, which is in trueValues", clip(text))
		}
	}
}

// separator takes a single character that cannot be mistaken for part of a number.
func (p *parser) separator(o *object, name, fallback string) string {
	before := len(p.problems)
	text := o.text(name, fallback)
	if len(p.problems) > before || text == fallback {
		return fallback
	}
	if utf8.RuneCountInString(text) != 1 || strings.ContainsAny(text, "0123456789+-eE") {
		p.add(o.at(name), "must be one character, and no digit, sign or E")
	}
	return text
}

// constraints takes the constraints of a field. c reads their values; nil while the field is wrong.
func (p *parser) constraints(f *field, n node, path string, c *column) {
	o := p.object(n, path)
	f.required = o.flag("required", false)
	f.unique = o.flag("unique", false)
	for _, name := range append([]string{"minLength", "maxLength", "pattern"}, boundNames...) {
		if _, ok := o.take(name); ok && !applies(name, f.typ) {
			p.add(o.at(name), "has no meaning for type %s", f.typ)
		}
	}
	if applies("minLength", f.typ) {
		f.minLength, f.maxLength = p.length(o, "minLength"), p.length(o, "maxLength")
		if f.maxLength >= 0 && f.minLength > f.maxLength {
			p.add(o.at("minLength"), "is above maxLength")
		}
		p.pattern(f, o)
	}
	if c != nil {
		p.bounds(f, o, c)
		p.enum(f, o, c)
	} else {
		o.take("enum")
	}
	o.refuseRest("is not supported")
}

func (p *parser) length(o *object, name string) int {
	n, ok := o.take(name)
	if !ok {
		return -1
	}
	length, err := strconv.ParseInt(n.text, 10, 32)
	if n.kind != numberNode || err != nil || length < 0 {
		p.add(o.at(name), "must be a whole number of characters")
		return -1
	}
	return int(length)
}

func (p *parser) pattern(f *field, o *object) {
	before := len(p.problems)
	_, present := o.take("pattern")
	f.pattern = o.text("pattern", "")
	if !present || len(p.problems) > before {
		return
	}
	if _, err := compilePattern(f.pattern); err != nil {
		p.add(o.at("pattern"), "%v", err)
	}
}

func (p *parser) bounds(f *field, o *object, c *column) {
	if !applies("minimum", f.typ) {
		return
	}
	f.bounds = map[string]string{}
	for _, name := range boundNames {
		n, ok := o.take(name)
		if !ok {
			continue
		}
		text, reason := c.literal(n)
		if reason != "" {
			p.add(o.at(name), "%s", reason)
			continue
		}
		f.bounds[name] = text
	}
	for _, low := range []string{"minimum", "exclusiveMinimum"} {
		for _, high := range []string{"maximum", "exclusiveMaximum"} {
			a, hasLow := f.bounds[low]
			b, hasHigh := f.bounds[high]
			if hasLow && hasHigh && c.compare([]byte(a), []byte(b)) > 0 {
				p.add(o.at(low), "is above %s: no value could pass", high)
			}
		}
	}
}

func (p *parser) enum(f *field, o *object, c *column) {
	n, ok := o.take("enum")
	if !ok {
		return
	}
	if n.kind != arrayNode || len(n.items) == 0 {
		p.add(o.at("enum"), "must be an array with at least one value")
		return
	}
	seen := map[string]bool{}
	for i, item := range n.items {
		text, reason := c.literal(item)
		if reason != "" {
			p.add(fmt.Sprintf("%s[%d]", o.at("enum"), i), "%s", reason)
		} else if !seen[text] {
			seen[text] = true
			f.enum = append(f.enum, text)
		}
	}
}

// literal reads a value that stands in a schema: a JSON value of the field's own kind, or the text a
// cell would hold. It returns the canonical text, or why there is none.
func (c *column) literal(n node) (text, reason string) {
	var canonical []byte
	switch {
	case n.kind == stringNode:
		_, canonical, reason = c.cast(nil, []byte(n.text))
	case n.kind == numberNode && c.kind == Number:
		var err error
		if canonical, err = decimal.Append(nil, []byte(n.text)); err != nil {
			reason = "is " + err.Error()
		} else if c.typ == "integer" && strings.Contains(string(canonical), ".") {
			reason = "is not an integer"
		}
	case n.kind == numberNode && c.typ == "year":
		_, canonical, reason = c.cast(nil, []byte(n.text))
	case (n.kind == trueNode || n.kind == falseNode) && c.kind == Bool:
		canonical = boolText(n.kind == trueNode)
	default:
		reason = fmt.Sprintf("must be a value of type %s, is %s", c.typ, kindNames[n.kind])
	}
	return string(canonical), reason
}
