package compute

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pintu/internal/dataset"
	"pintu/internal/rowio"
	"pintu/internal/rowio/rowgen"
)

// BenchmarkChain reads a file of orders whole: records, typed fields with constraints, one computed
// column with decimals, hash and key. encoding/csv reads the same bytes in between, and CPU
// time is what is measured: of_encoding/csv is the speed of the chain as a share of its speed.
func BenchmarkChain(b *testing.B) {
	var file bytes.Buffer
	rows, err := rowgen.GenerateOrders(&file, 8<<20, 1)
	if err != nil {
		b.Fatal(err)
	}
	layout, _, err := rowio.Inspect(bytes.NewReader(file.Bytes()), rowio.Dialect{})
	if err != nil {
		b.Fatal(err)
	}
	const checked = `{"name":"order_id"},{"name":"customer"},{"name":"address"},{"name":"date","type":"date","constraints":{"minimum":"2000-01-01"}},
		{"name":"qty","type":"integer","constraints":{"minimum":1}},{"name":"price","type":"number","constraints":{"minimum":0}},
		{"name":"discount","type":"number","constraints":{"minimum":0}}`
	const texts = `,{"name":"city"},{"name":"sku"},{"name":"status"},{"name":"note"}`
	const total = `{"name":"total","type":"number","expression":"qty * price - (discount == null ? 0 : discount)"}`
	for _, c := range []struct{ name, fields, computed string }{
		{"7 fields", checked, ""}, {"7 fields and a computed column", checked, total},
		{"11 fields", checked + texts, ""}, {"11 fields and a computed column", checked + texts, total},
	} {
		b.Run(c.name, func(b *testing.B) {
			body := `{"schema":{"fields":[` + c.fields + `],"primaryKey":"order_id","missingValues":[""]},"computed":[` + c.computed + `]}`
			binding := bind(b, body, strings.Split(rowgen.OrdersHeader, ",")...)
			var ours, theirs time.Duration
			for b.Loop() {
				start := cpuTime(b)
				chain(b, file.Bytes(), layout, binding)
				middle := cpuTime(b)
				readCSV(b, file.Bytes())
				ours, theirs = ours+middle-start, theirs+cpuTime(b)-middle
			}
			b.ReportMetric(float64(theirs)/float64(ours), "of_encoding/csv")
			b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			b.ReportMetric(float64(b.N)*float64(file.Len())/ours.Seconds()/1e6, "MB/s")
		})
	}
}

// cpuTime is what the process has used so far: unlike the time of day, others do not add to it.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func chain(b *testing.B, file []byte, layout rowio.Layout, binding *dataset.Binding) {
	r := rowio.NewReader(bytes.NewReader(file[layout.DataStart.Offset:]), layout, layout.DataStart)
	var row dataset.Row
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || rec.Bad != nil {
			b.Fatal(err, rec.Bad)
		}
		if v := binding.Check(rec.Fields, &row); v != nil {
			b.Fatal(v)
		}
	}
}

func readCSV(b *testing.B, file []byte) {
	r := csv.NewReader(bytes.NewReader(file))
	r.ReuseRecord = true
	for {
		if _, err := r.Read(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEval is one computed column of one row: fields parsed, expression run, result written.
func BenchmarkEval(b *testing.B) {
	for _, c := range []struct{ typ, expression string }{
		{"number", "qty * harga - diskon"},
		{"number", "qty * harga - (diskon == null ? 0 : diskon)"},
		{"number", "harga * 1.11"},
		{"integer", "qty > 2 ? 1 : 0"},
		{"integer", "round(harga * 0.11)"},
		{"number", "harga / 3"},
		{"string", `catatan + " " + string(qty)`},
		{"boolean", `catatan.matches("^[a-z]+$") && lunas`},
	} {
		b.Run(c.expression, func(b *testing.B) {
			evalRow(b, computing(c.typ, c.expression), cells("A1", "2025-01-05", "12", "359999.50", "1500", "ok", "true", "", "", ""))
		})
	}
}

// BenchmarkWorst are the dearest expressions that the limits allow, over the dearest rows.
func BenchmarkWorst(b *testing.B) {
	for _, c := range []struct {
		name, typ, expression string
		harga, catatan        string
	}{
		{"texts", "string", "catatan" + strings.Repeat("+catatan", 120), "", strings.Repeat("a", MaxText/121)},
		{"texts from little", "integer", "size('a'" + strings.Repeat("+'a'", 240) + ")", "", "a"},
		{"pattern", "boolean", `catatan.matches("(.{0,30}b?){15}$")`, "", strings.Repeat("a", dataset.MaxPatternCell)},
		{"divisions", "number", "1/3" + strings.Repeat("/harga*7", 115), "1.2345678901234567890123456789", "a"},
		{"far apart", "boolean", "1e125 % harga == 0 || 1e125 % (harga / 3) == 0", "3e-130", "a"},
	} {
		b.Run(c.name, func(b *testing.B) {
			evalRow(b, computing(c.typ, c.expression), cells("A1", "", "", c.harga, "", c.catatan, "", "", "", ""))
		})
	}
}

func evalRow(b *testing.B, body string, cells [][]byte) {
	p, err := Compile(parse(b, body))
	if err != nil {
		b.Fatal(err)
	}
	plain := bind(b, fieldsBody+"[]}", fieldsHeader...)
	var row dataset.Row
	roomy := slices.Clone(cells)
	roomy[3] = []byte("0." + strings.Repeat("1", 35))
	roomy[4] = roomy[3]
	for _, row0 := range [][][]byte{roomy, cells} { // the first one leaves memory to spare
		if v := plain.Check(row0, &row); v != nil {
			b.Fatal(v)
		}
	}
	values := len(row.Values)
	if v := p.Eval(&row); v != nil { // makes what it keeps with the row
		b.Fatal(v)
	}
	row.Values = row.Values[:values]
	schema := row
	start := cpuTime(b)
	b.ReportAllocs()
	for b.Loop() { // what is added goes behind the schema's values each time
		row = schema
		if v := p.Eval(&row); v != nil {
			b.Fatal(v)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
}

func BenchmarkCompile(b *testing.B) {
	def := parse(b, computing("number", "qty * harga - (diskon == null ? 0 : diskon)"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(def); err != nil {
			b.Fatal(err)
		}
	}
}
