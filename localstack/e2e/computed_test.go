package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComputedColumns: numbers stay exact through a formula, a null operand is class code, a formula that does
// not type-check is refused when the dataset is saved.
func TestComputedColumns(t *testing.T) {
	s := start(t, 64, nil)
	definition := func(expression string) object {
		return object{"schema": object{"primaryKey": []string{"id"}, "fields": []object{{"name": "id", "type": "string"},
			{"name": "qty", "type": "integer"}, {"name": "harga", "type": "number"}, {"name": "diskon", "type": "number"}}},
			"computed": []object{{"name": "total", "type": "number", "expression": expression}}}
	}
	if a := s.call("PUT", "/v1/datasets/orders", definition("qty * hraga")); a.status != http.StatusUnprocessableEntity || a.body.text("error.code") != "INVALID_EXPRESSION" {
		t.Errorf("unknown name: %d %v", a.status, a.body)
	}
	if a := s.call("PUT", "/v1/datasets/orders", definition("qty * harga - diskon")); a.status != http.StatusCreated {
		t.Fatalf("PUT dataset: %d %v", a.status, a.body)
	}
	j := s.wait(s.begin("orders", []byte("id,qty,harga,diskon\nA,3,0.1,0\nB,2,179999.5,0.01\nC,1,5,\n")))
	if j.text("status") != "partial" || j.number("result.rejected_by_class.code.rows") != 1 {
		t.Errorf("job: %v", j)
	}
	totals := map[string]string{}
	for _, r := range s.all("/v1/datasets/orders/records", "records") {
		totals[r.text("key")] = fmt.Sprint(r.at("values.total"))
	}
	if diff := cmp.Diff(map[string]string{"A": "0.3", "B": "359998.99"}, totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	rows := s.all("/v1/jobs/"+j.text("job_id")+"/rows", "rows")
	if len(rows) != 1 || rows[0].text("code") != "TRANSFORM_FAILED" || rows[0].text("class") != "code" || rows[0].text("field") != "total" {
		t.Errorf("rows: %v", rows)
	}
	s.audit()
}
