package ddb

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Limits of a Number: 38 significant digits, magnitudes from 1E-130 up to just under 1E+126.
const (
	maxDigits   = 38
	maxExponent = 125  // of the leading digit
	minExponent = -130 // of the leading digit
)

var (
	errTooManyDigits = invalid("Attempting to store more than %d significant digits in a Number", maxDigits)
	errOverflow      = invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	errUnderflow     = invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
)

// parseNumber reads a decimal with optional sign, point and exponent, and checks the limits before anything is expanded.
func parseNumber(s string) (number, error) {
	if isPlainInteger(s) {
		return number(s), nil
	}
	neg, digits, exp, ok := scanDecimal(s)
	if !ok {
		if s == "" {
			return "", invalid("The parameter cannot be converted to a numeric value")
		}
		return "", invalid("The parameter cannot be converted to a numeric value: %s", s)
	}
	return formatNumber(neg, digits, exp)
}

// isPlainInteger says that s is already in returned form: a short integer without sign or leading zero.
func isPlainInteger(s string) bool {
	if s == "" || len(s) > maxDigits || s[0] == '0' && len(s) > 1 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// scanDecimal splits s into its digits and the power of ten of their last one.
func scanDecimal(s string) (neg bool, digits string, exp int, ok bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	mantissa := s
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		var err error
		if exp, err = strconv.Atoi(s[i+1:]); err != nil {
			if !errors.Is(err, strconv.ErrRange) {
				return false, "", 0, false
			}
			// Beyond int means beyond every limit; only the sign matters from here on.
			exp = 1 << 40
			if s[i+1] == '-' {
				exp = -exp
			}
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false, "", 0, false
	}
	return neg, digits, exp - len(fraction), true
}

// formatNumber checks neg digits × 10^exp against the limits and writes it in returned form.
func formatNumber(neg bool, digits string, exp int) (number, error) {
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	digits = strings.TrimLeft(trimmed, "0")
	if digits == "" {
		return "0", nil
	}
	leading := exp + len(digits) - 1
	switch {
	case leading > maxExponent:
		return "", errOverflow
	case leading < minExponent:
		return "", errUnderflow
	case len(digits) > maxDigits:
		return "", errTooManyDigits
	}
	sign := ""
	if neg {
		sign = "-"
	}
	switch {
	case exp >= 0:
		return number(sign + digits + strings.Repeat("0", exp)), nil
	case leading >= 0:
		return number(sign + digits[:leading+1] + "." + digits[leading+1:]), nil
	}
	return number(sign + "0." + strings.Repeat("0", -leading-1) + digits), nil
}

// split takes a number in returned form apart; fraction is empty for an integer.
func (n number) split() (neg bool, whole, fraction string) {
	s, neg := strings.CutPrefix(string(n), "-")
	whole, fraction, _ = strings.Cut(s, ".")
	return neg, whole, fraction
}

// scientific gives the significant digits and the power of ten of the first one; zero has no digits.
func (n number) scientific() (neg bool, digits string, leading int) {
	neg, whole, fraction := n.split()
	if whole != "0" {
		return neg, strings.TrimRight(whole+fraction, "0"), len(whole) - 1
	}
	digits = strings.TrimLeft(fraction, "0")
	return neg, digits, len(digits) - len(fraction) - 1
}

func compareNumbers(a, b number) int {
	if a == b {
		return 0
	}
	negA, wholeA, fracA := a.split()
	negB, wholeB, fracB := b.split()
	if negA != negB {
		if negA {
			return -1
		}
		return 1
	}
	order := len(wholeA) - len(wholeB)
	if order == 0 {
		order = strings.Compare(wholeA, wholeB)
	}
	if order == 0 {
		order = strings.Compare(fracA, fracB)
	}
	if negA {
		return -order
	}
	return order
}

// size is the stored size: one byte, one more per pair of digits counted from the decimal point, one for a minus sign.
func (n number) size() int {
	neg, digits, leading := n.scientific()
	if digits == "" {
		return 1
	}
	count := len(digits)
	if leading%2 == 0 {
		count++ // the first digit has a pair to itself
	}
	size := 1 + (count+1)/2
	if neg {
		size++
	}
	return size
}

// key is an encoding whose byte order is the numeric order and of which none is a prefix of another.
func (n number) key() string {
	neg, digits, leading := n.scientific()
	if digits == "" {
		return "\x01"
	}
	b := append([]byte{2, byte(leading - minExponent)}, digits...)
	b = append(b, 0)
	if neg {
		b[0] = 0
		for i := 1; i < len(b); i++ {
			b[i] = ^b[i]
		}
	}
	return string(b)
}

// plus and minus are exact; a result that does not fit a Number is an error, never rounded.
func (n number) plus(m number) (number, error)  { return n.combine(m, false) }
func (n number) minus(m number) (number, error) { return n.combine(m, true) }

func (n number) combine(m number, negate bool) (number, error) {
	if a, ok := n.small(); ok {
		if b, ok := m.small(); ok {
			if negate {
				b = -b
			}
			return number(strconv.FormatInt(a+b, 10)), nil
		}
	}
	return n.combineExactly(m, negate)
}

// small gives an integer of at most 18 characters: the sum of two cannot overflow.
func (n number) small() (int64, bool) {
	if len(n) > 18 {
		return 0, false
	}
	v, err := strconv.ParseInt(string(n), 10, 64)
	return v, err == nil
}

func (n number) combineExactly(m number, negate bool) (number, error) {
	var a, b, sum apd.Decimal
	if err := errors.Join(setDecimal(&a, n), setDecimal(&b, m)); err != nil {
		return "", err
	}
	if negate {
		b.Neg(&b)
	}
	// Precision 0 never rounds; exponents are bounded by the limits of a Number, so the result has at most 294 digits.
	exact := apd.BaseContext
	if _, err := exact.Add(&sum, &a, &b); err != nil {
		return "", fmt.Errorf("add %s and %s: %w", n, m, err)
	}
	var digits big.Int
	digits.Set(sum.Coeff.MathBigInt())
	return formatNumber(sum.Negative, digits.String(), int(sum.Exponent))
}

func setDecimal(d *apd.Decimal, n number) error {
	if _, _, err := d.SetString(string(n)); err != nil {
		return fmt.Errorf("read number %s: %w", n, err)
	}
	return nil
}

func numberOf(n int) number { return number(strconv.Itoa(n)) }
