package rowio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// failer is what testing.T and rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// slow makes a reader of bytes; tests put short reads in between.
type slow func(io.Reader) io.Reader

// readRows reads r to its end and returns the rows, the problems as text and the
// position there. window 0 leaves the usual one.
func readRows(t failer, r io.Reader, l Layout, at Position, window int) ([]refRow, []string, Position) {
	t.Helper()
	rd := NewReader(r, l, at)
	if window > 0 {
		rd.src.setWindow(window)
	}
	var rows []refRow
	var problems []string
	for {
		rec, err := rd.Next()
		if errors.Is(err, io.EOF) {
			return rows, problems, rd.Position()
		}
		if err != nil {
			t.Fatalf("next: %v", err)
		}
		row, problem := plainRow(rec)
		if end := rd.Position(); end.Offset != rec.Offset+rec.RawBytes || end.Row != rec.Row+1 {
			t.Fatalf("position %+v behind row %d at %d of %d bytes", end, rec.Row, rec.Offset, rec.RawBytes)
		}
		rows, problems = append(rows, row), append(problems, problem)
	}
}

// plainRow copies a record out of the reader's buffers.
func plainRow(rec Record) (refRow, string) {
	row := refRow{Raw: string(rec.Raw), Row: rec.Row, Line: rec.Line, Offset: rec.Offset, Trailing: rec.TrailingDelimiter}
	for _, f := range rec.Fields {
		row.Fields = append(row.Fields, string(f))
	}
	if rec.Bad == nil {
		return row, ""
	}
	row.Code = rec.Bad.Code
	return row, rec.Bad.Error()
}

// checkWhole compares one pass over the file with the reference.
func checkWhole(t failer, data []byte, l Layout, wrap slow, window int) {
	t.Helper()
	want := readReference(data, l)
	got, _, end := readRows(t, wrap(bytes.NewReader(data[l.DataStart.Offset:])), l, l.DataStart, window)
	if d := cmp.Diff(want.rows, got); d != "" {
		t.Fatalf("rows of %q (want -, got +):\n%s", data, d)
	}
	if end != want.end(l) {
		t.Fatalf("end of %q: %+v, want %+v", data, end, want.end(l))
	}
}

func (f refFile) end(l Layout) Position {
	if len(f.ends) == 0 {
		return l.DataStart
	}
	return f.ends[len(f.ends)-1]
}

// checkChunks cuts the file and compares every chunk with what one pass says.
func checkChunks(t failer, data []byte, l Layout, target int64, wrap slow, window int) {
	t.Helper()
	whole, wholeProblems, end := readRows(t, bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart, 0)
	var rows []refRow
	var problems []string
	at := l.DataStart
	for _, c := range splitAll(t, data, l, target, wrap, window) {
		if c.Start != at || c.End.Offset <= at.Offset || c.End.Row-c.Start.Row != c.Rows {
			t.Fatalf("chunk %+v behind %+v in %q", c, at, data)
		}
		part := wrap(bytes.NewReader(data[c.Start.Offset:c.End.Offset]))
		got, bad, last := readRows(t, part, l, c.Start, window)
		if last != c.End || int64(len(got)) != c.Rows {
			t.Fatalf("chunk %+v of %q read as %d rows up to %+v", c, data, len(got), last)
		}
		if at != l.DataStart && c.Rows == 0 {
			t.Fatalf("chunk %+v of %q has no rows", c, data)
		}
		checkSmallest(t, got, c, target)
		rows, problems, at = append(rows, got...), append(problems, bad...), c.End
	}
	if at != end {
		t.Fatalf("chunks of %q end at %+v, the file at %+v", data, at, end)
	}
	if d := cmp.Diff(whole, rows); d != "" {
		t.Fatalf("rows of %q in chunks of %d (whole -, chunks +):\n%s", data, target, d)
	}
	if d := cmp.Diff(wholeProblems, problems); d != "" {
		t.Fatalf("problems of %q in chunks of %d (whole -, chunks +):\n%s", data, target, d)
	}
}

// checkSmallest: without its last row a chunk would be below the target.
func checkSmallest(t failer, rows []refRow, c Chunk, target int64) {
	t.Helper()
	if len(rows) < 2 {
		return
	}
	if before := rows[len(rows)-1].Offset - c.Start.Offset; before >= target {
		t.Fatalf("chunk %+v has %d bytes before its last row, target %d", c, before, target)
	}
}

// splitAll returns the chunks and checks what the sink was given for each, and
// that a splitter which starts at a chunk's end goes on the same.
func splitAll(t failer, data []byte, l Layout, target int64, wrap slow, window int) []Chunk {
	t.Helper()
	var sink bytes.Buffer
	s := NewSplitter(wrap(bytes.NewReader(data[l.DataStart.Offset:])), l, l.DataStart, &sink)
	if window > 0 {
		s.src.setWindow(window)
	}
	var chunks []Chunk
	for {
		c, err := s.Next(target)
		if errors.Is(err, io.EOF) {
			return chunks
		}
		if err != nil {
			t.Fatalf("next chunk: %v", err)
		}
		if want := data[c.Start.Offset:c.End.Offset]; !bytes.Equal(sink.Bytes(), want) {
			t.Fatalf("sink got %q for chunk %+v of %q", sink.Bytes(), c, data)
		}
		sink.Reset()
		again, err := NewSplitter(bytes.NewReader(data[c.Start.Offset:]), l, c.Start, nil).Next(target)
		if err != nil || again != c {
			t.Fatalf("resumed at %+v of %q: chunk %+v (%v), want %+v", c.Start, data, again, err, c)
		}
		chunks = append(chunks, c)
	}
}

// checkResume reads on from the position behind every row.
func checkResume(t failer, data []byte, l Layout) {
	t.Helper()
	whole, _, _ := readRows(t, bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart, 0)
	rd := NewReader(bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart)
	for i := range whole {
		if _, err := rd.Next(); err != nil {
			t.Fatalf("next: %v", err)
		}
		at := rd.Position()
		rest, _, _ := readRows(t, bytes.NewReader(data[at.Offset:]), l, at, 0)
		if d := cmp.Diff(whole[i+1:], rest, cmp.Transformer("empty", func(r []refRow) string { return fmt.Sprint(r) })); d != "" {
			t.Fatalf("rows of %q from %+v:\n%s", data, at, d)
		}
	}
}

func asIs(r io.Reader) io.Reader { return r }

func mustInspect(t *testing.T, data []byte, d Dialect) (Layout, []Warning) {
	t.Helper()
	l, warnings, err := Inspect(bytes.NewReader(data), d)
	if err != nil {
		t.Fatal(err)
	}
	return l, warnings
}
