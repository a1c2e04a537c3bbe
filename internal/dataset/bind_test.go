package dataset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

func TestBind(t *testing.T) {
	s := mustCompile(t, ordersBody)
	cases := []struct {
		name, header, looksLike string
		at                      []int // of order_id, tanggal, qty, harga, diskon, catatan
		ignored                 []string
		code                    fault.Code
		says                    string
	}{
		{name: "in order", header: "order_id|tanggal|qty|harga|diskon|catatan", at: []int{0, 1, 2, 3, 4, 5}},
		{name: "in another order, some missing", header: "qty|order_id", at: []int{1, -1, 0, -1, -1, -1}},
		{name: "unknown columns", header: "order_id|kota|qty|", at: []int{0, -1, 2, -1, -1, -1}, ignored: []string{"kota"}},
		{name: "padded", header: " order_id |\tqty", at: []int{0, -1, 1, -1, -1, -1}},
		{name: "no-break and zero-width spaces", header: "\u200border_id|tanggal\u00a0", at: []int{0, 1, -1, -1, -1, -1}},
		{name: "no-break space inside", header: "order\u00a0_id", at: []int{0, -1, -1, -1, -1, -1}},
		{name: "a repaired rejected.csv", header: "order_id|qty|_row_number|_code|_field|_class|_message", at: []int{0, -1, 1, -1, -1, -1}},
		{name: "case counts", header: "order_id|QTY", at: []int{0, -1, -1, -1, -1, -1}, ignored: []string{"QTY"}},
		{name: "unknown twice", header: "order_id|x|x", at: []int{0, -1, -1, -1, -1, -1}, ignored: []string{"x", "x"}},
		{name: "another delimiter", header: "order_id;tanggal;qty", looksLike: ";", code: fault.HeaderInvalid, says: "1 column, expected 6; looks like ;"},
		{name: "another delimiter in two columns", header: "order_id;tanggal|qty;harga", looksLike: ";", code: fault.HeaderInvalid, says: "2 columns, expected 6; looks like ;"},
		{name: "none known", header: "a|b", code: fault.HeaderInvalid, says: "expected order_id, tanggal, qty, harga, diskon, catatan; found a, b"},
		{name: "no names", header: "|\u00a0|", code: fault.HeaderInvalid, says: "the header has no names"},
		{name: "only columns of rejected.csv", header: "_code", code: fault.HeaderInvalid, says: "no column of the dataset"},
		{name: "key missing", header: "idx|tanggal|qty", code: fault.MissingColumns, says: "order_id missing, found idx"},
		{name: "key missing, nothing else", header: "tanggal|qty", code: fault.MissingColumns, says: "order_id missing"},
		{name: "a column twice", header: "order_id|tanggal|qty|harga|diskon|catatan|qty ", code: fault.DuplicateColumns, says: "qty stands in column 3 and in column 7"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, warnings, err := s.Bind(strings.Split(c.header, "|"), c.looksLike)
			if c.code != "" {
				f, ok := fault.As(err)
				if !ok || f.Code != c.code || !strings.Contains(f.Message, c.says) {
					t.Fatalf("error = %v, want %s that says %q", err, c.code, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.at, b.at); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
			var ignored []string
			for _, w := range warnings {
				if w.Code != fault.ColumnIgnored {
					t.Errorf("warning %s", w.Code)
				}
				ignored = append(ignored, w.Details["columns"].([]string)...)
			}
			if diff := cmp.Diff(c.ignored, ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldsMatch(t *testing.T) {
	cases := []struct {
		match, header string
		code          fault.Code
	}{
		{"exact", "id|a|b", ""}, {"exact", "id|b|a", fault.HeaderInvalid}, {"exact", "id|a", fault.MissingColumns}, {"exact", "id|a|b|c", fault.HeaderInvalid},
		{"equal", "b|id|a", ""}, {"equal", "id|a", fault.MissingColumns}, {"equal", "id|a|b|c", fault.HeaderInvalid},
		{"subset", "b|id|a|c", ""}, {"subset", "id|a", fault.MissingColumns},
		{"superset", "b|id", ""}, {"superset", "b|id|c", fault.HeaderInvalid},
		{"partial", "id|c", ""},
		{"exact", "id|a|b|_row_number|_code", ""},
	}
	for _, c := range cases {
		s := mustCompile(t, fmt.Sprintf(`{"schema":{"fields":[{"name":"id"},{"name":"a"},{"name":"b"}],"primaryKey":"id","fieldsMatch":%q}}`, c.match))
		_, _, err := s.Bind(strings.Split(c.header, "|"), "")
		if c.code == "" && err != nil || c.code != "" && !fault.Is(err, c.code) {
			t.Errorf("%s %s: %v, want %q", c.match, c.header, err, c.code)
		}
	}
}

func TestRequiredColumnMissing(t *testing.T) {
	s := mustCompile(t, oneField(`{"name":"x","constraints":{"required":true}},{"name":"y"}`))
	if _, _, err := s.Bind([]string{"id", "y"}, ""); !fault.Is(err, fault.MissingColumns) {
		t.Errorf("error = %v, want MISSING_COLUMNS", err)
	}
}

func TestLongHeadersMakeShortMessages(t *testing.T) {
	s := mustCompile(t, ordersBody)
	header := []string{"order_id"}
	for i := range 500 {
		header = append(header, fmt.Sprintf("%s%d", strings.Repeat("x", 200), i))
	}
	_, warnings, err := s.Bind(header, "")
	if err != nil || len(warnings) != 1 {
		t.Fatalf("%v, %d warnings; want one warning", err, len(warnings))
	}
	w := warnings[0]
	if len(w.Message) > 300 || len(w.Details["columns"].([]string)) != 100 || w.Details["count"] != 500 {
		t.Errorf("message of %d bytes, %d columns, count %v", len(w.Message), len(w.Details["columns"].([]string)), w.Details["count"])
	}
}
