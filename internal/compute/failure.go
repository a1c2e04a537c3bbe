package compute

import (
	"fmt"
	"strings"

	"pintu/internal/dataset"
	"pintu/internal/decimal"
	"pintu/internal/fault"
)

// failure is a reason for which the value of one row cannot be computed, for people. Empty is none.
type failure string

const (
	errNull      = failure("it needs a value where there is null")
	errDivision  = failure("it divides by zero")
	errPrecision = failure("a result has more than 38 significant digits; use round")
	errRange     = failure("a result is too large or too small to be stored (1E-130 to 9.99E+125)")
	errFraction  = failure("the result is no whole number, but the column is an integer; use round, floor or ceil")
	errNumber    = failure("number() is given a text that is no number")
	errSubstring = failure("substring() reaches outside of its text, or is not given whole numbers")
)

var (
	errPlaces   = failure(fmt.Sprintf("round() takes a whole number of places from %d to %d", -decimal.MaxExponent, -decimal.MinExponent))
	errTextSize = failure(fmt.Sprintf("a text is longer than %d bytes", MaxText))
	errPattern  = failure(fmt.Sprintf("a text is longer than the %d bytes that a pattern is tried on", dataset.MaxPatternCell))
)

// violation tells why a column cannot be computed for a row, without any value of it.
func (p *Program) violation(c *column, row *dataset.Row, why failure) *dataset.Violation {
	if why == errNull {
		why = p.nullReason(c, row)
	}
	return &dataset.Violation{Code: fault.TransformFailed, Field: c.Name, Class: dataset.ClassCode, Message: clip(c.Name + " cannot be computed: " + string(why))}
}

// maxNamed bounds how many fields stand in a message.
const maxNamed = 5

// nullReason names the fields that are null and may be to blame.
func (p *Program) nullReason(c *column, row *dataset.Row) failure {
	var names []string
	for _, i := range c.fields {
		if row.Values[i].Kind == dataset.Null && len(names) < maxNamed {
			names = append(names, p.names[i])
		}
	}
	switch len(names) {
	case 0:
		return errNull
	case 1:
		return failure(fmt.Sprintf("%[1]s is null; say what null means, as in (%[1]s == null ? 0 : %[1]s)", names[0]))
	}
	return failure(strings.Join(names, ", ") + " are null; say what null means, as in (x == null ? 0 : x)")
}
