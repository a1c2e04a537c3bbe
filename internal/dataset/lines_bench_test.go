package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"pintu/internal/rowio"
)

func linesFile() []byte {
	var b bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&b, `{"order_id":"ORD-2025-%07d","tanggal":"2025-01-%02d","qty":%d,"harga":%d.50,"diskon":1500,"catatan":"Jl. Sudirman No. %d, Jakarta"}`+"\n",
			i, i%28+1, i%90+1, 1000+i, i%200)
	}
	return b.Bytes()
}

// BenchmarkLines is the whole chain over a file of JSON Lines: cut into chunks, read, checked, hashed.
func BenchmarkLines(b *testing.B) {
	file := linesFile()
	schema := mustCompile(b, benchBody)
	layout, err := rowio.InspectLines(bytes.NewReader(file))
	if err != nil {
		b.Fatal(err)
	}
	binding, _, err := schema.BindNames(layout.Header)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		split := rowio.NewSplitter(bytes.NewReader(file), layout, layout.DataStart, nil)
		var row Row
		for {
			c, err := split.Next(8 << 20)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			r := rowio.NewReader(bytes.NewReader(file[c.Start.Offset:c.End.Offset]), layout, c.Start)
			for {
				rec, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					b.Fatal(err)
				}
				if v := binding.CheckJSON(rec.Fields[0], &row); v != nil {
					b.Fatal(v)
				}
			}
		}
	}
}

// BenchmarkLinesEncodingJSON decodes the same file into a struct and checks nothing.
func BenchmarkLinesEncodingJSON(b *testing.B) {
	file := linesFile()
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		dec := json.NewDecoder(bytes.NewReader(file))
		for {
			var row struct {
				OrderID string  `json:"order_id"`
				Tanggal string  `json:"tanggal"`
				Qty     int     `json:"qty"`
				Harga   float64 `json:"harga"`
				Diskon  float64 `json:"diskon"`
				Catatan string  `json:"catatan"`
			}
			if err := dec.Decode(&row); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}
