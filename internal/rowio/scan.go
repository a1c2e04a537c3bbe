package rowio

import (
	"bytes"
	"math"
)

// verdict is what scan says about the bytes it was given.
type verdict uint8

const (
	ended   verdict = iota // the record ends at cursor.pos
	more                   // the bytes ran out at cursor
	crossed                // a quoted cell goes on over the line given
	broken                 // text after the closing quote at cursor.pos
)

// cursor is a state of the record grammar between two bytes of a buffer: what
// lies before pos is settled. A scan can go on from any cursor it returned.
type cursor struct {
	pos    int
	quoted bool // inside a quoted cell
	multi  bool // a quoted cell holds a line end, or may
}

const noLine = math.MaxInt

// scan looks for the end of the record that starts at buf[lo], going on from at
// and looking at nothing behind buf[limit]. final says that the file ends there.
// Rows that may be passed over are: lo is then the start of a later record.
// line is an index behind a line end: a quoted cell that goes on over it stops
// the scan (noLine: none does).
func (s *source) scan(at cursor, limit, line int, final bool) (cursor, verdict) {
	w, g := s.buf[:limit], &s.g
	quote, delim := g.quote, g.delim
	passTo := s.passTo(limit, line)
	nl := -1 // next line end at or behind pos, as far as known
	for {
		if !at.quoted {
			if nl < at.pos {
				if nl = bytes.IndexByte(w[at.pos:], g.end); nl < 0 {
					nl = limit
				} else {
					nl += at.pos
				}
			}
			q := s.quote.next(s.buf[:s.hi], at.pos)
			if q >= nl {
				if nl+1 < passTo && w[nl+1] > '\r' && w[nl+1] != g.comment {
					s.passOver(nl, at.multi)
					at = cursor{pos: nl + 1}
					continue
				}
				return unquotedEnd(at, nl, limit, final)
			}
			at.pos = q + 1
			if q > s.lo && (w[q-1] != delim || g.escape != 0) && !g.opens(w[s.lo:], q-s.lo) {
				continue
			}
			at.quoted = true
		}
		c := bytes.IndexByte(w[at.pos:], quote)
		if c < 0 {
			c = limit
		} else {
			c += at.pos
		}
		if c >= line {
			return at, crossed
		}
		if c > nl {
			at.multi = true
		}
		at.pos = c
		if c == limit {
			return at, more
		}
		if g.escape != 0 && g.escaped(w[s.lo:], c-s.lo) {
			at.pos++
			continue
		}
		switch {
		case c+1 < limit && w[c+1] == delim:
			at.pos, at.quoted = c+1, false
		case c+1 < limit && w[c+1] == quote && g.doubled:
			at.pos = c + 2
		default:
			return g.closedEnd(w, at, final)
		}
	}
}

// passTo is the index before which rows may end that are passed over, or 0. Only
// rows that are told by their first byte not to be blank are; line, and a limit
// that is not the end of the bytes held, would be wrong for the rows behind.
func (s *source) passTo(limit, line int) int {
	if limit < s.hi || line != noLine || s.passed.upTo <= s.base || s.buf[s.lo] <= '\r' {
		return 0
	}
	return int(min(s.passed.upTo-s.base, int64(limit)))
}

// passOver counts the row at the front, which ends at buf[nl], and goes behind it.
func (s *source) passOver(nl int, multi bool) {
	s.passed.rows++
	s.passed.lines++
	if multi {
		s.passed.lines += int64(bytes.Count(s.buf[s.lo:nl], []byte{s.g.end}))
	}
	if s.g.end == '\n' && (s.buf[nl-1] == '\r') != s.g.hasCR {
		s.passed.mixed = true
	}
	s.lo = nl + 1
}

// unquotedEnd is the end of a record whose last cell is not quoted; nl is limit
// when there is no line end.
func unquotedEnd(at cursor, nl, limit int, final bool) (cursor, verdict) {
	if nl < limit {
		at.pos = nl + 1
		return at, ended
	}
	at.pos = nl
	if final {
		return at, ended
	}
	return at, more
}

// closedEnd looks at what follows the closing quote at at.pos: a record end, or
// text that makes the record malformed.
func (g *grammar) closedEnd(w []byte, at cursor, final bool) (cursor, verdict) {
	k := at.pos + 1
	if g.end == '\n' {
		for k < len(w) && w[k] == '\r' {
			k++
		}
	}
	switch {
	case k < len(w) && w[k] == g.end:
		at.pos = k + 1
		return at, ended
	case k < len(w):
		return at, broken
	case final:
		at.pos = k
		return at, ended
	}
	return at, more
}

// opens tells whether the quote at w[q], met outside quotes, starts a cell.
func (g *grammar) opens(w []byte, q int) bool {
	if g.skip {
		for q > 0 && w[q-1] == ' ' {
			q--
		}
	}
	if q == 0 {
		return true
	}
	return w[q-1] == g.delim && (g.escape == 0 || !g.escaped(w, q-1))
}

// escaped tells whether an odd number of escape characters stands before w[i].
func (g *grammar) escaped(w []byte, i int) bool {
	k := i
	for k > 0 && w[k-1] == g.escape {
		k--
	}
	return (i-k)%2 == 1
}

// finder remembers where a byte comes next in a buffer, so that records without
// it are not searched one by one. It is asked for rising places.
type finder struct {
	c     byte
	at    int // next c, or known
	known int // looked at up to here
}

// next is the index of the first c in w at or behind pos, or len(w). w may have
// grown since the last call.
func (f *finder) next(w []byte, pos int) int {
	if f.at >= pos && f.at < f.known {
		return f.at
	}
	return f.search(w, max(pos, f.at))
}

//go:noinline
func (f *finder) search(w []byte, from int) int { // apart, so that next can be inlined
	f.at, f.known = indexFrom(w, from, f.c), len(w)
	return f.at
}

// moved says that the buffer has lost its first n bytes.
func (f *finder) moved(n int) { f.at, f.known = f.at-n, f.known-n }

// indexFrom is the index of c in w at or behind from, or len(w).
func indexFrom(w []byte, from int, c byte) int {
	i := bytes.IndexByte(w[from:], c)
	if i < 0 {
		return len(w)
	}
	return from + i
}
