package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"pintu/internal/fault"
)

// MaxKeyBytes is what DynamoDB takes as a sort key.
const MaxKeyBytes = 1024

// ClassData is the class of every violation found here: the payload is wrong, its source must fix it.
const ClassData = "data"

// Value is one value of a row. Text is canonical: exact digits for numbers, ISO 8601 for dates, "true"
// or "false" for booleans, nil for null.
type Value struct {
	Kind Kind
	Text []byte
}

// Row is what a good source row becomes. Its buffers are its own and used again: everything in it holds
// until the next Check with the same Row.
type Row struct {
	Key    []byte   // text of the primary key, see Check
	Hash   [16]byte // of the content, see Check
	Values []Value  // one per field in schema order, then the computed ones; a missing column is Null

	// Work is what the Evaluator keeps with the row, to use again for the next one.
	Work any

	text   []byte // of values that are not canonical in their cells
	part   []byte // of a key
	sealed []byte // what the hash is of, and the memory of all values after it
}

// Violation is the first reason why a row cannot be applied. Message is for people and holds no value
// of the row.
type Violation struct {
	Code    fault.Code
	Field   string // empty: the row as a whole
	Class   string
	Message string
}

func violation(code fault.Code, c *column, reason string) *Violation {
	return &Violation{Code: code, Field: c.name, Class: ClassData, Message: c.describe(reason)}
}

// Check judges the cells of one source row, which stand in the order of the bound header; a nil cell
// is null whatever the missing values are. It fills row and returns nil, or returns the first
// violation in the order of the schema's fields (the length of the key comes after them, computed
// columns come last: what the source must fix is told first).
//
// Row.Key is the canonical text of the key field in NFC; for several key fields it is the JSON array
// of those texts, as JSON.stringify writes it.
//
// Row.Hash is over the non-null fields and computed columns in order of their names: neither the order of fields in schema
// or file nor a new column full of nulls changes it.
func (b *Binding) Check(fields [][]byte, row *Row) *Violation {
	if v := b.checkWidth(fields); v != nil {
		return v
	}
	row.text = row.text[:0]
	row.Values = row.Values[:0]
	for i, c := range b.schema.columns {
		var cell []byte
		if at := b.at[i]; at >= 0 {
			cell = fields[at]
		}
		switch {
		case c.isMissing(cell):
			if c.required {
				return violation(fault.MissingValue, c, "is missing")
			}
			row.Values = append(row.Values, Value{})
		case c.anyText:
			row.Values = append(row.Values, Value{String, cell})
		default:
			value, v := c.check(row, cell)
			if v != nil {
				return v
			}
			row.Values = append(row.Values, value)
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

// checkWidth is a guard: readers judge the number of cells, with the file's own tolerance.
func (b *Binding) checkWidth(fields [][]byte) *Violation {
	if len(fields) == b.width || len(fields) == b.width+1 && len(fields[b.width]) == 0 {
		return nil
	}
	return &Violation{Code: fault.WrongColumnCount, Class: ClassData,
		Message: fmt.Sprintf("%s, expected %d", count(len(fields)), b.width)}
}

// check reads one cell that is not missing.
func (c *column) check(row *Row, cell []byte) (Value, *Violation) {
	grown, text, reason := c.cast(row.text, cell)
	row.text = grown
	if reason != "" {
		return Value{}, violation(fault.TypeMismatch, c, reason)
	}
	if c.inKey && blank(text) {
		return Value{}, violation(fault.MissingValue, c, "is blank: it is part of the primary key")
	}
	if !c.onlyNull {
		if reason := c.violated(text); reason != "" {
			return Value{}, violation(fault.ConstraintViolated, c, reason)
		}
	}
	return Value{c.kind, text}, nil
}

// blank tells whether a text is empty or white space alone: as a key it would name nothing.
func blank(text []byte) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if !unicode.IsSpace(r) {
			return false
		}
		text = text[size:]
	}
	return true
}

// hashVersion is the first byte that is hashed. Hashes are stored with records and compared for ever:
// another encoding needs another version, and makes every record look changed once.
const hashVersion = 1

// seal makes the hash and gives the row memory of its own for its values, which may be in their cells
// until then. The hash covers version, then per non-null value: length and bytes of the name, kind,
// length and bytes of the text; lengths are unsigned varints, so that no two rows give the same bytes.
func (row *Row) seal(s *Schema) {
	size := 1
	for i := range row.Values {
		size += len(s.hashPrefix[i]) + binary.MaxVarintLen32 + len(row.Values[i].Text)
	}
	buf := slices.Grow(row.sealed[:0], size)[:size]
	buf[0] = hashVersion
	end := 1
	for _, i := range s.hashOrder {
		v := &row.Values[i]
		if v.Kind == Null {
			continue
		}
		end += copy(buf[end:], s.hashPrefix[i])
		end += binary.PutUvarint(buf[end:], uint64(len(v.Text)))
		start := end
		end += copy(buf[end:], v.Text)
		v.Text = buf[start:end:end]
	}
	row.sealed = buf
	sum := sha256.Sum256(buf[:end])
	copy(row.Hash[:], sum[:])
}

func (row *Row) key(s *Schema) *Violation {
	row.Key = row.Key[:0]
	if len(s.keys) == 1 {
		row.Key = appendNFC(row.Key, row.Values[s.keys[0]].Text)
	} else {
		row.Key = append(row.Key, '[')
		for n, i := range s.keys {
			if n > 0 {
				row.Key = append(row.Key, ',')
			}
			row.part = appendNFC(row.part[:0], row.Values[i].Text)
			row.Key = appendJSONString(row.Key, row.part)
		}
		row.Key = append(row.Key, ']')
	}
	if len(row.Key) > MaxKeyBytes {
		return violation(fault.ConstraintViolated, s.columns[s.keys[0]], fmt.Sprintf("makes a key longer than %d bytes", MaxKeyBytes))
	}
	return nil
}

// appendNFC costs a scan for text that is normal already, as nearly all text is.
func appendNFC(dst, text []byte) []byte {
	if isASCII(text) || norm.NFC.QuickSpan(text) == len(text) {
		return append(dst, text...)
	}
	return norm.NFC.Append(dst, text...)
}

func isASCII(text []byte) bool {
	for len(text) >= 8 {
		if binary.LittleEndian.Uint64(text)&0x8080808080808080 != 0 {
			return false
		}
		text = text[8:]
	}
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
