package compute

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"pintu/internal/decimal"
)

// number is an exact decimal: coef × 10^exp while that fits, which it nearly always does, else large.
// Every number of an expression, intermediate ones too, is one that DynamoDB stores: at most 38
// significant digits, magnitude 1E-130 to 9.99E+125. Methods set z to a result; their operands stay as
// they are and are never z.
type number struct {
	coef  int64        // not the least int64, so that it can be negated
	large *apd.Decimal // reduced, never written to; nil: coef and exp hold the value
	exp   int16
	// rounded tells that this came from a quotient without end. What is computed from it is rounded to
	// 38 digits again; of exact numbers, a result with more digits is an error.
	rounded bool
}

// Bounds of exp. Whatever coef is, they keep the number in range.
const (
	minSmallExp = decimal.MinExponent
	maxSmallExp = decimal.MaxExponent - 19
)

// powers of ten that fit.
var powers = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// parse reads a canonical text (see package decimal).
func (z *number) parse(text []byte) failure {
	*z = number{}
	if z.parseSmall(text) {
		return ""
	}
	var d apd.Decimal
	_, _, err := d.SetString(string(text))
	return z.settle(&d, false, err)
}

// parseSmall reads up to 18 digits.
func (z *number) parseSmall(text []byte) bool {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) > 19 {
		return false
	}
	var coef int64
	places := 0
	for i, c := range digits {
		if c == '.' {
			places = len(digits) - 1 - i
			continue
		}
		coef = coef*10 + int64(c-'0')
	}
	if len(digits) == 19 && places == 0 {
		return false
	}
	if len(digits) < len(text) {
		coef = -coef
	}
	z.coef, z.exp = coef, int16(-places)
	return true
}

// append writes the canonical text.
func (x *number) append(dst []byte) []byte {
	if x.large == nil && x.exp == 0 {
		return strconv.AppendInt(dst, x.coef, 10)
	}
	if x.large == nil && x.exp < 0 && x.exp > -19 {
		return x.appendFraction(dst)
	}
	var buf [64]byte
	text := buf[:0]
	if x.large != nil {
		text = x.large.Append(text, 'E')
	} else {
		text = append(strconv.AppendInt(text, x.coef, 10), 'E')
		text = strconv.AppendInt(text, int64(x.exp), 10)
	}
	dst, err := decimal.Append(dst, text)
	if err != nil {
		panic("compute: " + err.Error()) // a number that is none of ours
	}
	return dst
}

// appendFraction writes a small number with a point, from its last digit to its first.
func (x *number) appendFraction(dst []byte) []byte {
	coef, places := magnitude(x.coef), int(-x.exp)
	if coef == 0 {
		return append(dst, '0')
	}
	for places > 0 && coef%10 == 0 {
		coef /= 10
		places--
	}
	var buf [24]byte // a sign, 19 digits and a point, or 0 and 18 places
	at := len(buf)
	for left := places; coef > 0 || left >= 0; left-- {
		if left == 0 && places > 0 {
			at--
			buf[at] = '.'
		}
		at--
		buf[at] = byte('0' + coef%10)
		coef /= 10
	}
	if x.coef < 0 {
		at--
		buf[at] = '-'
	}
	return append(dst, buf[at:]...)
}

func compare(x, y *number) int {
	a, b, _, ok := align(x, y)
	switch {
	case !ok:
		var wideX, wideY apd.Decimal
		return x.wide(&wideX).Cmp(y.wide(&wideY))
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (z *number) add(x, y *number) failure {
	if a, b, exp, ok := align(x, y); ok {
		if sum := a + b; (sum > a) == (b > 0) && sum != math.MinInt64 {
			return z.small(sum, exp, x, y)
		}
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Add(&d, x.wide(&wideX), y.wide(&wideY))
	return z.settle(&d, x.rounded || y.rounded, err)
}

func (z *number) subtract(x, y *number) failure {
	if a, b, exp, ok := align(x, y); ok {
		if difference := a - b; (difference < a) == (b > 0) && difference != math.MinInt64 {
			return z.small(difference, exp, x, y)
		}
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Sub(&d, x.wide(&wideX), y.wide(&wideY))
	return z.settle(&d, x.rounded || y.rounded, err)
}

func (z *number) negate(x *number) failure {
	*z = *x
	z.coef = -x.coef
	if x.large != nil {
		z.large = new(apd.Decimal).Neg(x.large)
	}
	return ""
}

func (z *number) multiply(x, y *number) failure {
	if x.large == nil && y.large == nil {
		exp := x.exp + y.exp
		if coef, ok := times(x.coef, y.coef); ok && exp >= minSmallExp && exp <= maxSmallExp {
			return z.small(coef, exp, x, y)
		}
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Mul(&d, x.wide(&wideX), y.wide(&wideY))
	return z.settle(&d, x.rounded || y.rounded, err)
}

// divide is exact where the quotient has at most 38 digits, else rounded to 38, half to even.
func (z *number) divide(x, y *number) failure {
	switch {
	case y.isZero():
		return errDivision
	case x.large == nil && y.large == nil && z.divideSmall(x, y):
		return ""
	}
	var d, wideX, wideY apd.Decimal
	inexact, err := rounding.Quo(&d, x.wide(&wideX), y.wide(&wideY))
	return z.settle(&d, x.rounded || y.rounded || inexact.Inexact(), err)
}

// divideSmall finds the quotients that end within what an int64 holds.
func (z *number) divideSmall(x, y *number) bool {
	coef, exp := x.coef, x.exp-y.exp
	for coef%y.coef != 0 {
		var ok bool
		if coef, ok = times(coef, 10); !ok {
			return false
		}
		exp--
	}
	return exp >= minSmallExp && exp <= maxSmallExp && z.small(coef/y.coef, exp, x, y) == ""
}

// remainder has the sign of x; the quotient that it belongs to is cut off at the point.
func (z *number) remainder(x, y *number) failure {
	if y.isZero() {
		return errDivision
	}
	if a, b, exp, ok := align(x, y); ok {
		return z.small(a%b, exp, x, y)
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Rem(&d, x.wide(&wideX), y.wide(&wideY))
	return z.settle(&d, x.rounded || y.rounded, err)
}

func (z *number) round(x *number) failure { return z.roundTo(x, 0, apd.RoundHalfEven) }
func (z *number) floor(x *number) failure { return z.roundTo(x, 0, apd.RoundFloor) }
func (z *number) ceil(x *number) failure  { return z.roundTo(x, 0, apd.RoundCeiling) }

func (z *number) roundPlaces(x, places *number) failure {
	n, ok := places.integer()
	if !ok || n < -decimal.MaxExponent || n > -decimal.MinExponent {
		return errPlaces
	}
	return z.roundTo(x, n, apd.RoundHalfEven)
}

// roundTo rounds to a number of places after the point; negative ones are before it. The result is
// what was asked for, so it counts as exact.
func (z *number) roundTo(x *number, places int, how apd.Rounder) failure {
	var wide, d apd.Decimal
	w := x.wide(&wide)
	drop := -places - int(w.Exponent)
	switch {
	case drop <= 0:
		*z = number{coef: x.coef, exp: x.exp, large: x.large}
		return ""
	case x.large == nil && drop < len(powers) && -places >= minSmallExp && -places <= maxSmallExp:
		*z = number{coef: roundCoef(x.coef, powers[drop], how), exp: int16(-places)}
		return ""
	}
	unit := new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(drop)), nil)
	var rest apd.BigInt
	d.Coeff.QuoRem(&w.Coeff, unit, &rest)
	if rest.Sign() != 0 && how.ShouldAddOne(&d.Coeff, w.Negative, rest.Lsh(&rest, 1).Cmp(unit)) {
		d.Coeff.Add(&d.Coeff, apd.NewBigInt(1))
	}
	d.Negative, d.Exponent = w.Negative, int32(-places)
	return z.settle(&d, false, nil)
}

// roundCoef divides by a power of ten and rounds.
func roundCoef(coef, unit int64, how apd.Rounder) int64 {
	quotient, rest := coef/unit, coef%unit
	if rest == 0 {
		return quotient
	}
	half := cmp.Compare(2*magnitude(rest), uint64(unit))
	away := half > 0 || half == 0 && quotient%2 != 0
	switch how {
	case apd.RoundFloor:
		away = coef < 0
	case apd.RoundCeiling:
		away = coef > 0
	}
	switch {
	case away && coef < 0:
		return quotient - 1
	case away:
		return quotient + 1
	}
	return quotient
}

func (x *number) isZero() bool { return x.large == nil && x.coef == 0 }

// integer gives the value of a whole number of few digits.
func (x *number) integer() (int, bool) {
	if compare(x, maxInteger) > 0 || compare(x, minInteger) < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(string(x.append(nil)))
	return n, err == nil
}

var maxInteger, minInteger = &number{coef: 1e9}, &number{coef: -1e9}

// align gives the coefficients of both numbers for the same exponent, if they fit.
func align(x, y *number) (a, b int64, exp int16, ok bool) {
	switch {
	case x.large != nil || y.large != nil:
		return 0, 0, 0, false
	case x.exp > y.exp:
		a, ok = shift(x.coef, int(x.exp)-int(y.exp))
		return a, y.coef, y.exp, ok
	case x.exp < y.exp:
		b, ok = shift(y.coef, int(y.exp)-int(x.exp))
		return x.coef, b, x.exp, ok
	}
	return x.coef, y.coef, x.exp, true
}

// shift multiplies by a power of ten.
func shift(coef int64, places int) (int64, bool) {
	if places >= len(powers) {
		return 0, coef == 0
	}
	return times(coef, powers[places])
}

// times multiplies within ±(2^63-1).
func times(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return uint64(-a)
	}
	return uint64(a)
}

// exact has more digits than any operation on two numbers can make (their exponents are bounded), so it
// never rounds unless it is told to.
var exact = apd.Context{Precision: 1000, MaxExponent: apd.MaxExponent, MinExponent: apd.MinExponent, Traps: apd.DefaultTraps, Rounding: apd.RoundHalfEven}

// rounding is for quotients.
var rounding = *exact.WithPrecision(decimal.MaxDigits)

// wide gives the number as apd computes with it. It writes to d only if it has to.
func (x *number) wide(d *apd.Decimal) *apd.Decimal {
	if x.large != nil {
		return x.large
	}
	return d.SetFinite(x.coef, int32(x.exp))
}

// small takes a result that fits.
func (z *number) small(coef int64, exp int16, x, y *number) failure {
	*z = number{coef: coef, exp: exp, rounded: x.rounded || y.rounded}
	return ""
}

// settle judges the result of an operation of apd, and takes d over.
func (z *number) settle(d *apd.Decimal, rounded bool, err error) failure {
	if err != nil {
		return errRange // exponents are bounded, so that apd finds nothing else to complain of
	}
	d.Reduce(d)
	if d.NumDigits() > decimal.MaxDigits {
		if !rounded {
			return errPrecision
		}
		if _, err := rounding.Round(d, d); err != nil {
			return errRange
		}
		d.Reduce(d)
	}
	leading := int(d.Exponent) + int(d.NumDigits()) - 1
	if !d.IsZero() && (leading < decimal.MinExponent || leading > decimal.MaxExponent) {
		return errRange
	}
	*z = number{rounded: rounded}
	if !d.Coeff.IsInt64() || d.Exponent < minSmallExp || d.Exponent > maxSmallExp {
		z.large = d
		return ""
	}
	z.coef, z.exp = d.Coeff.Int64(), int16(d.Exponent)
	if d.Negative {
		z.coef = -z.coef
	}
	return ""
}
