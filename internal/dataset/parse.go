package dataset

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pintu/internal/fault"
)

// Problem is one thing wrong with a definition: where, as a path into the body, and why.
type Problem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Parse reads the body of PUT /v1/datasets/{name}. The error is a *fault.Error whose detail "fields"
// is a []Problem with everything that is wrong: INVALID_REQUEST when the body is no JSON object or
// its top level is wrong, INVALID_SCHEMA when the definition cannot be used.
func Parse(body []byte) (*Definition, error) {
	if len(body) > MaxBytes {
		return nil, invalid(fault.InvalidRequest, []Problem{{"", fmt.Sprintf("larger than %d bytes", MaxBytes)}})
	}
	root, err := readTree(body)
	if err != nil {
		return nil, invalid(fault.InvalidRequest, []Problem{{"", err.Error()}})
	}
	p := &parser{}
	d := p.definition(root)
	if p.badRequest {
		return nil, invalid(fault.InvalidRequest, p.problems)
	}
	if len(p.problems) == 0 && len(d.Canonical()) > MaxBytes {
		p.add("", "larger than %d bytes with its defaults filled in", MaxBytes)
	}
	if err := invalid(fault.InvalidSchema, p.problems); err != nil {
		return nil, err
	}
	return d, nil
}

// invalid makes the error of all problems, or nil when there are none.
func invalid(code fault.Code, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	first := problems[0]
	message := strings.TrimSpace(first.Path + " " + first.Reason)
	if len(problems) > 1 {
		message = fmt.Sprintf("%s (and %d more problems)", message, len(problems)-1)
	}
	return fault.New(code, "the dataset definition cannot be used: %s", clip(message)).With("fields", problems)
}

// parser collects every problem instead of stopping at the first.
type parser struct {
	problems   []Problem
	badRequest bool // something outside schema, dialect and computed is wrong
}

// maxProblems bounds an answer about a body that is wrong from end to end.
const maxProblems = 1000

func (p *parser) add(path, reason string, args ...any) {
	if len(p.problems) == maxProblems {
		p.problems[maxProblems-1] = Problem{"", "there are more problems than are listed"}
		return
	}
	p.problems = append(p.problems, Problem{path, fmt.Sprintf(reason, args...)})
}

// object gives named access to one JSON object and knows which members nobody asked for. A member
// that is null counts as absent.
type object struct {
	p       *parser
	path    string
	members []member
	taken   []bool
}

// object opens n, or reports what it is instead and gives an object without members.
func (p *parser) object(n node, path string) *object {
	if n.kind != objectNode {
		p.add(path, "must be an object, is %s", kindNames[n.kind])
	}
	return &object{p, path, n.members, make([]bool, len(n.members))}
}

func (o *object) at(name string) string { return strings.TrimPrefix(o.path+"."+name, ".") }

func (o *object) take(name string) (node, bool) {
	for i, m := range o.members {
		if m.name == name {
			o.taken[i] = true
			return m.value, m.value.kind != nullNode
		}
	}
	return node{}, false
}

// notes takes the members that annotate and mean nothing to a row.
func (o *object) notes(names []string) []member {
	var notes []member
	for _, name := range names {
		if n, ok := o.take(name); ok {
			notes = append(notes, member{name, n})
		}
	}
	return notes
}

// refuseRest reports every member that was not taken.
func (o *object) refuseRest(reason string) {
	for i, m := range o.members {
		if !o.taken[i] {
			o.p.add(o.at(m.name), "%s", reason)
		}
	}
}

// text takes a string member; fallback stands for an absent one.
func (o *object) text(name, fallback string) string {
	n, ok := o.take(name)
	if !ok {
		return fallback
	}
	if n.kind != stringNode {
		o.p.add(o.at(name), "must be a string, is %s", kindNames[n.kind])
		return fallback
	}
	return n.text
}

// flag takes a boolean member.
func (o *object) flag(name string, fallback bool) bool {
	n, ok := o.take(name)
	if !ok {
		return fallback
	}
	if n.kind != trueNode && n.kind != falseNode {
		o.p.add(o.at(name), "must be true or false, is %s", kindNames[n.kind])
		return fallback
	}
	return n.kind == trueNode
}

// texts takes an array of strings, each kept once.
func (o *object) texts(name string, fallback []string) []string {
	n, ok := o.take(name)
	if !ok {
		return fallback
	}
	switch {
	case n.kind != arrayNode:
		o.p.add(o.at(name), "must be an array of strings, is %s", kindNames[n.kind])
		return fallback
	case len(n.items) > MaxTexts:
		o.p.add(o.at(name), "holds more than %d texts", MaxTexts)
		return fallback
	}
	texts := []string{}
	for i, item := range n.items {
		if item.kind != stringNode {
			o.p.add(fmt.Sprintf("%s[%d]", o.at(name), i), "must be a string, is %s", kindNames[item.kind])
		} else if !slices.Contains(texts, item.text) {
			texts = append(texts, item.text)
		}
	}
	return texts
}

func (p *parser) definition(root node) *Definition {
	d := &Definition{}
	o := p.object(root, "")
	schema, hasSchema := o.take("schema")
	dialect, hasDialect := o.take("dialect")
	computed, hasComputed := o.take("computed")
	d.OnConflict = p.rule(o, OnConflictRule)
	d.Duplicates = p.rule(o, DuplicatesRule)
	before := len(p.problems)
	o.refuseRest("unknown field")
	if !hasSchema && root.kind == objectNode {
		p.add("schema", "is required")
	}
	p.badRequest = p.badRequest || root.kind != objectNode || len(p.problems) > before
	p.dialect(d, dialect, hasDialect)
	if hasSchema {
		p.schema(d, schema)
	}
	if hasComputed {
		p.computed(d, computed)
	}
	return d
}

// schemaNotes and fieldNotes are annotations: they say something about the data and change nothing.
var (
	schemaNotes = []string{"$schema", "title", "description", "name", "homepage", "version", "created", "keywords", "contributors", "sources", "licenses", "profile"}
	fieldNotes  = []string{"title", "description", "rdfType", "example"}
)

// matches are the values of fieldsMatch. Without it a file needs one column that the schema knows,
// which Table Schema calls partial.
var matches = []string{"exact", "equal", "subset", "superset", "partial"}

func (p *parser) schema(d *Definition, n node) {
	o := p.object(n, "schema")
	d.missingValues = o.texts("missingValues", []string{""})
	d.fieldsMatch = p.fieldsMatch(o)
	d.notes = o.notes(schemaNotes)
	fields, ok := o.take("fields")
	switch {
	case !ok && n.kind == objectNode:
		p.add("schema.fields", "is required")
	case ok && fields.kind != arrayNode:
		p.add("schema.fields", "must be an array, is %s", kindNames[fields.kind])
	case ok && (len(fields.items) == 0 || len(fields.items) > MaxFields):
		p.add("schema.fields", "must hold 1 to %d fields, holds %d", MaxFields, len(fields.items))
	case ok:
		p.fields(d, fields.items)
	}
	p.primaryKey(d, o)
	o.refuseRest("is not supported")
}

func (p *parser) fieldsMatch(o *object) string {
	n, ok := o.take("fieldsMatch")
	if ok && n.kind == arrayNode && len(n.items) == 1 { // one published form of the standard writes an array of one
		n = n.items[0]
	}
	switch {
	case !ok:
		return "partial"
	case n.kind != stringNode || !slices.Contains(matches, n.text):
		p.add(o.at("fieldsMatch"), "must be one of %s", strings.Join(matches, ", "))
	}
	return n.text
}

func (p *parser) fields(d *Definition, items []node) {
	seen := map[string]int{}
	for i, item := range items {
		path := fmt.Sprintf("schema.fields[%d]", i)
		f := p.field(item, path, d.missingValues)
		d.fields = append(d.fields, f)
		if first, twice := seen[foldName(f.name)]; twice && f.name != "" {
			p.add(path+".name", "is the name of field %d too", first)
		}
		seen[foldName(f.name)] = i
	}
}

// primaryKey takes the key, which makes its fields required. unique on a field is what a primary key
// of that one field promises anyway; elsewhere it could only be kept by reading the whole dataset.
func (p *parser) primaryKey(d *Definition, o *object) {
	if n, ok := o.take("primaryKey"); ok && n.kind == stringNode {
		d.primaryKey = []string{n.text}
	} else {
		d.primaryKey = o.texts("primaryKey", nil)
		if ok && n.kind == arrayNode && len(n.items) > len(d.primaryKey) {
			p.add("schema.primaryKey", "names a field twice")
		}
	}
	if len(d.primaryKey) == 0 {
		p.add("schema.primaryKey", "is required: records are addressed by it")
	}
	if len(d.fields) == 0 {
		return // reported already
	}
	for _, name := range d.primaryKey {
		i := slices.IndexFunc(d.fields, func(f field) bool { return f.name == name })
		if i < 0 {
			p.add("schema.primaryKey", "names %s, which is no field", clip(name))
			continue
		}
		d.fields[i].required, d.fields[i].inKey = true, true
	}
	for i, f := range d.fields {
		if f.unique && !(f.inKey && len(d.primaryKey) == 1) {
			p.add(fmt.Sprintf("schema.fields[%d].constraints.unique", i), "is not supported, but for a field that is the primary key")
		}
	}
}

// clip bounds a text that came from outside before it goes into a message (300 characters there).
func clip(text string) string {
	const most = 240
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
