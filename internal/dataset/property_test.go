package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// drawOrder makes a good row of the orders schema.
func drawOrder(t *rapid.T) map[string]string {
	return map[string]string{
		"order_id": rapid.StringMatching(`[A-Z][0-9a-zé\x{0301}\x{1112}\x{1161}]{0,9}`).Draw(t, "order_id"),
		"tanggal":  rapid.SampledFrom([]string{"", "2025-01-05", "2024-02-29"}).Draw(t, "tanggal"),
		"qty":      rapid.StringMatching(`(0{0,2}[1-9][0-9]{0,30})?`).Draw(t, "qty"),
		"harga":    rapid.StringMatching(`(-?[0-9]{1,9}(\.[0-9]{1,9})?(E-?[0-9])?)?`).Draw(t, "harga"),
		"diskon":   rapid.StringMatching(`([0-9]{1,9})?`).Draw(t, "diskon"),
		"catatan":  rapid.String().Draw(t, "catatan"),
	}
}

func TestHeaderOrderChangesNothing(t *testing.T) {
	s := mustCompile(t, ordersBody)
	names := []string{"order_id", "tanggal", "qty", "harga", "diskon", "catatan"}
	rapid.Check(t, func(rt *rapid.T) {
		order := drawOrder(rt)
		shuffled := rapid.Permutation(append(slices.Clone(names), "kota", "_row_number")).Draw(rt, "header")
		var a, b Row
		if v := bind(t, s, names...).Check(pick(order, names), &a); v != nil {
			rt.Fatalf("%+v", v)
		}
		if v := bind(t, s, shuffled...).Check(pick(order, shuffled), &b); v != nil {
			rt.Fatalf("%+v", v)
		}
		if a.Hash != b.Hash || string(a.Key) != string(b.Key) {
			rt.Fatalf("header %q: hash %x and key %q, want %x and %q", shuffled, b.Hash, b.Key, a.Hash, a.Key)
		}
	})
}

func pick(values map[string]string, names []string) [][]byte {
	row := make([][]byte, len(names))
	for i, name := range names {
		row[i] = []byte(values[name])
	}
	return row
}

func TestKeysAreNFC(t *testing.T) {
	one := bind(t, mustCompile(t, `{"schema":{"fields":[{"name":"a"}],"primaryKey":"a"}}`), "a")
	two := bind(t, mustCompile(t, `{"schema":{"fields":[{"name":"a"},{"name":"b"}],"primaryKey":["a","b"]}}`), "a", "b")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z"\\<][\x{0300}-\x{0338}\x{1100}-\x{1112}\x{1161}-\x{1175}a-zé"]{0,12}`).Draw(t, "text")
		var plain, decomposed Row
		if v := one.Check(cells(text), &plain); v != nil {
			t.Fatalf("%+v", v)
		}
		if want := norm.NFC.String(text); string(plain.Key) != want {
			t.Fatalf("key of %+q = %+q, want %+q", text, plain.Key, want)
		}
		two.Check(cells(text, text), &plain)
		two.Check(cells(norm.NFD.String(text), norm.NFC.String(text)), &decomposed)
		if string(plain.Key) != string(decomposed.Key) || !norm.NFC.IsNormal(plain.Key) {
			t.Fatalf("keys %+q and %+q", plain.Key, decomposed.Key)
		}
	})
}

// A Row that was used for any other row before gives the same result as a new one.
func TestRowsDoNotLeak(t *testing.T) {
	s := mustCompile(t, ordersBody)
	names := []string{"order_id", "tanggal", "qty", "harga", "diskon", "catatan"}
	b := bind(t, s, names...)
	var used Row
	rapid.Check(t, func(t *rapid.T) {
		cells := pick(drawOrder(t), names)
		if rapid.Bool().Draw(t, "bad") {
			cells[rapid.IntRange(0, 5).Draw(t, "at")] = []byte("x,")
		}
		var fresh Row
		vUsed, vFresh := b.Check(cells, &used), b.Check(cells, &fresh)
		if fmt.Sprint(vUsed) != fmt.Sprint(vFresh) {
			t.Fatalf("%+v and %+v", vUsed, vFresh)
		}
		if vUsed == nil && (used.Hash != fresh.Hash || string(used.Key) != string(fresh.Key) || fmt.Sprint(used.Values) != fmt.Sprint(fresh.Values)) {
			t.Fatalf("%+v and %+v", used, fresh)
		}
	})
}

// fuzzFields are fields of every type and property; FuzzValue reads one cell with each.
var fuzzFields = []string{
	`{"name":"x"}`, `{"name":"x","type":"integer","groupChar":","}`, `{"name":"x","type":"number"}`,
	`{"name":"x","type":"number","decimalChar":",","groupChar":".","bareNumber":false}`,
	`{"name":"x","type":"integer","bareNumber":false}`, `{"name":"x","type":"boolean"}`,
	`{"name":"x","type":"date"}`, `{"name":"x","type":"time"}`, `{"name":"x","type":"datetime"}`,
	`{"name":"x","type":"date","format":"%d/%m/%y"}`, `{"name":"x","type":"date","format":"%j %Y"}`,
	`{"name":"x","type":"time","format":"%I.%M.%S %p"}`, `{"name":"x","type":"datetime","format":"%B %d %Y, %H:%M:%S.%f%z"}`,
	`{"name":"x","type":"year"}`, `{"name":"x","type":"yearmonth"}`,
	`{"name":"x","type":"string","format":"email"}`, `{"name":"x","type":"string","format":"uri"}`, `{"name":"x","type":"string","format":"uuid"}`,
}

// Whatever a cell holds, an accepted value written as a cell of its field reads as the same value.
func FuzzValue(f *testing.F) {
	var bindings []*Binding
	for _, field := range fuzzFields {
		bindings = append(bindings, bind(f, mustCompile(f, oneField(field)), "id", "x"))
	}
	for _, seed := range []string{"", "1", "-1.234,50", "Rp 1.500,5", "1E999999999", "TRUE", "2024-02-29", "10:15:30.5+07:00", "2026-07-27T10:15:30Z", "5/1/25", "366 2024",
		"12.00.00 AM", "May 05 2025, 10:15:30.25+0700", "2025", "2025-01", "a@b.co", "urn:x", "123e4567-e89b-12d3-a456-426614174000", "\xff\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		for i, b := range bindings {
			var row, again Row
			v := b.Check(cells("k", cell), &row)
			if v != nil {
				if v.Field != "x" || v.Message == "" || len(cell) > 6 && strings.Contains(v.Message, cell) {
					t.Errorf("%s: violation %+v of %q", fuzzFields[i], v, cell)
				}
				continue
			}
			written := b.schema.AppendCell(nil, 1, row.Values[1])
			if v := b.Check([][]byte{[]byte("k"), written}, &again); v != nil || again.Hash != row.Hash {
				t.Errorf("%s: %q is written as %q: %+v", fuzzFields[i], cell, written, v)
			}
		}
	})
}

// A definition that is accepted compiles, binds to its own names, and its canonical form is stable.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte(ordersBody))
	for _, field := range fuzzFields {
		f.Add([]byte(oneField(field)))
	}
	f.Add([]byte(`{"schema":{"fields":[{"name":"d","type":"date","format":"%d/%m/%y","title":"t","constraints":{"required":true,"minimum":"1/2/20","enum":["3/4/21"]}},
		{"name":"s","type":"string","missingValues":[],"constraints":{"minLength":1,"maxLength":9,"pattern":"[a-z]+"}},
		{"name":"n","type":"number","constraints":{"exclusiveMinimum":-1.50,"exclusiveMaximum":"1E3"}}],
		"primaryKey":["d","s"],"missingValues":["-"],"fieldsMatch":"equal"},"dialect":{"delimiter":";","escapeChar":"\\","commentChar":"#"},"computed":[],"on_conflict":"update","duplicates":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := Parse(body)
		if err != nil {
			return
		}
		canonical := d.Canonical()
		again, err := Parse(canonical)
		if err != nil {
			t.Fatalf("Parse of the canonical form %s: %v", canonical, err)
		}
		if string(again.Canonical()) != string(canonical) {
			t.Fatalf("canonical form is not stable:\n%s\n%s", canonical, again.Canonical())
		}
		s, err := d.Compile()
		if err != nil {
			t.Fatalf("Compile: %v", err)
		}
		b, _, err := s.Bind(d.FieldNames(), "")
		if err != nil {
			t.Fatalf("Bind to its own names: %v", err)
		}
		b.Check(make([][]byte, len(d.FieldNames())), new(Row))
	})
}
