package rowio

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"pintu/internal/rowio/rowgen"
)

// longFiles are bodies that go on for ever and tempt a reader to collect them.
var longFiles = map[string]string{
	"rows":             "1,\"a\nb\",3\n",
	"blank lines":      "\n",
	"no record end":    "x",
	"one open quote":   "x\n",
	"all open quotes":  "x\",\":\n",
	"doubled quotes":   "\"\"",
	"carriage returns": "\r",
	"delimiters":       ",",
}

func longLayout(columns int) Layout {
	return Layout{Format: FormatCSV, Dialect: Dialect{}.resolved(), RecordEnd: RecordEndLF, MaxRecordBytes: DefaultMaxRecordBytes,
		Columns: columns, DataStart: Position{Line: 1, Row: 1}}
}

const longBytes = 16 << 20

// heads of long files: the quote that is never closed stands in the first line.
func longFile(name, body string) io.Reader {
	head := ""
	if name == "one open quote" || name == "doubled quotes" {
		head = `"`
	}
	return io.LimitReader(&endless{head: head, body: strings.Repeat(body, 4096)}, longBytes)
}

// allocated runs f and returns how many bytes it allocated in all, freed ones
// included: a stricter measure than what it holds at a time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestMemoryAndWorkDoNotDependOnTheFile(t *testing.T) {
	for name, body := range longFiles {
		t.Run(name, func(t *testing.T) {
			l := longLayout(0)
			start := time.Now()
			split := allocated(func() {
				s := NewSplitter(longFile(name, body), l, l.DataStart, io.Discard)
				end := int64(0)
				for {
					c, err := s.Next(8 << 20)
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					end = c.End.Offset
				}
				if end != longBytes {
					t.Fatalf("chunks end at %d", end)
				}
			})
			read := allocated(func() {
				r := NewReader(longFile(name, body), l, l.DataStart)
				for {
					_, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if r.Position().Offset != longBytes {
					t.Fatalf("read up to %d", r.Position().Offset)
				}
			})
			if most := uint64(4 << 20); split > most {
				t.Errorf("splitter allocated %d bytes, want at most %d", split, most)
			}
			if most := uint64(64 << 20); read > most {
				t.Errorf("reader allocated %d bytes, want at most %d", read, most)
			}
			// Going on to the limit for each of three million open quotes would take
			// hours; passing over the bytes twice takes seconds on any machine.
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestReaderAllocatesNothingPerRow(t *testing.T) {
	var b bytes.Buffer
	rows, err := rowgen.GenerateOrders(&b, 1<<20, 7)
	if err != nil {
		t.Fatal(err)
	}
	l, _ := mustInspect(t, b.Bytes(), Dialect{})
	r := NewReader(bytes.NewReader(b.Bytes()[l.DataStart.Offset:]), l, l.DataStart)
	for range 1000 { // buffers grow to what the rows need
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	perRow := testing.AllocsPerRun(int(rows)-1100, func() {
		if rec, err := r.Next(); err != nil || rec.Bad != nil {
			t.Fatalf("%v, %v", rec.Bad, err)
		}
	})
	if perRow != 0 {
		t.Errorf("%v allocations per row", perRow)
	}
}

func TestLineLongerThanARecordIsOneBadRow(t *testing.T) {
	l := longLayout(3)
	long := strings.Repeat("a,", 2<<20)
	data := "1,2,3\n" + long + "\n\"4\",5,6\n"
	r := NewReader(strings.NewReader(data), l, l.DataStart)
	if rec, err := r.Next(); err != nil || rec.Bad != nil {
		t.Fatalf("first row: %v, %v", rec.Bad, err)
	}
	rec, err := r.Next()
	if err != nil || rec.Bad == nil || rec.Bad.Code != CodeMalformedRow {
		t.Fatalf("long row: %v, %v", rec.Bad, err)
	}
	if len(rec.Raw) != l.MaxRecordBytes || string(rec.Raw) != long[:l.MaxRecordBytes] || rec.RawBytes != int64(len(long)+1) {
		t.Errorf("long row holds %d of %d bytes", len(rec.Raw), rec.RawBytes)
	}
	rec, err = r.Next()
	if err != nil || rec.Bad != nil || rec.Row != 3 || rec.Line != 3 || string(rec.Fields[0]) != "4" {
		t.Errorf("row behind it: %+v, %v", rec, err)
	}
}

func TestUnclosedQuoteCostsItsLineOnly(t *testing.T) {
	l := longLayout(3)
	data := "1,\"open,3\n" + strings.Repeat("2,\"two\",3\n", 200_000)
	rows, problems, _ := readRows(t, strings.NewReader(data), l, l.DataStart, 0)
	if len(rows) != 200_001 || rows[0].Raw != "1,\"open,3\n" || !strings.Contains(problems[0], "unterminated") {
		t.Fatalf("%d rows, first %+v", len(rows), rows[0])
	}
	for i, p := range problems[1:] {
		if p != "" {
			t.Fatalf("row %d: %s", i+2, p)
		}
	}
}

func TestReadErrorsComeBehindTheRowsBeforeThem(t *testing.T) {
	broken := errors.New("connection lost")
	l := longLayout(3)
	file := func() io.Reader {
		return io.MultiReader(strings.NewReader("1,2,3\n4,5,"), &failing{broken})
	}
	r := NewReader(file(), l, l.DataStart)
	if rec, err := r.Next(); err != nil || rec.Row != 1 {
		t.Fatalf("first row: %v", err)
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, broken) {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := NewSplitter(file(), l, l.DataStart, nil).Next(1 << 20); !errors.Is(err, broken) {
		t.Fatalf("splitter: %v", err)
	}
	if _, err := NewSplitter(strings.NewReader("1,2,3\n"), l, l.DataStart, &failing{broken}).Next(1); !errors.Is(err, broken) {
		t.Fatalf("sink: %v", err)
	}
	if _, err := NewReader(&failing{nil}, l, l.DataStart).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Fatalf("reader that gives nothing: %v", err)
	}
}

// failing gives its error and no bytes.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error)  { return 0, f.err }
func (f *failing) Write([]byte) (int, error) { return 0, f.err }
