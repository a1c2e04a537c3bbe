// Package compute compiles the computed columns of a dataset, which are expressions in CEL over the
// typed fields of a row, and evaluates them. Numbers are exact decimals of one type, whatever the
// schema calls them. It refuses macros, loops, clocks and everything else whose cost a row could
// decide, and it never rounds but where a quotient has no end. It is the only package that imports
// CEL, which adds megabytes to every binary that has it.
package compute

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/interpreter"

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
	fields  []dataset.Column
	columns []column
	frames  sync.Pool // of *frame
}

// column is one computed column.
type column struct {
	dataset.Computed
	program cel.Program
	fields  []int // that it refers to, in schema order
}

// Compile makes the computed columns of a definition ready. The error is a *fault.Error with
// INVALID_EXPRESSION whose detail "fields" is a []Problem with everything that is wrong.
func Compile(def *dataset.Definition) (*Program, error) {
	c, err := newCompiler(def)
	if err != nil {
		return nil, fmt.Errorf("declare the expression language: %w", err)
	}
	for i := range c.columns {
		c.parse(&c.columns[i])
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("declare the fields: %w", err)
	}
	if len(c.problems) > 0 {
		return nil, invalid(c.problems)
	}
	p := &Program{fields: c.fields}
	p.frames.New = func() any { return newFrame(len(p.fields)) }
	for i := range c.columns {
		planned, err := c.plan(&c.columns[i])
		if err != nil {
			return nil, fmt.Errorf("plan computed column %d: %w", i, err)
		}
		p.columns = append(p.columns, planned)
	}
	return p, nil
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

// plan makes a checked expression ready to run.
func (c *compiler) plan(e *expression) (column, error) {
	slices.Sort(e.fields)
	program, err := c.env.Program(e.ast, cel.CustomDecoratorV2(bindFields))
	return column{Computed: e.Computed, program: program, fields: slices.Compact(e.fields)}, err
}

// bindFields replaces the look-up of a field by its name by one by its place.
func bindFields(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	a, ok := i.(interpreter.InterpretableAttribute)
	if !ok {
		return i, nil
	}
	named, ok := a.Attr().(interpreter.NamespacedAttribute)
	if !ok {
		return i, nil
	}
	place, ok := fieldOf(named.CandidateVariableNames()[0])
	if !ok {
		return nil, fmt.Errorf("%s is no field", named.CandidateVariableNames()[0])
	}
	return &load{id: i.ID(), field: place}, nil
}
