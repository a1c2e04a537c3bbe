package rowio

import (
	"bytes"
	"math"
)

// cellSplitter takes the records of a source apart, in the order of the file.
type cellSplitter struct {
	g       grammar
	marks   marks
	limit   int      // cells kept; the rest are counted
	cells   [][]byte // of the record split last
	scratch []byte   // unescaped cells
}

func newCellSplitter(g grammar) *cellSplitter {
	limit := math.MaxInt
	if g.columns > 0 {
		limit = g.columns + 1
	}
	return &cellSplitter{g: g, limit: limit, marks: marks{delim: g.delim, other: finder{c: g.other}}}
}

// split finds the cells of w = buf[at:at+len(w)], a record that scan found well
// formed, without its record end. suspect says that it holds the line byte that
// ends no record in this file; stray, that a cell without quotes does. count is
// the number of cells.
func (s *cellSplitter) split(w []byte, at int, suspect bool) (count int, stray bool) {
	cells := s.cells[:0]
	s.scratch = s.scratch[:0]
	delims, k := s.marks.delims[:s.marks.count], s.marks.front
	for k < len(delims) && int(delims[k]) < at {
		k++
	}
	plain := s.g.escape == 0 && !s.g.skip && !suspect
	for start := 0; ; start++ {
		for plain && k < len(delims) && count < s.limit { // cells without quotes, while there are
			end := int(delims[k]) - at
			if end >= len(w) || w[start] == s.g.quote {
				break
			}
			cells = append(cells, w[start:end:end])
			start = end + 1
			count++
			k++
		}
		var cell []byte
		var bad bool
		cell, k, bad, start = s.cell(w, at, start, k, suspect)
		stray = stray || bad
		if count++; count <= s.limit {
			cells = append(cells, cell)
		}
		if start == len(w) {
			s.cells, s.marks.front = cells, k
			return count, stray
		}
		k++
	}
}

// cell reads the cell that starts at w[start]. k is the first delimiter that may
// end it; next is the one that does, and end the end of the cell with its
// closing quote.
func (s *cellSplitter) cell(w []byte, at, start, k int, suspect bool) (cell []byte, next int, stray bool, end int) {
	delims := s.marks.delims[:s.marks.count]
	for s.g.skip && start < len(w) && w[start] == ' ' {
		start++
	}
	if start < len(w) && w[start] == s.g.quote {
		cell, end = s.quoted(w, start+1)
		for k < len(delims) && int(delims[k])-at < end {
			k++
		}
		return cell, k, false, end
	}
	if s.g.escape != 0 {
		k = s.skipEscaped(w, at, start, k)
	}
	end = len(w)
	if k < len(delims) {
		end = min(int(delims[k])-at, end)
	}
	cell = w[start:end:end]
	stray = suspect && bytes.IndexByte(cell, s.g.other) >= 0
	if s.hasEscape(cell) {
		cell = s.unescape(cell, false)
	}
	return cell, k, stray, end
}

// skipEscaped passes over delimiters that an escape character makes text.
func (s *cellSplitter) skipEscaped(w []byte, at, start, k int) int {
	for ; k < s.marks.count; k++ {
		i := int(s.marks.delims[k]) - at
		if i >= len(w) || s.g.escape == 0 || !s.g.escaped(w[start:], i-start) {
			break
		}
	}
	return k
}

// quoted reads a quoted cell whose text starts at from, and returns the index
// behind its closing quote.
func (s *cellSplitter) quoted(w []byte, from int) ([]byte, int) {
	i, doubled := from, false
	for {
		i = indexFrom(w, i, s.g.quote)
		switch {
		case s.g.escape != 0 && s.g.escaped(w[from:], i-from):
			i++
		case s.g.doubled && i+1 < len(w) && w[i+1] == s.g.quote:
			i += 2
			doubled = true
		default:
			cell := w[from:i:i]
			if s.hasEscape(cell) {
				cell = s.unescape(cell, s.g.doubled)
			} else if doubled {
				cell = s.undouble(cell)
			}
			return cell, i + 1
		}
	}
}

func (s *cellSplitter) hasEscape(w []byte) bool {
	return s.g.escape != 0 && bytes.IndexByte(w, s.g.escape) >= 0
}

// undouble copies a cell with one quote for two.
func (s *cellSplitter) undouble(w []byte) []byte {
	from := len(s.scratch)
	for {
		i := bytes.IndexByte(w, s.g.quote)
		if i < 0 {
			s.scratch = append(s.scratch, w...)
			return s.scratch[from:len(s.scratch):len(s.scratch)]
		}
		s.scratch = append(s.scratch, w[:i+1]...)
		w = w[i+2:]
	}
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
