package rowio

import (
	"bytes"
	"math"
)

// splitter takes one record apart into cells.
type splitter struct {
	g       grammar
	limit   int // cells kept; the rest are counted
	cells   [][]byte
	scratch []byte // unescaped cells
}

func newCellSplitter(g grammar) splitter {
	limit := math.MaxInt
	if g.columns > 0 {
		limit = g.columns + 1
	}
	return splitter{g: g, limit: limit}
}

// split returns the cells of a record that scan found well formed, given
// without its record end. count is how many there are; stray tells that a cell
// without quotes holds the line byte that ends no record in this file.
func (s *splitter) split(w []byte) (cells [][]byte, count int, stray bool) {
	s.cells, s.scratch = s.cells[:0], s.scratch[:0]
	suspect := bytes.IndexByte(w, s.g.other) >= 0
	for i := 0; ; i++ { // i: start of a cell
		if s.g.skip {
			for i < len(w) && w[i] == ' ' {
				i++
			}
		}
		start := i
		var cell []byte
		if i < len(w) && w[i] == s.g.quote {
			cell, i = s.quoted(w, i+1)
		} else {
			cell, i = s.unquoted(w, i)
			stray = stray || suspect && bytes.IndexByte(w[start:i], s.g.other) >= 0
		}
		if count++; count <= s.limit {
			s.cells = append(s.cells, cell)
		}
		if i == len(w) {
			return s.cells, count, stray
		}
	}
}

// quoted reads a quoted cell whose text starts at from, and returns the index
// behind its closing quote.
func (s *splitter) quoted(w []byte, from int) ([]byte, int) {
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
			if rewrite || s.hasEscape(w[from:i]) {
				return s.unescape(w[from:i], s.g.doubled), i + 1
			}
			return w[from:i:i], i + 1
		}
	}
}

// unquoted reads a cell without quotes and returns the index of the delimiter
// behind it, or len(w).
func (s *splitter) unquoted(w []byte, from int) ([]byte, int) {
	i := indexFrom(w, from, s.g.delim)
	if s.g.escape == 0 {
		return w[from:i:i], i
	}
	for i < len(w) && s.g.escaped(w[from:], i-from) {
		i = indexFrom(w, i+1, s.g.delim)
	}
	if s.hasEscape(w[from:i]) {
		return s.unescape(w[from:i], false), i
	}
	return w[from:i:i], i
}

func (s *splitter) hasEscape(w []byte) bool {
	return s.g.escape != 0 && bytes.IndexByte(w, s.g.escape) >= 0
}

// unescape copies a cell without its escapes. An escape character before
// anything but quote, delimiter or itself is text.
func (s *splitter) unescape(w []byte, doubled bool) []byte {
	from := len(s.scratch)
	for i := 0; i < len(w); i++ {
		c := w[i]
		if i+1 < len(w) {
			n := w[i+1]
			if c == s.g.quote && doubled && n == c ||
				s.g.escape != 0 && c == s.g.escape && (n == s.g.quote || n == s.g.delim || n == c) {
				c = n
				i++
			}
		}
		s.scratch = append(s.scratch, c)
	}
	return s.scratch[from:len(s.scratch):len(s.scratch)]
}
