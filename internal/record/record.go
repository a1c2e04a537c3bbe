// Package record holds the stored row of a dataset, as people read it. How imports write it (slots,
// epochs, entries) is the importer's business.
package record

import "time"

// Record is one stored row, addressed by its key text within tenant and dataset.
type Record struct {
	Key       string
	Values    []Value // in no particular order
	Version   int64   // grows by one when an import changes the content
	UpdatedAt time.Time
	Source    Source
}

// Value is one field's value. Text is canonical: exact digits for numbers, ISO 8601 for dates.
type Value struct {
	Field string
	Kind  Kind
	Text  string
}

// Kind of a value as it is stored.
type Kind byte

const (
	Null Kind = iota
	String
	Number
	Bool
)

// Source names the import row whose content the record holds.
type Source struct {
	JobID     string
	RowNumber int64
}

// Shards is the number of partitions of one dataset. It can never be changed: keys are spread by it.
const Shards = 32
