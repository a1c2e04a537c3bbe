package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// expected is testdata/orders/expected.json: what the worked example must come to.
type expected struct {
	First struct {
		Status   string           `json:"status"`
		Total    int64            `json:"rows_total"`
		Accepted int64            `json:"rows_accepted"`
		Rejected int64            `json:"rows_rejected"`
		ByClass  map[string]int64 `json:"rejected_by_class"`
		Rows     []rejectedRow    `json:"quarantine"`
	} `json:"first_run"`
	After struct {
		Retry struct {
			Total    int64 `json:"rows_total"`
			Accepted int64 `json:"rows_accepted"`
			Rejected int64 `json:"rows_rejected"`
		} `json:"retry"`
		Records int64            `json:"records"`
		Totals  map[string]int64 `json:"totals"`
		Still   []struct {
			Row      int64 `json:"row_number"`
			Attempts int64 `json:"attempts"`
		} `json:"still_quarantined"`
	} `json:"after_corrections_and_version_2"`
}

type rejectedRow struct {
	Row   int64  `json:"row_number"`
	Class string `json:"class"`
	Code  string `json:"code"`
	Field string `json:"field"`
}

func ordersFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "localstack", "e2e", "testdata", "orders", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readOrders[T any](t *testing.T, name string) (v T) {
	t.Helper()
	if err := json.Unmarshal(ordersFile(t, name), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// beginLines is begin for JSON Lines.
func (s *system) beginLines(dataset string, content []byte) string {
	s.t.Helper()
	body := spec(dataset, content)
	body["format"] = "jsonl"
	a := s.call("POST", "/v1/import-jobs", body, "Idempotency-Key", key())
	if a.status != http.StatusAccepted {
		s.t.Fatalf("submit: %d %v", a.status, a.body)
	}
	if status, body := s.upload(a, content); status != http.StatusOK {
		s.t.Fatalf("upload: %d %s", status, body)
	}
	jobID := a.body.text("job_id")
	if c := s.call("POST", "/v1/import-jobs/"+jobID+"/complete", object{}); c.status != http.StatusAccepted {
		s.t.Fatalf("complete: %d %v", c.status, c.body)
	}
	return jobID
}

// TestOrdersInJSONLines is the worked example: ten orders, four of them rejected; two are corrected, the
// dataset learns what a missing discount means, and all four are tried again.
func TestOrdersInJSONLines(t *testing.T) {
	s := start(t, 64, nil)
	want := readOrders[expected](t, "expected.json")
	if a := s.call("PUT", "/v1/datasets/orders", readOrders[object](t, "dataset-v1.json")); a.status != http.StatusCreated {
		t.Fatalf("PUT dataset: %d %v", a.status, a.body)
	}
	jobID := s.beginLines("orders", ordersFile(t, "batch-1.jsonl"))
	j := s.wait(jobID)
	if j.text("status") != want.First.Status || j.text("format") != "jsonl" || j.number("result.rows_total") != want.First.Total ||
		j.number("result.rows_accepted") != want.First.Accepted || j.number("result.rows_rejected") != want.First.Rejected {
		t.Errorf("first run: %v", j)
	}
	byClass := map[string]int64{}
	var rows []rejectedRow
	for _, r := range s.all("/v1/jobs/"+jobID+"/rows", "rows") {
		rows = append(rows, rejectedRow{r.number("row_number"), r.text("class"), r.text("code"), r.text("field")})
		byClass[r.text("class")]++
	}
	same(t, "rows", want.First.Rows, rows)
	same(t, "classes", want.First.ByClass, byClass)
	third := s.row(jobID, 3).text("raw")
	same(t, "rejected rows", 4, len(strings.Split(strings.TrimSpace(s.artifact(jobID, "rejected.jsonl")), "\n")))
	if lines := strings.Split(string(ordersFile(t, "batch-1.jsonl")), "\n"); third != lines[2]+"\n" {
		t.Errorf("the third row is kept as %q", third)
	}

	for number, raw := range readOrders[map[string]string](t, "corrections.json") {
		var n int
		if _, err := fmt.Sscan(number, &n); err != nil {
			t.Fatal(err)
		}
		if a := s.patch(jobID, n, s.row(jobID, n).text("etag"), object{"raw": raw}); a.status != http.StatusOK {
			t.Fatalf("PATCH: %d %v", a.status, a.body)
		}
	}
	if a := s.call("PUT", "/v1/datasets/orders", readOrders[object](t, "dataset-v2.json")); a.body.number("version") != 2 {
		t.Fatalf("PUT dataset: %d %v", a.status, a.body)
	}
	a := s.call("POST", "/v1/jobs/"+jobID+"/rows/retry", object{"dataset_version": 2}, "Idempotency-Key", key())
	retry := s.wait(a.body.text("job_id"))
	if r := want.After.Retry; retry.number("result.rows_total") != r.Total || retry.number("result.rows_accepted") != r.Accepted || retry.number("result.rows_rejected") != r.Rejected {
		t.Errorf("retry: %v", retry)
	}
	totals := map[string]string{}
	for _, r := range s.all("/v1/datasets/orders/records", "records") {
		totals[r.text("key")] = fmt.Sprint(r.at("values.total"))
	}
	wantTotals := map[string]string{}
	for k, n := range want.After.Totals {
		wantTotals[k] = fmt.Sprint(n)
	}
	same(t, "totals", wantTotals, totals)
	same(t, "records", want.After.Records, int64(len(totals)))
	for _, r := range want.After.Still {
		if got := s.row(jobID, int(r.Row)); got.text("state") != "quarantined" || got.number("attempts") != r.Attempts {
			t.Errorf("row %d: %v", r.Row, got)
		}
	}
	s.audit()
}

// TestRejectedLinesImportAgain: rejected.jsonl is a file of the same format, whose rows are rejected for the same
// reasons; a file that is one array is refused as a whole.
func TestRejectedLinesImportAgain(t *testing.T) {
	s := start(t, 16, nil)
	dataset := s.dataset("pairs")
	content := "\ufeff{\"k\":\"a\",\"v\":1,\"more\":[]}\r\n\r\n{\"k\":\"b\",\"v\":\"x\"}\n{\"k\":\"c\",\n\"teks\"\n{\"k\":\"d\",\"v\":2}{}\n{\"k\":\"e\",\"v\":\"\xff\"}\n{}\n{\"k\":\"f\",\"k\":\"g\"}"
	job := s.wait(s.beginLines(dataset, []byte(content)))
	reasons := func(jobID string) (out []string) {
		for _, r := range s.all("/v1/jobs/"+jobID+"/rows", "rows") {
			out = append(out, r.text("code")+" "+r.text("field"))
		}
		return out
	}
	want := []string{"TYPE_MISMATCH v", "MALFORMED_ROW ", "MALFORMED_ROW ", "MALFORMED_ROW ", "INVALID_ENCODING ", "MISSING_VALUE k", "MALFORMED_ROW "}
	same(t, "reasons", want, reasons(job.text("job_id")))
	if warnings := fmt.Sprint(job["warnings"]); !strings.Contains(warnings, "COLUMN_IGNORED") || !strings.Contains(warnings, "more") {
		t.Errorf("warnings: %v", warnings)
	}
	for range 2 {
		again := s.wait(s.beginLines(dataset, []byte(s.artifact(job.text("job_id"), "rejected.jsonl"))))
		if again.text("error.code") != "ALL_ROWS_REJECTED" {
			t.Errorf("job: %v", again)
		}
		same(t, "reasons", want, reasons(again.text("job_id")))
		job = again
	}
	if j := s.wait(s.beginLines(dataset, []byte("[\n{\"k\":\"a\",\"v\":1}\n]"))); j.text("status") != "failed" || j.text("error.code") != "MALFORMED_JSONL" {
		t.Errorf("array: %v", j)
	}
	s.audit()
}
