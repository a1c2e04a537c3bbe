package rowio

import (
	"errors"
	"io"
)

// Chunk is a run of whole records. Chunks of one Splitter tile the file from
// where it started, without gap or overlap.
type Chunk struct {
	Start, End Position // End.Offset is exclusive
	Rows       int64    // data records in it
	// MixedEnds: a record in it ends otherwise than the layout's first one (lines
	// too long for a record are not looked at).
	MixedEnds bool
}

// Splitter cuts a file into chunks. Memory: one record and one window, whatever
// the size of file or chunk. Time: linear in the bytes, whatever they are.
type Splitter struct {
	src    *source
	pos    Position
	ahead  span // the first record of the next chunk, when peeked
	peeked bool
}

// NewSplitter cuts the file whose bytes from at.Offset on are r. at is
// l.DataStart or the End of an earlier chunk of the same layout. sink (nil: none)
// has received exactly the bytes of a chunk when Next returns it.
func NewSplitter(r io.Reader, l Layout, at Position, sink io.Writer) *Splitter {
	return &Splitter{src: newSource(r, l, at, sink), pos: at}
}

// Next returns the smallest run of whole records that has at least target bytes
// and one data record, together with the blank lines and comments behind it, so
// that a chunk has rows unless the file has none. io.EOF: no byte is left.
func (s *Splitter) Next(target int64) (Chunk, error) {
	c := Chunk{Start: s.pos}
	for {
		sp, err := s.next(&c, target)
		if err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return Chunk{}, err
		}
		if sp.kind == dataRow {
			if c.Rows > 0 && s.pos.Offset-c.Start.Offset >= target {
				s.ahead, s.peeked = sp, true
				break
			}
			c.Rows++
		}
		if s.src.endsOtherwise(sp.n) {
			c.MixedEnds = true
		}
		if err := s.src.consume(sp, &s.pos); err != nil {
			return Chunk{}, err
		}
	}
	if err := s.src.flush(); err != nil {
		return Chunk{}, err
	}
	s.pos.Row += c.Rows
	c.End = s.pos
	if c.End.Offset == c.Start.Offset {
		return Chunk{}, io.EOF
	}
	return c, nil
}

// next is the next record to decide about. Rows that end before the chunk has
// its target size belong to it and need no decision.
func (s *Splitter) next(c *Chunk, target int64) (span, error) {
	if s.peeked {
		s.peeked = false
		return s.ahead, nil
	}
	before := s.src.offset()
	s.src.passed = passed{upTo: c.Start.Offset + target}
	sp, err := s.src.next()
	s.pos.Offset += s.src.offset() - before
	s.pos.Line += s.src.passed.lines
	c.Rows += s.src.passed.rows
	c.MixedEnds = c.MixedEnds || s.src.passed.mixed
	return sp, err
}

// endsOtherwise tells whether the n bytes at the front end in LF with a CR
// before it where the layout has none, or the other way round.
func (s *source) endsOtherwise(n int) bool {
	w := s.buf[s.lo : s.lo+n]
	if s.g.end != '\n' || w[n-1] != '\n' {
		return false
	}
	return (n > 1 && w[n-2] == '\r') != s.g.hasCR
}
