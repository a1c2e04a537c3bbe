package dataset

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of values that nobody reads.
const maxJSONDepth = 500

// jsonParser reads one object, RFC 8259 to the letter. It allocates nothing: texts are parts of the line, or
// of the row's memory when they were escaped.
type jsonParser struct {
	b       *Binding
	row     *Row
	in      []byte
	at      int
	next    int    // field that is expected next
	unknown bool   // a member is not of the schema
	bad     string // why the line is malformed; nothing is read after it
}

// fail keeps the first reason and ends the reading.
func (p *jsonParser) fail(reason string) {
	if p.bad == "" {
		p.bad = clip(reason)
	}
	p.at = len(p.in)
}

const (
	cutOff    = "the line ends within an object"
	notJSON   = "not valid JSON"
	badEscape = "not valid JSON: an escape in a string is wrong"
)

// peek passes over white space and gives the next byte; 0: the line ends, or has a NUL byte there.
func (p *jsonParser) peek() byte {
	for p.at < len(p.in) {
		c := p.in[p.at]
		if c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
		p.at++
	}
	return 0
}

// take passes over c, which must be next.
func (p *jsonParser) take(c byte) bool {
	switch p.peek() {
	case c:
		p.at++
		return true
	case 0:
		p.fail(cutOff)
	default:
		p.fail(notJSON)
	}
	return false
}

// object reads the whole line.
func (p *jsonParser) object() {
	if p.peek() != '{' {
		p.notObject()
		return
	}
	p.at++
	p.members(func() {
		name, ok := p.text(true)
		if !ok || !p.take(':') {
			return
		}
		if i := p.field(name); i >= 0 {
			p.value(i)
		} else {
			p.skip(1)
		}
	}, '}')
	if p.bad == "" && (p.peek() != 0 || p.at < len(p.in)) {
		p.fail("more than one JSON value in the line")
	}
}

// notObject tells what the line is instead.
func (p *jsonParser) notObject() {
	p.skip(0)
	if p.bad != "" || p.peek() != 0 {
		p.bad = notJSON
		return
	}
	p.fail("the line is valid JSON but no object")
}

// members reads what stands between commas up to the closing byte; the opening one is behind us.
func (p *jsonParser) members(one func(), closing byte) {
	if p.peek() == closing {
		p.at++
		return
	}
	for p.bad == "" {
		if one(); p.bad != "" {
			return
		}
		if p.peek() != ',' {
			p.take(closing)
			return
		}
		p.at++
	}
}

// value reads the value of a field.
func (p *jsonParser) value(i int) {
	switch c := p.peek(); c {
	case '"':
		if text, ok := p.text(true); ok {
			p.set(i, textMember, text)
		}
	case 't':
		p.word("true")
		p.set(i, boolMember, trueText)
	case 'f':
		p.word("false")
		p.set(i, boolMember, falseText)
	case 'n':
		p.word("null")
		p.set(i, nullMember, nil)
	case '{', '[':
		start := p.at
		p.skip(1)
		p.set(i, nestedMember, p.in[start:p.at])
	default:
		start := p.at
		p.number(c)
		p.set(i, numberMember, p.in[start:p.at:p.at])
	}
}

// skip reads a value that is not kept.
func (p *jsonParser) skip(depth int) {
	if depth > maxJSONDepth {
		p.fail("values are nested too deep")
		return
	}
	switch c := p.peek(); c {
	case '"':
		p.text(false)
	case 't':
		p.word("true")
	case 'f':
		p.word("false")
	case 'n':
		p.word("null")
	case '[':
		p.at++
		p.members(func() { p.skip(depth + 1) }, ']')
	case '{':
		p.at++
		p.members(func() {
			if _, ok := p.text(false); ok && p.take(':') {
				p.skip(depth + 1)
			}
		}, '}')
	default:
		p.number(c)
	}
}

func (p *jsonParser) word(w string) {
	if len(p.in)-p.at < len(w) || string(p.in[p.at:p.at+len(w)]) != w {
		p.fail(notJSON)
		return
	}
	p.at += len(w)
}

// number passes over a number whose first byte is c.
func (p *jsonParser) number(c byte) {
	if c == 0 {
		p.fail(cutOff)
		return
	}
	if c == '-' {
		p.at++
	}
	zero := p.at < len(p.in) && p.in[p.at] == '0'
	if n := p.digits(); n == 0 || zero && n > 1 {
		p.fail(notJSON)
		return
	}
	if p.at < len(p.in) && p.in[p.at] == '.' {
		p.at++
		if p.digits() == 0 {
			p.fail(notJSON)
			return
		}
	}
	if p.at < len(p.in) && p.in[p.at]|0x20 == 'e' {
		p.at++
		if p.at < len(p.in) && (p.in[p.at] == '+' || p.in[p.at] == '-') {
			p.at++
		}
		if p.digits() == 0 {
			p.fail(notJSON)
		}
	}
}

func (p *jsonParser) digits() int {
	start := p.at
	for p.at < len(p.in) && p.in[p.at]-'0' <= 9 {
		p.at++
	}
	return p.at - start
}

// text reads a string; its text without escapes is kept only if asked for.
func (p *jsonParser) text(keep bool) ([]byte, bool) {
	if !p.take('"') {
		return nil, false
	}
	start := p.at
	p.at += plainText(p.in[p.at:])
	if p.at < len(p.in) && p.in[p.at] == '"' {
		p.at++
		return p.in[start : p.at-1 : p.at-1], true
	}
	return p.escaped(start, keep)
}

// plainText is the length of the text up to a quote, a backslash or a control character.
func plainText(w []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(w); i += 8 {
		v := binary.LittleEndian.Uint64(w[i:])
		quote, slash := v^(ones*'"'), v^(ones*'\\')
		// A byte over 0x7F is in none of the three sets: the high bits of v itself clear it. Borrows can
		// mark only bytes behind the first true one.
		if found := ((quote - ones) | (slash - ones) | (v - ones*0x20)) & ^v & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(w); i++ {
		if c := w[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// escaped reads on in a string that started at start and is plain up to here.
func (p *jsonParser) escaped(start int, keep bool) ([]byte, bool) {
	from := len(p.row.text)
	text := append(p.row.text, p.in[start:p.at]...)
	for p.at < len(p.in) {
		switch c := p.in[p.at]; {
		case c == '"':
			p.at++
			if keep {
				p.row.text = text
			}
			return text[from:len(text):len(text)], true
		case c < 0x20:
			p.fail("not valid JSON: a control character in a string")
			return nil, false
		}
		r, ok := p.escape()
		if !ok {
			return nil, false
		}
		text = utf8.AppendRune(text, r)
		n := plainText(p.in[p.at:])
		text = append(text, p.in[p.at:p.at+n]...)
		p.at += n
	}
	p.fail("the line ends within a string")
	return nil, false
}

// escape reads one escape. Half a surrogate pair is no character, and NUL none that a value may have.
func (p *jsonParser) escape() (rune, bool) {
	if len(p.in)-p.at < 2 {
		p.fail("the line ends within a string")
		return 0, false
	}
	c := p.in[p.at+1]
	p.at += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		return p.unicode()
	}
	p.fail(badEscape)
	return 0, false
}

func (p *jsonParser) unicode() (rune, bool) {
	r, ok := p.hex4()
	if ok && utf16.IsSurrogate(r) {
		second := rune(-1)
		if len(p.in)-p.at >= 2 && p.in[p.at] == '\\' && p.in[p.at+1] == 'u' {
			p.at += 2
			second, ok = p.hex4()
		}
		if r = utf16.DecodeRune(r, second); ok && r == utf8.RuneError {
			p.fail("an escape in a string is half a character")
			return 0, false
		}
	}
	if ok && r == 0 {
		p.fail("an escape in a string is a NUL character")
		return 0, false
	}
	if !ok {
		p.fail(badEscape)
	}
	return r, ok
}

func (p *jsonParser) hex4() (rune, bool) {
	if len(p.in)-p.at < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p.in[p.at : p.at+4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case (c|0x20)-'a' <= 5:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	p.at += 4
	return r, true
}
