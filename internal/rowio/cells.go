package rowio

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// cellSplitter takes one record apart.
type cellSplitter struct {
	g       grammar
	limit   int      // cells kept; the rest are counted
	delims  []uint32 // where the record has a delimiter, quoted or not
	cells   [][]byte
	scratch []byte // unescaped cells
}

// facts are what a record's bytes hold.
type facts struct {
	nul, high, other bool // a NUL, a byte over 0x7F, the line byte that ends no record
}

func newCellSplitter(g grammar) cellSplitter {
	limit := math.MaxInt
	if g.columns > 0 {
		limit = g.columns + 1
	}
	return cellSplitter{g: g, limit: limit}
}

// split finds the cells of a record that scan found well formed, given without
// its record end. count is how many there are; stray tells that a cell without
// quotes holds the line byte that ends no record in this file.
func (s *cellSplitter) split(w []byte) (count int, stray bool, f facts) {
	s.cells, s.scratch = s.cells[:0], s.scratch[:0]
	f = s.survey(w)
	delims := s.findDelims(w)
	for start, k := 0, 0; ; start++ {
		if s.g.skip {
			for start < len(w) && w[start] == ' ' {
				start++
			}
		}
		var cell []byte
		end := len(w)
		if start < len(w) && w[start] == s.g.quote {
			cell, end = s.quoted(w, start+1)
			for k < len(delims) && int(delims[k]) < end {
				k++
			}
		} else {
			if s.g.escape != 0 {
				k = s.skipEscaped(w, start, delims, k)
			}
			if k < len(delims) {
				end = int(delims[k])
			}
			cell = w[start:end:end]
			if f.other && bytes.IndexByte(cell, s.g.other) >= 0 {
				stray = true
			}
			if s.hasEscape(cell) {
				cell = s.unescape(cell, false)
			}
		}
		if count++; count <= s.limit {
			s.cells = append(s.cells, cell)
		}
		if end == len(w) {
			return count, stray, f
		}
		start = end
		k++
	}
}

const (
	ones  = 0x0101010101010101
	lows  = 0x7F * ones
	highs = 0x80 * ones
	// filler stands behind the last bytes of a record; a letter is no delimiter.
	filler = 'x' * ones
)

// The functions below look at eight bytes at a time. Of bytes that are ASCII,
// (w&lows ^ c*ones) + lows has the high bit clear exactly where w has c.

// survey notes what a record's bytes hold.
func (s *cellSplitter) survey(w []byte) facts {
	other := uint64(s.g.other) * ones
	any, all, noOther := uint64(0), uint64(highs), uint64(highs)
	i := 0
	for ; i+8 <= len(w); i += 8 {
		x := binary.LittleEndian.Uint64(w[i:])
		low := x & lows
		any |= x
		all &= (low + lows) | x
		noOther &= ((low ^ other) + lows) | x
	}
	x := tail(w[i:])
	low := x & lows
	any |= x
	all &= (low + lows) | x
	noOther &= ((low ^ other) + lows) | x
	return facts{nul: all != highs, high: any&highs != 0, other: noOther != highs}
}

// findDelims lists the delimiters of a record, quoted or not.
func (s *cellSplitter) findDelims(w []byte) []uint32 {
	if len(s.delims) < len(w)+8 {
		s.delims = make([]uint32, len(w)+len(w)/2+64)
	}
	delims, n := s.delims, 0
	delim := uint64(s.g.delim) * ones
	for i := 0; i < len(w); i += 8 {
		x := word(w, i)
		m := ^((((x & lows) ^ delim) + lows) | x) & highs
		// Two places are written whether they are needed or not: a branch for each
		// would be guessed wrong too often.
		delims[n] = uint32(i + bits.TrailingZeros64(m)>>3)
		count := int((m >> 7) * ones >> 56)
		m &= m - 1
		delims[n+1] = uint32(i + bits.TrailingZeros64(m)>>3)
		m &= m - 1
		for k := n + 2; m != 0; k++ {
			delims[k] = uint32(i + bits.TrailingZeros64(m)>>3)
			m &= m - 1
		}
		n += count
	}
	return delims[:n]
}

// word is the eight bytes of w at i; at the end it is filled up.
func word(w []byte, i int) uint64 {
	if i+8 <= len(w) {
		return binary.LittleEndian.Uint64(w[i:])
	}
	return tail(w[i:])
}

// tail is a word of fewer than eight bytes, filled up at the end.
func tail(w []byte) uint64 {
	x := uint64(filler)
	for i := len(w) - 1; i >= 0; i-- {
		x = x<<8 | uint64(w[i])
	}
	return x
}

// skipEscaped passes over delimiters that an escape character makes text.
func (s *cellSplitter) skipEscaped(w []byte, start int, delims []uint32, k int) int {
	for k < len(delims) && s.g.escaped(w[start:], int(delims[k])-start) {
		k++
	}
	return k
}

// quoted reads a quoted cell whose text starts at from, and returns the index
// behind its closing quote.
func (s *cellSplitter) quoted(w []byte, from int) ([]byte, int) {
	rewrite := false
	for i := from; ; {
		i = indexFrom(w, i, s.g.quote)
		switch {
		case s.g.escape != 0 && s.g.escaped(w[from:], i-from):
			i++
		case s.g.doubled && i+1 < len(w) && w[i+1] == s.g.quote:
			i += 2
			rewrite = true
		default:
			cell := w[from:i:i]
			if rewrite || s.hasEscape(cell) {
				cell = s.unescape(cell, s.g.doubled)
			}
			return cell, i + 1
		}
	}
}

func (s *cellSplitter) hasEscape(w []byte) bool {
	return s.g.escape != 0 && bytes.IndexByte(w, s.g.escape) >= 0
}

// unescape copies a cell without its escapes. An escape character before
// anything but quote, delimiter or itself is text.
func (s *cellSplitter) unescape(w []byte, doubled bool) []byte {
	from := len(s.scratch)
	for i := 0; i < len(w); i++ {
		c := w[i]
		if i+1 < len(w) && s.escapes(c, w[i+1], doubled) {
			i++
			c = w[i]
		}
		s.scratch = append(s.scratch, c)
	}
	return s.scratch[from:len(s.scratch):len(s.scratch)]
}

// escapes tells whether c is there only to make next text.
func (s *cellSplitter) escapes(c, next byte, doubled bool) bool {
	if doubled && c == s.g.quote {
		return next == c
	}
	return s.g.escape != 0 && c == s.g.escape && (next == s.g.quote || next == s.g.delim || next == c)
}
