package rowio

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// RejectColumns are the columns that RejectWriter puts before those of the file.
var RejectColumns = []string{"_row_number", "_code", "_field", "_class", "_message"}

// Reject is a row that was not applied.
type Reject struct {
	Row                         int64
	Code, Field, Class, Message string
	Raw                         []byte // exact bytes of the record, with its record end if it has one; not for WriteFrom
}

// RejectWriter writes rejected.csv in the dialect of the file it comes from, or
// rejected.jsonl for JSON Lines: rows can be repaired in it and imported again.
//
// The added columns stand first and the raw bytes follow untouched, because
// behind a row with an open quote they would be text of its last cell. The row
// number is always quoted for the same reason: an open quote of the row before
// meets it as a closing quote followed by a digit, which is malformed in any
// dialect, so it can never swallow the next row. Line ends in the added columns
// become spaces: a malformed row is read again up to its first line end. A record
// that the file ended without a record end gets one. The added columns count
// towards MaxRecordBytes when the file is read again. Without a header in the
// file none is written.
//
// In JSON Lines the columns are the first members of the row's own object. What
// is behind its brace follows untouched, so that a broken object stays broken in
// the same way. A row that does not start with a brace stands behind an object of
// the added members alone, which is no row either.
type RejectWriter struct {
	w      io.Writer
	g      grammar
	layout Layout
	line   []byte
	err    error
}

// NewRejectWriter writes rows of a file of layout l to w, unbuffered.
func NewRejectWriter(w io.Writer, l Layout) *RejectWriter {
	g, err := l.grammar()
	return &RejectWriter{w: w, g: g, layout: l, err: err}
}

// Header writes what stands before the rows: a sep= line if the file had one,
// and the column names.
func (w *RejectWriter) Header() error {
	w.line = w.line[:0]
	if w.g.lines {
		return w.err
	}
	end := w.layout.recordEndBytes()
	if w.layout.SepLine {
		w.line = append(w.line, "sep="+string(w.g.delim)+end...)
	}
	if len(w.layout.Header) > 0 {
		for i, name := range RejectColumns {
			w.cell(name, i == 0)
			w.line = append(w.line, w.g.delim)
		}
		for i, name := range w.layout.Header {
			if i > 0 {
				w.line = append(w.line, w.g.delim)
			}
			w.cell(name, false)
		}
		w.line = append(w.line, end...)
	}
	return w.flush()
}

// Write writes one row.
func (w *RejectWriter) Write(r Reject) error {
	if w.g.lines {
		return w.WriteFrom(r, bytes.NewReader(r.Raw))
	}
	w.columns(r)
	w.line = append(w.line, r.Raw...)
	if !bytes.HasSuffix(r.Raw, []byte{w.g.end}) {
		w.line = append(w.line, w.layout.recordEndBytes()...)
	}
	return w.flush()
}

// WriteFrom writes one row whose bytes are read from raw: a line without an end may be as long as the file.
func (w *RejectWriter) WriteFrom(r Reject, raw io.Reader) error {
	if w.g.lines {
		var err error
		if raw, err = w.members(r, raw); err != nil {
			return err
		}
	} else {
		w.columns(r)
	}
	if err := w.flush(); err != nil {
		return err
	}
	last := &lastByte{w: w.w}
	if _, err := io.Copy(last, raw); err != nil {
		w.err = fmt.Errorf("write rejected row %d: %w", r.Row, err)
		return w.err
	}
	w.line = w.line[:0]
	if last.c != w.g.end {
		w.line = append(w.line, w.layout.recordEndBytes()...)
	}
	return w.flush()
}

// lastByte remembers the last byte that went through it.
type lastByte struct {
	w io.Writer
	c byte
}

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.c = p[len(p)-1]
	}
	return l.w.Write(p)
}

// columns begins a line with the added columns.
func (w *RejectWriter) columns(r Reject) {
	w.line = w.line[:0]
	w.cell(strconv.FormatInt(r.Row, 10), true)
	for _, text := range []string{r.Code, r.Field, r.Class, r.Message} {
		w.line = append(w.line, w.g.delim)
		w.cell(text, false)
	}
	w.line = append(w.line, w.g.delim)
}

func (w *RejectWriter) flush() error {
	if w.err != nil {
		return w.err
	}
	if _, err := w.w.Write(w.line); err != nil {
		w.err = fmt.Errorf("write rejected rows: %w", err)
	}
	return w.err
}

// cell adds one cell, quoted if asked or needed.
func (w *RejectWriter) cell(text string, quoted bool) {
	text = lineEnds.Replace(text)
	if !quoted && !w.needsQuotes(text) {
		w.line = append(w.line, text...)
		return
	}
	w.line = append(w.line, w.g.quote)
	for i := range len(text) {
		switch c := text[i]; {
		case c == w.g.quote && w.g.doubled:
			w.line = append(w.line, c)
		case w.g.escape != 0 && (c == w.g.quote || c == w.g.escape):
			w.line = append(w.line, w.g.escape)
		}
		w.line = append(w.line, text[i])
	}
	w.line = append(w.line, w.g.quote)
}

var lineEnds = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ")

func (w *RejectWriter) needsQuotes(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c == w.g.delim || c == w.g.quote || c == ' ' && i == 0 || c == w.g.escape && c != 0 {
			return true
		}
	}
	return false
}
