package e2e

import (
	"net/http"
	"testing"
)

// Reported: a grant for a file without bytes bound nothing but If-None-Match, so that any file could be uploaded
// with it, and an empty file sent with the headers listed ended as UPLOAD_MISMATCH.
func TestAnEmptyFileIsBoundToBeEmpty(t *testing.T) {
	s := start(t, 1<<20, nil)
	dataset := s.dataset("pairs")
	for _, declared := range []string{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"} {
		body := spec(dataset, nil)
		if declared != "" {
			body["file"].(object)["sha256"] = declared
		}
		a := s.call("POST", "/v1/import-jobs", body, "Idempotency-Key", key())
		if a.status != http.StatusAccepted {
			t.Fatalf("submit: %d %v", a.status, a.body)
		}
		if status, answer := s.upload(a, pairs(4)); status < 400 || status >= 500 {
			t.Errorf("a file with rows: %d %s", status, answer)
		}
		if status, answer := s.upload(a, nil); status != http.StatusOK {
			t.Fatalf("the empty file: %d %s", status, answer)
		}
		jobID := a.body.text("job_id")
		if c := s.call("POST", "/v1/import-jobs/"+jobID+"/complete", object{}); c.status != http.StatusAccepted {
			t.Fatalf("complete: %d %v", c.status, c.body)
		}
		if j := s.wait(jobID); j.text("error.code") != "EMPTY_FILE" {
			t.Errorf("job: %v", j)
		}
	}
	s.audit()
}
