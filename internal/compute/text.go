package compute

import (
	"bytes"
	"errors"
	"regexp"
	"unicode/utf8"

	"pintu/internal/dataset"
	"pintu/internal/decimal"
)

// matcher is matches with its pattern.
func matcher(re *regexp.Regexp) func(out, a *value) failure {
	return func(out, a *value) failure {
		if len(a.text) > dataset.MaxPatternCell {
			return errPattern
		}
		out.truth = re.Match(a.text)
		return ""
	}
}

func concat(out, a, b *value) failure {
	if len(a.text)+len(b.text) > MaxText {
		return errTextSize
	}
	out.buf = append(append(out.buf[:0], a.text...), b.text...)
	out.text = out.buf
	return ""
}

func size(out, a *value) failure {
	out.number = number{coef: int64(utf8.RuneCount(a.text))}
	return ""
}

func startsWith(out, a, prefix *value) failure {
	out.truth = bytes.HasPrefix(a.text, prefix.text)
	return ""
}

func endsWith(out, a, suffix *value) failure {
	out.truth = bytes.HasSuffix(a.text, suffix.text)
	return ""
}

func contains(out, a, part *value) failure {
	out.truth = bytes.Contains(a.text, part.text)
	return ""
}

// lower and upper change the letters of ASCII alone: what others become depends on the language and on
// the version of Unicode.
func lower(out, a *value) failure { return out.replaceLetters(a.text, 'A', 'Z') }
func upper(out, a *value) failure { return out.replaceLetters(a.text, 'a', 'z') }

// replaceLetters changes the case of the letters from first to last.
func (v *value) replaceLetters(text []byte, first, last byte) failure {
	v.buf = append(v.buf[:0], text...)
	for i, c := range v.buf {
		if c >= first && c <= last {
			v.buf[i] = c ^ ('a' ^ 'A')
		}
	}
	v.text = v.buf
	return ""
}

func trim(out, a *value) failure {
	out.text = bytes.TrimSpace(a.text)
	return ""
}

// substring counts in characters, from 0; end is not part of it.
func substring(out, a, start, end *value) failure {
	to, ok := end.number.integer()
	if !ok {
		return errSubstring
	}
	if why := substringFrom(out, a, start); why != "" {
		return why
	}
	from, _ := start.number.integer()
	rest, ok := skip(out.text, to-from)
	if !ok {
		return errSubstring
	}
	out.text = out.text[:len(out.text)-len(rest)]
	return ""
}

func substringFrom(out, a, start *value) failure {
	from, ok := start.number.integer()
	if !ok {
		return errSubstring
	}
	if out.text, ok = skip(a.text, from); !ok {
		return errSubstring
	}
	return ""
}

// skip cuts off the first characters of a text that has that many.
func skip(text []byte, characters int) ([]byte, bool) {
	if characters < 0 || characters > len(text) {
		return nil, false
	}
	for ; characters > 0; characters-- {
		if len(text) == 0 {
			return nil, false
		}
		_, n := utf8.DecodeRune(text)
		text = text[n:]
	}
	return text, true
}

// toText writes plain digits, as a record shows them.
func toText(out, a *value) failure {
	out.buf = a.number.append(out.buf[:0])
	out.text = out.buf
	return ""
}

// toNumber reads what a field of type number takes by default.
func toNumber(out, a *value) failure {
	var err error
	out.buf, err = decimal.Append(out.buf[:0], a.text)
	switch {
	case errors.Is(err, decimal.ErrPrecision):
		return errPrecision
	case errors.Is(err, decimal.ErrRange):
		return errRange
	case err != nil:
		return errNumber
	}
	return out.number.parse(out.buf)
}
