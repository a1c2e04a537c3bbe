package compute

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"

	"pintu/internal/decimal"
)

// anyNumber draws a number that a field can hold, most of them like those of real files.
func anyNumber() *rapid.Generator[*number] {
	return rapid.Custom(func(t *rapid.T) *number {
		digits := rapid.StringMatching(`-?[1-9][0-9]{0,5}|-?[1-9][0-9]{16,18}|-?[1-9][0-9]{0,37}|-?9{18,38}|-?10{0,37}|0`).Draw(t, "digits")
		room := len(strings.TrimPrefix(digits, "-")) - 1 // so many digits stand behind the first one
		exponent := rapid.OneOf(rapid.IntRange(-4, 4), rapid.IntRange(-40, 20), rapid.IntRange(decimal.MinExponent, decimal.MaxExponent)).Draw(t, "exponent")
		exponent = min(max(exponent, decimal.MinExponent-room), decimal.MaxExponent-room)
		return numberOf(t, fmt.Sprintf("%sE%d", digits, exponent))
	})
}

func numberOf(t interface{ Fatalf(string, ...any) }, text string) *number {
	canonical, err := decimal.Append(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	x := new(number)
	if why := x.parse(canonical); why != "" {
		t.Fatalf("parse %s: %s", canonical, why)
	}
	return x
}

func (x *number) String() string { return string(x.append(nil)) }

func (x *number) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(x.String())
	if !ok {
		panic("no number: " + x.String())
	}
	return r
}

// reference is what the result of an operation is by definition: exact, or rounded to 38 digits, half
// to even, when it may be; else an error.
func reference(exact *big.Rat, mayRound bool) (*big.Rat, failure) {
	if exact.Sign() == 0 {
		return exact, ""
	}
	ten := big.NewRat(10, 1)
	scaled, exponent := new(big.Rat).Abs(exact), 0 // scaled × 10^exponent, with 38 digits before the point
	low, high := new(big.Rat).SetInt(power(decimal.MaxDigits-1)), new(big.Rat).SetInt(power(decimal.MaxDigits))
	for scaled.Cmp(low) < 0 {
		scaled.Mul(scaled, ten)
		exponent--
	}
	for scaled.Cmp(high) >= 0 {
		scaled.Quo(scaled, ten)
		exponent++
	}
	whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		if !mayRound {
			return nil, errPrecision
		}
		half := new(big.Int).Lsh(rest, 1).Cmp(scaled.Denom())
		if half > 0 || half == 0 && whole.Bit(0) == 1 {
			whole.Add(whole, big.NewInt(1))
		}
	}
	leading := exponent + len(whole.String()) - 1
	if leading < decimal.MinExponent || leading > decimal.MaxExponent {
		return nil, errRange
	}
	result := new(big.Rat).SetInt(whole)
	if exponent < 0 {
		result.Quo(result, new(big.Rat).SetInt(power(-exponent)))
	} else {
		result.Mul(result, new(big.Rat).SetInt(power(exponent)))
	}
	if exact.Sign() < 0 {
		result.Neg(result)
	}
	return result, ""
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

var operations = map[string]struct {
	ours  func(z, x, y *number) failure
	exact func(x, y *big.Rat) *big.Rat
	apd   func(d, x, y *apd.Decimal) (apd.Condition, error)
}{
	"+": {(*number).add, func(x, y *big.Rat) *big.Rat { return new(big.Rat).Add(x, y) }, rounding.Add},
	"-": {(*number).subtract, func(x, y *big.Rat) *big.Rat { return new(big.Rat).Sub(x, y) }, rounding.Sub},
	"*": {(*number).multiply, func(x, y *big.Rat) *big.Rat { return new(big.Rat).Mul(x, y) }, rounding.Mul},
	"/": {(*number).divide, func(x, y *big.Rat) *big.Rat { return new(big.Rat).Quo(x, y) }, rounding.Quo},
	"%": {(*number).remainder, func(x, y *big.Rat) *big.Rat {
		quotient := new(big.Rat).Quo(x, y)
		whole := new(big.Rat).SetInt(new(big.Int).Quo(quotient.Num(), quotient.Denom())) // towards zero
		return new(big.Rat).Sub(x, whole.Mul(whole, y))
	}, exact.Rem},
}

func TestArithmetic(t *testing.T) {
	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x, y := anyNumber().Draw(t, "x"), anyNumber().Draw(t, "y")
				x.rounded = rapid.Bool().Draw(t, "rounded")
				before := x.String() + " " + y.String()
				got := new(number)
				why := op.ours(got, x, y)
				if after := x.String() + " " + y.String(); after != before {
					t.Fatalf("the operands %s became %s", before, after)
				}
				if y.isZero() && (name == "/" || name == "%") {
					if why != errDivision {
						t.Fatalf("%s: %v, %s", before, got, why)
					}
					return
				}
				exact := op.exact(x.rat(), y.rat())
				want, wantWhy := reference(exact, x.rounded || name == "/")
				if why != wantWhy {
					t.Fatalf("%s: %q, want %q", before, why, wantWhy)
				}
				if why != "" {
					return
				}
				if got.rat().Cmp(want) != 0 {
					t.Fatalf("%s: %s, want %s", before, got.String(), want.FloatString(140))
				}
				if rounded := x.rounded || want.Cmp(exact) != 0; got.rounded != rounded {
					t.Fatalf("%s: %s is rounded: %v", before, got.String(), got.rounded)
				}
				checkForm(t, got)
			})
		})
	}
}

// checkForm holds a number to what the others rely on.
func checkForm(t *rapid.T, x *number) {
	if x.large == nil && (x.exp < minSmallExp || x.exp > maxSmallExp || x.coef == -1<<63) || x.large != nil && (x.coef != 0 || x.exp != 0) {
		t.Fatalf("%+v", x)
	}
	text := x.String()
	canonical, err := decimal.Append(nil, []byte(text))
	if err != nil || string(canonical) != text {
		t.Fatalf("%s is not canonical: %s, %v", text, canonical, err)
	}
	if again := numberOf(t, text); compare(again, x) != 0 || compare(x, again) != 0 {
		t.Fatalf("%s differs from itself", text)
	}
}

// A second opinion, which knows signs, exponents and halves from elsewhere.
func TestArithmeticAgreesWithAPD(t *testing.T) {
	for name, op := range operations {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x, y := anyNumber().Draw(t, "x"), anyNumber().Draw(t, "y")
				got := new(number)
				if op.ours(got, x, y) != "" {
					return
				}
				a, _, errA := apd.NewFromString(x.String())
				b, _, errB := apd.NewFromString(y.String())
				var want apd.Decimal
				if _, err := op.apd(&want, a, b); err != nil || errA != nil || errB != nil {
					t.Fatalf("apd: %v %v %v", err, errA, errB)
				}
				if d, _, err := apd.NewFromString(got.String()); err != nil || d.Cmp(&want) != 0 {
					t.Fatalf("%s %s %s = %s, want %s (%v)", x.String(), name, y.String(), got.String(), want.String(), err)
				}
			})
		})
	}
}

func TestCompareAndNegate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := anyNumber().Draw(t, "x"), anyNumber().Draw(t, "y")
		if coef, ok := times(x.coef, 10); ok && x.large == nil && x.exp > minSmallExp && rapid.Bool().Draw(t, "same") {
			y = &number{coef: coef, exp: x.exp - 1}
		}
		if got, want := compare(x, y), x.rat().Cmp(y.rat()); got != want {
			t.Fatalf("compare %s with %s: %d, want %d", x.String(), y.String(), got, want)
		}
		var minus number
		if why := minus.negate(x); why != "" || minus.rat().Cmp(new(big.Rat).Neg(x.rat())) != 0 {
			t.Fatalf("-%s = %s, %s", x, &minus, why)
		}
	})
}

func TestRoundTo(t *testing.T) {
	ways := map[apd.Rounder]func(whole *big.Int, half int, negative bool) bool{ // whether to go away from zero
		apd.RoundHalfEven: func(whole *big.Int, half int, _ bool) bool { return half > 0 || half == 0 && whole.Bit(0) == 1 },
		apd.RoundFloor:    func(_ *big.Int, _ int, negative bool) bool { return negative },
		apd.RoundCeiling:  func(_ *big.Int, _ int, negative bool) bool { return !negative },
	}
	for how, away := range ways {
		t.Run(string(how), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				x := anyNumber().Draw(t, "x")
				x.rounded = rapid.Bool().Draw(t, "rounded")
				places := rapid.OneOf(rapid.IntRange(-3, 3), rapid.IntRange(-decimal.MaxExponent, -decimal.MinExponent)).Draw(t, "places")
				got := new(number)
				why := got.roundTo(x, places, how)
				unit := new(big.Rat).SetFrac(big.NewInt(1), power(max(places, 0)))
				unit.Mul(unit, new(big.Rat).SetInt(power(max(-places, 0))))
				scaled := new(big.Rat).Quo(new(big.Rat).Abs(x.rat()), unit)
				whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
				if rest.Sign() != 0 && away(whole, new(big.Int).Lsh(rest, 1).Cmp(scaled.Denom()), x.rat().Sign() < 0) {
					whole.Add(whole, big.NewInt(1))
				}
				want := new(big.Rat).Mul(new(big.Rat).SetInt(whole), unit)
				if x.rat().Sign() < 0 {
					want.Neg(want)
				}
				want, wantWhy := reference(want, false)
				if why != wantWhy {
					t.Fatalf("%s to %d places: %q, want %q", x, places, why, wantWhy)
				}
				if why == "" && (got.rat().Cmp(want) != 0 || got.rounded) {
					t.Fatalf("%s to %d places: %s, want %s", x.String(), places, got.String(), want.FloatString(140))
				}
				if why == "" {
					checkForm(t, got)
				}
			})
		})
	}
}

// The places where coefficients stop fitting.
func TestEdgesOfInt64(t *testing.T) {
	cases := []struct{ x, op, y, want string }{
		{"9223372036854775807", "+", "1", "9223372036854775808"},
		{"-9223372036854775807", "-", "1", "-9223372036854775808"},
		{"-9223372036854775808", "-", "1", "-9223372036854775809"},
		{"9223372036854775807", "-", "-9223372036854775807", "18446744073709551614"},
		{"-4611686018427387904", "+", "-4611686018427387904", "-9223372036854775808"},
		{"-4611686018427387904", "*", "2", "-9223372036854775808"},
		{"-9223372036854775808", "/", "-1", "9223372036854775808"},
		{"-9223372036854775808", "%", "-1", "0"},
		{"-9223372036854775808", "*", "-1", "9223372036854775808"},
		{"999999999999999999", "+", "0.000000000000000001", "999999999999999999.000000000000000001"},
		{"0.000000000000000001", "*", "0.000000000000000001", "0.000000000000000000000000000000000001"},
		{"1E-65", "*", "1E-65", "0." + strings.Repeat("0", 129) + "1"},
		{"1E60", "*", "1E65", "1" + strings.Repeat("0", 125)},
		{"0", "*", "1E-130", "0"},
		{"0", "+", "1E-130", "0." + strings.Repeat("0", 129) + "1"},
		{"1E125", "-", "1E125", "0"},
	}
	for _, c := range cases {
		var got number
		if why := operations[c.op].ours(&got, numberOf(t, c.x), numberOf(t, c.y)); why != "" || got.String() != c.want {
			t.Errorf("%s %s %s = %s, %s, want %s", c.x, c.op, c.y, &got, why, c.want)
		}
	}
}

func TestInteger(t *testing.T) {
	cases := []struct {
		text string
		want int
		ok   bool
	}{
		{"0", 0, true}, {"-12", -12, true}, {"1000000000", 1e9, true}, {"-1000000000", -1e9, true}, {"12E2", 1200, true},
		{"1000000001", 0, false}, {"-1000000001", 0, false}, {"0.5", 0, false}, {"1E50", 0, false}, {"1E125", 0, false},
	}
	for _, c := range cases {
		if got, ok := numberOf(t, c.text).integer(); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %v", c.text, got, ok)
		}
	}
	if got, ok := (&number{coef: 100, exp: -1}).integer(); got != 10 || !ok {
		t.Errorf("10.0: %d, %v", got, ok)
	}
}
