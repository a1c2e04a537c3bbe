package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"pintu/internal/decimal"
)

// Limits of a pattern. RE2 is linear in the cell, but the factor is the size of its program: a legal
// pattern of 26 characters can take a second on a cell of 64 KB.
const (
	MaxPatternLength  = 256  // characters
	MaxPatternProgram = 1000 // compiled instructions
	MaxPatternCell    = 8 << 10
)

// Kind is how a value is stored. Dates and times are strings in ISO 8601.
type Kind byte

// The kinds. They are part of Row.Hash: their numbers never change.
const (
	Null Kind = iota
	String
	Number
	Bool
)

// column is a field made ready for checking. It does not change once made.
type column struct {
	name   string
	typ    string
	kind   Kind
	cast   caster
	layout *layout // of a pattern; nil: the default format
	point  string  // decimalChar of a number

	trueValues, falseValues []string
	missing                 []string
	required, inKey         bool
	minLength, maxLength    int
	bounds                  []bound
	pattern                 *regexp.Regexp
	enum                    map[string]bool
	onlyNull                bool // none of the constraints above but required
	onlyEmpty               bool // missing is the empty text alone
	anyText                 bool // every text is a value of the field
}

// caster reads a cell and returns its canonical text, which is in the cell or behind other bytes that
// were appended to buf on the way; or it returns why the cell is not of the type, as the end of a
// sentence that starts with the field's name.
type caster func(buf, cell []byte) (grown, text []byte, reason string)

// bound is one of minimum, maximum and their exclusive forms.
type bound struct {
	name, shown string // shown: as a person would write it
	text        []byte // canonical
	low         bool   // a minimum
	exclusive   bool
	whole       int // digits before the point, of a number that is not negative; else 0
}

// newCaster makes a column that reads texts but checks no constraint. The field has been judged: its
// format is known to be good.
func newCaster(f *field) *column {
	c := &column{name: f.name, typ: f.typ, kind: String, trueValues: f.trueValues, falseValues: f.falseValues}
	if f.format != "default" && (f.typ == "date" || f.typ == "time" || f.typ == "datetime") {
		c.layout, _ = newLayout(f.format, f.typ)
	}
	switch f.typ {
	case "number", "integer":
		c.kind = Number
		c.point = f.decimalChar
		c.cast = newNumberCaster(f)
	case "boolean":
		c.kind = Bool
		c.cast = c.castBool
	case "date", "time", "datetime":
		c.cast = newMomentCaster(f.typ, c.layout)
	case "year":
		c.cast = textCaster(validYear, "is not a year (yyyy)")
	case "yearmonth":
		c.cast = textCaster(validYearMonth, "is not a year and month (yyyy-mm)")
	default:
		c.cast = textCaster(stringFormats[f.format], "is not a valid "+f.format)
	}
	return c
}

// newColumn makes the whole column. missing are the schema's missing values.
func newColumn(f *field, missing []string) (*column, error) {
	c := newCaster(f)
	c.required, c.inKey = f.required, f.inKey
	c.minLength, c.maxLength = f.minLength, f.maxLength
	c.missing = missing
	if f.missingValues != nil {
		c.missing = f.missingValues
	}
	for _, name := range boundNames {
		if text, ok := f.bounds[name]; ok {
			b := bound{name: name, shown: string(c.appendCell(nil, []byte(text))), text: []byte(text),
				low: strings.HasSuffix(strings.ToLower(name), "minimum"), exclusive: strings.HasPrefix(name, "exclusive")}
			if c.kind == Number {
				b.whole = wholeDigits(b.text)
			}
			c.bounds = append(c.bounds, b)
		}
	}
	if f.pattern != "" {
		var err error
		if c.pattern, err = compilePattern(f.pattern); err != nil {
			return nil, fmt.Errorf("pattern of %s: %w", f.name, err)
		}
	}
	if f.enum != nil {
		c.enum = map[string]bool{}
		for _, text := range f.enum {
			c.enum[text] = true
		}
	}
	c.onlyNull = c.minLength < 0 && c.maxLength < 0 && len(c.bounds) == 0 && c.pattern == nil && c.enum == nil
	c.onlyEmpty = len(c.missing) == 1 && c.missing[0] == ""
	c.anyText = c.onlyNull && !c.inKey && (f.typ == "string" || f.typ == "any") && f.format == "default"
	return c, nil
}

// compilePattern anchors a pattern at both ends and refuses what could be slow.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	re, _, err := compileBounded(pattern, `\A(?:`+pattern+`)\z`)
	return re, err
}

// CompileSearch compiles a pattern that may match anywhere in a text, under the limits of those in a
// schema, and tells how many instructions it has. The error is the end of a sentence about the pattern.
func CompileSearch(pattern string) (re *regexp.Regexp, instructions int, err error) {
	return compileBounded(pattern, pattern)
}

// compileBounded compiles whole, which is made of what the user wrote.
func compileBounded(pattern, whole string) (*regexp.Regexp, int, error) {
	if pattern == "" {
		return nil, 0, errors.New("is empty")
	}
	if utf8.RuneCountInString(pattern) > MaxPatternLength {
		return nil, 0, fmt.Errorf("longer than %d characters", MaxPatternLength)
	}
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil { // alone first: a)|(b must not escape its anchors
		return nil, 0, fmt.Errorf("is no RE2 expression: %s", err)
	}
	parsed, err := syntax.Parse(whole, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot be anchored: %s", err)
	}
	if size := leastSize(parsed); size > 4*MaxPatternProgram { // do not spend seconds on compiling what is refused
		return nil, 0, fmt.Errorf("compiles to thousands of instructions, more than %d: shorten its repetitions", MaxPatternProgram)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, fmt.Errorf("is no RE2 expression: %s", err)
	}
	if len(prog.Inst) > MaxPatternProgram {
		return nil, 0, fmt.Errorf("compiles to %d instructions, more than %d: shorten its repetitions", len(prog.Inst), MaxPatternProgram)
	}
	re, err := regexp.Compile(whole)
	return re, len(prog.Inst), err
}

// leastSize estimates from below how many instructions an expression compiles to, without expanding
// its repetitions.
func leastSize(re *syntax.Regexp) int {
	size := len(re.Rune)
	if re.Op != syntax.OpLiteral {
		size = 1
	}
	for _, sub := range re.Sub {
		size += leastSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return size
}

// isMissing tests the text as it stands in the file, before it is read as anything. A nil cell is a
// null of its own: a JSON null, or a member that is not there.
func (c *column) isMissing(cell []byte) bool {
	if c.onlyEmpty || cell == nil {
		return len(cell) == 0
	}
	for _, text := range c.missing {
		if string(cell) == text {
			return true
		}
	}
	return false
}

// violated names the first constraint that a value breaks, as the end of a sentence.
func (c *column) violated(text []byte) string {
	if c.minLength >= 0 || c.maxLength >= 0 {
		length := utf8.RuneCount(text)
		if length < c.minLength {
			return fmt.Sprintf("is shorter than minLength %d", c.minLength)
		}
		if c.maxLength >= 0 && length > c.maxLength {
			return fmt.Sprintf("is longer than maxLength %d", c.maxLength)
		}
	}
	if reason := c.outOfBounds(text); reason != "" {
		return reason
	}
	if c.pattern != nil {
		if len(text) > MaxPatternCell {
			return fmt.Sprintf("is longer than the %d bytes that a pattern is tried on", MaxPatternCell)
		}
		if !c.pattern.Match(text) {
			return "does not match its pattern"
		}
	}
	if c.enum != nil && !c.enum[string(text)] {
		return "is not one of the values in enum"
	}
	return ""
}

func (c *column) outOfBounds(text []byte) string {
	for i := range c.bounds {
		b := &c.bounds[i]
		order := c.order(text, b)
		if order == 0 && !b.exclusive || order > 0 && b.low || order < 0 && !b.low {
			continue
		}
		return map[string]string{
			"minimum":          "is below the minimum ",
			"maximum":          "is above the maximum ",
			"exclusiveMinimum": "is not above the exclusive minimum ",
			"exclusiveMaximum": "is not below the exclusive maximum ",
		}[b.name] + b.shown
	}
	return ""
}

// order compares a canonical text with a bound. Numbers of different length need no look at their digits.
func (c *column) order(text []byte, b *bound) int {
	if b.whole > 0 {
		switch whole := wholeDigits(text); {
		case whole > b.whole:
			return 1
		case whole > 0 && whole < b.whole:
			return -1
		}
	}
	return c.compare(text, b.text)
}

// wholeDigits counts the digits before the point of a canonical number. It is 0 for negative ones.
func wholeDigits(number []byte) int {
	for i, c := range number {
		if c == '.' || c == '-' {
			return i
		}
	}
	return len(number)
}

// compare orders two canonical texts of the column's type.
func (c *column) compare(a, b []byte) int {
	if c.kind == Number {
		return decimal.Compare(a, b)
	}
	return compareMoments(a, b)
}

// textCaster keeps a text as it is; valid may be nil.
func textCaster(valid func([]byte) bool, reason string) caster {
	return func(buf, cell []byte) ([]byte, []byte, string) {
		if valid != nil && !valid(cell) {
			return buf, nil, reason
		}
		return buf, cell, ""
	}
}

// defaultMoments read the default formats, which are the canonical texts too.
var defaultMoments = map[string]func([]byte) (moment, bool){"date": readDate, "time": readTime, "datetime": readDatetime}

func newMomentCaster(typ string, l *layout) caster {
	read := defaultMoments[typ]
	reason := map[string]string{
		"date":     "is not a date (yyyy-mm-dd)",
		"time":     "is not a time (hh:mm:ss)",
		"datetime": "is not a date and time (yyyy-mm-ddThh:mm:ss, with Z or +hh:mm if a zone is known)",
	}[typ]
	if l != nil {
		read, reason = l.read, "is not a "+typ+" in the format of its field"
	}
	if typ == "date" && l == nil {
		return textCaster(isDate, reason) // the canonical text is the cell
	}
	return func(buf, cell []byte) ([]byte, []byte, string) {
		m, ok := read(cell)
		if !ok {
			return buf, nil, reason
		}
		start := len(buf)
		buf = m.append(buf, typ)
		return buf, buf[start:], ""
	}
}

func (m *moment) append(dst []byte, typ string) []byte {
	if typ != "time" {
		dst = m.appendDate(dst)
	}
	if typ == "datetime" {
		dst = append(dst, 'T')
	}
	if typ != "date" {
		dst = m.appendClock(dst)
	}
	return dst
}

func (c *column) castBool(buf, cell []byte) ([]byte, []byte, string) {
	for _, text := range c.trueValues {
		if string(cell) == text {
			return buf, trueText, ""
		}
	}
	for _, text := range c.falseValues {
		if string(cell) == text {
			return buf, falseText, ""
		}
	}
	return buf, nil, "is neither one of its trueValues nor one of its falseValues"
}

var trueText, falseText = []byte("true"), []byte("false")

func boolText(value bool) []byte {
	if value {
		return trueText
	}
	return falseText
}

// appendCell writes a canonical text as a cell of the field would hold it: the inverse of cast.
func (c *column) appendCell(dst, text []byte) []byte {
	switch {
	case c.kind == Bool && text[0] == 't':
		return append(dst, c.writable(c.trueValues)...)
	case c.kind == Bool:
		return append(dst, c.writable(c.falseValues)...)
	case c.layout != nil:
		m, _ := defaultMoments[c.typ](text)
		return c.layout.append(dst, &m)
	case c.point != "" && c.point != ".":
		return append(dst, bytes.Replace(text, []byte("."), []byte(c.point), 1)...)
	default:
		return append(dst, text...)
	}
}

// writable picks the first text that does not mean null.
func (c *column) writable(texts []string) string {
	for _, text := range texts {
		if !slices.Contains(c.missing, text) {
			return text
		}
	}
	return texts[0]
}
