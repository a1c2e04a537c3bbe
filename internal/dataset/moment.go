package dataset

import (
	"bytes"
	"time"
)

// moment is a date, a time of day or both. A moment with a zone is kept in UTC.
type moment struct {
	year, month, day     int
	hour, minute, second int
	nanos                int
	zoned                bool
}

// validDate tells whether the day exists. Years run from 1 to 9999: ISO 8601 needs an agreement
// beyond, and a year 0 is a broken file far more often than a Roman one.
func validDate(year, month, day int) bool {
	return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}

func validClock(hour, minute, second int) bool { return hour <= 23 && minute <= 59 && second <= 59 }

// shift moves a moment that was read at an offset (minutes east of UTC) to UTC. dated is false for a
// time of day alone, which wraps round midnight.
func (m *moment) shift(offset int, dated bool) bool {
	m.zoned = true
	if offset == 0 {
		return true
	}
	if !dated {
		m.year, m.month, m.day = 2000, 1, 1
	}
	t := time.Date(m.year, time.Month(m.month), m.day, m.hour, m.minute-offset, m.second, 0, time.UTC)
	m.year, m.month, m.day = t.Year(), int(t.Month()), t.Day()
	m.hour, m.minute = t.Hour(), t.Minute()
	return validDate(m.year, m.month, m.day)
}

// appendDate writes yyyy-mm-dd.
func (m *moment) appendDate(dst []byte) []byte {
	dst = append2(dst, m.year/100)
	dst = append2(dst, m.year%100)
	dst = append(dst, '-')
	dst = append2(dst, m.month)
	dst = append(dst, '-')
	return append2(dst, m.day)
}

// appendClock writes hh:mm:ss, the fraction without trailing zeros if there is one, and Z if zoned.
func (m *moment) appendClock(dst []byte) []byte {
	dst = append2(dst, m.hour)
	dst = append(dst, ':')
	dst = append2(dst, m.minute)
	dst = append(dst, ':')
	dst = append2(dst, m.second)
	if m.nanos > 0 {
		dst = append(dst, '.')
		dst = appendNanos(dst, m.nanos, 1)
	}
	if m.zoned {
		dst = append(dst, 'Z')
	}
	return dst
}

// appendNanos writes a fraction of a second in as few digits as it needs, at least min.
func appendNanos(dst []byte, nanos, min int) []byte {
	for width := 9; width > 0; width-- {
		digit := nanos / 1e8
		if nanos == 0 && 9-width >= min {
			break
		}
		dst = append(dst, byte('0'+digit))
		nanos = nanos % 1e8 * 10
	}
	return dst
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// reader walks over a cell. A read that fails leaves ok false and every later read fails too.
type reader struct {
	rest []byte
	ok   bool
}

// digits reads from min to max digits.
func (r *reader) digits(min, max int) int {
	n, count := 0, 0
	for count < max && count < len(r.rest) && r.rest[count] >= '0' && r.rest[count] <= '9' {
		n = n*10 + int(r.rest[count]-'0')
		count++
	}
	if count < min {
		r.ok = false
		return 0
	}
	r.rest = r.rest[count:]
	return n
}

func (r *reader) literal(c byte) {
	if !r.peek(c) {
		r.ok = false
		return
	}
	r.rest = r.rest[1:]
}

func (r *reader) peek(c byte) bool { return len(r.rest) > 0 && r.rest[0] == c }

// fraction reads one to nine digits as nanoseconds.
func (r *reader) fraction() int {
	before := len(r.rest)
	nanos := r.digits(1, 9)
	for used := before - len(r.rest); used < 9; used++ {
		nanos *= 10
	}
	return nanos
}

// offset reads Z, +hh:mm or -hh:mm (+hhmm too, unless the colon is required) as minutes east of UTC.
func (r *reader) offset(colon bool) int {
	if r.peek('Z') {
		r.rest = r.rest[1:]
		return 0
	}
	negative := r.peek('-')
	if !negative && !r.peek('+') {
		r.ok = false
		return 0
	}
	r.rest = r.rest[1:]
	hours := r.digits(2, 2)
	if colon || r.peek(':') {
		r.literal(':')
	}
	minutes := r.digits(2, 2)
	if hours > 14 || minutes > 59 {
		r.ok = false
	}
	if negative {
		return -hours*60 - minutes
	}
	return hours*60 + minutes
}

// done tells whether every read succeeded and nothing is left.
func (r *reader) done() bool { return r.ok && len(r.rest) == 0 }

// readDate reads exactly yyyy-mm-dd.
func readDate(cell []byte) (moment, bool) {
	var m moment
	ok := isDate(cell)
	if ok {
		m.year, m.month, m.day = digits2(cell)*100+digits2(cell[2:]), digits2(cell[5:]), digits2(cell[8:])
	}
	return m, ok
}

// isDate tells whether a cell is a day in the form yyyy-mm-dd.
func isDate(cell []byte) bool {
	if len(cell) != 10 || cell[4] != '-' || cell[7] != '-' {
		return false
	}
	for i, c := range cell {
		if i != 4 && i != 7 && (c < '0' || c > '9') {
			return false
		}
	}
	return validDate(digits2(cell)*100+digits2(cell[2:]), digits2(cell[5:]), digits2(cell[8:]))
}

// digits2 is the number that the first two digits make.
func digits2(digits []byte) int { return int(digits[0]-'0')*10 + int(digits[1]-'0') }

// readTime reads hh:mm:ss with an optional fraction and an optional zone.
func readTime(cell []byte) (moment, bool) {
	r := reader{rest: cell, ok: true}
	var m moment
	offset, zoned := r.clock(&m)
	if !r.done() || !validClock(m.hour, m.minute, m.second) {
		return m, false
	}
	return m, !zoned || m.shift(offset, false)
}

// readDatetime reads a date, a capital T and a time.
func readDatetime(cell []byte) (moment, bool) {
	r := reader{rest: cell, ok: true}
	var m moment
	r.date(&m)
	r.literal('T')
	offset, zoned := r.clock(&m)
	if !r.done() || !validDate(m.year, m.month, m.day) || !validClock(m.hour, m.minute, m.second) {
		return m, false
	}
	return m, !zoned || m.shift(offset, true)
}

func (r *reader) date(m *moment) {
	m.year = r.digits(4, 4)
	r.literal('-')
	m.month = r.digits(2, 2)
	r.literal('-')
	m.day = r.digits(2, 2)
}

func (r *reader) clock(m *moment) (offset int, zoned bool) {
	m.hour = r.digits(2, 2)
	r.literal(':')
	m.minute = r.digits(2, 2)
	r.literal(':')
	m.second = r.digits(2, 2)
	if r.peek('.') {
		r.rest = r.rest[1:]
		m.nanos = r.fraction()
	}
	if !r.ok || len(r.rest) == 0 {
		return 0, false
	}
	return r.offset(true), true
}

// validYear and validYearMonth judge yyyy and yyyy-mm.
func validYear(cell []byte) bool {
	r := reader{rest: cell, ok: true}
	year := r.digits(4, 4)
	return r.done() && year >= 1
}

func validYearMonth(cell []byte) bool {
	r := reader{rest: cell, ok: true}
	year := r.digits(4, 4)
	r.literal('-')
	month := r.digits(2, 2)
	return r.done() && validDate(year, month, 1)
}

// compareMoments orders two canonical texts of one type. Seconds have fixed width; fractions have no
// trailing zeros, so they compare as text once the Z is away. A moment without zone counts as UTC.
func compareMoments(a, b []byte) int {
	return bytes.Compare(trimZone(a), trimZone(b))
}

func trimZone(text []byte) []byte {
	if n := len(text); n > 0 && text[n-1] == 'Z' {
		return text[:n-1]
	}
	return text
}
