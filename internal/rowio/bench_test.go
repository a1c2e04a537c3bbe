package rowio

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"sync"
	"testing"

	"pintu/internal/rowio/rowgen"
)

// benchData is one generated file for all benchmarks of a run: compare their
// MB/s with that of encoding/csv, not with another machine's.
var benchData = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	b.Grow(65 << 20)
	if _, err := rowgen.GenerateOrders(&b, 64<<20, 1); err != nil {
		panic(err)
	}
	return b.Bytes()
})

func benchLayout(b *testing.B, data []byte) Layout {
	b.Helper()
	l, _, err := Inspect(bytes.NewReader(data), Dialect{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.ResetTimer()
	return l
}

func BenchmarkEncodingCSV(b *testing.B) {
	data := benchData()
	benchLayout(b, data)
	for b.Loop() {
		r := csv.NewReader(bytes.NewReader(data))
		r.ReuseRecord = true
		for {
			_, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkSplitter(b *testing.B) {
	data := benchData()
	l := benchLayout(b, data)
	for b.Loop() {
		s := NewSplitter(bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart, nil)
		for {
			_, err := s.Next(8 << 20)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkReader(b *testing.B) {
	data := benchData()
	l := benchLayout(b, data)
	for b.Loop() {
		r := NewReader(bytes.NewReader(data[l.DataStart.Offset:]), l, l.DataStart)
		for {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if rec.Bad != nil {
				b.Fatal(rec.Bad)
			}
		}
	}
}
