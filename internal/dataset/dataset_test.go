package dataset

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

// oneField wraps the JSON of a field in a definition whose key is another field.
func oneField(field string) string {
	return `{"schema":{"fields":[{"name":"id","type":"string"},` + field + `],"primaryKey":"id"}}`
}

func mustParse(t testing.TB, body string) *Definition {
	t.Helper()
	d, err := Parse([]byte(body))
	if err != nil {
		t.Fatalf("Parse(%s): %v", body, err)
	}
	return d
}

func mustCompile(t testing.TB, body string) *Schema {
	t.Helper()
	s, err := mustParse(t, body).Compile()
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return s
}

// problems parses a definition that must be refused and returns its code and problems.
func problems(t *testing.T, body string) (fault.Code, []Problem) {
	t.Helper()
	_, err := Parse([]byte(body))
	f, ok := fault.As(err)
	if !ok {
		t.Fatalf("Parse(%s) = %v, want a fault", body, err)
	}
	list, _ := f.Details["fields"].([]Problem)
	return f.Code, list
}

func TestParseRefusesByName(t *testing.T) {
	cases := []struct {
		name, body string
		code       fault.Code
		path, says string
	}{
		{"no json", `{`, fault.InvalidRequest, "", "unexpected end"},
		{"no object", `[]`, fault.InvalidRequest, "", "must be an object, is an array"},
		{"a name twice", `{"schema":{},"schema":{}}`, fault.InvalidRequest, "", "twice"},
		{"too deep", `{"schema":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, fault.InvalidRequest, "", "deeper"},
		{"not UTF-8", "{\"schema\":\"\xff\"}", fault.InvalidRequest, "", "UTF-8"},
		{"too large", `{"x":"` + strings.Repeat("a", MaxBytes) + `"}`, fault.InvalidRequest, "", "larger than"},
		{"unknown field", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},"owner":"me"}`, fault.InvalidRequest, "owner", "unknown"},
		{"no schema", `{}`, fault.InvalidRequest, "schema", "required"},
		{"on_conflict of the wrong type", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},"on_conflict":1}`, fault.InvalidRequest, "on_conflict", "must be a string"},
		{"on_conflict unknown", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},"on_conflict":"merge"}`, fault.InvalidSchema, "on_conflict", "supported: update"},
		{"duplicates unknown", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},"duplicates":"first_wins"}`, fault.InvalidSchema, "duplicates", "first_wins is not known; supported: reject"},
		{"computed of the wrong type", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},"computed":{}}`, fault.InvalidRequest, "computed", "must be an array"},
		{"fields of the wrong type", `{"schema":{"fields":{},"primaryKey":"id"}}`, fault.InvalidSchema, "schema.fields", "must be an array"},
		{"field of the wrong type", oneField(`7`), fault.InvalidSchema, "schema.fields[1]", "must be an object, is a number"},
		{"flag of the wrong type", oneField(`{"name":"x","constraints":{"required":"yes"}}`), fault.InvalidSchema, "schema.fields[1].constraints.required", "must be true or false"},
		{"list of the wrong type", oneField(`{"name":"x","missingValues":"-"}`), fault.InvalidSchema, "schema.fields[1].missingValues", "array of strings"},
		{"long name", oneField(`{"name":"` + strings.Repeat("x", 256) + `"}`), fault.InvalidSchema, "schema.fields[1].name", "255 bytes"},
		{"enum of a type without such values", oneField(`{"name":"x","type":"string","constraints":{"enum":[1]}}`), fault.InvalidSchema, "schema.fields[1].constraints.enum[0]", "must be a value of type string, is a number"},
		{"no fields", `{"schema":{"primaryKey":"id"}}`, fault.InvalidSchema, "schema.fields", "required"},
		{"empty fields", `{"schema":{"fields":[],"primaryKey":"id"}}`, fault.InvalidSchema, "schema.fields", "1 to 1000"},
		{"no primary key", `{"schema":{"fields":[{"name":"id"}]}}`, fault.InvalidSchema, "schema.primaryKey", "required"},
		{"empty primary key", `{"schema":{"fields":[{"name":"id"}],"primaryKey":[]}}`, fault.InvalidSchema, "schema.primaryKey", "required"},
		{"key names no field", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"ID"}}`, fault.InvalidSchema, "schema.primaryKey", "ID"},
		{"key field twice", `{"schema":{"fields":[{"name":"id"}],"primaryKey":["id","id"]}}`, fault.InvalidSchema, "schema.primaryKey", "twice"},
		{"foreign keys", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id","foreignKeys":[]}}`, fault.InvalidSchema, "schema.foreignKeys", "not supported"},
		{"unique keys", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id","uniqueKeys":[["id"]]}}`, fault.InvalidSchema, "schema.uniqueKeys", "not supported"},
		{"fieldsMatch", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id","fieldsMatch":"some"}}`, fault.InvalidSchema, "schema.fieldsMatch", "exact, equal"},
		{"labelled missing values", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id","missingValues":[{"value":"","label":"x"}]}}`, fault.InvalidSchema, "schema.missingValues[0]", "must be a string"},
		{"dialect property", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},"dialect":{"lineTerminator":"\n"}}`, fault.InvalidSchema, "dialect.lineTerminator", "not supported"},
		{"dialect value", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id"},"dialect":{"delimiter":"ab"}}`, fault.InvalidSchema, "dialect.delimiter", "one ASCII character"},
		{"unnamed field", oneField(`{"type":"string"}`), fault.InvalidSchema, "schema.fields[1].name", "required"},
		{"name twice", oneField(`{"name":"id"}`), fault.InvalidSchema, "schema.fields[1].name", "field 0"},
		{"name twice in another form", `{"schema":{"fields":[{"name":"caf\u00e9"},{"name":"cafe\u0301"}],"primaryKey":"caf\u00e9"}}`, fault.InvalidSchema, "schema.fields[1].name", "field 0"},
		{"reserved name", oneField(`{"name":"_row_number"}`), fault.InvalidSchema, "schema.fields[1].name", "rejected.csv"},
		{"padded name", oneField(`{"name":"qty "}`), fault.InvalidSchema, "schema.fields[1].name", "white space"},
		{"control character", oneField(`{"name":"a\u0000b"}`), fault.InvalidSchema, "schema.fields[1].name", "control"},
		{"type", oneField(`{"name":"x","type":"geopoint"}`), fault.InvalidSchema, "schema.fields[1].type", "geopoint is not supported; supported: string"},
		{"string format", oneField(`{"name":"x","type":"string","format":"binary"}`), fault.InvalidSchema, "schema.fields[1].format", "supported: default, email, uri, uuid"},
		{"number format", oneField(`{"name":"x","type":"number","format":"percent"}`), fault.InvalidSchema, "schema.fields[1].format", "supported: default"},
		{"date format any", oneField(`{"name":"x","type":"date","format":"any"}`), fault.InvalidSchema, "schema.fields[1].format", "any is not supported"},
		{"categories", oneField(`{"name":"x","type":"string","categories":["a"]}`), fault.InvalidSchema, "schema.fields[1].categories", "not supported"},
		{"decimalChar on integer", oneField(`{"name":"x","type":"integer","decimalChar":","}`), fault.InvalidSchema, "schema.fields[1].decimalChar", "no meaning for type integer"},
		{"decimalChar of two", oneField(`{"name":"x","type":"number","decimalChar":",,"}`), fault.InvalidSchema, "schema.fields[1].decimalChar", "one character"},
		{"one character for both", oneField(`{"name":"x","type":"number","groupChar":"."}`), fault.InvalidSchema, "schema.fields[1].groupChar", "decimalChar too"},
		{"true and false", oneField(`{"name":"x","type":"boolean","trueValues":["1"],"falseValues":["1"]}`), fault.InvalidSchema, "schema.fields[1].falseValues", "in trueValues"},
		{"no true", oneField(`{"name":"x","type":"boolean","trueValues":[]}`), fault.InvalidSchema, "schema.fields[1]", "at least one"},
		{"unique elsewhere", oneField(`{"name":"x","constraints":{"unique":true}}`), fault.InvalidSchema, "schema.fields[1].constraints.unique", "primary key"},
		{"unknown constraint", oneField(`{"name":"x","constraints":{"jsonSchema":{}}}`), fault.InvalidSchema, "schema.fields[1].constraints.jsonSchema", "not supported"},
		{"constraint of another type", oneField(`{"name":"x","type":"integer","constraints":{"minLength":1}}`), fault.InvalidSchema, "schema.fields[1].constraints.minLength", "no meaning for type integer"},
		{"minimum on string", oneField(`{"name":"x","type":"string","constraints":{"minimum":1}}`), fault.InvalidSchema, "schema.fields[1].constraints.minimum", "no meaning"},
		{"minimum no number", oneField(`{"name":"x","type":"number","constraints":{"minimum":"a"}}`), fault.InvalidSchema, "schema.fields[1].constraints.minimum", "not a number"},
		{"minimum too large", oneField(`{"name":"x","type":"number","constraints":{"minimum":1e400}}`), fault.InvalidSchema, "schema.fields[1].constraints.minimum", "magnitude"},
		{"minimum no integer", oneField(`{"name":"x","type":"integer","constraints":{"minimum":1.5}}`), fault.InvalidSchema, "schema.fields[1].constraints.minimum", "not an integer"},
		{"minimum no date", oneField(`{"name":"x","type":"date","constraints":{"minimum":"01/02/2025"}}`), fault.InvalidSchema, "schema.fields[1].constraints.minimum", "not a date"},
		{"nothing can pass", oneField(`{"name":"x","type":"number","constraints":{"minimum":10,"maximum":9.5}}`), fault.InvalidSchema, "schema.fields[1].constraints.minimum", "above maximum"},
		{"no length can pass", oneField(`{"name":"x","type":"string","constraints":{"minLength":2,"maxLength":1}}`), fault.InvalidSchema, "schema.fields[1].constraints.minLength", "above maxLength"},
		{"negative length", oneField(`{"name":"x","type":"string","constraints":{"minLength":-1}}`), fault.InvalidSchema, "schema.fields[1].constraints.minLength", "whole number"},
		{"empty enum", oneField(`{"name":"x","constraints":{"enum":[]}}`), fault.InvalidSchema, "schema.fields[1].constraints.enum", "at least one"},
		{"enum of another type", oneField(`{"name":"x","type":"integer","constraints":{"enum":[1,"b"]}}`), fault.InvalidSchema, "schema.fields[1].constraints.enum[1]", "not an integer"},
		{"pattern syntax", oneField(`{"name":"x","type":"string","constraints":{"pattern":"("}}`), fault.InvalidSchema, "schema.fields[1].constraints.pattern", "RE2"},
		{"pattern escapes its anchors", oneField(`{"name":"x","type":"string","constraints":{"pattern":"a)|(b"}}`), fault.InvalidSchema, "schema.fields[1].constraints.pattern", "RE2"},
		{"pattern quotes its anchors", oneField(`{"name":"x","type":"string","constraints":{"pattern":"\\Qa"}}`), fault.InvalidSchema, "schema.fields[1].constraints.pattern", "anchored"},
		{"pattern empty", oneField(`{"name":"x","type":"string","constraints":{"pattern":""}}`), fault.InvalidSchema, "schema.fields[1].constraints.pattern", "empty"},
		{"pattern long", oneField(`{"name":"x","type":"string","constraints":{"pattern":"` + strings.Repeat("a", 257) + `"}}`), fault.InvalidSchema, "schema.fields[1].constraints.pattern", "256"},
		{"pattern huge", oneField(`{"name":"x","type":"string","constraints":{"pattern":"(` + strings.Repeat("abcdefghij", 24) + `){1000}"}}`), fault.InvalidSchema, "schema.fields[1].constraints.pattern", "thousands of instructions"},
		{"too many missing values", `{"schema":{"fields":[{"name":"id"}],"primaryKey":"id","missingValues":[` + strings.Repeat(`"a",`, 100) + `"b"]}}`, fault.InvalidSchema, "schema.missingValues", "more than 100"},
		{"pattern slow", oneField(`{"name":"x","type":"string","constraints":{"pattern":"(\\pL{0,100}\\pN{0,100}){4}"}}`), fault.InvalidSchema, "schema.fields[1].constraints.pattern", "instructions"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			code, list := problems(t, c.body)
			if code != c.code {
				t.Errorf("code = %s, want %s", code, c.code)
			}
			if len(list) != 1 || list[0].Path != c.path || !strings.Contains(list[0].Reason, c.says) {
				t.Errorf("problems = %+v, want one at %q that says %q", list, c.path, c.says)
			}
		})
	}
}

func TestParseReportsEverything(t *testing.T) {
	code, list := problems(t, `{"schema":{"fields":[{"name":"id","type":"object"},{"name":"x","type":"date","format":"%q","constraints":{"minimum":1,"minLength":2}}],
		"primaryKey":"key","uniqueKeys":[]},"computed":[{}],"on_conflict":"merge"}`)
	var paths []string
	for _, p := range list {
		paths = append(paths, p.Path)
	}
	want := []string{"on_conflict", "schema.fields[0].type", "schema.fields[1].format", "schema.fields[1].constraints.minLength",
		"schema.primaryKey", "schema.uniqueKeys", "computed[0].name", "computed[0].type", "computed[0].expression"}
	if diff := cmp.Diff(want, paths); diff != "" || code != fault.InvalidSchema {
		t.Errorf("code %s, paths (-want +got):\n%s", code, diff)
	}
}

func TestLimits(t *testing.T) {
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"f%d"}`, i)
		}
		return `{"schema":{"fields":[{"name":"id"}` + b.String() + `],"primaryKey":"id"}}`
	}
	d := mustParse(t, fields(999))
	if names := d.FieldNames(); len(names) != 1000 || names[1] != "f0" {
		t.Errorf("got %d fields, want 1000", len(names))
	}
	if diff := cmp.Diff([]string{"id"}, d.PrimaryKey()); diff != "" {
		t.Errorf("PrimaryKey (-want +got):\n%s", diff)
	}
	if code, list := problems(t, `{"schema":{`+manyMembers(2000)+`}}`); code != fault.InvalidSchema || len(list) != maxProblems {
		t.Errorf("2000 unknown members: %s, %d problems", code, len(list))
	}
	var grown strings.Builder
	for i := range 999 {
		fmt.Fprintf(&grown, `,{"name":"%s%d","type":"boolean"}`, strings.Repeat("x", 200), i)
	}
	if code, list := problems(t, `{"schema":{"fields":[{"name":"id"}`+grown.String()+`],"primaryKey":"id"}}`); code != fault.InvalidSchema || !strings.Contains(list[0].Reason, "defaults filled in") {
		t.Errorf("too large with its defaults: %s, %v", code, list)
	}
	if _, list := problems(t, fields(1000)); len(list) == 0 || list[0].Path != "schema.fields" {
		t.Errorf("1001 fields: problems = %v", list)
	}
}

func manyMembers(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"x%d":1`, i))
	}
	return strings.Join(members, ",")
}

func TestCanonical(t *testing.T) {
	got := mustParse(t, `{"schema":{"primaryKey":"order_id","fields":[
		{"name":"order_id","constraints":{"unique":true}},
		{"constraints":{"minimum":"01","maximum":1e2},"type":"integer","name":"qty","title":"Jumlah"},
		{"name":"harga","type":"number","decimalChar":",","constraints":{"enum":["9,50",1.50,"1,5"]}},
		{"name":"lunas","type":"boolean","missingValues":[""],"constraints":{"enum":["1"]}},
		{"name":"tanggal","type":"date","format":"%d/%m/%Y","missingValues":["-"],"constraints":{"minimum":"1/2/2020"}}
	],"$schema":"https://example.com/s.json"},"on_conflict":null,"computed":[]}`).Canonical()
	want := `{"computed":[],"dialect":{"doubleQuote":true,"header":true,"quoteChar":"\"","skipInitialSpace":false},"duplicates":"reject","on_conflict":"update",` +
		`"schema":{"$schema":"https://example.com/s.json","fields":[` +
		`{"constraints":{"required":true},"format":"default","name":"order_id","type":"any"},` +
		`{"bareNumber":true,"constraints":{"maximum":100,"minimum":1},"format":"default","name":"qty","title":"Jumlah","type":"integer"},` +
		`{"bareNumber":true,"constraints":{"enum":[9.5,1.5]},"decimalChar":",","format":"default","name":"harga","type":"number"},` +
		`{"constraints":{"enum":[true]},"falseValues":["false","False","FALSE","0"],"format":"default","name":"lunas","trueValues":["true","True","TRUE","1"],"type":"boolean"},` +
		`{"constraints":{"minimum":"01/02/2020"},"format":"%d/%m/%Y","missingValues":["-"],"name":"tanggal","type":"date"}` +
		`],"fieldsMatch":"partial","missingValues":[""],"primaryKey":["order_id"]}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("Canonical (-want +got):\n%s", diff)
	}
	if again := mustParse(t, string(got)).Canonical(); string(again) != string(got) {
		t.Errorf("Canonical is not stable:\n%s\n%s", got, again)
	}
}

func TestEqualMeaningEqualBytes(t *testing.T) {
	base := `{"schema":{"fields":[{"name":"id","type":"string"},{"name":"n","type":"number","constraints":{"minimum":1}}],"primaryKey":["id"]}}`
	same := []string{
		`{"duplicates":"reject","schema":{"primaryKey":"id","missingValues":[""],"fieldsMatch":["partial"],"fields":[{"type":"string","name":"id","format":"default","constraints":{"required":true}},{"name":"n","type":"number","bareNumber":true,"decimalChar":".","constraints":{"minimum":1.0,"required":false}}]},"dialect":{"quoteChar":"\"","header":true},"computed":null,"on_conflict":"update"}`,
		`{"schema":{"fields":[{"name":"id","type":"string"},{"name":"n","type":"number","missingValues":[""],"constraints":{"minimum":"1"}}],"primaryKey":["id"]},"dialect":{}}`,
	}
	want := string(mustParse(t, base).Canonical())
	for _, body := range same {
		if diff := cmp.Diff(want, string(mustParse(t, body).Canonical())); diff != "" {
			t.Errorf("Canonical of %s (-want +got):\n%s", body, diff)
		}
	}
	other := `{"schema":{"fields":[{"name":"id","type":"string"},{"name":"n","type":"number","constraints":{"minimum":2}}],"primaryKey":["id"]}}`
	if string(mustParse(t, other).Canonical()) == want {
		t.Error("another minimum gives the same canonical form")
	}
}

func TestJSONRoundTrip(t *testing.T) {
	d := mustParse(t, ordersBody)
	body, err := json.Marshal(struct{ Definition *Definition }{d})
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ Definition *Definition }
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(d.Canonical()), string(back.Definition.Canonical())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(`{"schema":{}}`), &back.Definition); !fault.Is(err, fault.InvalidSchema) {
		t.Errorf("Unmarshal of a bad definition = %v, want INVALID_SCHEMA", err)
	}
}

func TestCheckSuccessor(t *testing.T) {
	before := mustParse(t, `{"schema":{"fields":[{"name":"a","type":"string"},{"name":"b"}],"primaryKey":"a"}}`)
	cases := []struct {
		name, body string
		ok         bool
	}{
		{"more fields", `{"schema":{"fields":[{"name":"c"},{"name":"a","type":"string"},{"name":"b","type":"date"}],"primaryKey":["a"]}}`, true},
		{"another key", `{"schema":{"fields":[{"name":"a","type":"string"},{"name":"b"}],"primaryKey":"b"}}`, false},
		{"longer key", `{"schema":{"fields":[{"name":"a","type":"string"},{"name":"b"}],"primaryKey":["a","b"]}}`, false},
		{"key of another type", `{"schema":{"fields":[{"name":"a","type":"integer"},{"name":"b"}],"primaryKey":"a"}}`, false},
	}
	for _, c := range cases {
		err := mustParse(t, c.body).CheckSuccessor(before)
		if (err == nil) != c.ok || err != nil && !fault.Is(err, fault.InvalidSchema) {
			t.Errorf("%s: %v, want ok %v", c.name, err, c.ok)
		}
	}
}

func TestCompileRefusesWhatParseDidNotMake(t *testing.T) {
	if _, err := new(Definition).Compile(); !fault.Is(err, fault.InvalidSchema) {
		t.Errorf("Compile of nothing = %v, want INVALID_SCHEMA", err)
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{"orders": true, "0": true, "a-b_c9": true, strings.Repeat("a", 64): true,
		"": false, "-a": false, "_a": false, "Orders": false, "a.b": false, "a b": false, "é": false, strings.Repeat("a", 65): false} {
		if got := ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %v, want %v", name, got, want)
		}
	}
}

// The published schemas of the testdata folder are the shape in which people have them.
func TestRealSchemas(t *testing.T) {
	files, err := os.ReadDir("testdata/schemas")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/schemas: %v, %d files", err, len(files))
	}
	for _, file := range files {
		schema, err := os.ReadFile("testdata/schemas/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mustParse(t, `{"schema":`+string(schema)+`}`).Compile(); err != nil {
			t.Errorf("%s: %v", file.Name(), err)
		}
	}
}
