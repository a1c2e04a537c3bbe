package dataset

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

// withComputed is a definition with the fields id, qty and café, and these computed columns.
func withComputed(computed string) string {
	return `{"schema":{"fields":[{"name":"id"},{"name":"qty","type":"integer"},{"name":"caf\u00e9"}],"primaryKey":"id"},"computed":` + computed + `}`
}

func TestParseRefusesComputedByForm(t *testing.T) {
	one := func(member, value string) string {
		column := map[string]string{"name": `"t"`, "type": `"number"`, "expression": `"1"`}
		column[member] = value
		var members []string
		for name, value := range column {
			members = append(members, fmt.Sprintf("%q:%s", name, value))
		}
		return withComputed("[{" + strings.Join(members, ",") + "}]")
	}
	cases := []struct {
		name, body string
		path, says string
	}{
		{"no object", withComputed(`["qty"]`), "computed[0]", "must be an object, is a string"},
		{"no name", one("name", `null`), "computed[0].name", "required"},
		{"no type", one("type", `null`), "computed[0].type", "required"},
		{"no expression", one("expression", `null`), "computed[0].expression", "required"},
		{"blank expression", one("expression", `" \n"`), "computed[0].expression", "required"},
		{"expression of the wrong type", one("expression", `1`), "computed[0].expression", "must be a string, is a number"},
		{"type", one("type", `"date"`), "computed[0].type", "date is not supported; supported: integer, number, string, boolean"},
		{"unknown member", one("format", `"x"`), "computed[0].format", "not supported"},
		{"name of a field", one("name", `"qty"`), "computed[0].name", "a field of the schema too"},
		{"name of the key", one("name", `"id"`), "computed[0].name", "a field of the schema too"},
		{"name of a field in another form", one("name", `"cafe\u0301"`), "computed[0].name", "a field of the schema too"},
		{"reserved name", one("name", `"_class"`), "computed[0].name", "rejected.csv"},
		{"long name", one("name", `"`+strings.Repeat("x", 256)+`"`), "computed[0].name", "255 bytes"},
		{"name twice", withComputed(`[{"name":"t","type":"number","expression":"1"},{"name":"t","type":"number","expression":"2"}]`), "computed[1].name", "computed[0] too"},
		{"too many", withComputed(`[` + strings.Repeat(`{},`, MaxComputed) + `{}]`), "computed", "more than 100"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			code, list := problems(t, c.body)
			if code != fault.InvalidSchema || len(list) != 1 || list[0].Path != c.path || !strings.Contains(list[0].Reason, c.says) {
				t.Errorf("%s %+v, want one at %q that says %q", code, list, c.path, c.says)
			}
		})
	}
}

func TestComputedIsKept(t *testing.T) {
	d := mustParse(t, withComputed(`[{"type":"integer","name":"total","expression":"qty * 2 // <&>"},{"name":"a","type":"string","expression":"id"}]`))
	want := []Computed{{"total", "integer", "qty * 2 // <&>"}, {"a", "string", "id"}}
	if diff := cmp.Diff(want, d.Computed); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"id", "qty", "café", "total", "a"}, d.ColumnNames()); diff != "" {
		t.Errorf("ColumnNames (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Column{{"id", String}, {"qty", Number}, {"café", String}}, d.Columns()); diff != "" {
		t.Errorf("Columns (-want +got)\n%s", diff)
	}
	canonical := string(d.Canonical())
	if !strings.HasPrefix(canonical, `{"computed":[{"expression":"qty * 2 // <&>","name":"total","type":"integer"},{"expression":"id","name":"a","type":"string"}],`) {
		t.Errorf("Canonical = %s", canonical)
	}
	if again := mustParse(t, canonical); string(again.Canonical()) != canonical {
		t.Errorf("Canonical of Canonical = %s", again.Canonical())
	}
}

// constants is an Evaluator that adds the same values to every row, or refuses it.
type constants struct {
	values    []Value
	violation *Violation
}

func (c constants) Eval(row *Row) *Violation {
	for _, v := range c.values {
		row.Add(v)
	}
	return c.violation
}

func number(text string) Value { return Value{Number, []byte(text)} }

// The hashes are stored with records: the ones without computed columns were there before these.
func TestHashCoversComputedValues(t *testing.T) {
	body := withComputed(`[{"name":"total","type":"integer","expression":"qty * 2"},{"name":"a","type":"boolean","expression":"true"}]`)
	hash := func(values ...Value) string {
		b := bind(t, mustCompile(t, body).WithEvaluator(constants{values: values}), "id", "qty")
		var row Row
		if v := b.Check(cells("k", "3"), &row); v != nil {
			t.Fatal(v)
		}
		return hex.EncodeToString(row.Hash[:])
	}
	plain := bind(t, mustCompile(t, withComputed(`[]`)), "id", "qty")
	var row Row
	if v := plain.Check(cells("k", "3"), &row); v != nil {
		t.Fatal(v)
	}
	if nulls := hash(Value{}, Value{}); nulls != hex.EncodeToString(row.Hash[:]) {
		t.Errorf("nulls change the hash: %s", nulls)
	}
	seen := map[string]bool{}
	for _, values := range [][]Value{
		{{}, {}}, {number("6"), {}}, {number("7"), {}}, {number("6"), {Bool, []byte("true")}}, {{}, {Bool, []byte("true")}},
	} {
		if h := hash(values...); seen[h] {
			t.Errorf("%v: hash %s was seen", values, h)
		} else {
			seen[h] = true
		}
	}
	// The order is that of all names: a, id, qty, total.
	fields := mustCompile(t, `{"schema":{"fields":[{"name":"total","type":"integer"},{"name":"a","type":"boolean"},{"name":"id"},{"name":"qty","type":"integer"}],"primaryKey":"id"}}`)
	if v := bind(t, fields, "id", "qty", "total", "a").Check(cells("k", "3", "6", "true"), &row); v != nil {
		t.Fatal(v)
	}
	if got, want := hash(number("6"), Value{Bool, []byte("true")}), hex.EncodeToString(row.Hash[:]); got != want {
		t.Errorf("hash %s, but %s for the same values in fields", got, want)
	}
}

func TestCheckComputesLast(t *testing.T) {
	body := withComputed(`[{"name":"t","type":"number","expression":"1"}]`)
	failed := &Violation{Code: fault.TransformFailed, Field: "t", Class: ClassCode}
	cases := []struct {
		name      string
		evaluator Evaluator
		row       [][]byte
		want      fault.Code
	}{
		{"computed", constants{values: []Value{number("1")}}, cells("k", "1"), ""},
		{"failed", constants{violation: failed}, cells("k", "1"), fault.TransformFailed},
		{"bad field first", constants{violation: failed}, cells("k", "x"), fault.TypeMismatch},
		{"bad key first", constants{violation: failed}, cells(strings.Repeat("k", MaxKeyBytes+1), "1"), fault.ConstraintViolated},
		{"not all", constants{}, cells("k", "1"), fault.Internal},
		{"nobody to compute", nil, cells("k", "1"), fault.Internal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := bind(t, mustCompile(t, body).WithEvaluator(c.evaluator), "id", "qty")
			var row Row
			v := b.Check(c.row, &row)
			switch {
			case v == nil && c.want != "" || v != nil && v.Code != c.want:
				t.Fatalf("Check = %+v, want %q", v, c.want)
			case v == nil && (len(row.Values) != 4 || string(row.Values[3].Text) != "1"):
				t.Errorf("Values = %v", row.Values)
			case v != nil && v.Code != fault.TypeMismatch && v.Code != fault.ConstraintViolated && v.Class != ClassCode:
				t.Errorf("class %s, want code", v.Class)
			}
		})
	}
}

func TestSupportedRules(t *testing.T) {
	for _, r := range []Rule{OnConflictRule, DuplicatesRule} {
		for i, value := range r.Values {
			_, err := Parse([]byte(fmt.Sprintf(`{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},%q:%q}`, r.Name, value)))
			if supported := i < len(r.Supported()); (err == nil) != supported {
				t.Errorf("%s %s: %v, supported: %v", r.Name, value, err, supported)
			}
		}
	}
}
