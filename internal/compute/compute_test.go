package compute

import (
	"strings"
	"testing"

	"pintu/internal/dataset"
	"pintu/internal/fault"
)

const ordersBody = `{"schema":{"fields":[
	{"name":"order_id","type":"string","constraints":{"required":true}},
	{"name":"tanggal","type":"date"},
	{"name":"qty","type":"integer","constraints":{"minimum":1}},
	{"name":"harga","type":"number"},
	{"name":"diskon","type":"number"},
	{"name":"catatan","type":"string"},
	{"name":"lunas","type":"boolean"}],
	"primaryKey":["order_id"]},"computed":`

func computing(typ, expression string) string {
	r := strings.NewReplacer("\\", "\\\\", `"`, `\"`, "\n", `\n`, "\t", `\t`)
	return `[{"name":"total","type":"` + typ + `","expression":"` + r.Replace(expression) + `"}]`
}

func define(t testing.TB, body string) *dataset.Definition {
	t.Helper()
	def, err := dataset.Parse([]byte(body))
	if err != nil {
		t.Fatalf("Parse(%s): %v", body, err)
	}
	return def
}

// bind makes a definition ready for rows.
func bind(t testing.TB, body string, header ...string) *dataset.Binding {
	t.Helper()
	def := define(t, body)
	p, err := Compile(def)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	s, err := def.Compile()
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := s.WithEvaluator(p).Bind(header, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func cells(texts ...string) [][]byte {
	row := make([][]byte, len(texts))
	for i, text := range texts {
		row[i] = []byte(text)
	}
	return row
}

var ordersHeader = []string{"order_id", "tanggal", "qty", "harga", "diskon", "catatan", "lunas"}

func TestEval(t *testing.T) {
	row := cells("A1", "2025-01-05", "3", "1000.50", "", "Sudah Dibayar é", "true")
	cases := []struct {
		typ, expression string
		want            string // of the value; "<null>"; "!" and part of a message
	}{
		{"number", "qty * harga", "3001.5"},
		{"number", "qty * harga - diskon", "!diskon is null"},
		{"number", "qty * harga - (diskon == null ? 0 : diskon)", "3001.5"},
		{"number", "harga * 1.11", "1110.555"},
		{"integer", "qty > 2 ? 1 : 0", "1"},
		{"number", "diskon == null ? 0 : diskon", "0"},
	}
	for _, c := range cases {
		t.Run(c.expression, func(t *testing.T) {
			b := bind(t, ordersBody+computing(c.typ, c.expression)+"}", ordersHeader...)
			var r dataset.Row
			v := b.Check(row, &r)
			got := "<null>"
			switch {
			case v != nil:
				got = "!" + v.Message
				if v.Code != fault.TransformFailed || v.Class != dataset.ClassCode || v.Field != "total" {
					t.Errorf("violation %+v", v)
				}
			case r.Values[7].Kind != dataset.Null:
				got = string(r.Values[7].Text)
			}
			if got != c.want && !(c.want[0] == '!' && v != nil && strings.Contains(got, c.want[1:])) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func BenchmarkEval(b *testing.B) {
	for _, e := range []string{"qty * harga - diskon", "qty * harga - (diskon == null ? 0 : diskon)", "harga * 1.11", "qty > 2 ? 1 : 0", "harga / 3", `catatan + " " + string(qty)`} {
		typ := "number"
		if strings.Contains(e, `"`) {
			typ = "string"
		}
		b.Run(e, func(b *testing.B) {
			def := define(b, ordersBody+computing(typ, e)+"}")
			p, err := Compile(def)
			if err != nil {
				b.Fatal(err)
			}
			binding := bind(b, ordersBody+"[]}", ordersHeader...)
			var r dataset.Row
			if v := binding.Check(cells("A1", "2025-01-05", "12", "359999.50", "1500", "ok", "true"), &r); v != nil {
				b.Fatal(v)
			}
			values := r.Values
			b.ReportAllocs()
			for b.Loop() {
				r.Values = values
				if v := p.Eval(&r); v != nil {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	def := define(b, ordersBody+computing("number", "qty * harga - (diskon == null ? 0 : diskon)")+"}")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(def); err != nil {
			b.Fatal(err)
		}
	}
}
