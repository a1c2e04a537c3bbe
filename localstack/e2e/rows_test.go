package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ten orders: row 3 is cut off, row 4 has no quantity, row 6 a negative one, and row 8 no discount, which the
// computed column of version 1 is not ready for.
const orders = `pesanan_id,waktu,pelanggan,produk,qty,harga,diskon
1,2026-01-10T09:15:00,Budi,Kemeja Batik,1,250000,0
2,2026-01-10T14:30:00,Siti,Kain Songket,2,180000,20000
3,2026-01-10T19:45:00,Dewi,
4,2026-01-11T08:05:00,Rina,Seluar Linen,,210000,0
5,2026-01-11T13:20:00,Budi,Rok Tenun,2,150000,0
6,2026-01-11T16:40:00,Siti,Kemeja Batik,-1,250000,0
7,2026-01-12T07:40:00,Dewi,Kain Songket,2,180000,10000
8,2026-01-12T10:05:00,Budi,Blouse Katun,1,120000,
9,2026-01-12T13:30:00,Rina,Kain Songket,2,180000,0
10,2026-01-12T17:55:00,Siti,Seluar Linen,1,210000,0
`

func ordersDefinition(total string) object {
	required := object{"required": true}
	return object{"schema": object{"primaryKey": []string{"pesanan_id"}, "fields": []object{
		{"name": "pesanan_id", "type": "integer", "constraints": required}, {"name": "waktu", "type": "datetime", "format": "%Y-%m-%dT%H:%M:%S", "constraints": required},
		{"name": "pelanggan", "type": "string", "constraints": required}, {"name": "produk", "type": "string", "constraints": required},
		{"name": "qty", "type": "integer", "constraints": object{"required": true, "minimum": 1}}, {"name": "harga", "type": "integer", "constraints": required},
		{"name": "diskon", "type": "integer"}}}, "computed": []object{{"name": "total", "type": "integer", "expression": total}}}
}

// rows lists the quarantined rows of a job as people see them.
func (s *system) rows(jobID string) (out []string) {
	s.t.Helper()
	for _, r := range s.all("/v1/jobs/"+jobID+"/rows", "rows") {
		out = append(out, fmt.Sprint(r.number("row_number"), " ", r.text("state"), " ", r.text("code"), " ", r.number("attempts"), " v", r.number("dataset_version")))
	}
	return out
}

// row reads one row.
func (s *system) row(jobID string, n int) object {
	s.t.Helper()
	a := s.call("GET", fmt.Sprintf("/v1/jobs/%s/rows?row_number=%d", jobID, n), nil)
	rows, _ := a.body["rows"].([]any)
	if a.status != http.StatusOK || len(rows) != 1 {
		s.t.Fatalf("GET row %d: %d %v", n, a.status, a.body)
	}
	return rows[0].(map[string]any)
}

// patch changes a row that has the etag.
func (s *system) patch(jobID string, n int, etag string, change object) answer {
	s.t.Helper()
	return s.call("PATCH", fmt.Sprintf("/v1/jobs/%s/rows/%d", jobID, n), change, "If-Match", `"`+etag+`"`)
}

// TestQuarantineIsWorkedOff is a data owner's day: rows are listed, corrected, retried at another version of
// the dataset, and the one that cannot be mended is discarded.
func TestQuarantineIsWorkedOff(t *testing.T) {
	s := start(t, 64, nil)
	if a := s.call("PUT", "/v1/datasets/orders", ordersDefinition("qty * harga - diskon")); a.status != http.StatusCreated {
		t.Fatalf("PUT dataset: %d %v", a.status, a.body)
	}
	jobID := s.begin("orders", []byte(orders))
	first := s.wait(jobID)
	if first.text("status") != "partial" || first.number("result.rows_accepted") != 6 {
		t.Fatalf("first run: %v", first)
	}
	same(t, "first run", []string{"3 quarantined WRONG_COLUMN_COUNT 1 v1", "4 quarantined MISSING_VALUE 1 v1", "6 quarantined CONSTRAINT_VIOLATED 1 v1", "8 quarantined TRANSFORM_FAILED 1 v1"}, s.rows(jobID))

	for class, want := range map[string]int64{"data": 3, "code": 1} {
		if n := first.number("result.rejected_by_class." + class + ".rows"); n != want {
			t.Errorf("%d rows of class %s, want %d", n, class, want)
		}
	}
	third := s.row(jobID, 3)
	const mended = "3,2026-01-10T19:45:00,Dewi,Blouse Katun,1,120000,0"
	a := s.patch(jobID, 3, third.text("etag"), object{"raw": mended})
	if a.status != http.StatusOK || a.header.Get("ETag") != `"`+a.body.text("etag")+`"` || a.body.text("raw") != mended {
		t.Fatalf("PATCH: %d %v", a.status, a.body)
	}
	if a := s.patch(jobID, 3, third.text("etag"), object{"raw": "too late"}); a.status != http.StatusPreconditionFailed {
		t.Errorf("PATCH of a row that was changed: %d %v", a.status, a.body)
	}
	if a := s.call("PATCH", "/v1/jobs/"+jobID+"/rows/3", object{"raw": "x"}); a.status != http.StatusPreconditionRequired {
		t.Errorf("PATCH without If-Match: %d %v", a.status, a.body)
	}
	s.patch(jobID, 6, s.row(jobID, 6).text("etag"), object{"raw": "6,2026-01-11T16:40:00,Siti,Kemeja Batik,1,250000,0\n"})
	if a := s.call("PUT", "/v1/datasets/orders", ordersDefinition("qty * harga - (diskon == null ? 0 : diskon)")); a.body.number("version") != 2 {
		t.Fatalf("PUT dataset: %d %v", a.status, a.body)
	}

	body := object{"rows": nil, "code": nil, "class": nil, "dataset_version": 2}
	a = s.call("POST", "/v1/jobs/"+jobID+"/rows/retry", body, "Idempotency-Key", "again")
	if a.status != http.StatusAccepted || a.body.text("retry_of") != jobID || a.body.number("attempt") != 2 || a.body.number("dataset_version") != 2 {
		t.Fatalf("retry: %d %v", a.status, a.body)
	}
	retryID := a.body.text("job_id")
	if again := s.call("POST", "/v1/jobs/"+jobID+"/rows/retry", object{"dataset_version": 2}, "Idempotency-Key", "again"); again.body.text("job_id") != retryID || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("a repetition: %d %v", again.status, again.body)
	}
	retry := s.wait(retryID)
	if retry.text("status") != "partial" || retry.number("result.rows_total") != 4 || retry.number("result.rows_created") != 3 || retry.number("result.rejected_by_code.MISSING_VALUE") != 1 {
		t.Errorf("retry: %v", retry)
	}
	want := []string{"3 resolved WRONG_COLUMN_COUNT 1 v1", "4 quarantined MISSING_VALUE 2 v2", "6 resolved CONSTRAINT_VIOLATED 1 v1", "8 resolved TRANSFORM_FAILED 1 v1"}
	same(t, "rows of the first job", want, s.rows(jobID))
	same(t, "rows of the retry", want, s.rows(retryID))
	totals := map[string]int64{}
	for _, r := range s.all("/v1/datasets/orders/records", "records") {
		totals[r.text("key")] = r.number("values.total")
	}
	same(t, "totals", map[string]int64{"1": 250000, "2": 340000, "3": 120000, "5": 300000, "6": 250000, "7": 350000, "8": 120000, "9": 360000, "10": 210000}, totals)
	if r := s.call("GET", "/v1/datasets/orders/records/3", nil); r.body.text("source.job_id") != retryID || r.body.number("source.row_number") != 3 {
		t.Errorf("record 3: %v", r.body)
	}
	same(t, "the first job", first, s.wait(jobID))

	if a := s.call("POST", "/v1/jobs/"+jobID+"/rows/retry", object{"rows": []int{3, 4}}, "Idempotency-Key", key()); a.status != http.StatusConflict || a.body.text("error.code") != "INVALID_ROW_STATE" {
		t.Errorf("retry of a resolved row: %d %v", a.status, a.body)
	}
	if a := s.call("POST", "/v1/jobs/"+jobID+"/rows/discard", object{"rows": []int{4}, "reason": "nobody knows how many"}); a.status != http.StatusOK {
		t.Errorf("discard: %d %v", a.status, a.body)
	}
	if r := s.row(jobID, 4); r.text("state") != "discarded" || r.text("discard_reason") != "nobody knows how many" || r.text("raw") == "" {
		t.Errorf("discarded row: %v", r)
	}
	empty := s.call("POST", "/v1/jobs/"+jobID+"/rows/retry", nil, "Idempotency-Key", key())
	if j := s.wait(empty.body.text("job_id")); j.text("status") != "succeeded" || j.number("result.rows_total") != 0 {
		t.Errorf("a retry of nothing: %v", j)
	}
	s.audit()
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A payload that does not fit the store's item is shown from the bucket, corrected, and applied.
func TestALargeRowIsMended(t *testing.T) {
	s := start(t, 1<<20, nil)
	long := make([]byte, 300<<10)
	for i := range long {
		long[i] = 'x'
	}
	jobID := s.begin(s.dataset("pairs"), fmt.Appendf(nil, "k,v\na,1\nb,%s\n", long))
	s.wait(jobID)
	r := s.row(jobID, 2)
	if r.text("raw") != "b,"+string(long)+"\n" {
		t.Errorf("the payload is shown with %d bytes", len(r.text("raw")))
	}
	if a := s.patch(jobID, 2, r.text("etag"), object{"raw": "b,2\n"}); a.status != http.StatusOK {
		t.Fatalf("PATCH: %d", a.status)
	}
	a := s.call("POST", "/v1/jobs/"+jobID+"/rows/retry", object{"rows": []int{2}}, "Idempotency-Key", key())
	if j := s.wait(a.body.text("job_id")); j.text("status") != "succeeded" {
		t.Errorf("retry: %v", j)
	}
	s.audit()
}

// Rows of another tenant are not there, and a token without the scope may not touch its own.
func TestRowsBelongToTheirTenant(t *testing.T) {
	s := start(t, 1<<20, nil)
	jobID := s.begin(s.dataset("pairs"), []byte("k,v\na,1\nb,x\n"))
	s.wait(jobID)
	rival := s.newClient("rival", "loader", allScopes)
	path := "/v1/jobs/" + jobID + "/rows"
	for _, c := range []struct {
		method, path string
		body         object
	}{{"PATCH", path + "/2", object{"raw": "b,2"}}, {"POST", path + "/retry", object{}}, {"POST", path + "/discard", object{"rows": []int{2}, "reason": "mine"}}} {
		a := s.callAs(rival, c.method, c.path, c.body, "Idempotency-Key", key(), "If-Match", "*")
		if a.status != http.StatusNotFound || a.body.text("error.code") != "JOB_NOT_FOUND" {
			t.Errorf("%s %s: %d %v", c.method, c.path, a.status, a.body)
		}
	}
	same(t, "rows", []string{"2 quarantined TYPE_MISMATCH 1 v1"}, s.rows(jobID))
	s.audit()
}
