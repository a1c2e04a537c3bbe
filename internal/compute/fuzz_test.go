package compute

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pintu/internal/dataset"
	"pintu/internal/decimal"
	"pintu/internal/fault"
)

// secret is a cell that no message may repeat.
const secret = "s3cr3t9"

// FuzzExpression: no text panics, takes long, or compiles to something that fails as a fault of ours.
func FuzzExpression(f *testing.F) {
	for _, e := range []string{
		"qty * harga - diskon", "qty * harga - (diskon == null ? 0 : diskon)", `catatan.matches("^a+b?$") || !lunas`, `row["unit price (é)"] / 3 % 2.5e-3`,
		"lunas ? null : catatan + string(qty)", "qty in [1, 2.0, 0x1F, 3u]", "round(harga, 2) + ceil(-0.1)", "- // x\n 1.5", "1.5.size()", `r"\d" + b'x'`,
		"(((((((((1)))))))))", "a.b.c[1]{x: 2}.d()", "[1,2].map(x, x * 2)", "catatan.substring(1, 2).trim().size()", `number("1e5") > 1e5 && null == diskon`,
		"\"\"\"a\"\"\" + 'b'", "qty =", "`x`", "?.", "\u00e9", "1e999999999", "true ? false ? null : null : null",
	} {
		f.Add(e)
	}
	rows := [][][]byte{
		cells("A1", "2025-01-05", "3", "1000.50", "0", secret, "true", "2.5", "7", "1e125"),
		cells(secret, "", "", "", "", "", "", "", "", ""),
		cells("A1", "2025-01-05", "12345678901234567890123456789012345678", "-0.00000000000000000000000000000000000001", "1e-130", "aab", "false", "", "", ""),
	}
	f.Fuzz(func(t *testing.T, expression string) {
		if !utf8.ValidString(expression) || strings.TrimSpace(expression) == "" {
			t.Skip("refused before")
		}
		start := time.Now()
		for _, typ := range []string{"number", "string", "boolean"} {
			def := withExpression(t, typ, expression)
			p, err := Compile(def)
			if err != nil {
				checkRefusal(t, expression, err)
				continue
			}
			for _, row := range rows {
				evaluate(t, def, p, row, !strings.Contains(expression, secret))
			}
		}
		if took := time.Since(start); took > 10*time.Second { // it takes milliseconds
			t.Errorf("took %v", took)
		}
	})
}

// withExpression writes the expression with Go's JSON rules, whatever is in it.
func withExpression(t *testing.T, typ, expression string) *dataset.Definition {
	t.Helper()
	var b strings.Builder
	for _, r := range expression {
		fmt.Fprintf(&b, `\u%04x`, min(r, 0xfffd))
	}
	return parse(t, fieldsBody+`[{"name":"total","type":"`+typ+`","expression":"`+b.String()+`"}]}`)
}

func checkRefusal(t *testing.T, expression string, err error) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Code != fault.InvalidExpression {
		t.Fatalf("Compile: %v", err)
	}
	list, _ := f.Details["fields"].([]Problem)
	if len(list) == 0 {
		t.Fatalf("no problems in %v", err)
	}
	for _, p := range list {
		if p.Reason == "" || p.Line < 0 || p.Position < 0 || p.Line > 1+strings.Count(expression, "\n") || p.Position > utf8.RuneCountInString(expression)+1 {
			t.Errorf("%+v", p)
		}
	}
}

// evaluate judges a row twice, and what comes out.
func evaluate(t *testing.T, def *dataset.Definition, p *Program, row [][]byte, discreet bool) {
	t.Helper()
	s, err := def.Compile()
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := s.WithEvaluator(p).Bind(fieldsHeader, "")
	if err != nil {
		t.Fatal(err)
	}
	var r, again dataset.Row
	v, w := b.Check(row, &r), b.Check(row, &again)
	if fmt.Sprint(v) != fmt.Sprint(w) || r.Hash != again.Hash {
		t.Fatalf("%v, then %v", v, w)
	}
	if v != nil {
		if v.Code != fault.TransformFailed || v.Class != dataset.ClassCode || v.Field != "total" || discreet && strings.Contains(v.Message, secret) {
			t.Fatalf("violation %+v", v)
		}
		return
	}
	value := r.Values[len(r.Values)-1]
	switch value.Kind {
	case dataset.Number:
		if canonical, err := decimal.Append(nil, value.Text); err != nil || string(canonical) != string(value.Text) {
			t.Fatalf("%s is not canonical: %s, %v", value.Text, canonical, err)
		}
	case dataset.Bool:
		if s := string(value.Text); s != "true" && s != "false" {
			t.Fatalf("%s is no boolean", s)
		}
	case dataset.String:
		if !utf8.Valid(value.Text) {
			t.Fatalf("%q is not UTF-8", value.Text)
		}
	}
}

// FuzzEval: whatever numbers and texts a row holds, arithmetic over them is what it is by definition.
func FuzzEval(f *testing.F) {
	for _, row := range [][3]string{
		{"1", "3", "x"}, {"-0.5", "2.5e10", "1.50"}, {"9223372036854775807", "-9223372036854775808", ""}, {"1e125", "1e-130", "é\u0000"},
		{"99999999999999999999999999999999999999", "0.1", "12345678901234567890"}, {"0", "-0", "e5"}, {"1E-65", "1E-65", "-"},
	} {
		f.Add(row[0], row[1], row[2])
	}
	bindings := map[string]*dataset.Binding{}
	for name := range operations {
		bindings[name] = bind(f, computing("number", "harga "+name+" diskon"), fieldsHeader...)
	}
	texts := bind(f, computing("string", `catatan.size() > 3 ? catatan.substring(1, 3).upperAscii() : catatan + string(harga)`), fieldsHeader...)
	numbers := bind(f, computing("number", `number(catatan) + 0`), fieldsHeader...)
	f.Fuzz(func(t *testing.T, harga, diskon, catatan string) {
		row := cells("A1", "", "1", harga, diskon, catatan, "", "", "", "")
		if !utf8.ValidString(catatan) || catatan == "" || harga == "" || diskon == "" {
			t.Skip("no values")
		}
		x, errX := decimal.Append(nil, []byte(harga))
		y, errY := decimal.Append(nil, []byte(diskon))
		if errX != nil || errY != nil {
			t.Skip("no numbers")
		}
		for name, b := range bindings {
			got := outcome(t, b, row)
			if want := expected(t, name, string(x), string(y)); got != want {
				t.Errorf("%s %s %s = %s, want %s", harga, name, diskon, got, want)
			}
		}
		if got := outcome(t, texts, row); !utf8.ValidString(got) {
			t.Errorf("%q gives %q", catatan, got)
		}
		want, err := decimal.Append(nil, []byte(catatan))
		if got := outcome(t, numbers, row); err == nil && got != string(want) || err != nil && !strings.HasPrefix(got, "!") {
			t.Errorf("number(%q) = %s, want %s, %v", catatan, got, want, err)
		}
	})
}

// expected is the outcome by definition.
func expected(t *testing.T, name, x, y string) string {
	a, b := numberOf(t, x).rat(), numberOf(t, y).rat()
	if b.Sign() == 0 && (name == "/" || name == "%") {
		return "!total cannot be computed: " + string(errDivision)
	}
	result, why := reference(operations[name].exact(a, b), name == "/")
	if why != "" {
		return "!total cannot be computed: " + string(why)
	}
	text, err := decimal.Append(nil, []byte(result.FloatString(200)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
