package dataset

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"pintu/internal/decimal"
)

// newNumberCaster reads numbers and integers as the field says they are written.
func newNumberCaster(f *field) caster {
	read, kind := decimal.Append, "is not a number"
	if f.typ == "integer" {
		read, kind = decimal.AppendInteger, "is not an integer (digits only: no decimal point, no exponent)"
	}
	integer := f.typ == "integer"
	plain := f.groupChar == "" && f.bareNumber && (f.typ == "integer" || f.decimalChar == ".")
	decimalChar, groupChar := []byte(f.decimalChar), []byte(f.groupChar)
	return func(buf, cell []byte) ([]byte, []byte, string) {
		if !plain {
			var ok bool
			if !f.bareNumber {
				if buf, cell, ok = stripAffixes(buf, cell, decimalChar); !ok {
					return buf, nil, kind
				}
			}
			if buf, cell, ok = plainNumber(buf, cell, decimalChar, groupChar); !ok {
				return buf, nil, kind
			}
		}
		if digits, ok := canonicalPart(cell, integer); ok {
			return buf, digits, ""
		}
		start := len(buf)
		grown, err := read(buf, cell)
		switch err {
		case nil:
			return grown, grown[start:], ""
		case decimal.ErrSyntax:
			return buf, nil, kind
		default:
			return buf, nil, "cannot be stored: " + err.Error()
		}
	}
}

// canonicalPart finds the canonical text inside a short cell of digits, with or without minus and point,
// by leaving off zeros behind the point. Everything else is for package decimal to judge.
func canonicalPart(cell []byte, integer bool) ([]byte, bool) {
	digits := cell
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	point := -1
	for i, c := range digits {
		switch {
		case c == '.' && point < 0 && i > 0 && !integer:
			point = i
		case c < '0' || c > '9':
			return nil, false
		}
	}
	whole := len(digits)
	if point >= 0 {
		whole = point
	}
	if whole == 0 || len(digits) > decimal.MaxDigits || digits[0] == '0' { // 0.5 and 007 are rare
		return nil, false
	}
	if point >= 0 {
		for cell[len(cell)-1] == '0' {
			cell = cell[:len(cell)-1]
		}
		if cell[len(cell)-1] == '.' {
			cell = cell[:len(cell)-1]
		}
	}
	return cell, true
}

// stripAffixes takes the number out of a text such as "$95" or "EUR -95,00 net" (bareNumber false).
// A minus counts where it is next to the number or first in the cell. Whatever else could turn the
// sign round, parentheses or another dash, is refused rather than dropped.
func stripAffixes(buf, cell, decimalChar []byte) (grown, number []byte, ok bool) {
	first := bytes.IndexAny(cell, "0123456789")
	if first < 0 {
		return buf, nil, false
	}
	last := bytes.LastIndexAny(cell, "0123456789") + 1
	prefix, suffix := cell[:first], cell[last:]
	if len(decimalChar) > 0 && bytes.HasSuffix(prefix, decimalChar) { // .5
		prefix = prefix[:len(prefix)-len(decimalChar)]
	}
	number = cell[len(prefix):last]
	if len(decimalChar) > 0 {
		suffix = bytes.TrimPrefix(suffix, decimalChar)
	}
	signs := bytes.Count(prefix, []byte{'-'})
	if signs > 1 || ambiguousSign(suffix, "") || ambiguousSign(prefix, "-+") {
		return buf, nil, false
	}
	if signs == 0 {
		return buf, number, true
	}
	if prefix[0] != '-' && prefix[len(prefix)-1] != '-' {
		return buf, nil, false
	}
	start := len(buf)
	buf = append(buf, '-')
	buf = append(buf, number...)
	return buf, buf[start:], true
}

// ambiguousSign finds what people use to write a negative number, but for the allowed signs.
func ambiguousSign(text []byte, allowed string) bool {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if bytes.ContainsRune([]byte(allowed), r) {
			continue
		}
		if r == '(' || r == ')' || r == '\u2212' || unicode.Is(unicode.Pd, r) {
			return true
		}
	}
	return false
}

// plainNumber writes a number with a point and without group characters. Groups must look like
// groups, so that "1,5" never becomes 15: one to three digits first, then twos or threes, three last.
func plainNumber(buf, cell, decimalChar, groupChar []byte) (grown, number []byte, ok bool) {
	start := len(buf)
	groups, digits, whole := 0, 0, true
	for len(cell) > 0 {
		c := cell[0]
		switch {
		case len(groupChar) > 0 && bytes.HasPrefix(cell, groupChar):
			if !whole || digits == 0 || digits > 3 || groups > 0 && digits == 1 {
				return buf, nil, false
			}
			groups, digits = groups+1, 0
			cell = cell[len(groupChar):]
			continue
		case len(decimalChar) > 0 && bytes.HasPrefix(cell, decimalChar):
			if !whole || groups > 0 && digits != 3 {
				return buf, nil, false
			}
			whole = false
			buf = append(buf, '.')
			cell = cell[len(decimalChar):]
			continue
		case c == '.':
			return buf, nil, false
		case whole && (c == 'e' || c == 'E'):
			if groups > 0 && digits != 3 {
				return buf, nil, false
			}
			whole = false
		case c >= '0' && c <= '9':
			digits++
		}
		buf = append(buf, c)
		cell = cell[1:]
	}
	return buf, buf[start:], !whole || groups == 0 || digits == 3
}
