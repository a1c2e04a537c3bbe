package ddb

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// MarshalJSON writes the wire form, names sorted, so that equal items have equal text.
func (it item) MarshalJSON() ([]byte, error) { return appendObject(nil, it), nil }

func appendObject(b []byte, it item) []byte {
	b = append(b, '{')
	var buf [24]string
	names := slices.AppendSeq(buf[:0], maps.Keys(it))
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, name)
		b = append(b, ':')
		b = appendValue(b, it[name])
	}
	return append(b, '}')
}

func appendValue(b []byte, v value) []byte {
	b = append(b, `{"`...)
	b = append(b, v.kind()...)
	b = append(b, `":`...)
	switch v := v.(type) {
	case boolean:
		if v {
			b = append(b, "true"...)
		} else {
			b = append(b, "false"...)
		}
	case null:
		b = append(b, "true"...)
	case list:
		b = appendList(b, v, appendValue)
	case set:
		b = appendList(b, v.members, appendScalar)
	case item:
		b = appendObject(b, v)
	default:
		b = appendScalar(b, v)
	}
	return append(b, '}')
}

func appendList(b []byte, l []value, each func([]byte, value) []byte) []byte {
	b = append(b, '[')
	for i, v := range l {
		if i > 0 {
			b = append(b, ',')
		}
		b = each(b, v)
	}
	return append(b, ']')
}

// appendScalar writes S, N or B without its type.
func appendScalar(b []byte, v value) []byte {
	switch v := v.(type) {
	case text:
		return appendString(b, string(v))
	case number:
		b = append(b, '"')
		b = append(b, v...)
		return append(b, '"')
	case binaryValue:
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, []byte(v))
		return append(b, '"')
	}
	panic("ddb: " + string(v.kind()) + " is not a scalar")
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string; bytes that are not UTF-8 become U+FFFD as encoding/json does.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		if c < ' ' {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		} else {
			b = append(b, '\\', c)
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// describe shows a value as DynamoDB's messages do: {S:text}.
func describe(v value) string {
	switch v := v.(type) {
	case text:
		return "{S:" + string(v) + "}"
	case number:
		return "{N:" + string(v) + "}"
	}
	return "{" + string(v.kind()) + ":" + strings.TrimSpace(string(appendValue(nil, v))) + "}"
}

// describeMembers shows the members of a set as DynamoDB's messages do: [a, b].
func describeMembers(members []value) string {
	shown := make([]string, len(members))
	for i, v := range members {
		switch v := v.(type) {
		case text:
			shown[i] = string(v)
		case number:
			shown[i] = string(v)
		default:
			shown[i] = string(appendScalar(nil, v))
		}
	}
	return "[" + strings.Join(shown, ", ") + "]"
}
