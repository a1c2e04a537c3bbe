package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

// laid is a dataset version laid over one file, with the rules its rows go by.
type laid struct {
	rules         *Rules
	binding       *dataset.Binding
	objects       bool // rows are JSON objects
	versionColumn string
	versionCell   int // of the version column; -1 when the rules do not ask for one
	warnings      []dataset.Warning
}

// lay matches the header of a file with what the rows need. A *fault.Error refuses the file.
func lay(j job.Job, def *dataset.Definition, schema *dataset.Schema, layout rowio.Layout) (laid, error) {
	l := laid{rules: rulesOf(j, def), versionColumn: j.Spec.VersionColumn, versionCell: -1}
	if layout.Format == rowio.FormatJSONL {
		return l.layObjects(def, schema, layout.Header)
	}
	header := layout.Header
	if l.rules.OnConflict == IfUnchanged {
		l.versionCell = slices.Index(header, l.versionColumn)
		if l.versionColumn == "" || l.versionCell < 0 {
			return l, noVersionColumn(l.versionColumn)
		}
		if !slices.Contains(def.FieldNames(), l.versionColumn) {
			header = slices.Clone(header)
			header[l.versionCell] = "" // else it would be reported as ignored
		}
	}
	var err error
	l.binding, l.warnings, err = schema.Bind(header, layout.LooksLike)
	return l, err
}

// layObjects is lay for JSON Lines, whose rows have names of their own: found are those of the first rows.
func (l laid) layObjects(def *dataset.Definition, schema *dataset.Schema, found []string) (laid, error) {
	l.objects = true
	if l.rules.OnConflict == IfUnchanged {
		if l.versionColumn == "" {
			return l, noVersionColumn("")
		}
		if !slices.Contains(def.FieldNames(), l.versionColumn) {
			found = slices.DeleteFunc(slices.Clone(found), func(name string) bool { return name == l.versionColumn })
		}
	}
	var err error
	l.binding, l.warnings, err = schema.BindNames(found)
	return l, err
}

// judge checks the fields of a record.
func (l laid) judge(fields [][]byte, row *dataset.Row) *dataset.Violation {
	if l.objects {
		return l.binding.CheckJSON(fields[0], row)
	}
	return l.binding.Check(fields, row)
}

func noVersionColumn(name string) error {
	if name == "" {
		return fault.New(fault.MissingColumns, "on_conflict if_unchanged needs version_column, the column that holds each record's version; submit again with it")
	}
	return fault.New(fault.MissingColumns, "the file has no column %q, which version_column names", name).With("missing", []string{name})
}

// rulesOf are the rules of an import: what its submit says, else what the dataset version does.
func rulesOf(j job.Job, def *dataset.Definition) *Rules {
	return &Rules{
		OnConflict: OnConflict(cmp.Or(j.Spec.OnConflict, def.OnConflict, string(Update))),
		LastWins:   cmp.Or(j.Spec.Duplicates, def.Duplicates) == "last_wins",
		Work:       j.Work, Beside: j.Beside, Since: j.Since,
	}
}

// expect reads the version that a row was made from: a whole number, or nothing for a record that must not
// be there yet.
func (l laid) expect(fields [][]byte) (int64, *dataset.Violation) {
	cell := l.version(fields)
	if len(cell) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(cell), 10, 64)
	if err != nil || n < 1 {
		return 0, &dataset.Violation{Code: fault.TypeMismatch, Class: string(quarantine.Data), Field: l.versionColumn,
			Message: fmt.Sprintf("%s is not a version: it must be a whole number from 1, or empty for a record that must not exist yet", l.versionColumn)}
	}
	return n, nil
}

// version is the text of the version column; empty when the rules do not ask for one.
func (l laid) version(fields [][]byte) []byte {
	switch {
	case l.objects && l.rules.OnConflict == IfUnchanged:
		return dataset.Member(fields[0], l.versionColumn)
	case l.versionCell >= 0:
		return fields[l.versionCell]
	}
	return nil
}

// refusal is why a row with this outcome goes to quarantine. It names no other row: which one is met first
// depends on the order of workers.
func (w *worker) refusal(o Outcome) *dataset.Violation {
	v := &dataset.Violation{Code: fault.KeyConflict, Class: string(quarantine.Data), Field: w.keyField}
	switch {
	case o == Duplicate && !w.rules.LastWins:
		v.Code, v.Message = fault.DuplicateKey, "an earlier row of this file has the same key; only the first one is applied"
	case o != Conflict:
		return nil
	case w.rules.OnConflict == IfUnchanged:
		v.Field, v.Message = w.versionColumn, "the record has another version than the row was made from; fetch it, apply the change to it and import the row again"
	case w.rules.OnConflict == Reject:
		v.Message = "there is a record with this key already"
	default:
		v.Message = "another job changed the record since the file was imported first; it is left as it is"
	}
	return v
}
