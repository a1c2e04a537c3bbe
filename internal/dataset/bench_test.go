package dataset

import "testing"

// benchBody is the orders schema with bounds on every number and on the date.
const benchBody = `{"schema":{"fields":[
	{"name":"order_id","type":"string","constraints":{"required":true}},
	{"name":"tanggal","type":"date","constraints":{"minimum":"2000-01-01","maximum":"2099-12-31"}},
	{"name":"qty","type":"integer","constraints":{"minimum":1,"maximum":100000}},
	{"name":"harga","type":"number","constraints":{"minimum":0,"maximum":1000000000}},
	{"name":"diskon","type":"number","constraints":{"minimum":0}},
	{"name":"catatan","type":"string"}],"primaryKey":["order_id"]}}`

func BenchmarkCheck(b *testing.B) {
	header := []string{"order_id", "tanggal", "qty", "harga", "diskon", "catatan"}
	cases := []struct {
		name, body string
		row        [][]byte
	}{
		{"orders", benchBody, cells("ORD-2025-0001234", "2025-01-05", "12", "359999.50", "1500", "Jl. Sudirman No. 12, Jakarta")},
		{"nulls", benchBody, cells("ORD-2025-0001234", "", "", "", "", "")},
		{"not ASCII", benchBody, cells("ORD-é-0001234", "2025-01-05", "12", "359999.50", "1500", "Café – 5 €")},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			binding := bind(b, mustCompile(b, c.body), header...)
			size := 0
			for _, cell := range c.row {
				size += len(cell) + 1
			}
			var row Row
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if v := binding.Check(c.row, &row); v != nil {
					b.Fatal(v)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	binding := bind(t, mustCompile(t, benchBody), "order_id", "tanggal", "qty", "harga", "diskon", "catatan")
	input := cells("ORD-é-1", "2025-01-05", "12", "3.5E2", "", "x")
	var row Row
	allocs := testing.AllocsPerRun(100, func() {
		if v := binding.Check(input, &row); v != nil {
			t.Fatal(v)
		}
	})
	if allocs != 0 {
		t.Errorf("allocations per row = %v, want 0", allocs)
	}
}
