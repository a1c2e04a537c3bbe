// Package dataset holds what a dataset is: its schema (Frictionless Table Schema), dialect and rules,
// and checks rows against it. A row comes out as exact values, a key and a hash, or with the first
// reason why it cannot be applied. It refuses, by name, whatever of the schema language it does not
// enforce: nothing that changes the meaning of a file is ever ignored. It knows no store and no files,
// and no expressions: what computed columns compute is compiled and evaluated elsewhere (Evaluator).
package dataset

import (
	"encoding/json"
	"slices"

	"golang.org/x/text/unicode/norm"

	"pintu/internal/fault"
	"pintu/internal/rowio"
)

// Limits of a definition.
const (
	MaxFields     = 1000
	MaxBytes      = 256 << 10 // of the body, and of its canonical form: a version fits one DynamoDB item
	MaxNameLength = 255       // of a field, in bytes: it stands in every stored record
	MaxTexts      = 100       // of missingValues, trueValues, falseValues, primaryKey: every cell is compared with them
)

// Definition is one version of a dataset: the body of PUT /v1/datasets/{name}. It is made by Parse
// and does not change afterwards. Its JSON is Canonical; a struct that shows more beside it must not
// embed it, or it would inherit MarshalJSON.
type Definition struct {
	Dialect    rowio.Dialect // its one-valued defaults filled in
	OnConflict string        // one of OnConflictRule.Supported
	Duplicates string        // one of DuplicatesRule.Supported
	Computed   []Computed    // in the order in which their values follow those of the schema

	fields        []field
	primaryKey    []string
	missingValues []string
	fieldsMatch   string
	notes         []member // annotations: kept, never read
}

// reserved are the columns that rejected.csv adds; a repaired file may carry them back.
var reserved = []string{"_row_number", "_code", "_field", "_class", "_message"}

// FieldNames returns the names of the fields in schema order.
func (d *Definition) FieldNames() []string {
	names := make([]string, len(d.fields))
	for i := range d.fields {
		names[i] = d.fields[i].name
	}
	return names
}

// ColumnNames returns the names of everything a row holds, in the order of Row.Values: the fields of
// the schema, then the computed columns.
func (d *Definition) ColumnNames() []string {
	names := d.FieldNames()
	for _, c := range d.Computed {
		names = append(names, c.Name)
	}
	return names
}

// PrimaryKey returns the names of the key fields in the order in which they make up the key.
func (d *Definition) PrimaryKey() []string { return slices.Clone(d.primaryKey) }

// Key brings the key text of a request into the form that records are stored under: NFC, and for a
// key of several fields a JSON array of strings without white space and needless escapes. ok is false
// for what cannot be the key of any record.
func (d *Definition) Key(text string) (key string, ok bool) {
	if len(d.primaryKey) == 1 {
		key = norm.NFC.String(text)
		return key, key != "" && len(key) <= MaxKeyBytes
	}
	var parts []string
	if err := json.Unmarshal([]byte(text), &parts); err != nil || len(parts) != len(d.primaryKey) {
		return "", false
	}
	buf := []byte{'['}
	for i, part := range parts {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendJSONString(buf, norm.NFC.String(part))
	}
	buf = append(buf, ']')
	return string(buf), len(buf) <= MaxKeyBytes
}

// CheckSuccessor refuses a definition that cannot follow the previous version: records are addressed
// by the texts of their primary key, so neither its fields nor their types can change. The error is a
// *fault.Error with INVALID_SCHEMA.
func (d *Definition) CheckSuccessor(previous *Definition) error {
	if !slices.Equal(d.primaryKey, previous.primaryKey) {
		return invalid(fault.InvalidSchema, []Problem{{"schema.primaryKey", "cannot change: stored records are addressed by it"}})
	}
	var problems []Problem
	for _, name := range d.primaryKey {
		now, before := d.field(name), previous.field(name)
		if now.typ != before.typ {
			problems = append(problems, Problem{"schema.primaryKey", "the type of key field " + name + " cannot change from " + before.typ + " to " + now.typ})
		}
	}
	return invalid(fault.InvalidSchema, problems)
}

func (d *Definition) field(name string) *field {
	i := slices.IndexFunc(d.fields, func(f field) bool { return f.name == name })
	return &d.fields[i]
}

// MarshalJSON writes Canonical.
func (d *Definition) MarshalJSON() ([]byte, error) { return d.Canonical(), nil }

// UnmarshalJSON is Parse.
func (d *Definition) UnmarshalJSON(body []byte) error {
	parsed, err := Parse(body)
	if err != nil {
		return err
	}
	*d = *parsed
	return nil
}

// ValidName tells whether a dataset may be called so: one to 64 lower-case letters, digits, - and _,
// the first a letter or digit.
func ValidName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return true
}
