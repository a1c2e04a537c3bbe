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
	// MixedEnds: a record in it ends otherwise than the layout's first one.
	MixedEnds bool
}

// Splitter cuts a file into chunks. Memory: one record and one window, whatever
// the size of file or chunk. Time: linear in the bytes, whatever they are.
type Splitter struct {
	src    *source
	pos    Position
	ahead  span // found and not consumed, when peeked
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
		if err := s.peek(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return Chunk{}, err
		}
		if s.ahead.kind == dataRow && c.Rows > 0 && s.pos.Offset-c.Start.Offset >= target {
			break
		}
		if err := s.take(&c); err != nil {
			return Chunk{}, err
		}
	}
	if err := s.src.flush(); err != nil {
		return Chunk{}, err
	}
	c.End = s.pos
	if c.End.Offset == c.Start.Offset {
		return Chunk{}, io.EOF
	}
	return c, nil
}

func (s *Splitter) peek() error {
	if s.peeked {
		return nil
	}
	sp, err := s.src.next()
	s.ahead, s.peeked = sp, err == nil
	return err
}

// take moves the record ahead into the chunk.
func (s *Splitter) take(c *Chunk) error {
	sp := s.ahead
	s.peeked = false
	c.MixedEnds = c.MixedEnds || s.src.endsOtherwise(sp.n)
	s.src.lo += sp.n
	s.pos.Offset += int64(sp.n)
	s.pos.Line += sp.lines
	if sp.kind == dataRow {
		s.pos.Row++
		c.Rows++
	}
	if !sp.open {
		return nil
	}
	n, lines, err := s.src.finish()
	s.pos.Offset += n
	s.pos.Line += lines
	return err
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
