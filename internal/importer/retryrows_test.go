package importer

import (
	"testing"

	"pintu/internal/rowio"
)

func BenchmarkRowOfAList(b *testing.B) {
	layout := rowio.Layout{Format: rowio.FormatCSV, RecordEnd: rowio.RecordEndLF, MaxRecordBytes: rowio.DefaultMaxRecordBytes, Columns: 4}
	l := listed{RowNumber: 3, Line: 4, Offset: 181, Raw: []byte("A3,2026-01-10,\"Kain, Songket\",180000\n")}
	reader := newOneReader(layout)
	for b.Loop() {
		if rec, err := reader.read(l); err != nil || rec.Bad != nil {
			b.Fatal(rec.Bad, err)
		}
	}
}
