package rowio

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func addSeeds(f *testing.F, add func(data []byte)) {
	files, err := filepath.Glob("testdata/cases/*.csv")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		add(data)
	}
	for _, text := range nasty {
		add([]byte("a,b\n" + text + "\nc," + text))
	}
}

// FuzzSplit: any bytes, any chunk size, any limit and dialect give the rows of the
// plain reference.
func FuzzSplit(f *testing.F) {
	addSeeds(f, func(data []byte) {
		f.Add(data, uint8(16), uint8(0), uint16(1024), uint8(0))
		f.Add(data, uint8(1), uint8(0x2F), uint16(20), uint8(3))
	})
	f.Fuzz(func(t *testing.T, data []byte, target, options uint8, max uint16, window uint8) {
		if len(data) > 1<<12 {
			return
		}
		l := fuzzLayout(options, max)
		checkWhole(t, data, l, asIs, int(window))
		checkChunks(t, data, l, int64(target), asIs, int(window))
	})
}

// fuzzLayout reads a dialect out of a byte.
func fuzzLayout(options uint8, max uint16) Layout {
	d := Dialect{Delimiter: ","}
	if options&1 != 0 {
		d.EscapeChar = `\`
	}
	if options&2 != 0 {
		d.SkipInitialSpace = true
	}
	if options&4 != 0 {
		d.CommentChar = "#"
	}
	end := RecordEndLF
	if options&8 != 0 {
		end = RecordEndCR
	}
	return Layout{Format: FormatCSV, Dialect: d.resolved(), RecordEnd: end, MaxRecordBytes: int(max)%2000 + 1,
		Columns: int(options >> 4), DataStart: Position{Line: 1, Row: 1}}
}

// FuzzParse: where encoding/csv and this package are both defined (no CR, no
// error) they find the same cells; and Inspect takes any bytes.
func FuzzParse(f *testing.F) {
	addSeeds(f, func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, _, err := Inspect(bytes.NewReader(data), Dialect{}); err == nil {
			checkWhole(t, data, l, asIs, 0)
		}
		if bytes.IndexByte(data, '\r') >= 0 {
			return
		}
		std := csv.NewReader(bytes.NewReader(data))
		std.FieldsPerRecord = -1
		want, err := std.ReadAll()
		if err != nil {
			return
		}
		l := fuzzLayout(0, 0)
		l.MaxRecordBytes = DefaultMaxRecordBytes
		rows, _, _ := readRows(t, bytes.NewReader(data), l, l.DataStart, 0)
		var got [][]string
		for _, r := range rows {
			got = append(got, r.Fields)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("cells of %q (encoding/csv -, rowio +):\n%s", data, d)
		}
	})
}
