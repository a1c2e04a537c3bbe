package rowio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// windowBytes is how much is read at a time: small enough for a core's own cache.
	windowBytes = 256 << 10
	// cheapMoveBytes is a tail short enough to move to the front before each read,
	// which keeps reads in the same cached bytes.
	cheapMoveBytes = 8 << 10
	// maxEmptyReads is how many reads of nothing are taken before giving up.
	maxEmptyReads = 100
)

type kind uint8

const (
	dataRow kind = iota
	blank
	comment
)

// flaw is why the record grammar failed; the names do not depend on how much of
// the file behind the row's own line was there to see.
type flaw uint8

const (
	sound flaw = iota
	openQuote
	textAfterQuote
	overlong
)

// span is one record at the front of the source's bytes.
type span struct {
	kind  kind
	flaw  flaw
	n     int   // bytes held, record end included
	lines int64 // line ends in them
	open  bool  // the line goes on behind the bytes held (finish reads on)
}

// memo is what a failed scan learnt about the bytes behind the failed row's line.
// All line ends from there to upTo lie inside quotes as that scan saw them, so a
// later scan that also crosses a line end inside quotes is in the same state and
// need not look at those bytes again. This keeps the work linear on files full
// of stray quotes: each byte is passed by at most one scan that goes on over
// its line and one that does not.
type memo struct {
	upTo   int64 // offset
	quoted bool  // state at upTo
	doomed bool  // the scan failed at upTo for every record that gets there
}

// source reads records off a stream in bounded memory.
type source struct {
	g    grammar
	r    io.Reader
	sink io.Writer // takes the consumed bytes, in blocks; may be nil

	buf    []byte // holds a record of the greatest size and one window
	mark   int    // consumed bytes before it are in the sink
	lo, hi int    // buf[lo:hi] is read and not consumed
	base   int64  // file offset of buf[0]
	eof    bool
	err    error // sticky
	memo   memo
}

func newSource(r io.Reader, l Layout, at Position, sink io.Writer) *source {
	g, err := l.grammar()
	s := &source{g: g, r: r, sink: sink, base: at.Offset, err: err}
	if err == nil {
		s.buf = make([]byte, g.max+windowBytes)
	}
	return s
}

// offset is the place in the file of the next record.
func (s *source) offset() int64 { return s.base + int64(s.lo) }

// next finds the record at the front without consuming it. io.EOF: none left.
// This is the one place where record ends are decided.
func (s *source) next() (span, error) {
	if s.err != nil {
		return span{}, s.err
	}
	if s.lo == s.hi {
		if err := s.fill(); err != nil {
			return span{}, err
		}
		if s.lo == s.hi {
			return span{}, io.EOF
		}
	}
	if s.g.comment != 0 && s.buf[s.lo] == s.g.comment {
		return s.line(comment, sound)
	}
	at, line := cursor{}, s.knownLine()
	for {
		w, final := s.window()
		var v verdict
		at, v = s.g.scan(w, at, line, final)
		switch {
		case v == ended:
			return s.whole(w[:at.pos], at.multi), nil
		case v == crossed && !s.memo.doomed:
			at = cursor{pos: int(s.memo.upTo - s.offset()), quoted: s.memo.quoted, multi: true}
			line = noLine
		case v == crossed:
			return s.line(dataRow, openQuote)
		case v == broken:
			return s.fail(at, textAfterQuote, true)
		case final:
			return s.fail(at, openQuote, true)
		case s.hi-s.lo > s.g.max:
			return s.fail(at, overlong, false)
		default:
			if err := s.fill(); err != nil {
				return span{}, err
			}
		}
	}
}

// window is what may be looked at for the record at the front. final: the file
// ends where the window ends.
func (s *source) window() (w []byte, final bool) {
	if s.hi-s.lo > s.g.max {
		return s.buf[s.lo : s.lo+s.g.max], false
	}
	return s.buf[s.lo:s.hi], s.eof
}

// knownLine is the index behind the first line end of the record at the front
// when the memo covers it, or noLine.
func (s *source) knownLine() int {
	known := s.memo.upTo - s.offset()
	if known <= 0 {
		return noLine
	}
	nl := bytes.IndexByte(s.buf[s.lo:s.lo+int(known)], s.g.end)
	if nl < 0 {
		return noLine
	}
	return nl + 1
}

// whole describes a record that ended as it should.
func (s *source) whole(w []byte, multi bool) span {
	sp := span{n: len(w)}
	switch {
	case multi:
		sp.lines = int64(bytes.Count(w, []byte{s.g.end}))
	case w[len(w)-1] == s.g.end:
		sp.lines = 1
	}
	if (w[0] == '\n' || w[0] == '\r') && len(s.g.content(w)) == 0 {
		sp.kind = blank
	}
	return sp
}

// content is a record without its record end. At the end of a file CR alone
// counts as one: nothing follows that it could separate.
func (g *grammar) content(w []byte) []byte {
	n := len(w)
	if g.end == '\r' {
		if n > 0 && w[n-1] == '\r' {
			n--
		}
		return w[:n]
	}
	if n > 0 && w[n-1] == '\n' {
		n--
	}
	for n > 0 && w[n-1] == '\r' {
		n--
	}
	return w[:n]
}

// fail goes back to the start of a record that did not end and gives its first
// line. at is where the scan stopped and why is its flaw if it stopped within
// that line; doomed says that no other start would have got further.
func (s *source) fail(at cursor, why flaw, doomed bool) (span, error) {
	if upTo := s.offset() + int64(at.pos); upTo > s.memo.upTo {
		s.memo = memo{upTo: upTo, quoted: at.quoted, doomed: doomed}
	}
	if bytes.IndexByte(s.buf[s.lo:s.lo+at.pos], s.g.end) >= 0 {
		why = openQuote
	}
	return s.line(dataRow, why)
}

// line gives the bytes up to the first line end, quotes or not, at most
// MaxRecordBytes of them.
func (s *source) line(k kind, f flaw) (span, error) {
	for from := 0; ; {
		w, final := s.window()
		nl := indexFrom(w, from, s.g.end)
		switch {
		case nl < len(w):
			return span{kind: k, flaw: f, n: nl + 1, lines: 1}, nil
		case final:
			return span{kind: k, flaw: f, n: nl}, nil
		case s.hi-s.lo > s.g.max:
			return span{kind: k, flaw: f, n: nl, open: true}, nil
		}
		from = nl
		if err := s.fill(); err != nil {
			return span{}, err
		}
	}
}

// finish consumes what an open span's line has behind the bytes held, and says
// how much that was.
func (s *source) finish() (n, lines int64, err error) {
	for {
		if s.lo == s.hi {
			if err := s.fill(); err != nil {
				return n, lines, err
			}
			if s.lo == s.hi {
				return n, lines, nil
			}
		}
		w := s.buf[s.lo:s.hi]
		if nl := bytes.IndexByte(w, s.g.end); nl >= 0 {
			s.lo += nl + 1
			return n + int64(nl) + 1, 1, nil
		}
		s.lo = s.hi
		n += int64(len(w))
	}
}

// fill reads more bytes behind hi, moving what is not consumed to the front
// when that is cheap or needed. At the end of the file it sets eof.
func (s *source) fill() error {
	if s.eof {
		return nil
	}
	if s.lo > 0 && (s.hi-s.lo <= cheapMoveBytes || s.hi == len(s.buf)) {
		if err := s.flush(); err != nil {
			return err
		}
		copy(s.buf, s.buf[s.lo:s.hi])
		s.base += int64(s.lo)
		s.hi -= s.lo
		s.lo, s.mark = 0, 0
	}
	into := s.buf[s.hi:min(s.hi+windowBytes, len(s.buf))]
	for range maxEmptyReads {
		n, err := s.r.Read(into)
		s.hi += n
		if errors.Is(err, io.EOF) {
			s.eof = true
			return nil
		}
		if err != nil {
			s.err = fmt.Errorf("read records at offset %d: %w", s.base+int64(s.hi), err)
			return s.err
		}
		if n > 0 {
			return nil
		}
	}
	s.err = fmt.Errorf("read records at offset %d: %w", s.base+int64(s.hi), io.ErrNoProgress)
	return s.err
}

// flush gives the consumed bytes to the sink.
func (s *source) flush() error {
	block := s.buf[s.mark:s.lo]
	s.mark = s.lo
	if s.sink == nil || len(block) == 0 {
		return nil
	}
	if _, err := s.sink.Write(block); err != nil {
		s.err = fmt.Errorf("pass on bytes of a chunk: %w", err)
		return s.err
	}
	return nil
}
