package rowio

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestResetReadsAsANewReader reads one file after the other with one Reader, some of them not to their end.
func TestResetReadsAsANewReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		l.MaxRecordBytes = rapid.SampledFrom([]int{8, 40, 1 << 10}).Draw(t, "max")
		if rapid.Bool().Draw(t, "lines") {
			l = Layout{Format: FormatJSONL, RecordEnd: RecordEndLF, MaxRecordBytes: l.MaxRecordBytes}
		}
		window := rapid.SampledFrom([]int{1, 7, 64, 4096}).Draw(t, "window")
		used := NewReader(bytes.NewReader(nil), l, Position{})
		used.src.setWindow(window)
		for range 3 {
			data, at := drawFile(t), Position{Offset: rapid.Int64Range(0, 9).Draw(t, "offset"), Line: 4, Row: 3}
			most := rapid.SampledFrom([]int{1, 2, 1 << 20}).Draw(t, "most")
			fresh := NewReader(bytes.NewReader(data), l, at)
			fresh.src.setWindow(window)
			used.Reset(bytes.NewReader(data), at)
			if d := cmp.Diff(readSome(t, fresh, most), readSome(t, used, most)); d != "" {
				t.Fatalf("%q (-new +reset):\n%s", data, d)
			}
		}
	})
}

type someRows struct {
	Rows []Record
	At   Position
	Err  string
}

// readSome reads at most n rows.
func readSome(t failer, r *Reader, n int) (out someRows) {
	t.Helper()
	for len(out.Rows) < n {
		rec, err := r.Next()
		if err != nil {
			out.Err = err.Error()
			break
		}
		rec.Raw = bytes.Clone(rec.Raw)
		fields := rec.Fields
		rec.Fields = nil
		for _, f := range fields {
			rec.Fields = append(rec.Fields, bytes.Clone(f))
		}
		out.Rows = append(out.Rows, rec)
	}
	out.At = r.Position()
	return out
}

func TestResetTakesNoBuffers(t *testing.T) {
	row := []byte("a,b,\"c\"\n")
	l := Layout{Format: FormatCSV, RecordEnd: RecordEndLF, MaxRecordBytes: DefaultMaxRecordBytes, Columns: 3}
	body := bytes.NewReader(row)
	r := NewReader(body, l, Position{Row: 1})
	allocs := testing.AllocsPerRun(100, func() {
		body.Reset(row)
		r.Reset(body, Position{Row: 1})
		if rec, err := r.Next(); err != nil || rec.Bad != nil {
			t.Fatal(rec.Bad, err)
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations a row", allocs)
	}
}
