package compute

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/dataset"
	"pintu/internal/fault"
)

// fieldsBody is the schema that most cases speak of, up to the computed columns.
const fieldsBody = `{"schema":{"fields":[
	{"name":"order_id","type":"string","constraints":{"required":true}},
	{"name":"tanggal","type":"date"},
	{"name":"qty","type":"integer","constraints":{"minimum":1}},
	{"name":"harga","type":"number"},
	{"name":"diskon","type":"number"},
	{"name":"catatan","type":"string"},
	{"name":"lunas","type":"boolean"},
	{"name":"unit price (é)","type":"number"},
	{"name":"package","type":"number"},
	{"name":"a.b","type":"number"}],
	"primaryKey":["order_id"]},"computed":`

var fieldsHeader = []string{"order_id", "tanggal", "qty", "harga", "diskon", "catatan", "lunas", "unit price (é)", "package", "a.b"}

// computing is a definition with one computed column, total.
func computing(typ, expression string) string {
	r := strings.NewReplacer("\\", "\\\\", `"`, `\"`, "\n", `\n`, "\t", `\t`)
	return fieldsBody + `[{"name":"total","type":"` + typ + `","expression":"` + r.Replace(expression) + `"}]}`
}

func parse(t testing.TB, body string) *dataset.Definition {
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
	def := parse(t, body)
	p, err := Compile(def)
	if err != nil {
		t.Fatalf("Compile(%s): %v", body, err)
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

// outcome writes what became of the last column of a row: its value, <null>, or ! and why there is none.
func outcome(t testing.TB, b *dataset.Binding, row [][]byte) string {
	t.Helper()
	var r dataset.Row
	if v := b.Check(row, &r); v != nil {
		if v.Code != fault.TransformFailed || v.Class != dataset.ClassCode || v.Field != "total" {
			t.Errorf("violation %+v", v)
		}
		return "!" + v.Message
	}
	if last := r.Values[len(r.Values)-1]; last.Kind != dataset.Null {
		return string(last.Text)
	}
	return "<null>"
}

func TestEval(t *testing.T) {
	row := cells("A1", "2025-01-05", "3", "1000.50", "", "Sudah Dibayar é", "true", "2.5", "7", "9")
	const needsRound = "!total cannot be computed: the result is no whole number, but the column is an integer; use round, floor or ceil"
	cases := []struct{ typ, expression, want string }{
		// arithmetic over integers and numbers alike, literals beside them
		{"number", "qty * harga", "3001.5"},
		{"integer", "qty * harga", needsRound},
		{"integer", "qty * 1000.5 * 2", "6003"},
		{"number", "harga * 1.11", "1110.555"},
		{"number", "0.1 + 0.2", "0.3"},
		{"number", "0.1 * 3 - 0.3", "0"},
		{"number", "2.50", "2.5"},
		{"number", "-2.5e1", "-25"},
		{"number", "- // a comment\n 2.5", "-2.5"},
		{"number", "9007199254740993.0", "9007199254740993"},
		{"number", "12345678901234567890123456789012345678.0", "12345678901234567890123456789012345678"},
		{"number", "1e30 + 1", "1000000000000000000000000000001"},
		{"number", "0.00000000000000000000000000000000000001", "0.00000000000000000000000000000000000001"},
		{"integer", "-9223372036854775808 - 1", "-9223372036854775809"},
		{"integer", "18446744073709551615u + 1", "18446744073709551616"},
		{"integer", "0x1F + qty", "34"},
		{"number", "-harga", "-1000.5"},
		{"number", "--harga", "1000.5"},
		{"number", "harga - -qty", "1003.5"},
		{"number", "harga -1", "999.5"},
		{"number", "harga-1.5", "999"},
		{"integer", "7 % 3 + -7 % 3 * 100", "-99"},
		{"number", "5.5 % 2", "1.5"},
		{"number", "harga / 4", "250.125"},
		{"number", "1 / 3", "0.33333333333333333333333333333333333333"},
		{"number", "2 / 3", "0.66666666666666666666666666666666666667"},
		{"number", "harga / 3 * 2", "667"},
		{"number", "harga / 7 * 7 + 0.01", "1000.51"},
		{"integer", "round(harga * 1.11)", "1111"},
		{"number", "round(2.5) + round(3.5) * 10 + round(-2.5) * 100", "-158"},
		{"number", "round(harga / 7, 2)", "142.93"},
		{"number", "round(harga, -2)", "1000"},
		{"number", "round(harga, 130)", "1000.5"},
		{"integer", "floor(-1.5) * 10 + ceil(-1.5)", "-21"},
		{"number", "1e125 * 9", "9" + strings.Repeat("0", 125)},
		{"number", "harga / 0", "!total cannot be computed: it divides by zero"},
		{"number", "harga % (qty - 3)", "!total cannot be computed: it divides by zero"},
		{"number", "1e125 * 10", "!total cannot be computed: a result is too large or too small to be stored (1E-130 to 9.99E+125)"},
		{"number", "1e-100 / 1e100 * 1e100", "!total cannot be computed: a result is too large or too small to be stored (1E-130 to 9.99E+125)"},
		{"number", "12345678901234567890.1 * 12345678901234567890.1", "!total cannot be computed: a result has more than 38 significant digits; use round"},
		{"number", "1e100 + 1", "!total cannot be computed: a result has more than 38 significant digits; use round"},
		{"number", "round(harga, 0.5)", "!total cannot be computed: round() takes a whole number of places from -125 to 130"},
		{"number", "round(harga, 131)", "!total cannot be computed: round() takes a whole number of places from -125 to 130"},
		{"number", "round(harga, 1e100)", "!total cannot be computed: round() takes a whole number of places from -125 to 130"},

		// null
		{"number", "qty * harga - diskon", "!total cannot be computed: diskon is null; say what null means, as in (diskon == null ? 0 : diskon)"},
		{"number", "qty * harga - (diskon == null ? 0 : diskon)", "3001.5"},
		{"number", "diskon == null ? 0 : diskon", "0"},
		{"number", "diskon != null ? diskon : 0", "0"},
		{"number", "diskon", "<null>"},
		{"number", "qty > 2 ? null : qty", "<null>"},
		{"string", "qty > 2 ? null : catatan", "<null>"},
		{"boolean", "qty > 2 ? null : lunas", "<null>"},
		{"number", "(qty > 2 ? null : qty) + 1", "!total cannot be computed: it needs a value where there is null"},
		{"number", "qty < 2 ? qty : null", "<null>"},
		{"number", "qty > 2 ? null : lunas ? null : qty", "<null>"},
		{"number", "qty > 2 ? harga : null", "1000.5"},
		{"number", "qty < 2 ? null : harga", "1000.5"},
		{"number", "-diskon", "!total cannot be computed: diskon is null; say what null means, as in (diskon == null ? 0 : diskon)"},
		{"boolean", "diskon < 5", "!total cannot be computed: diskon is null; say what null means, as in (diskon == null ? 0 : diskon)"},
		{"boolean", "diskon == 0", "false"},
		{"boolean", "null == diskon", "true"},
		{"boolean", "null == null", "true"},
		{"boolean", "diskon in [1, diskon]", "true"},

		// conditions
		{"integer", "qty > 2 ? 1 : 0", "1"},
		{"integer", "lunas ? 1 : 0", "1"},
		{"boolean", "!lunas", "false"},
		{"boolean", "qty == 3.0 && harga == 1000.5 && harga != 1000", "true"},
		{"boolean", "qty < 3 || qty <= 3", "true"},
		{"boolean", "qty >= 4 || harga / 0 > 1 || lunas", "true"},
		{"boolean", "harga / 0 > 1 && !lunas", "false"},
		{"boolean", "harga / 0 > 1 && lunas", "!total cannot be computed: it divides by zero"},
		{"boolean", "lunas && harga / 0 > 1", "!total cannot be computed: it divides by zero"},
		{"boolean", "(qty > 2 ? null : lunas) || lunas", "true"},
		{"boolean", "(qty > 2 ? null : lunas) && lunas", "!total cannot be computed: it needs a value where there is null"},
		{"integer", "(qty > 2 ? null : lunas) ? 1 : 2", "!total cannot be computed: it needs a value where there is null"},
		{"boolean", "!(qty > 2 ? null : lunas)", "!total cannot be computed: it needs a value where there is null"},
		{"boolean", `qty in [1, 2, 3] && !(catatan in ["x"]) && !(qty in [])`, "true"},
		{"boolean", "true ? false : true", "false"},

		// texts, dates among them
		{"string", `catatan + "! " + string(harga)`, "Sudah Dibayar é! 1000.5"},
		{"string", `'single \'' + "\u00e9"`, "single 'é"},
		{"string", "string(1e20)", "100000000000000000000"},
		{"integer", "size(catatan) * 100 + catatan.size()", "1515"},
		{"boolean", `catatan.startsWith("Sudah") && catatan.endsWith("é") && catatan.contains("h D")`, "true"},
		{"string", "catatan.lowerAscii() + catatan.upperAscii()", "sudah dibayar éSUDAH DIBAYAR é"},
		{"string", `("  " + catatan.substring(6, 13) + "\t").trim()`, "Dibayar"},
		{"string", "catatan.substring(13)", " é"},
		{"string", "catatan.substring(15)", ""},
		{"string", "catatan.substring(16)", "!total cannot be computed: substring() reaches outside of its text, or is not given whole numbers"},
		{"string", "catatan.substring(2, 1)", "!total cannot be computed: substring() reaches outside of its text, or is not given whole numbers"},
		{"string", "catatan.substring(-1)", "!total cannot be computed: substring() reaches outside of its text, or is not given whole numbers"},
		{"string", "catatan.substring(0.5)", "!total cannot be computed: substring() reaches outside of its text, or is not given whole numbers"},
		{"string", "catatan.substring(0, 1e60)", "!total cannot be computed: substring() reaches outside of its text, or is not given whole numbers"},
		{"integer", "number(tanggal.substring(0, 4)) + 1", "2026"},
		{"number", `number("-1.50e2")`, "-150"},
		{"number", "number(catatan)", "!total cannot be computed: number() is given a text that is no number"},
		{"number", `number("1e999999999999")`, "!total cannot be computed: a result is too large or too small to be stored (1E-130 to 9.99E+125)"},
		{"number", `number("1234567890123456789012345678901234567890.1")`, "!total cannot be computed: a result has more than 38 significant digits; use round"},
		{"boolean", `tanggal >= "2025-01-01" && tanggal < "2026" && tanggal <= tanggal && !(tanggal > "2026")`, "true"},
		{"boolean", `catatan.matches("D[a-z]+ar")`, "true"},
		{"boolean", `catatan.matches("^D[a-z]+ar$")`, "false"},

		// names that cannot stand in an expression
		{"number", `row["unit price (é)"] * qty`, "7.5"},
		{"number", `row["package"] + row["a.b"] + row["qty"]`, "19"},
	}
	for _, c := range cases {
		t.Run(c.expression, func(t *testing.T) {
			if got := outcome(t, bind(t, computing(c.typ, c.expression), fieldsHeader...), row); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestMissingColumnIsNull(t *testing.T) {
	b := bind(t, computing("boolean", "diskon == null && qty == 2"), "order_id", "qty")
	if got := outcome(t, b, cells("A1", "2")); got != "true" {
		t.Errorf("got %s", got)
	}
}

func TestNullFieldsAreNamed(t *testing.T) {
	b := bind(t, computing("number", "qty + harga + diskon"), fieldsHeader...)
	got := outcome(t, b, cells("A1", "", "3", "", "", "", "", "", "", ""))
	if want := "!total cannot be computed: harga, diskon are null; say what null means, as in (x == null ? 0 : x)"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestLongTexts(t *testing.T) {
	row := func(n int) [][]byte {
		return cells("A1", "", "1", "", "", strings.Repeat("a", n), "", "", "", "")
	}
	join := bind(t, computing("string", "catatan + catatan"), fieldsHeader...)
	if got := outcome(t, join, row(MaxText/2)); len(got) != MaxText {
		t.Errorf("%d bytes, want %d", len(got), MaxText)
	}
	if got := outcome(t, join, row(MaxText/2+1)); got != "!total cannot be computed: a text is longer than 32768 bytes" {
		t.Errorf("got %.100s", got)
	}
	match := bind(t, computing("boolean", "catatan.matches('b$')"), fieldsHeader...)
	if got := outcome(t, match, row(dataset.MaxPatternCell)); got != "false" {
		t.Errorf("got %.100s", got)
	}
	if got := outcome(t, match, row(dataset.MaxPatternCell+1)); got != "!total cannot be computed: a text is longer than the 8192 bytes that a pattern is tried on" {
		t.Errorf("got %.100s", got)
	}
}

func TestCompileRefuses(t *testing.T) {
	dear := `catatan.matches("[a-z]{0,200}x")`
	cases := []struct {
		expression     string
		line, position int
		says           string
	}{
		{"qty +", 1, 6, "Syntax error"},
		{"qty = 1", 1, 5, "compare with =="},
		{"qty + (\n  harga * catatan)", 2, 9, "* does not work for (number, string)"},
		{"lunas + 1", 1, 7, "+ does not work for (boolean, number)"},
		{"catatan - catatan", 1, 9, "- does not work for (string, string)"},
		{"-catatan", 1, 1, "- does not work for (string)"},
		{`qty == "3" ? 1 : 2`, 1, 5, "== does not work for (number, string)"},
		{"catatan ? 1 : 2", 1, 9, "? : does not work for (string, number, number)"},
		{"(lunas ? 1 : catatan) == null ? 1 : 2", 1, 8, "? : does not work for (boolean, number, string)"},
		{"(lunas && qty) ? 1 : 2", 1, 8, "&& does not work for (boolean, number)"},
		{"(qty || lunas) ? 1 : 2", 1, 6, "|| does not work for (number, boolean)"},
		{"!qty ? 1 : 2", 1, 1, "! does not work for (number)"},
		{"qty in ['a'] ? 1 : 2", 1, 5, "in does not work for (number, list(string))"},
		{"qty in [1, 'a'] ? 1 : 2", 1, 8, "of one type"},
		{"size(qty)", 1, 5, "size does not work for (number)"},
		{"catatan", 0, 0, "gives a string, but the type of the column is number"},
		{"qty > 1", 0, 0, "gives a boolean, but the type of the column is number"},
		{"null", 1, 1, "null can only be compared"},
		{"qty * null", 1, 7, "null can only be compared"},
		{"lunas ? null : null", 1, 7, "both sides of ? : are null"},
		{"(lunas ? null : qty) + catatan", 1, 22, "+ does not work for (number, string)"},
		{"(lunas ? null : lunas ? null : qty) + catatan", 1, 37, "+ does not work for (number, string)"},
		{"qty in [null, 1] ? 1 : 2", 1, 9, "null can only be compared"},
		{"qty + jumlah", 1, 7, "jumlah is no field of the schema"},
		{"1 + total", 1, 5, "total is a computed column; an expression can refer to fields of the schema only"},
		{`row["jumlah"]`, 1, 4, "jumlah is no field of the schema"},
		{`row[catatan]`, 1, 4, `row["name of a field"]`},
		{`catatan[0]`, 1, 8, `row["name of a field"]`},
		{"row.qty", 1, 4, `row["a.b"]`},
		{"qty.harga", 1, 4, `row["a.b"]`},
		{".qty", 1, 2, "no field"},
		{"1 + sum(qty)", 1, 5, "there is no function sum"},
		{"qty.round()", 1, 5, "round is called as round(…)"},
		{"size(startsWith(catatan, 'a'))", 1, 6, "startsWith is called as text.startsWith(…)"},
		{"has(row.x) ? 1 : 2", 1, 1, "there is no function has"},
		{"[1].exists(x, x > 1) ? 1 : 2", 1, 5, "there is no function exists"},
		{"timestamp(tanggal).getFullYear()", 1, 20, "there is no function getFullYear"},
		{"dyn(qty)", 1, 1, "there is no function dyn"},
		{"type(qty) == number ? 1 : 2", 1, 1, "there is no function type"},
		{"[1, 2]", 1, 1, "a list can only stand behind in"},
		{"qty in qty ? 1 : 2", 1, 8, "behind in there must be a list"},
		{"{'a': 1}", 1, 1, "maps and messages are not supported"},
		{"number{}", 1, 7, "maps and messages are not supported"},
		{"b'1'", 1, 1, "bytes are not supported"},
		{"catatan.matches(catatan) ? 1 : 2", 1, 17, "must be a text in quotes"},
		{"catatan.matches('(') ? 1 : 2", 1, 17, "the pattern is no RE2 expression: error parsing"},
		{"catatan.matches('') ? 1 : 2", 1, 17, "the pattern is empty"},
		{"catatan.matches('" + strings.Repeat("a", 257) + "') ? 1 : 2", 1, 17, "longer than 256 characters"},
		{`catatan.matches('(\\pL{0,100}\\pN{0,100}){4}') ? 1 : 2`, 1, 17, "instructions"},
		{"(" + strings.Repeat(dear+" || ", 4) + dear + ") ? 1 : 2", 0, 0, "patterns of 2015 compiled instructions together, more than 1000"},
		{"1e400", 1, 1, "invalid double literal"},
		{"1 + 1e126", 1, 5, "the number cannot be used: magnitude outside"},
		{"1e-400", 1, 1, "the number cannot be used: magnitude outside"},
		{"1.234567890123456789012345678901234567891", 1, 1, "the number cannot be used: more than 38 significant digits"},
		{"123456789012345678901234567890", 1, 1, "write it with .0 or an exponent"},
		{"1" + strings.Repeat("+1", 500), 0, 0, "is 1001 characters long, more than 1000"},
		{strings.Repeat("(", 499) + "1" + strings.Repeat(")", 499), 0, 0, "recursion"},
		{"1" + strings.Repeat("+1", 499), 0, 0, "recursion"},
	}
	for _, c := range cases {
		t.Run(c.expression[:min(len(c.expression), 40)], func(t *testing.T) {
			list := refused(t, computing("number", c.expression))
			got := list[0]
			if got.Line != c.line || got.Position != c.position || !strings.Contains(got.Reason, c.says) {
				t.Errorf("%+v, want line %d, position %d and %q", got, c.line, c.position, c.says)
			}
			if got.Path != "computed[0].expression" || got.Column != "total" {
				t.Errorf("%+v is not about the column", got)
			}
		})
	}
}

// refused compiles a definition that must be refused and returns what is wrong with it.
func refused(t testing.TB, body string) []Problem {
	t.Helper()
	_, err := Compile(parse(t, body))
	f, ok := fault.As(err)
	if !ok || f.Code != fault.InvalidExpression {
		t.Fatalf("Compile = %v, want INVALID_EXPRESSION", err)
	}
	list, _ := f.Details["fields"].([]Problem)
	if len(list) == 0 {
		t.Fatalf("no problems in %v", err)
	}
	return list
}

func TestCompileReportsEverything(t *testing.T) {
	list := refused(t, fieldsBody+`[{"name":"a","type":"number","expression":"x + y"},{"name":"b","type":"integer","expression":"qty +"},
		{"name":"c","type":"string","expression":"qty * catatan"},{"name":"d","type":"number","expression":"qty"},{"name":"e","type":"string","expression":"qty"}]}`)
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprintf("%s %s %d:%d", p.Path, p.Column, p.Line, p.Position))
	}
	want := []string{"computed[0].expression a 1:1", "computed[0].expression a 1:5", "computed[1].expression b 1:6", "computed[2].expression c 1:5", "computed[4].expression e 0:0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got)\n%s", diff)
	}
}

func TestMessageNamesThePlace(t *testing.T) {
	_, err := Compile(parse(t, computing("number", "qty *\n jumlah + x")))
	f, _ := fault.As(err)
	if want := "the computed columns cannot be used: total, line 2, position 2: jumlah is no field of the schema (and 1 more problems)"; f == nil || f.Message != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The columns of one definition are computed in order, from the same fields.
func TestSeveralColumns(t *testing.T) {
	b := bind(t, fieldsBody+`[{"name":"a","type":"number","expression":"qty * 2"},{"name":"b","type":"string","expression":"order_id + \"-\" + string(qty)"},
		{"name":"c","type":"boolean","expression":"qty > 2"},{"name":"d","type":"number","expression":"diskon"}]}`, fieldsHeader...)
	var r dataset.Row
	for _, qty := range []string{"3", "2"} { // the second row must see nothing of the first
		if v := b.Check(cells("A1", "", qty, "", "", "", "", "", "", ""), &r); v != nil {
			t.Fatal(v)
		}
		var got []string
		for _, v := range r.Values[10:] {
			got = append(got, fmt.Sprintf("%d %s", v.Kind, v.Text))
		}
		want := map[string][]string{"3": {"2 6", "1 A1-3", "3 true", "0 "}, "2": {"2 4", "1 A1-2", "3 false", "0 "}}[qty]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("qty %s (-want +got)\n%s", qty, diff)
		}
	}
}

func TestNoComputedColumns(t *testing.T) {
	b := bind(t, fieldsBody+`[]}`, "order_id")
	var r dataset.Row
	if v := b.Check(cells("A1"), &r); v != nil || len(r.Values) != 10 {
		t.Errorf("%v, %d values", v, len(r.Values))
	}
}

func TestCompileIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 20 {
				if got := outcome(t, bind(t, computing("number", fmt.Sprintf("qty * %d.5 + (lunas ? %d : null)", n, i)), fieldsHeader...),
					cells("A1", "", "2", "", "", "", "true", "", "", "")); got != fmt.Sprint(2*n+1+i) {
					t.Errorf("%d, %d: %s", n, i, got)
				}
			}
		})
	}
	wg.Wait()
}

func TestEvalIsSafeForConcurrentUse(t *testing.T) {
	b := bind(t, computing("number", "harga / 7 * qty + number(catatan)"), fieldsHeader...)
	want := map[int]string{}
	for n := range 20 {
		want[n] = outcome(t, b, cells("A1", "", fmt.Sprint(n+1), "1e30", "", "5", "", "", "", ""))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				n := i % 20
				if got := outcome(t, b, cells("A1", "", fmt.Sprint(n+1), "1e30", "", "5", "", "", "", "")); got != want[n] {
					t.Errorf("qty %d: %s, want %s", n+1, got, want[n])
				}
			}
		})
	}
	wg.Wait()
}

func TestEvalDoesNotAllocate(t *testing.T) {
	b := bind(t, fieldsBody+`[{"name":"a","type":"number","expression":"qty * harga - (diskon == null ? 0 : diskon) * 1.11"},
		{"name":"b","type":"string","expression":"catatan + \"-\" + string(qty)"},{"name":"c","type":"boolean","expression":"qty in [1, 2] || lunas"}]}`, fieldsHeader...)
	row := cells("A1", "2025-01-05", "3", "1000.50", "", "ok", "true", "", "", "")
	var r dataset.Row
	allocs := testing.AllocsPerRun(100, func() {
		if v := b.Check(row, &r); v != nil {
			t.Fatal(v)
		}
	})
	if allocs != 0 {
		t.Errorf("allocations per row = %v, want 0", allocs)
	}
}
