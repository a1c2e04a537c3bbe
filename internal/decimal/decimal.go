// Package decimal checks, normalises and compares exact decimal numbers as text. No value passes
// through a float, and no arithmetic is done: an exponent is judged before a digit is written, so
// that 1E999999999 costs no more than 1. It refuses what DynamoDB cannot store exactly.
package decimal

import (
	"bytes"
	"errors"
)

// What DynamoDB keeps of a number: 38 significant digits, magnitudes from 1E-130 to 9.99…E+125.
const (
	MaxDigits   = 38
	MinExponent = -130 // of the first significant digit
	MaxExponent = 125
)

// Reasons for which a text is refused.
var (
	ErrSyntax    = errors.New("not a decimal number")
	ErrPrecision = errors.New("more than 38 significant digits")
	ErrRange     = errors.New("magnitude outside 1E-130 to 9.99E+125")
)

// exponentCap ends the reading of an exponent: beyond it the answer is the same for every cell that
// fits in memory, and sums with digit counts cannot overflow.
const exponentCap = 1 << 40

// Append reads text (sign, digits with at most one point, exponent after E or e) and appends its
// canonical form to dst: plain digits, no exponent, no leading zeros but one before a point, no
// trailing zeros after it, no plus sign, zero without sign. On error dst comes back unchanged.
func Append(dst, text []byte) ([]byte, error) {
	n, ok := scan(text)
	if !ok {
		return dst, ErrSyntax
	}
	if n.exponent == 0 && len(n.whole)+len(n.fraction) <= MaxDigits {
		return n.appendOrdinary(dst), nil
	}
	return n.appendAny(dst)
}

// AppendInteger is Append for an optional sign and digits alone: no point, no exponent.
func AppendInteger(dst, text []byte) ([]byte, error) {
	digits := text
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		digits = digits[1:]
	}
	if len(digits) == 0 || countDigits(digits) != len(digits) {
		return dst, ErrSyntax
	}
	return Append(dst, text)
}

// number is a scanned text. whole has no leading zeros, fraction no trailing ones.
type number struct {
	negative        bool
	whole, fraction []byte
	exponent        int
}

func scan(text []byte) (number, bool) {
	var n number
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		n.negative = text[0] == '-'
		text = text[1:]
	}
	w := countDigits(text)
	n.whole, text = text[:w], text[w:]
	if len(text) > 0 && text[0] == '.' {
		f := countDigits(text[1:])
		n.fraction, text = text[1:1+f], text[1+f:]
	}
	if len(n.whole)+len(n.fraction) == 0 {
		return n, false
	}
	if len(text) > 0 {
		var ok bool
		if n.exponent, ok = scanExponent(text); !ok {
			return n, false
		}
	}
	for len(n.whole) > 0 && n.whole[0] == '0' {
		n.whole = n.whole[1:]
	}
	for len(n.fraction) > 0 && n.fraction[len(n.fraction)-1] == '0' {
		n.fraction = n.fraction[:len(n.fraction)-1]
	}
	return n, true
}

func countDigits(text []byte) int {
	for i, c := range text {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(text)
}

func scanExponent(text []byte) (int, bool) {
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	if len(text) == 0 || countDigits(text) != len(text) {
		return 0, false
	}
	exponent := 0
	for _, c := range text {
		if exponent < exponentCap {
			exponent = exponent*10 + int(c-'0')
		}
	}
	if negative {
		exponent = -exponent
	}
	return exponent, true
}

// appendOrdinary writes a number without exponent whose digits are few enough for every rule.
func (n number) appendOrdinary(dst []byte) []byte {
	if len(n.whole)+len(n.fraction) == 0 {
		return append(dst, '0')
	}
	if n.negative {
		dst = append(dst, '-')
	}
	if len(n.whole) == 0 {
		dst = append(dst, '0')
	}
	dst = append(dst, n.whole...)
	if len(n.fraction) > 0 {
		dst = append(dst, '.')
		dst = append(dst, n.fraction...)
	}
	return dst
}

// appendAny writes any number: it reduces the text to significant digits and the place of the point
// before it writes.
func (n number) appendAny(dst []byte) ([]byte, error) {
	lead, tail := n.whole, n.fraction
	point := len(lead) + n.exponent // digits before the point, counted from the first digit kept
	if len(lead) == 0 {
		zeros := len(tail) - len(bytes.TrimLeft(tail, "0"))
		tail = tail[zeros:]
		point -= zeros
	}
	if len(tail) == 0 {
		lead = bytes.TrimRight(lead, "0")
	}
	count := len(lead) + len(tail)
	switch {
	case count == 0:
		return append(dst, '0'), nil
	case point-1 < MinExponent || point-1 > MaxExponent:
		return dst, ErrRange
	case count > MaxDigits:
		return dst, ErrPrecision
	}
	var digits [MaxDigits]byte
	copy(digits[copy(digits[:], lead):], tail)
	if n.negative {
		dst = append(dst, '-')
	}
	return place(dst, digits[:count], point), nil
}

// place writes digits with the point after the first `point` of them; point may lie outside.
func place(dst, digits []byte, point int) []byte {
	switch {
	case point <= 0:
		dst = append(dst, '0', '.')
		dst = appendZeros(dst, -point)
		return append(dst, digits...)
	case point >= len(digits):
		dst = append(dst, digits...)
		return appendZeros(dst, point-len(digits))
	default:
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	}
}

func appendZeros(dst []byte, count int) []byte {
	for range count {
		dst = append(dst, '0')
	}
	return dst
}

// Compare orders two canonical texts by value: -1, 0 or 1. It is exact and does not allocate; texts
// that are not canonical give no meaningful answer.
func Compare(a, b []byte) int {
	aNegative, bNegative := negative(a), negative(b)
	switch {
	case aNegative && bNegative:
		return compareMagnitude(b[1:], a[1:])
	case aNegative:
		return -1
	case bNegative:
		return 1
	default:
		return compareMagnitude(a, b)
	}
}

func negative(text []byte) bool { return len(text) > 0 && text[0] == '-' }

func compareMagnitude(a, b []byte) int {
	aWhole, aFraction, _ := bytes.Cut(a, []byte{'.'})
	bWhole, bFraction, _ := bytes.Cut(b, []byte{'.'})
	switch {
	case len(aWhole) < len(bWhole):
		return -1
	case len(aWhole) > len(bWhole):
		return 1
	}
	if c := bytes.Compare(aWhole, bWhole); c != 0 {
		return c
	}
	return bytes.Compare(aFraction, bFraction)
}
