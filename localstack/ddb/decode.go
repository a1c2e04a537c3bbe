package ddb

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNesting is how deep documents may go: 32 levels of list or map.
const maxNesting = 32

// UnmarshalJSON reads {"name": {"S": "..."}, ...} in one pass.
func (it *item) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	r := reader{b: b}
	got, err := r.attributes(0)
	if err != nil {
		return err
	}
	*it = got
	return nil
}

// reader walks JSON that encoding/json has already found well formed.
type reader struct {
	b []byte
	i int
}

func (r *reader) peek() byte {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\r', '\n':
			r.i++
		default:
			return r.b[r.i]
		}
	}
	return 0
}

func (r *reader) expect(c byte) error {
	if r.peek() != c {
		return serializationError(fmt.Sprintf("Start of structure or map found where not expected: want %q", c))
	}
	r.i++
	return nil
}

// more steps over the comma before the next element; it is false at the closing character, which it takes.
func (r *reader) more(closing byte, first bool) (bool, error) {
	if r.peek() == closing {
		r.i++
		return false, nil
	}
	if first {
		return true, nil
	}
	return true, r.expect(',')
}

func (r *reader) attributes(level int) (item, error) {
	if err := r.expect('{'); err != nil {
		return nil, err
	}
	it := item{}
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if err != nil || !more {
			return it, err
		}
		name, err := r.text()
		if err == nil {
			err = r.expect(':')
		}
		if err == nil {
			it[name], err = r.value(level)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *reader) value(level int) (value, error) {
	if level > maxNesting {
		return nil, invalid("Nesting Levels have exceeded supported limits")
	}
	if err := r.expect('{'); err != nil {
		return nil, err
	}
	if r.peek() == '}' {
		return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	}
	name, err := r.text()
	if err == nil {
		err = r.expect(':')
	}
	if err != nil {
		return nil, err
	}
	v, err := r.typed(kind(name), level)
	if err != nil {
		return nil, err
	}
	if r.peek() == ',' {
		return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	return v, r.expect('}')
}

func (r *reader) typed(k kind, level int) (value, error) {
	switch k {
	case kindS:
		s, err := r.text()
		return text(s), err
	case kindN:
		return r.number()
	case kindB:
		return r.binary()
	case kindBOOL:
		b, err := r.boolean()
		return boolean(b), err
	case kindNULL:
		b, err := r.boolean()
		if err == nil && !b {
			err = invalidValue("Null attribute value types must have the value of true")
		}
		return null{}, err
	case kindL:
		return r.list(level + 1)
	case kindM:
		return r.attributes(level + 1)
	case kindSS, kindNS, kindBS:
		return r.set(k)
	}
	return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}

func (r *reader) list(level int) (value, error) {
	l := list{}
	err := r.elements(func() error {
		v, err := r.value(level)
		l = append(l, v)
		return err
	})
	return l, err
}

func (r *reader) elements(each func() error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := r.more(']', first)
		if err != nil || !more {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
}

var emptySets = map[kind]string{
	kindSS: "An string set  may not be empty",
	kindNS: "An number set  may not be empty",
	kindBS: "Binary sets should not be empty",
}

func (r *reader) set(k kind) (value, error) {
	var members []value
	err := r.elements(func() error {
		v, err := r.member(k)
		members = append(members, v)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, invalidValue("%s", emptySets[k])
	}
	shown := describeMembers(members)
	s, duplicate := newSet(k, members)
	if duplicate && k == kindNS {
		return nil, invalid("Input collection contains duplicates")
	}
	if duplicate {
		return nil, invalidValue("Input collection %s contains duplicates.", shown)
	}
	return s, nil
}

// member reads one member of a set of kind k.
func (r *reader) member(k kind) (value, error) {
	switch k {
	case kindNS:
		return r.number()
	case kindBS:
		return r.binary()
	}
	s, err := r.text()
	return text(s), err
}

func (r *reader) number() (value, error) {
	s, err := r.text()
	if err != nil {
		return nil, err
	}
	n, err := parseNumber(s)
	return n, err
}

func (r *reader) binary() (value, error) {
	s, err := r.text()
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, serializationError("Invalid Base64 in a binary value: " + err.Error())
	}
	return binaryValue(b), nil
}

func (r *reader) boolean() (bool, error) {
	r.peek()
	switch rest := r.b[r.i:]; {
	case bytes.HasPrefix(rest, []byte("true")):
		r.i += len("true")
		return true, nil
	case bytes.HasPrefix(rest, []byte("false")):
		r.i += len("false")
		return false, nil
	}
	return false, serializationError("Unexpected value type in payload: want a boolean")
}

// text reads a string. Without escapes it is one copy.
func (r *reader) text() (string, error) {
	if r.peek() != '"' {
		return "", serializationError("Unexpected value type in payload: want a string")
	}
	start := r.i + 1
	for i := start; i < len(r.b); i++ {
		switch c := r.b[i]; {
		case c == '"':
			r.i = i + 1
			return string(r.b[start:i]), nil
		case c == '\\':
			return r.escapedText(start)
		}
	}
	return "", serializationError("Unexpected end of string")
}

// escapedText decodes the string that starts after its opening quote at start.
func (r *reader) escapedText(start int) (string, error) {
	var out []byte
	for i := start; i < len(r.b); {
		switch c := r.b[i]; c {
		case '"':
			r.i = i + 1
			return string(out), nil
		case '\\':
			var n int
			if out, n = appendEscape(out, r.b[i:]); n == 0 {
				return "", serializationError("Invalid escape in a string")
			}
			i += n
		default:
			out = append(out, c)
			i++
		}
	}
	return "", serializationError("Unexpected end of string")
}

var simpleEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendEscape decodes the escape at the start of b and says how long it is; 0 means that it is none.
func appendEscape(out, b []byte) ([]byte, int) {
	if len(b) < 2 {
		return out, 0
	}
	if c, ok := simpleEscapes[b[1]]; ok {
		return append(out, c), 2
	}
	high, ok := hex4(b)
	if !ok {
		return out, 0
	}
	if low, ok := hex4(b[6:]); ok {
		if pair := utf16.DecodeRune(high, low); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), 12
		}
	}
	return utf8.AppendRune(out, high), 6
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var v rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

var _ json.Unmarshaler = (*item)(nil)
