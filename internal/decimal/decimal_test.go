package decimal

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"
)

func TestAppend(t *testing.T) {
	nines := strings.Repeat("9", 38)
	cases := []struct {
		text, want string
		err        error
	}{
		{"0", "0", nil}, {"-0", "0", nil}, {"+0.000", "0", nil}, {"0E999999999999999999999", "0", nil}, {"-.0", "0", nil},
		{"1", "1", nil}, {"+1", "1", nil}, {"007", "7", nil}, {"-0012.3400", "-12.34", nil}, {"5.", "5", nil}, {".5", "0.5", nil},
		{"1.5E3", "1500", nil}, {"1.5e-3", "0.0015", nil}, {"100E-2", "1", nil}, {"1E+2", "100", nil}, {"12E0", "12", nil},
		{"26.34", "26.34", nil}, {"33.10318374633789", "33.10318374633789", nil}, {"1234567890.123456789", "1234567890.123456789", nil},
		{"9223372036854775808", "9223372036854775808", nil}, {nines, nines, nil}, {"-" + nines, "-" + nines, nil},
		{nines + "000.000", nines + "000", nil}, {"0.000" + nines, "0.000" + nines, nil}, {nines + "9", "", ErrPrecision},
		{"1" + strings.Repeat("0", 125), "1" + strings.Repeat("0", 125), nil}, {"1E125", "1" + strings.Repeat("0", 125), nil},
		{"1" + strings.Repeat("0", 126), "", ErrRange}, {"1E126", "", ErrRange}, {"0.1E127", "", ErrRange}, {"0.1E126", "1" + strings.Repeat("0", 125), nil},
		{"1E-130", "0." + strings.Repeat("0", 129) + "1", nil}, {"1E-131", "", ErrRange}, {"10E-131", "0." + strings.Repeat("0", 129) + "1", nil},
		{"1E999999999", "", ErrRange}, {"1E-999999999", "", ErrRange}, {"1E99999999999999999999999999", "", ErrRange},
		{"", "", ErrSyntax}, {"-", "", ErrSyntax}, {".", "", ErrSyntax}, {"+.", "", ErrSyntax}, {"1E", "", ErrSyntax}, {"1E+", "", ErrSyntax}, {"E1", "", ErrSyntax},
		{"1.2.3", "", ErrSyntax}, {"--1", "", ErrSyntax}, {"1,5", "", ErrSyntax}, {" 1", "", ErrSyntax}, {"1 ", "", ErrSyntax}, {"NaN", "", ErrSyntax},
		{"INF", "", ErrSyntax}, {"-INF", "", ErrSyntax}, {"Infinity", "", ErrSyntax}, {"0x10", "", ErrSyntax}, {"1_000", "", ErrSyntax}, {"1E5.0", "", ErrSyntax}, {"١", "", ErrSyntax},
	}
	for _, c := range cases {
		got, err := Append([]byte("x"), []byte(c.text))
		if string(got) != "x"+c.want || !errors.Is(err, c.err) {
			t.Errorf("Append(%q) = %q, %v; want %q, %v", c.text, got, err, "x"+c.want, c.err)
		}
	}
}

func TestAppendInteger(t *testing.T) {
	cases := []struct {
		text, want string
		err        error
	}{
		{"0", "0", nil}, {"-0", "0", nil}, {"+12", "12", nil}, {"0042", "42", nil}, {strings.Repeat("9", 38), strings.Repeat("9", 38), nil},
		{strings.Repeat("9", 39), "", ErrPrecision}, {"1" + strings.Repeat("0", 126), "", ErrRange},
		{"1E3", "", ErrSyntax}, {"3.0", "", ErrSyntax}, {"", "", ErrSyntax}, {"+", "", ErrSyntax}, {"1 000", "", ErrSyntax},
	}
	for _, c := range cases {
		got, err := AppendInteger(nil, []byte(c.text))
		if string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("AppendInteger(%q) = %q, %v; want %q, %v", c.text, got, err, c.want, c.err)
		}
	}
}

func TestHugeExponentIsCheap(t *testing.T) {
	text := []byte("1E999999999")
	buf := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { _, _ = Append(buf, text) }); n != 0 {
		t.Errorf("allocations = %v, want 0", n)
	}
}

// drawText makes number texts, most of them legal, with runs of zeros and odd exponents.
func drawText(t *rapid.T) string {
	digits := rapid.OneOf(rapid.StringMatching(`[0-9]{0,6}`), rapid.StringMatching(`0{0,140}[0-9]{0,40}0{0,140}`))
	exponent := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[eE][+-]?[0-9]{1,3}`))
	return rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign") + digits.Draw(t, "whole") +
		rapid.SampledFrom([]string{"", "."}).Draw(t, "point") + digits.Draw(t, "fraction") + exponent.Draw(t, "exponent")
}

// The independent judge is apd: it reads the text, and its own digit count and exponent say whether
// DynamoDB could hold it; the canonical text must name the same number.
func TestAppendAgreesWithAPD(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		got, err := Append(nil, []byte(text))
		oracle, _, oracleErr := apd.NewFromString(text)
		if oracleErr != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("Append(%q) = %q, %v; apd refuses it", text, got, err)
			}
			return
		}
		reduced, _ := new(apd.Decimal).Reduce(oracle)
		storable := reduced.IsZero() || reduced.NumDigits() <= MaxDigits && adjusted(reduced) >= MinExponent && adjusted(reduced) <= MaxExponent
		if storable != (err == nil) {
			t.Fatalf("Append(%q) = %q, %v; storable by apd: %v", text, got, err, storable)
		}
		if err != nil {
			return
		}
		want := reduced.Text('f')
		if reduced.IsZero() {
			want = "0"
		}
		if string(got) != want {
			t.Fatalf("Append(%q) = %q, want %q", text, got, want)
		}
	})
}

func adjusted(d *apd.Decimal) int64 { return int64(d.Exponent) + d.NumDigits() - 1 }

func TestCompareAgreesWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, errA := Append(nil, []byte(drawText(t)))
		b, errB := Append(nil, []byte(drawText(t)))
		if errA != nil || errB != nil {
			t.Skip("not numbers")
		}
		if got, want := Compare(a, b), rational(t, a).Cmp(rational(t, b)); got != want {
			t.Fatalf("Compare(%q, %q) = %d, want %d", a, b, got, want)
		}
		if again, err := Append(nil, a); err != nil || string(again) != string(a) {
			t.Fatalf("Append(%q) = %q, %v; a canonical text must stay as it is", a, again, err)
		}
	})
}

func rational(t *rapid.T, text []byte) *big.Rat {
	r, ok := new(big.Rat).SetString(string(text))
	if !ok {
		t.Fatalf("canonical %q is not a number", text)
	}
	return r
}

func TestCompare(t *testing.T) {
	ordered := []string{"-100", "-12.5", "-12.34", "-1", "-0.5", "-0.05", "0", "0.05", "0.5", "0.55", "1", "9", "10", "10.01", "99", "100"}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := Compare([]byte(a), []byte(b)); got != want {
				t.Errorf("Compare(%s, %s) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, text := range []string{"12500", "1234567890.123456789", "1.5E3", "1E999999999"} {
		b.Run(fmt.Sprint(text), func(b *testing.B) {
			in, buf := []byte(text), make([]byte, 0, 200)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Append(buf, in)
			}
		})
	}
}
