package compute

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/cockroachdb/apd/v3"

	"pintu/internal/dataset"
	"pintu/internal/decimal"
)

// pattern is the second argument of matches, compiled with the expression.
type pattern struct {
	types.Null // as in number
	re         *regexp.Regexp
}

// Type names the pattern's type, which no value of a row has.
func (p *pattern) Type() ref.Type { return patternType }

func matches(text types.String, p *pattern) (types.Bool, error) {
	if len(text) > dataset.MaxPatternCell {
		return false, errPattern
	}
	return types.Bool(p.re.MatchString(string(text))), nil
}

func concat(a, b types.String) (types.String, error) {
	if len(a)+len(b) > MaxText {
		return "", errTextSize
	}
	return a + b, nil
}

func size(text types.String) (*number, error) {
	return &number{coef: int64(utf8.RuneCountInString(string(text)))}, nil
}

func startsWith(text, prefix types.String) (types.Bool, error) {
	return types.Bool(strings.HasPrefix(string(text), string(prefix))), nil
}

func endsWith(text, suffix types.String) (types.Bool, error) {
	return types.Bool(strings.HasSuffix(string(text), string(suffix))), nil
}

func contains(text, part types.String) (types.Bool, error) {
	return types.Bool(strings.Contains(string(text), string(part))), nil
}

// lower and upper change the letters of ASCII alone: what others become depends on the language and on
// the version of Unicode.
func lower(text types.String) (types.String, error) { return replaceLetters(text, 'A', 'Z'), nil }
func upper(text types.String) (types.String, error) { return replaceLetters(text, 'a', 'z'), nil }

// replaceLetters changes the case of the letters from first to last.
func replaceLetters(text types.String, first, last byte) types.String {
	changed := []byte(text)
	for i, c := range changed {
		if c >= first && c <= last {
			changed[i] = c ^ ('a' ^ 'A')
		}
	}
	return types.String(changed)
}

func trim(text types.String) (types.String, error) {
	return types.String(strings.TrimSpace(string(text))), nil
}

// substring counts in characters, from 0; end is not part of it.
func substring(text types.String, start, end *number) (types.String, error) {
	from, ok := start.integer()
	to, okTo := end.integer()
	if !ok || !okTo || from < 0 || to < from {
		return "", errSubstring
	}
	rest, ok := skip(string(text), from)
	if !ok {
		return "", errSubstring
	}
	tail, ok := skip(rest, to-from)
	if !ok {
		return "", errSubstring
	}
	return types.String(rest[:len(rest)-len(tail)]), nil
}

// skip cuts off the first characters of a text that has that many.
func skip(text string, characters int) (string, bool) {
	if characters > len(text) {
		return "", false
	}
	for ; characters > 0; characters-- {
		if text == "" {
			return "", false
		}
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	return text, true
}

// toText writes plain digits, as a record shows them.
func toText(x *number) (types.String, error) {
	var buf [64]byte
	text, err := x.append(buf[:0])
	return types.String(text), err
}

// toNumber reads what a field of type number takes by default.
func toNumber(text types.String) (*number, error) {
	canonical, err := decimal.Append(nil, []byte(text))
	switch {
	case errors.Is(err, decimal.ErrPrecision):
		return nil, errPrecision
	case errors.Is(err, decimal.ErrRange):
		return nil, errRange
	case err != nil:
		return nil, errNumber
	}
	x := new(number)
	return x, x.parse(canonical)
}

func round(x *number) (*number, error) { return roundTo(x, 0, apd.RoundHalfEven) }
func floor(x *number) (*number, error) { return roundTo(x, 0, apd.RoundFloor) }
func ceil(x *number) (*number, error)  { return roundTo(x, 0, apd.RoundCeiling) }

func roundPlaces(x, places *number) (*number, error) {
	n, ok := places.integer()
	if !ok || n < -decimal.MaxExponent || n > -decimal.MinExponent {
		return nil, errPlaces
	}
	return roundTo(x, n, apd.RoundHalfEven)
}
