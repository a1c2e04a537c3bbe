// Package compute compiles the computed columns of a dataset, which are expressions in CEL over the
// typed fields of a row, and evaluates them. Numbers are exact decimals of one type, whatever the
// schema calls them. It refuses macros, loops, clocks and everything else whose cost a row could
// decide, and it never rounds but where a quotient has no end. It is the only package that imports
// CEL, which adds megabytes to every binary that has it.
package compute

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"pintu/internal/dataset"
	"pintu/internal/fault"
)

// Limits of an expression. There are no loops, so they bound the time that one row can take: sums of
// texts are the dearest operators, patterns dearer by far.
const (
	MaxExpression = 1000     // characters
	MaxDepth      = 250      // of what CEL nests: parentheses, calls, conditions, the operands of a sum
	MaxProgram    = 1000     // compiled instructions of its patterns together
	MaxText       = 32 << 10 // bytes of a text that + makes
)

// Problem is one thing wrong with an expression, in the detail "fields" of an INVALID_EXPRESSION.
type Problem struct {
	Path     string `json:"path"`     // computed[0].expression
	Reason   string `json:"reason"`   // for people
	Column   string `json:"column"`   // the computed column
	Line     int    `json:"line"`     // from 1; 0 when the whole expression is meant
	Position int    `json:"position"` // in the line, from 1, in characters; 0 likewise
}

// Program is what the computed columns of one definition compile to. It is safe for concurrent use.
type Program struct {
	names   []string // of the fields of the schema
	used    []int    // the fields that the expressions refer to
	columns []column
	slots   int // values of the largest expression
}

// column is one computed column.
type column struct {
	dataset.Computed
	root   node
	fields []int // that it refers to, in schema order
}

// Compile makes the computed columns of a definition ready. The error is a *fault.Error with
// INVALID_EXPRESSION whose detail "fields" is a []Problem with everything that is wrong.
func Compile(def *dataset.Definition) (*Program, error) {
	l, err := celLanguage()
	if err != nil {
		return nil, fmt.Errorf("declare the expression language: %w", err)
	}
	c := newCompiler(def)
	for i := range c.columns {
		c.compile(&c.columns[i], l)
	}
	if len(c.problems) > 0 {
		return nil, invalid(c.problems)
	}
	return c.program()
}

func invalid(problems []Problem) error {
	first := problems[0]
	message := fmt.Sprintf("%s: %s", first.Column, first.Reason)
	if first.Line > 0 {
		message = fmt.Sprintf("%s, line %d, position %d: %s", first.Column, first.Line, first.Position, first.Reason)
	}
	if len(problems) > 1 {
		message += fmt.Sprintf(" (and %d more problems)", len(problems)-1)
	}
	return fault.New(fault.InvalidExpression, "the computed columns cannot be used: %s", clip(message)).With("fields", problems)
}

// clip bounds a text that came from outside before it goes into a message.
func clip(text string) string {
	const most = 240
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

// Eval implements dataset.Evaluator: it adds the computed values to a checked row. A null operand, a
// division by zero, a number that cannot be stored, a text that is too long and a fraction in a column
// of type integer are TRANSFORM_FAILED, class code; the message holds no value of the row.
func (p *Program) Eval(row *dataset.Row) *dataset.Violation {
	f, ours := row.Work.(*frame)
	if !ours || f.program != p {
		f = &frame{program: p, fields: make([]value, len(p.used)), slots: make([]value, p.slots)}
		row.Work = f
	}
	for i, place := range p.used {
		f.fields[i].read(row.Values[place])
	}
	for i := range p.columns {
		c := &p.columns[i]
		if why := f.add(row, c, c.root.eval(f)); why != "" {
			return p.violation(c, row, why)
		}
	}
	return nil
}

// add appends the value of a column to the row.
func (f *frame) add(row *dataset.Row, c *column, v *value) failure {
	if v.failure != "" {
		return v.failure
	}
	text := v.text
	switch v.kind {
	case dataset.Number:
		f.text = v.number.append(f.text[:0])
		text = f.text
		if c.Type == "integer" && bytes.IndexByte(text, '.') >= 0 {
			return errFraction
		}
	case dataset.Bool:
		f.text = strconv.AppendBool(f.text[:0], v.truth)
		text = f.text
	}
	row.Add(dataset.Value{Kind: v.kind, Text: text})
	return ""
}
