package compute

import (
	"math"
	"math/bits"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/cockroachdb/apd/v3"

	"pintu/internal/decimal"
)

// number is an exact decimal: coef × 10^exp while that fits, which it nearly always does, else large.
// It does not change once made. Every number of an expression, intermediate ones too, is one that
// DynamoDB stores: at most 38 significant digits, magnitude 1E-130 to 9.99E+125.
type number struct {
	types.Null // the conversions that a value of CEL must have and nothing here asks for
	exp        int16
	// rounded tells that this came from a quotient without end. What is computed from it is rounded to
	// 38 digits again; of exact numbers, a result with more digits is an error.
	rounded bool
	coef    int64        // not the least int64, so that it can be negated
	large   *apd.Decimal // reduced; nil: coef and exp hold the value
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
func (x *number) parse(text []byte) error {
	*x = number{}
	if x.parseSmall(text) {
		return nil
	}
	var d apd.Decimal
	if _, _, err := d.SetString(string(text)); err != nil {
		return err
	}
	parsed, err := settle(&d, false)
	if err == nil {
		*x = *parsed
	}
	return err
}

// parseSmall reads up to 18 digits.
func (x *number) parseSmall(text []byte) bool {
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
	x.coef, x.exp = coef, int16(-places)
	return true
}

// append writes the canonical text.
func (x *number) append(dst []byte) ([]byte, error) {
	if x.large == nil && x.exp == 0 {
		return strconv.AppendInt(dst, x.coef, 10), nil
	}
	var buf [64]byte
	text := buf[:0]
	if x.large != nil {
		text = x.large.Append(text, 'E')
	} else {
		text = append(strconv.AppendInt(text, x.coef, 10), 'E')
		text = strconv.AppendInt(text, int64(x.exp), 10)
	}
	return decimal.Append(dst, text)
}

// Type, Value and Equal are what the evaluation of an expression uses of ref.Val.
func (x *number) Type() ref.Type { return numberType }

// Value returns the number itself: there is no Go type that could hold every one.
func (x *number) Value() any { return x }

// Equal compares by value: 1.0 equals 1.
func (x *number) Equal(other ref.Val) ref.Val {
	y, ok := other.(*number)
	return types.Bool(ok && compare(x, y) == 0)
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

func add(x, y *number) (*number, error) {
	if a, b, exp, ok := align(x, y); ok {
		if sum := a + b; (sum > a) == (b > 0) && sum != math.MinInt64 {
			return &number{coef: sum, exp: exp, rounded: x.rounded || y.rounded}, nil
		}
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Add(&d, x.wide(&wideX), y.wide(&wideY))
	return settled(&d, x.rounded || y.rounded, err)
}

func subtract(x, y *number) (*number, error) {
	if a, b, exp, ok := align(x, y); ok {
		if difference := a - b; (difference < a) == (b > 0) && difference != math.MinInt64 {
			return &number{coef: difference, exp: exp, rounded: x.rounded || y.rounded}, nil
		}
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Sub(&d, x.wide(&wideX), y.wide(&wideY))
	return settled(&d, x.rounded || y.rounded, err)
}

func negate(x *number) (*number, error) {
	z := *x
	z.coef = -x.coef
	if x.large != nil {
		z.large = new(apd.Decimal).Neg(x.large)
	}
	return &z, nil
}

func multiply(x, y *number) (*number, error) {
	if x.large == nil && y.large == nil {
		exp := int(x.exp) + int(y.exp)
		if coef, ok := times(x.coef, y.coef); ok && exp >= minSmallExp && exp <= maxSmallExp {
			return &number{coef: coef, exp: int16(exp), rounded: x.rounded || y.rounded}, nil
		}
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Mul(&d, x.wide(&wideX), y.wide(&wideY))
	return settled(&d, x.rounded || y.rounded, err)
}

// divide is exact where the quotient has at most 38 digits, else rounded to 38, half to even.
func divide(x, y *number) (*number, error) {
	if y.isZero() {
		return nil, errDivision
	}
	if z, ok := divideSmall(x, y); ok {
		return z, nil
	}
	var d, wideX, wideY apd.Decimal
	inexact, err := rounding.Quo(&d, x.wide(&wideX), y.wide(&wideY))
	return settled(&d, x.rounded || y.rounded || inexact.Inexact(), err)
}

// divideSmall finds the quotients that end within what an int64 holds.
func divideSmall(x, y *number) (*number, bool) {
	if x.large != nil || y.large != nil {
		return nil, false
	}
	coef, exp := x.coef, int(x.exp)-int(y.exp)
	for coef%y.coef != 0 {
		var ok bool
		if coef, ok = times(coef, 10); !ok {
			return nil, false
		}
		exp--
	}
	if exp < minSmallExp || exp > maxSmallExp {
		return nil, false
	}
	return &number{coef: coef / y.coef, exp: int16(exp), rounded: x.rounded || y.rounded}, true
}

// remainder has the sign of x; the quotient that it belongs to is cut off at the point.
func remainder(x, y *number) (*number, error) {
	if y.isZero() {
		return nil, errDivision
	}
	if a, b, exp, ok := align(x, y); ok {
		return &number{coef: a % b, exp: exp, rounded: x.rounded || y.rounded}, nil
	}
	var d, wideX, wideY apd.Decimal
	_, err := exact.Rem(&d, x.wide(&wideX), y.wide(&wideY))
	return settled(&d, x.rounded || y.rounded, err)
}

// roundTo rounds to a number of places after the point; negative ones are before it. The result is
// what was asked for, so it counts as exact.
func roundTo(x *number, places int, how apd.Rounder) (*number, error) {
	var wide, d apd.Decimal
	w := x.wide(&wide)
	drop := -places - int(w.Exponent)
	if drop <= 0 {
		return &number{coef: x.coef, exp: x.exp, large: x.large}, nil
	}
	unit := new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(drop)), nil)
	var rest apd.BigInt
	d.Coeff.QuoRem(&w.Coeff, unit, &rest)
	if rest.Sign() != 0 && how.ShouldAddOne(&d.Coeff, w.Negative, rest.Lsh(&rest, 1).Cmp(unit)) {
		d.Coeff.Add(&d.Coeff, apd.NewBigInt(1))
	}
	d.Negative, d.Exponent = w.Negative, int32(-places)
	return settle(&d, false)
}

func (x *number) isZero() bool { return x.large == nil && x.coef == 0 }

// integer gives the value of a whole number of few digits.
func (x *number) integer() (int, bool) {
	var buf [decimal.MaxDigits]byte
	if x.large != nil || x.exp > 9 || compare(x, maxInteger) > 0 || compare(x, minInteger) < 0 {
		return 0, false
	}
	text, err := x.append(buf[:0])
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(text))
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

func settled(d *apd.Decimal, rounded bool, err error) (*number, error) {
	if err != nil {
		return nil, err
	}
	return settle(d, rounded)
}

// settle judges the result of an operation. It takes d over.
func settle(d *apd.Decimal, rounded bool) (*number, error) {
	d.Reduce(d)
	if d.NumDigits() > decimal.MaxDigits {
		if !rounded {
			return nil, errPrecision
		}
		if _, err := rounding.Round(d, d); err != nil {
			return nil, err
		}
		d.Reduce(d)
	}
	leading := int(d.Exponent) + int(d.NumDigits()) - 1
	if !d.IsZero() && (leading < decimal.MinExponent || leading > decimal.MaxExponent) {
		return nil, errRange
	}
	if coef := d.Coeff.Int64(); d.Coeff.IsInt64() && d.Exponent >= minSmallExp && d.Exponent <= maxSmallExp {
		if d.Negative {
			coef = -coef
		}
		return &number{coef: coef, exp: int16(d.Exponent), rounded: rounded}, nil
	}
	return &number{large: d, rounded: rounded}, nil
}
