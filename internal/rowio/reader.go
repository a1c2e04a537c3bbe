package rowio

import (
	"fmt"
	"io"
)

// Record is one data record. Raw and Fields are valid until the next call of
// Reader.Next.
type Record struct {
	// Raw is the record as it is in the file, record end included: all of it, or
	// the first MaxRecordBytes bytes of a single line that is longer.
	Raw      []byte
	RawBytes int64 // length in the file; more than len(Raw) only for such a line
	Row      int64
	Line     int64 // physical line of the first byte
	Offset   int64 // of the first byte

	// Fields are the cells without quotes and escapes. nil when the record has no
	// cells that can be told apart; at most Layout.Columns+1 of them when there are
	// too many; without the cell that TrailingDelimiter stands for. Of JSON Lines, the
	// line alone, without its end.
	Fields            [][]byte
	Bad               *RowProblem // nil when well formed
	TrailingDelimiter bool        // one empty cell too many was dropped
}

// Reader gives the data records of a chunk or of a whole file. It allocates
// nothing per well-formed row.
type Reader struct {
	src   *source
	flaws map[flaw]*RowProblem
	pos   Position
	cells *cellSplitter
	line  [][]byte // the one cell of a line of JSON
	long  []byte   // head of a line longer than a record may be
}

// NewReader reads records from r, which holds the bytes of the file from
// at.Offset to the end of a chunk or of the file. A stream that is cut short
// without an error looks like the end: compare Position with the chunk's End
// after io.EOF.
func NewReader(r io.Reader, l Layout, at Position) *Reader {
	src := newSource(r, l, at, nil)
	if src.g.lines {
		return &Reader{src: src, pos: at, line: make([][]byte, 1), flaws: flawProblems(src.g.max)}
	}
	cells := newCellSplitter(src.g)
	src.marks = &cells.marks
	src.marks.restart(src.buf)
	return &Reader{src: src, pos: at, cells: cells, flaws: flawProblems(src.g.max)}
}

// Position is the place behind the last record returned, blank lines behind it
// not included; after io.EOF, the end. A Reader that starts there gives exactly
// the records that are left.
func (r *Reader) Position() Position { return r.pos }

// Next returns the next data record, or io.EOF. Blank lines and comments are
// passed over.
func (r *Reader) Next() (rec Record, err error) {
	for {
		var sp span
		if sp, err = r.src.next(); err != nil {
			return rec, err
		}
		if sp.kind == dataRow {
			err = r.record(sp, &rec)
			return rec, err
		}
		if err = r.src.consume(sp, &r.pos); err != nil {
			return rec, err
		}
	}
}

// record reads the record at the front, in place: copies of a Record cost time.
func (r *Reader) record(sp span, rec *Record) error {
	at := r.src.lo
	rec.Raw = r.src.buf[at : at+sp.n : at+sp.n]
	rec.Row, rec.Line, rec.Offset = r.pos.Row, r.pos.Line, r.pos.Offset
	if sp.lines == goesOn { // reading on overwrites the bytes held
		r.long = append(r.long[:0], rec.Raw...)
		rec.Raw = r.long
	}
	if err := r.src.consume(sp, &r.pos); err != nil {
		return err
	}
	rec.RawBytes = r.pos.Offset - rec.Offset
	r.pos.Row++
	if sp.flaw != sound {
		rec.Bad = r.flaws[sp.flaw]
		return nil
	}
	if r.src.g.lines {
		r.readLine(rec)
		return nil
	}
	r.read(rec, at)
	return nil
}

// flawProblems are made once: a damaged file may have millions of such rows.
func flawProblems(max int) map[flaw]*RowProblem {
	return map[flaw]*RowProblem{
		textAfterQuote: {CodeMalformedRow, "text after the closing quote of a cell; a quote inside a quoted cell must be doubled"},
		openQuote:      {CodeMalformedRow, fmt.Sprintf("unterminated quote: a quoted cell of this line has no proper closing quote before the end of the file or within %d bytes", max)},
		overlong:       {CodeMalformedRow, fmt.Sprintf("line longer than %d bytes", max)},
	}
}

// read splits a record that ended as it should, at index at of the buffer, and
// looks at its bytes.
func (r *Reader) read(rec *Record, at int) {
	g, marks := &r.src.g, r.src.marks
	content := g.content(rec.Raw)
	held, end := r.src.buf[:r.src.hi], at+len(content)
	count, stray := r.cells.split(content, at, marks.other.next(held, at) < end)
	rec.Fields = r.cells.cells
	invalid := len(content)
	if ascii := marks.ascii(at, end); ascii < invalid {
		invalid = ascii + firstInvalid(content[ascii:])
	}
	switch {
	case marks.nul.next(held, at) < end:
		rec.Bad = &RowProblem{CodeMalformedRow, "NUL byte in the row"}
	case invalid < len(content):
		rec.Bad = invalidEncoding(content, invalid)
	case stray && g.end == '\n':
		rec.Bad = &RowProblem{CodeMalformedRow, "carriage return in a cell without quotes, in a file whose records end in line feeds"}
	case stray:
		rec.Bad = &RowProblem{CodeMalformedRow, "line feed in a cell without quotes, in a file whose records end in carriage returns"}
	case g.columns == 0 || count == g.columns:
	case count == g.columns+1 && len(rec.Fields[count-1]) == 0:
		rec.Fields, rec.TrailingDelimiter = rec.Fields[:g.columns], true
	default:
		rec.Bad = wrongCount(count, g.columns)
	}
}

func wrongCount(got, want int) *RowProblem {
	cells := "cells"
	if got == 1 {
		cells = "cell"
	}
	return &RowProblem{CodeWrongColumnCount, fmt.Sprintf("%d %s, expected %d", got, cells, want)}
}
