package dataset

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// layout is a strptime pattern made ready: Go's time layouts cannot say it (they guess where digits
// end, and take what strptime does not), so it is read step by step.
type layout struct {
	steps []step
	dated bool // holds a date
}

// step is a directive, or literal text when directive is 0. wide: other digits are next to it, so that
// the full number of digits is required; elsewhere 5/1/2025 is as good as 05/01/2025.
type step struct {
	directive byte
	wide      bool
	literal   string
}

// directives we translate, and which part of a moment each one gives. Two that give the same part
// cannot stand in one pattern.
var directives = map[byte]string{'Y': "year", 'y': "year", 'm': "month", 'b': "month", 'B': "month", 'd': "day", 'j': "day of year",
	'H': "hour", 'I': "hour of twelve", 'p': "half of the day", 'M': "minute", 'S': "second", 'f': "fraction", 'z': "zone"}

const knownDirectives = "%Y %y %m %b %B %d %j %H %I %p %M %S %f %z %%"

// newLayout translates a pattern for a type: date, time or datetime.
func newLayout(pattern, typ string) (*layout, error) {
	l := &layout{}
	parts := map[string]bool{}
	for rest := pattern; rest != ""; {
		literal, after, found := strings.Cut(rest, "%")
		l.addLiteral(literal)
		if !found {
			break
		}
		if after == "" {
			return nil, fmt.Errorf("ends in a single %%")
		}
		c := after[0]
		rest = after[1:]
		if c == '%' {
			l.addLiteral("%")
			continue
		}
		part, known := directives[c]
		if !known {
			_, size := utf8.DecodeRuneInString(after)
			return nil, fmt.Errorf("%%%s is not supported; supported: %s", after[:size], knownDirectives)
		}
		if parts[part] {
			return nil, fmt.Errorf("gives the %s twice", part)
		}
		parts[part] = true
		l.steps = append(l.steps, step{directive: c})
	}
	if err := checkParts(parts, typ); err != nil {
		return nil, err
	}
	l.dated = typ != "time"
	return l, l.markWide()
}

func (l *layout) addLiteral(text string) {
	if text != "" {
		l.steps = append(l.steps, step{literal: text})
	}
}

// checkParts refuses patterns from which no complete value follows, or more than the type can hold.
func checkParts(parts map[string]bool, typ string) error {
	date := parts["year"] || parts["month"] || parts["day"] || parts["day of year"]
	clock := parts["hour"] || parts["hour of twelve"] || parts["half of the day"] || parts["minute"] || parts["second"] || parts["fraction"] || parts["zone"]
	switch {
	case typ == "date" && clock:
		return fmt.Errorf("a date has no time of day; use type datetime")
	case typ == "time" && date:
		return fmt.Errorf("a time has no date; use type datetime")
	case parts["day of year"] && (parts["month"] || parts["day"]):
		return fmt.Errorf("gives the day twice: %%j and a month or day")
	case typ != "time" && !(parts["year"] && (parts["day of year"] || parts["month"] && parts["day"])):
		return fmt.Errorf("does not give year, month and day")
	case parts["hour"] && (parts["hour of twelve"] || parts["half of the day"]):
		return fmt.Errorf("mixes %%H with %%I or %%p")
	case parts["hour of twelve"] != parts["half of the day"]:
		return fmt.Errorf("%%I and %%p need each other")
	case typ == "time" && !parts["hour"] && !parts["hour of twelve"]:
		return fmt.Errorf("does not give the hour")
	}
	return nil
}

// markWide finds the directives next to other digits, on either side: where 20251105 may stand, the
// parts of 2025105 are anyone's guess.
func (l *layout) markWide() error {
	for i := range len(l.steps) - 1 {
		this, next := &l.steps[i], &l.steps[i+1]
		if !this.endsInDigit() || !next.startsWithDigit() {
			continue
		}
		if this.directive == 'f' {
			return fmt.Errorf("digits after %%f: its end cannot be found")
		}
		this.wide, next.wide = true, true
	}
	return nil
}

func (s *step) endsInDigit() bool {
	if s.directive == 0 {
		return isDigit(s.literal[len(s.literal)-1])
	}
	return strings.IndexByte("bBp", s.directive) < 0
}

func (s *step) startsWithDigit() bool {
	if s.directive == 0 {
		return isDigit(s.literal[0])
	}
	return strings.IndexByte("bBpz", s.directive) < 0
}

// found collects what the steps read before the whole can be judged.
type found struct {
	moment
	dayOfYear, offset int
	twelve, afternoon bool
}

// read reads a whole cell.
func (l *layout) read(cell []byte) (moment, bool) {
	r := reader{rest: cell, ok: true}
	var f found
	for i := range l.steps {
		f.take(&l.steps[i], &r)
	}
	if !r.done() {
		return moment{}, false
	}
	return f.finish(l.dated)
}

func (f *found) take(s *step, r *reader) {
	two := 1
	if s.wide {
		two = 2
	}
	switch s.directive {
	case 0:
		var had bool
		r.rest, had = bytes.CutPrefix(r.rest, []byte(s.literal))
		r.ok = r.ok && had
	case 'Y':
		f.year = r.digits(4, 4)
	case 'y': // as POSIX has it: 69 to 99 are of the last century
		f.year = 2000 + r.digits(2, 2)
		if f.year >= 2069 {
			f.year -= 100
		}
	case 'm':
		f.month = r.digits(two, 2)
	case 'b', 'B':
		f.month = r.monthName(s.directive == 'B')
	case 'd':
		f.day = r.digits(two, 2)
	case 'j':
		f.dayOfYear = r.digits(2*two-1, 3)
		r.ok = r.ok && f.dayOfYear > 0
	case 'H':
		f.hour = r.digits(two, 2)
	case 'I':
		f.hour, f.twelve = r.digits(two, 2), true
	case 'p':
		f.afternoon = r.half()
	case 'M':
		f.minute = r.digits(two, 2)
	case 'S':
		f.second = r.digits(two, 2)
	case 'f':
		f.nanos = r.fraction()
	case 'z':
		f.offset, f.zoned = r.offset(false), true
	}
}

// finish puts the parts together and judges them.
func (f *found) finish(dated bool) (moment, bool) {
	if f.twelve {
		if f.hour < 1 || f.hour > 12 {
			return f.moment, false
		}
		f.hour %= 12
		if f.afternoon {
			f.hour += 12
		}
	}
	if f.dayOfYear > 0 {
		f.month, f.day = 1, f.dayOfYear
		for f.month < 12 && f.day > daysIn(f.year, f.month) {
			f.day -= daysIn(f.year, f.month)
			f.month++
		}
	}
	if !validClock(f.hour, f.minute, f.second) || dated && !validDate(f.year, f.month, f.day) {
		return f.moment, false
	}
	return f.moment, !f.zoned || f.shift(f.offset, dated)
}

// monthName reads an English month name, whole or its first three letters, in any case.
func (r *reader) monthName(whole bool) int {
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if !whole {
			name = name[:3]
		}
		if len(r.rest) >= len(name) && asciiFold(r.rest[:len(name)], name) {
			r.rest = r.rest[len(name):]
			return int(m)
		}
	}
	r.ok = false
	return 0
}

func (r *reader) half() (afternoon bool) {
	if len(r.rest) < 2 {
		r.ok = false
		return false
	}
	word := r.rest[:2]
	r.rest = r.rest[2:]
	afternoon = asciiFold(word, "PM")
	r.ok = r.ok && (afternoon || asciiFold(word, "AM"))
	return afternoon
}

// asciiFold compares letters without regard to case. word holds ASCII letters only, as many as text
// has bytes.
func asciiFold(text []byte, word string) bool {
	for i, c := range text {
		if c|0x20 != word[i]|0x20 {
			return false
		}
	}
	return true
}

// append writes a moment as the pattern has it; read gives the same moment back.
func (l *layout) append(dst []byte, m *moment) []byte {
	for _, s := range l.steps {
		dst = m.appendPart(dst, s)
	}
	return dst
}

func (m *moment) appendPart(dst []byte, s step) []byte {
	switch s.directive {
	case 'Y':
		return append2(append2(dst, m.year/100), m.year%100)
	case 'y':
		return append2(dst, m.year%100)
	case 'm':
		return append2(dst, m.month)
	case 'b':
		return append(dst, time.Month(m.month).String()[:3]...)
	case 'B':
		return append(dst, time.Month(m.month).String()...)
	case 'd':
		return append2(dst, m.day)
	case 'j':
		day := m.day
		for month := 1; month < m.month; month++ {
			day += daysIn(m.year, month)
		}
		return append2(append(dst, byte('0'+day/100)), day%100)
	case 'H':
		return append2(dst, m.hour)
	case 'I':
		return append2(dst, (m.hour+11)%12+1)
	case 'p':
		return append(dst, "AMPM"[m.hour/12*2:m.hour/12*2+2]...)
	case 'M':
		return append2(dst, m.minute)
	case 'S':
		return append2(dst, m.second)
	case 'f': // six digits, as strftime writes, unless they are not enough
		return appendNanos(dst, m.nanos, 6)
	case 'z':
		return append(dst, "+0000"...)
	default:
		return append(dst, s.literal...)
	}
}
