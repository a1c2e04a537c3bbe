package rowio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// windowBytes is how much is read at a time: small enough for a core's own cache.
	windowBytes = 64 << 10
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

// span is one record at the front of the source's bytes. (Four fields at most:
// with more the compiler keeps it in memory, which costs a third of the speed.)
type span struct {
	kind  kind
	flaw  flaw
	n     int   // bytes held, record end included
	lines int64 // line ends in them; goesOn: the line goes on behind them
}

// goesOn marks a line that is longer than a record may be: finish reads the rest.
const goesOn = -1

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
	window int
	mark   int // consumed bytes before it are in the sink
	lo, hi int // buf[lo:hi] is read and not consumed
	quote  finder
	marks  *marks // of buf[:hi], for readers; may be nil
	base   int64  // file offset of buf[0]
	eof    bool
	err    error // sticky
	memo   memo
	passed passed
}

// passed are rows that next goes over without giving each as a span: all that a
// Splitter wants of most rows is to count them.
type passed struct {
	upTo  int64 // offset; rows that end before it may be passed over
	rows  int64
	lines int64 // line ends in them
	mixed bool  // one ends otherwise than the layout says
}

func newSource(r io.Reader, l Layout, at Position, sink io.Writer) *source {
	g, err := l.grammar()
	s := &source{g: g, r: r, sink: sink, base: at.Offset, err: err, quote: finder{c: g.quote}}
	s.setWindow(windowBytes)
	return s
}

func (s *source) setWindow(n int) {
	s.window = n
	s.buf = make([]byte, s.g.max+n)
	if s.marks != nil {
		s.marks.restart(s.buf)
	}
}

// offset is the place in the file of the next record.
func (s *source) offset() int64 { return s.base + int64(s.lo) }

// next finds the record at the front without consuming it, perhaps behind rows
// that it passed over (they are consumed, and counted in passed even when there is
// an error). io.EOF: none left.
// This is the one place where record ends are decided.
func (s *source) next() (span, error) {
	if s.lo == s.hi || s.err != nil {
		if err := s.ensure(); err != nil {
			return span{}, err
		}
	}
	if s.g.lines {
		return s.nextLine()
	}
	if s.buf[s.lo] == s.g.comment && s.g.comment != 0 {
		return s.line(comment, sound)
	}
	at, line := cursor{pos: s.lo}, noLine
	if s.memo.upTo > s.offset() {
		line = s.knownLine()
	}
	for {
		limit, final := s.reach()
		var v verdict
		at, v = s.scan(at, limit, line, final)
		switch {
		case v == ended:
			if first := s.buf[s.lo]; !at.multi && first > '\r' && s.buf[at.pos-1] == s.g.end {
				return span{n: at.pos - s.lo, lines: 1}, nil
			}
			return s.whole(at.pos), nil
		case v == crossed && !s.memo.doomed:
			at = cursor{pos: int(s.memo.upTo - s.base), quoted: s.memo.quoted, multi: true}
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
			moved := s.lo
			if err := s.fill(); err != nil {
				return span{}, err
			}
			at.pos += s.lo - moved
			if line != noLine {
				line += s.lo - moved
			}
		}
	}
}

// ensure makes sure that there is a byte at the front.
func (s *source) ensure() error {
	if s.err != nil {
		return s.err
	}
	if err := s.fill(); err != nil {
		return err
	}
	if s.lo == s.hi {
		return io.EOF
	}
	return nil
}

// reach is the index up to which may be looked for the record at the front.
// final: the file ends there.
func (s *source) reach() (limit int, final bool) {
	if s.hi-s.lo > s.g.max {
		return s.lo + s.g.max, false
	}
	return s.hi, s.eof
}

// knownLine is the index behind the first line end of the record at the front
// when the memo covers it, or noLine.
func (s *source) knownLine() int {
	nl := bytes.IndexByte(s.buf[s.lo:s.memo.upTo-s.base], s.g.end)
	if nl < 0 {
		return noLine
	}
	return s.lo + nl + 1
}

// whole describes a record that ended as it should.
func (s *source) whole(end int) span {
	w := s.buf[s.lo:end]
	sp := span{n: len(w), lines: int64(bytes.Count(w, []byte{s.g.end}))}
	if len(s.g.content(w)) == 0 {
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
	if upTo := s.base + int64(at.pos); upTo > s.memo.upTo {
		s.memo = memo{upTo: upTo, quoted: at.quoted, doomed: doomed}
	}
	if bytes.IndexByte(s.buf[s.lo:at.pos], s.g.end) >= 0 {
		why = openQuote
	}
	return s.line(dataRow, why)
}

// line gives the bytes up to the first line end, quotes or not, at most
// MaxRecordBytes of them.
func (s *source) line(k kind, f flaw) (span, error) {
	s.quote.at = -1 // the scan that failed has been further
	for searched := 0; ; {
		limit, final := s.reach()
		nl := indexFrom(s.buf[:limit], s.lo+searched, s.g.end)
		n := nl - s.lo
		switch {
		case nl < limit:
			return span{kind: k, flaw: f, n: n + 1, lines: 1}, nil
		case final:
			return span{kind: k, flaw: f, n: n}, nil
		case s.hi-s.lo > s.g.max:
			return span{kind: k, flaw: f, n: n, lines: goesOn}, nil
		}
		searched = n
		if err := s.fill(); err != nil {
			return span{}, err
		}
	}
}

// consume moves at and the source behind a span.
func (s *source) consume(sp span, at *Position) error {
	s.lo += sp.n
	at.Offset += int64(sp.n)
	if sp.lines == goesOn {
		return s.finish(at)
	}
	at.Line += sp.lines
	return nil
}

// finish passes over the rest of a line.
func (s *source) finish(at *Position) error {
	for {
		if s.lo == s.hi {
			if err := s.fill(); err != nil {
				return err
			}
			if s.lo == s.hi {
				return nil
			}
		}
		nl := bytes.IndexByte(s.buf[s.lo:s.hi], s.g.end)
		if nl >= 0 {
			s.lo += nl + 1
			at.Offset += int64(nl) + 1
			at.Line++
			return nil
		}
		at.Offset += int64(s.hi - s.lo)
		s.lo = s.hi
	}
}

// fill reads more bytes behind hi, moving what is not consumed to the front when
// that is needed, or cheap: reading into the same bytes keeps them cached. At the
// end of the file it sets eof.
func (s *source) fill() error {
	if s.eof {
		return nil
	}
	if s.lo > 0 && (s.hi-s.lo <= s.window/32 || s.hi == len(s.buf)) {
		if err := s.flush(); err != nil {
			return err
		}
		copy(s.buf, s.buf[s.lo:s.hi])
		s.base += int64(s.lo)
		s.hi -= s.lo
		s.quote.moved(s.lo)
		if s.marks != nil {
			s.marks.moved(s.lo, s.buf[:s.hi])
		}
		s.lo, s.mark = 0, 0
	}
	into := s.buf[s.hi:min(s.hi+s.window, len(s.buf))]
	for range maxEmptyReads {
		n, err := s.r.Read(into)
		if s.marks != nil {
			s.marks.add(s.buf, s.hi, s.hi+n)
		}
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
