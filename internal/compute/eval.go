package compute

import (
	"bytes"
	"fmt"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"pintu/internal/dataset"
)

// Eval implements dataset.Evaluator: it adds the computed values to a checked row. A null operand, a
// division by zero, a number that cannot be stored, a text that is too long and a fraction in a column
// of type integer are TRANSFORM_FAILED, class code; the message holds no value of the row.
func (p *Program) Eval(row *dataset.Row) *dataset.Violation {
	f := p.frames.Get().(*frame)
	f.start(row)
	v := p.eval(f)
	f.row = nil
	p.frames.Put(f)
	return v
}

func (p *Program) eval(f *frame) *dataset.Violation {
	for i := range p.columns {
		c := &p.columns[i]
		value, _, err := c.program.Eval(f)
		if err == nil {
			err = f.add(c, value)
		}
		if err != nil {
			return p.violation(c, f.row, err)
		}
	}
	return nil
}

// add appends the value of a column to the row.
func (f *frame) add(c *column, value ref.Val) (err error) {
	f.text = f.text[:0]
	switch v := value.(type) {
	case types.Null:
		f.row.Add(dataset.Value{})
		return nil
	case *number:
		f.text, err = v.append(f.text)
		if err == nil && c.Type == "integer" && bytes.IndexByte(f.text, '.') >= 0 {
			err = errFraction
		}
	case types.String:
		f.text = append(f.text, v...)
	case types.Bool:
		f.text = strconv.AppendBool(f.text, bool(v))
	default:
		err = fmt.Errorf("a value of type %s", value.Type().TypeName())
	}
	if err != nil {
		return err
	}
	f.row.Add(dataset.Value{Kind: c.Kind(), Text: f.text})
	return nil
}

// frame is what one evaluation works with: the fields of the row as values of CEL, made when they are
// asked for. It is the cel.Activation of the programs.
type frame struct {
	row     *dataset.Row
	values  []ref.Val // nil: not made yet
	numbers []number  // what values point to
	text    []byte
}

var _ cel.Activation = (*frame)(nil)

func newFrame(fields int) *frame {
	return &frame{values: make([]ref.Val, fields), numbers: make([]number, fields)}
}

func (f *frame) start(row *dataset.Row) {
	f.row = row
	clear(f.values)
}

// ResolveName is not used: programs find their fields by place.
func (f *frame) ResolveName(string) (any, bool) { return nil, false }

// Parent is none.
func (f *frame) Parent() cel.Activation { return nil }

func (f *frame) value(i int) ref.Val {
	if v := f.values[i]; v != nil {
		return v
	}
	v := f.read(i)
	f.values[i] = v
	return v
}

func (f *frame) read(i int) ref.Val {
	in := f.row.Values[i]
	switch in.Kind {
	case dataset.Null:
		return types.NullValue
	case dataset.Number:
		if err := f.numbers[i].parse(in.Text); err != nil {
			return types.WrapErr(err)
		}
		return &f.numbers[i]
	case dataset.Bool:
		return types.Bool(in.Text[0] == 't')
	default:
		return types.String(in.Text)
	}
}

// load is the node of a program that reads a field.
type load struct {
	id    int64
	field int
}

// ID implements interpreter.Interpretable.
func (l *load) ID() int64 { return l.id }

// Eval implements interpreter.Interpretable.
func (l *load) Eval(a interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(a, l.Exec)
}

// Exec implements interpreter.InterpretableV2.
func (l *load) Exec(x *interpreter.ExecutionFrame) ref.Val {
	return x.Scope().(*frame).value(l.field)
}
