package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

func bindNames(t testing.TB, s *Schema, found ...string) *Binding {
	t.Helper()
	b, _, err := s.BindNames(found)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const jsonBody = `{"schema":{"fields":[
	{"name":"id","type":"string"},
	{"name":"n","type":"number","decimalChar":",","groupChar":"."},
	{"name":"i","type":"integer","constraints":{"minimum":1}},
	{"name":"b","type":"boolean","trueValues":["ya"],"falseValues":["tidak"]},
	{"name":"d","type":"date","format":"%d/%m/%Y"},
	{"name":"y","type":"year"},
	{"name":"x","type":"any"},
	{"name":"s","type":"string","missingValues":["","-","7"]}],"primaryKey":["id"]}}`

// shown is a row, or why it is none, for people.
func shown(b *Binding, line string) string {
	var row Row
	if v := b.CheckJSON([]byte(line), &row); v != nil {
		return fmt.Sprintf("%s %s: %s", v.Code, v.Field, v.Message)
	}
	var parts []string
	for _, v := range row.Values {
		parts = append(parts, map[Kind]string{Null: "-", String: "s:", Number: "n:", Bool: "b:"}[v.Kind]+string(v.Text))
	}
	return strings.Join(parts, " ")
}

func TestCheckJSON(t *testing.T) {
	b := bindNames(t, mustCompile(t, jsonBody))
	const malformed = "MALFORMED_ROW : "
	cases := []struct{ name, line, want string }{
		{"every kind", `{"id":"A","n":1.50,"i":7,"b":true,"d":"05/01/2025","y":2025,"x":1e2,"s":"teks"}`, "s:A n:1.5 n:7 b:true s:2025-01-05 s:2025 s:1e2 s:teks"},
		{"texts as cells", `{"id":"A","n":"1.234,50","i":"7","b":"tidak","y":"2025","x":"","s":"-"}`, "s:A n:1234.5 n:7 b:false - s:2025 - -"},
		{"any order, nulls", ` { "s" : null , "id" : "A" , "b" : false } `, "s:A - - b:false - - - -"},
		{"exact digits", `{"id":"A","n":12345678901234567890.123456789,"i":1234567890123456789012}`, "s:A n:12345678901234567890.123456789 n:1234567890123456789012 - - - - -"},
		{"exponent", `{"id":"A","n":-2.5E+3}`, "s:A n:-2500 - - - - - -"},
		{"missing values are texts", `{"id":"A","s":"7"}`, "s:A - - - - - - -"},
		{"booleans of any", `{"id":"A","x":false}`, "s:A - - - - - s:false -"},
		{"escapes", `{"i\u0064":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00","s":"a\u2028b"}`, "s:\"\\/\b\f\n\r\té😀 - - - - - - s:a\u2028b"},
		{"other members", `{"id":"A","more":{"a":[1,{"id":"B"},"\u00e9",[]],"b":{}},"_code":1,"_code":2,"z":-0.5e-7,"z":null}`, "s:A - - - - - - -"},
		{"name with blanks", `{" id\u200b":"A"}`, "s:A - - - - - - -"},

		{"no key", `{}`, "MISSING_VALUE id: id is missing"},
		{"null key", `{"id":null}`, "MISSING_VALUE id: id is missing"},
		{"number for text", `{"id":7}`, "TYPE_MISMATCH id: id is a number, expected string"},
		{"boolean for text", `{"id":"A","s":true}`, "TYPE_MISMATCH s: s is a boolean, expected string"},
		{"number for boolean", `{"id":"A","b":1}`, "TYPE_MISMATCH b: b is a number, expected boolean"},
		{"boolean for number", `{"id":"A","n":true}`, "TYPE_MISMATCH n: n is a boolean, expected number"},
		{"number for date", `{"id":"A","d":20250105}`, "TYPE_MISMATCH d: d is a number, expected date"},
		{"nested", `{"id":"A","x":["a"]}`, "TYPE_MISMATCH x: x is an array or object, expected any"},
		{"point in integer", `{"id":"A","i":1.0}`, "TYPE_MISMATCH i: i is not an integer (digits only: no decimal point, no exponent)"},
		{"text is no number", `{"id":"A","n":"abc"}`, "TYPE_MISMATCH n: n is not a number"},
		{"constraint", `{"id":"A","i":0}`, "CONSTRAINT_VIOLATED i: i is below the minimum 1"},
		{"first in order of schema", `{"i":0,"n":true,"id":"A"}`, "TYPE_MISMATCH n: n is a boolean, expected number"},

		{"field twice", `{"id":"A","id":"A"}`, malformed + "a field stands twice in the object: id"},
		{"field twice, escaped", `{"id":null,"\u0069d":"A"}`, malformed + "a field stands twice in the object: id"},
		{"malformed wins", `{"id":7,"i":0`, malformed + cutOff},
		{"text", `"teks"`, malformed + "the line is valid JSON but no object"},
		{"number", `123`, malformed + "the line is valid JSON but no object"},
		{"null", `null`, malformed + "the line is valid JSON but no object"},
		{"array", `[1]`, malformed + "the line is valid JSON but no object"},
		{"words", `teks`, malformed + notJSON},
		{"two objects", `{"id":"A"} {"id":"B"}`, malformed + "more than one JSON value in the line"},
		{"NUL behind it", "{}\x00", malformed + "more than one JSON value in the line"},
		{"trailing comma", `{"id":"A",}`, malformed + notJSON},
		{"leading zero", `{"id":"A","n":01}`, malformed + notJSON},
		{"half a number", `{"id":"A","n":1.}`, malformed + notJSON},
		{"plus", `{"id":"A","n":+1}`, malformed + notJSON},
		{"NaN", `{"id":"A","n":NaN}`, malformed + notJSON},
		{"control character", "{\"id\":\"a\tb\"}", malformed + "not valid JSON: a control character in a string"},
		{"half a character", `{"id":"\ud83d"}`, malformed + "an escape in a string is half a character"},
		{"wrong order of halves", `{"id":"\ude00\ud83d"}`, malformed + "an escape in a string is half a character"},
		{"NUL", `{"id":"\u0000"}`, malformed + "an escape in a string is a NUL character"},
		{"unknown escape", `{"id":"\x41"}`, malformed + badEscape},
		{"open string", `{"id":"A`, malformed + "the line ends within a string"},
		{"cut escape", `{"id":"\`, malformed + "the line ends within a string"},
		{"BOM", "\ufeff{}", malformed + notJSON},
		{"deep", `{"id":"A","z":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, malformed + "values are nested too deep"},
	}
	for _, c := range cases {
		if got := shown(b, c.line); got != c.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", c.name, c.line, got, c.want)
		}
	}
}

// The same values in a table and in objects are the same records: keys, hashes and values.
func TestJSONAndCellsAgree(t *testing.T) {
	s := mustCompile(t, benchBody)
	names := []string{"order_id", "tanggal", "qty", "harga", "diskon", "catatan"}
	var a, b Row
	if v := bind(t, s, names...).Check(cells("é-1", "2025-01-05", "12", "1.50", "", "x"), &a); v != nil {
		t.Fatal(v)
	}
	if v := bindNames(t, s).CheckJSON([]byte(`{"catatan":"x","qty":12,"harga":1.5,"order_id":"e\u0301-1","tanggal":"2025-01-05"}`), &b); v != nil {
		t.Fatal(v)
	}
	a.Values[0], b.Values[0] = Value{}, Value{} // as written; the keys are in NFC
	if d := cmp.Diff(a.Values, b.Values); d != "" || string(a.Key) != string(b.Key) {
		t.Errorf("keys %q, %q; values:\n%s", a.Key, b.Key, d)
	}
	if v := bindNames(t, s).CheckJSON([]byte(`{"catatan":"x","qty":12,"harga":1.5,"order_id":"é-1","tanggal":"2025-01-05"}`), &b); v != nil || a.Hash != b.Hash {
		t.Errorf("hashes %x, %x (%v)", a.Hash, b.Hash, v)
	}
}

func TestBindNames(t *testing.T) {
	cases := []struct {
		match, line, want string
	}{
		{"", `{"k":"A","z":1}`, "s:A -"},
		{"superset", `{"k":"A"}`, "s:A -"},
		{"superset", `{"k":"A","z":1}`, "WRONG_COLUMN_COUNT : has members that the dataset does not have; fieldsMatch superset allows none"},
		{"subset", `{"k":"A","z":1}`, "MISSING_VALUE v: v is not there; fieldsMatch subset wants every field"},
		{"subset", `{"k":"A","v":null,"z":1}`, "s:A -"},
		{"exact", `{"v":null,"k":"A","_row_number":1}`, "s:A -"},
		{"equal", `{"v":null,"k":"A","z":1}`, "WRONG_COLUMN_COUNT : has members that the dataset does not have; fieldsMatch equal allows none"},
	}
	for _, c := range cases {
		body := `{"schema":{"fields":[{"name":"k","type":"string"},{"name":"v","type":"string"}],"primaryKey":["k"]}}`
		if c.match != "" {
			body = strings.Replace(body, `"primaryKey"`, `"fieldsMatch":"`+c.match+`","primaryKey"`, 1)
		}
		if got := shown(bindNames(t, mustCompile(t, body)), c.line); got != c.want {
			t.Errorf("%s %s\ngot  %s\nwant %s", c.match, c.line, got, c.want)
		}
	}
	s := mustCompile(t, benchBody)
	_, warnings, err := s.BindNames([]string{"_code", "order_id", "zz"})
	if err != nil || len(warnings) != 1 || warnings[0].Code != fault.ColumnIgnored || warnings[0].Details["count"] != 1 {
		t.Errorf("warnings %v (%v)", warnings, err)
	}
	if _, _, err := s.BindNames([]string{"idx"}); !fault.Is(err, fault.HeaderInvalid) {
		t.Errorf("no known name: %v", err)
	}
}

func TestMember(t *testing.T) {
	for line, want := range map[string]string{`{"v":"3"}`: "3", `{"a":{"v":1},"v":3}`: "3", `{"v":null}`: "nil", `{}`: "nil", `{"v":[1]}`: "[1]", `{"v":3`: "nil"} {
		got := "nil"
		if m := Member([]byte(line), "v"); m != nil {
			got = string(m)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// FuzzCheckJSON: what is an object, and what its members are, is as encoding/json has it.
func FuzzCheckJSON(f *testing.F) {
	for _, line := range []string{`{"id":"A","n":1.50,"b":true,"z":[{}],"i":-0}`, `{"id":"\ud83d\ude00\u00e9"}`, `[1]`, `{"id":"A"`, `{"id" : "x", "id":1e5}`, "{\"id\":\"\\ud800\"}", `{"id":"abcdefgh\"ij"}`} {
		f.Add([]byte(line))
	}
	schema := mustCompile(f, jsonBody)
	b := bindNames(f, schema)
	f.Fuzz(func(t *testing.T, line []byte) {
		if !utf8.Valid(line) || len(line) > 1<<12 {
			return
		}
		var row Row
		v := b.CheckJSON(line, &row)
		malformed := v != nil && v.Code == fault.MalformedRow
		members, known := plainObject(line)
		if members == nil {
			if !malformed {
				t.Fatalf("%q is no object, got %v", line, v)
			}
			return
		}
		if malformed {
			if !known && !strings.Contains(string(line), `\u`) && !strings.Contains(v.Message, "deep") {
				t.Fatalf("%q is an object, got %v", line, v)
			}
			return
		}
		if known {
			t.Fatalf("%q has a field twice, got %v", line, v)
		}
		id, isText := members["id"].(string)
		if v == nil && (!isText || id != string(row.Values[0].Text)) {
			t.Fatalf("%q: id %q", line, row.Values[0].Text)
		}
	})
}

// plainObject reads an object with encoding/json; nil: the line is none. twice: a field of jsonBody stands in
// it more than once.
func plainObject(line []byte) (members map[string]any, twice bool) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') || !json.Valid(line) {
		return nil, false
	}
	members = map[string]any{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, false
		}
		folded := foldName(name.(string))
		if _, is := members[folded]; is && strings.Contains("id n i b d y x s", folded) {
			twice = true
		}
		members[folded] = value
	}
	_, err := dec.Token()
	if _, end := dec.Token(); err != nil || !errors.Is(end, io.EOF) {
		return nil, false
	}
	return members, twice
}

var benchLine = []byte(`{"order_id":"ORD-2025-0001234","tanggal":"2025-01-05","qty":12,"harga":359999.50,"diskon":1500,"catatan":"Jl. Sudirman No. 12, Jakarta"}`)

func BenchmarkCheckJSON(b *testing.B) {
	binding := bindNames(b, mustCompile(b, benchBody))
	var row Row
	b.SetBytes(int64(len(benchLine)))
	b.ReportAllocs()
	for b.Loop() {
		if v := binding.CheckJSON(benchLine, &row); v != nil {
			b.Fatal(v)
		}
	}
}

// BenchmarkEncodingJSON is what CheckJSON is measured against: it checks nothing, and its numbers are floats.
func BenchmarkEncodingJSON(b *testing.B) {
	b.SetBytes(int64(len(benchLine)))
	b.ReportAllocs()
	for b.Loop() {
		var row struct {
			OrderID string  `json:"order_id"`
			Tanggal string  `json:"tanggal"`
			Qty     int     `json:"qty"`
			Harga   float64 `json:"harga"`
			Diskon  float64 `json:"diskon"`
			Catatan string  `json:"catatan"`
		}
		if err := json.Unmarshal(benchLine, &row); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCheckJSONDoesNotAllocate(t *testing.T) {
	binding := bindNames(t, mustCompile(t, benchBody))
	line := []byte(`{"order_id":"ORD-\u00e9-1","qty":12,"harga":3.5E2,"more":{"a":[1,2,{}]},"catatan":"x"}`)
	var row Row
	allocs := testing.AllocsPerRun(100, func() {
		if v := binding.CheckJSON(line, &row); v != nil {
			t.Fatal(v)
		}
	})
	if allocs != 0 {
		t.Errorf("allocations per row = %v, want 0", allocs)
	}
}
