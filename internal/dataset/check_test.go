package dataset

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

// ordersBody is the schema that most cases speak of.
const ordersBody = `{"schema":{"fields":[
	{"name":"order_id","type":"string","constraints":{"required":true}},
	{"name":"tanggal","type":"date"},
	{"name":"qty","type":"integer","constraints":{"minimum":1}},
	{"name":"harga","type":"number"},
	{"name":"diskon","type":"number"},
	{"name":"catatan","type":"string"}],
	"primaryKey":["order_id"],"missingValues":[""]},"dialect":{"delimiter":","}}`

func bind(t testing.TB, s *Schema, header ...string) *Binding {
	t.Helper()
	b, _, err := s.Bind(header, "")
	if err != nil {
		t.Fatalf("Bind(%q): %v", header, err)
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

// Values as real files have them, against the orders schema.
func TestOrdersRows(t *testing.T) {
	b := bind(t, mustCompile(t, ordersBody), "order_id", "tanggal", "qty", "harga", "diskon", "catatan")
	ok := func(texts ...string) [][]byte { return cells(texts...) }
	cases := []struct {
		name  string
		row   [][]byte
		code  fault.Code // empty: accepted
		field string
		want  string // value of field, "<null>" for null
	}{
		{"leading zeros stay in a string", ok("00042", "", "", "", "", "007"), "", "order_id", "00042"},
		{"a code that looks like an exponent", ok("1E5", "", "", "", "", "219E01"), "", "catatan", "219E01"},
		{"exponent in an integer", ok("A1", "2025-01-05", "1E3", "1500", "", "ok"), fault.TypeMismatch, "qty", ""},
		{"exponent in a number", ok("A2", "2025-01-05", "2", "1.5E3", "", "ok"), "", "harga", "1500"},
		{"point in an integer", ok("A3", "2025-01-05", "3.0", "1500", "", "ok"), fault.TypeMismatch, "qty", ""},
		{"beyond 2^53", ok("A1", "", "1234567890123456789", "", "", ""), "", "qty", "1234567890123456789"},
		{"beyond int64", ok("A3", "", "9223372036854775808", "", "", ""), "", "qty", "9223372036854775808"},
		{"beyond uint63", ok("A4", "", "11898508762506083287", "", "", ""), "", "qty", "11898508762506083287"},
		{"exact decimal", ok("A1", "", "", "26.34", "", ""), "", "harga", "26.34"},
		{"many places", ok("A3", "", "", "33.10318374633789", "", ""), "", "harga", "33.10318374633789"},
		{"trailing zeros", ok("A3", "", "", "100.50", "", ""), "", "harga", "100.5"},
		{"39 digits", ok("A3", "", "", strings.Repeat("1", 39), "", ""), fault.TypeMismatch, "harga", ""},
		{"huge exponent", ok("A3", "", "", "1E999999999", "", ""), fault.TypeMismatch, "harga", ""},
		{"not a number at all", ok("A3", "", "", "NaN", "", ""), fault.TypeMismatch, "harga", ""},
		{"infinity", ok("A3", "", "", "-INF", "", ""), fault.TypeMismatch, "harga", ""},
		{"decimal comma", ok("A1", "", "2", "9,99", "", ""), fault.TypeMismatch, "harga", ""},
		{"day number of a spreadsheet", ok("A1", "45383", "2", "", "", ""), fault.TypeMismatch, "tanggal", ""},
		{"year of two digits", ok("A1", "04-05-14", "2", "", "", ""), fault.TypeMismatch, "tanggal", ""},
		{"unpadded date", ok("A1", "2025-1-5", "2", "", "", ""), fault.TypeMismatch, "tanggal", ""},
		{"date with a time", ok("A1", "2025-01-05T00:00:00", "2", "", "", ""), fault.TypeMismatch, "tanggal", ""},
		{"a good date", ok("A1", "2024-02-29", "2", "", "", ""), "", "tanggal", "2024-02-29"},
		{"a day that is not there", ok("A1", "2025-02-29", "2", "", "", ""), fault.TypeMismatch, "tanggal", ""},
		{"NA is a string", ok("NULL", "", "", "", "", "NA"), "", "catatan", "NA"},
		{"NA is no number", ok("A4", "", "", "", "NA", ""), fault.TypeMismatch, "diskon", ""},
		{"empty is null", ok("A1", "", "", "", "", ""), "", "diskon", "<null>"},
		{"apostrophe before a number", ok("A1", "", "", "'100", "", ""), fault.TypeMismatch, "harga", ""},
		{"apostrophe in a string", ok("A2", "", "", "", "", "'0123"), "", "catatan", "'0123"},
		{"blanks stay", ok("A1", "", "", "", "", "  Bond  "), "", "catatan", "  Bond  "},
		{"blank before a number", ok("A1", "", "", " 5", "", ""), fault.TypeMismatch, "harga", ""},
		{"key with a trailing blank", ok("siti@example.com ", "", "", "", "", ""), "", "order_id", "siti@example.com "},
		{"empty key", ok("", "2025-01-05", "2", "1500", "", "ok"), fault.MissingValue, "order_id", ""},
		{"blank key", ok("   ", "2025-01-05", "2", "1500", "", "ok"), fault.MissingValue, "order_id", ""},
		{"no-break blank key", ok("\u00a0", "2025-01-05", "2", "1500", "", "ok"), fault.MissingValue, "order_id", ""},
		{"below the minimum", ok("A1", "", "0", "", "", ""), fault.ConstraintViolated, "qty", ""},
		{"the first violation in schema order", ok("A1", "x", "0", "y", "", ""), fault.TypeMismatch, "tanggal", ""},
		{"too few cells", ok("A1", "2025-01-05", "2"), fault.WrongColumnCount, "", ""},
		{"too many cells", ok("A1", "", "", "", "", "", "", ""), fault.WrongColumnCount, "", ""},
		{"one empty cell too many", ok("A1", "", "2", "", "", "", ""), "", "qty", "2"},
		{"one full cell too many", ok("A1", "", "2", "", "", "", "x"), fault.WrongColumnCount, "", ""},
		{"key at its limit", ok(strings.Repeat("k", 1024), "", "", "", "", ""), "", "order_id", strings.Repeat("k", 1024)},
		{"key over its limit", ok(strings.Repeat("k", 1025), "", "", "", "", ""), fault.ConstraintViolated, "order_id", ""},
	}
	var row Row
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := b.Check(c.row, &row)
			if c.code != "" {
				if v == nil || v.Code != c.code || v.Field != c.field || v.Class != "data" || v.Message == "" {
					t.Fatalf("violation = %+v, want %s at %q", v, c.code, c.field)
				}
				return
			}
			if v != nil {
				t.Fatalf("violation = %+v, want none", v)
			}
			if got := valueOf(b.schema, &row, c.field); got != c.want {
				t.Errorf("%s = %q, want %q", c.field, got, c.want)
			}
		})
	}
}

func valueOf(s *Schema, row *Row, field string) string {
	v := row.Values[s.byName[field]]
	if v.Kind == Null {
		return "<null>"
	}
	return string(v.Text)
}

func TestMessagesHoldNoValue(t *testing.T) {
	b := bind(t, mustCompile(t, oneField(`{"name":"x","type":"string","constraints":{"maxLength":5,"enum":["a"],"pattern":"a"}}`)), "id", "x")
	var row Row
	for _, secret := range []string{"sekret-panjang", "sek"} {
		if v := b.Check(cells("1", secret), &row); v == nil || strings.Contains(v.Message, secret) {
			t.Errorf("violation = %+v, want one without %q", v, secret)
		}
	}
}

func TestKey(t *testing.T) {
	two := `{"schema":{"fields":[{"name":"a","type":"string"},{"name":"b","type":"integer"}],"primaryKey":["b","a"],"missingValues":[]}}`
	one := `{"schema":{"fields":[{"name":"a","type":"string"},{"name":"b","type":"integer"}],"primaryKey":"a","missingValues":["NA"]}}`
	number := `{"schema":{"fields":[{"name":"a","type":"string"},{"name":"b","type":"number"}],"primaryKey":"b"}}`
	cases := []struct{ name, body, a, b, want string }{
		{"one", one, "A1", "7", "A1"},
		{"NFC", one, "cafe\u0301", "7", "caf\u00e9"},
		{"Hangul", one, "\u1112\u1161\u11ab", "7", "\ud55c"},
		{"canonical number", number, "x", "007.50", "7.5"},
		{"two", two, "A1", "007", `["7","A1"]`},
		{"two with quotes", two, "a\"b\\c\n\x01", "7", `["7","a\"b\\c\n\u0001"]`},
		{"two in NFC", two, "e\u0301<>&", "7", "[\"7\",\"\u00e9<>&\"]"},
	}
	for _, c := range cases {
		s := mustCompile(t, c.body)
		var row Row
		if v := bind(t, s, "a", "b").Check(cells(c.a, c.b), &row); v != nil {
			t.Errorf("%s: %+v", c.name, v)
		}
		if string(row.Key) != c.want {
			t.Errorf("%s: key = %q, want %q", c.name, row.Key, c.want)
		}
		if key, ok := mustParse(t, c.body).Key(string(row.Key)); !ok || key != c.want {
			t.Errorf("%s: Key(%q) = %q, %v", c.name, row.Key, key, ok)
		}
	}
	var row Row
	if v := bind(t, mustCompile(t, one), "a", "b").Check(cells("", "7"), &row); v == nil || v.Code != fault.MissingValue {
		t.Errorf("empty key that is no missing value: %+v, want MISSING_VALUE", v)
	}
	if v := bind(t, mustCompile(t, two), "a", "b").Check(cells(strings.Repeat("k", 1020), "7"), &row); v == nil || v.Code != fault.ConstraintViolated || v.Field != "b" {
		t.Errorf("long key of two fields: %+v, want CONSTRAINT_VIOLATED at b", v)
	}
}

func TestKeyOfRequest(t *testing.T) {
	one := mustParse(t, ordersBody)
	two := mustParse(t, `{"schema":{"fields":[{"name":"a"},{"name":"b"}],"primaryKey":["a","b"]}}`)
	cases := []struct {
		name string
		d    *Definition
		text string
		want string
		ok   bool
	}{
		{"as it is", one, "A1", "A1", true},
		{"decomposed", one, "cafe\u0301", "caf\u00e9", true},
		{"empty", one, "", "", false},
		{"long", one, strings.Repeat("k", 1025), "", false},
		{"array with white space and escapes", two, ` [ "a/b" , "\u0065\u0301" ] `, "[\"a/b\",\"\u00e9\"]", true},
		{"array of another length", two, `["a"]`, "", false},
		{"no array", two, `a`, "", false},
		{"numbers", two, `[1,2]`, "", false},
	}
	for _, c := range cases {
		key, ok := c.d.Key(c.text)
		if ok != c.ok || ok && key != c.want {
			t.Errorf("%s: Key(%q) = %q, %v; want %q, %v", c.name, c.text, key, ok, c.want, c.ok)
		}
	}
}

// These hashes are stored with records. If this test fails, the encoding has changed and every record
// of every dataset would look changed: do not adjust it, mend the code.
func TestHashGolden(t *testing.T) {
	b := bind(t, mustCompile(t, ordersBody), "order_id", "tanggal", "qty", "harga", "diskon", "catatan")
	flags := bind(t, mustCompile(t, oneField(`{"name":"lunas","type":"boolean"},{"name":"waktu","type":"datetime"}`)), "id", "lunas", "waktu")
	cases := []struct {
		name string
		b    *Binding
		row  [][]byte
		want string
	}{
		{"full row", b, cells("A1", "2025-01-05", "2", "1500.50", "0", "étui, \"biru\""), "2389171dfbd022581a7cab71febc85ad"},
		{"key alone", b, cells("A1", "", "", "", "", ""), "0c8d887f0bed6fbb1dec7d5d1fc5f6ec"},
		{"boolean and datetime", flags, cells("1", "TRUE", "2026-07-27T10:15:30.250+07:00"), "7cfdd6ed358b0bc7c32b56cafaa7b17f"},
	}
	for _, c := range cases {
		var row Row
		if v := c.b.Check(c.row, &row); v != nil {
			t.Fatalf("%s: %+v", c.name, v)
		}
		if got := hex.EncodeToString(row.Hash[:]); got != c.want {
			t.Errorf("%s: hash = %s, want %s", c.name, got, c.want)
		}
	}
}

func TestHashIsOfTheContent(t *testing.T) {
	hash := func(body string, header []string, texts ...string) [16]byte {
		var row Row
		if v := bind(t, mustCompile(t, body), header...).Check(cells(texts...), &row); v != nil {
			t.Fatal(v)
		}
		return row.Hash
	}
	base := `{"schema":{"fields":[{"name":"id","type":"string"},{"name":"n","type":"number"},{"name":"s","type":"string"}],"primaryKey":"id"}}`
	want := hash(base, []string{"id", "n", "s"}, "1", "5", "x")
	same := map[string][16]byte{
		"columns in another order":    hash(base, []string{"s", "id", "n"}, "x", "1", "5"),
		"number written otherwise":    hash(base, []string{"id", "n", "s"}, "1", "+5.0", "x"),
		"fields in another order":     hash(`{"schema":{"fields":[{"name":"s","type":"string"},{"name":"n","type":"number"},{"name":"id","type":"string"}],"primaryKey":"id"}}`, []string{"id", "n", "s"}, "1", "5", "x"),
		"a new column without values": hash(`{"schema":{"fields":[{"name":"id","type":"string"},{"name":"n","type":"number"},{"name":"k"},{"name":"s","type":"string"}],"primaryKey":"id"}}`, []string{"id", "n", "s"}, "1", "5", "x"),
		"an integer for a number":     hash(strings.Replace(base, "number", "integer", 1), []string{"id", "n", "s"}, "1", "5", "x"),
	}
	for name, got := range same {
		if got != want {
			t.Errorf("%s changes the hash", name)
		}
	}
	other := map[string][16]byte{
		"another value":        hash(base, []string{"id", "n", "s"}, "1", "6", "x"),
		"null":                 hash(base, []string{"id", "n", "s"}, "1", "", "x"),
		"another kind":         hash(strings.Replace(base, "number", "string", 1), []string{"id", "n", "s"}, "1", "5", "x"),
		"values change places": hash(strings.Replace(base, "number", "string", 1), []string{"id", "n", "s"}, "1", "x", "5"),
	}
	for name, got := range other {
		if got == want {
			t.Errorf("%s does not change the hash", name)
		}
	}
}

func TestMissingValues(t *testing.T) {
	s := mustCompile(t, `{"schema":{"fields":[{"name":"id","type":"string"},
		{"name":"n","type":"number","constraints":{"required":true}},
		{"name":"s","type":"string","missingValues":["NA"]}],"primaryKey":"id","missingValues":["","-"]}}`)
	b := bind(t, s, "id", "n", "s")
	cases := []struct {
		name string
		row  [][]byte
		code fault.Code
		want string // of s
	}{
		{"the schema's", cells("1", "-", ""), fault.MissingValue, ""},
		{"the field's replace them", cells("1", "5", ""), "", ""},
		{"the field's", cells("1", "5", "NA"), "", "<null>"},
		{"tested before reading", cells("1", " -", ""), fault.TypeMismatch, ""},
		{"no cell at all", [][]byte{[]byte("1"), []byte("5"), nil}, "", "<null>"},
		{"no cell where one is required", [][]byte{[]byte("1"), nil, nil}, fault.MissingValue, ""},
		{"a missing value as key", cells("-", "5", ""), fault.MissingValue, ""},
	}
	for _, c := range cases {
		var row Row
		v := b.Check(c.row, &row)
		switch {
		case c.code != "" && (v == nil || v.Code != c.code):
			t.Errorf("%s: %+v, want %s", c.name, v, c.code)
		case c.code == "" && v != nil:
			t.Errorf("%s: %+v", c.name, v)
		case c.code == "" && valueOf(s, &row, "s") != c.want:
			t.Errorf("%s: s = %q, want %q", c.name, valueOf(s, &row, "s"), c.want)
		}
	}
}

func TestRowBuffersAreItsOwn(t *testing.T) {
	b := bind(t, mustCompile(t, ordersBody), "order_id", "tanggal", "qty", "harga", "diskon", "catatan")
	input := cells("A1", "2025-01-05", "2", "1500", "", "catatan")
	var row Row
	if v := b.Check(input, &row); v != nil {
		t.Fatal(v)
	}
	for _, cell := range input {
		clear(cell)
	}
	got := []string{string(row.Key)}
	for _, v := range row.Values {
		got = append(got, string(v.Text))
	}
	if diff := cmp.Diff([]string{"A1", "A1", "2025-01-05", "2", "1500", "", "catatan"}, got); diff != "" {
		t.Errorf("after the reader went on (-want +got):\n%s", diff)
	}
}
