package e2e

import (
	"net/http"
	"testing"
	"time"
)

// TestExpiredURLs lets presigned URLs live for two seconds: the store refuses them afterwards, fresh ones work.
func TestExpiredURLs(t *testing.T) {
	s := start(t, 1<<20, map[string]string{"PINTU_URL_SECONDS": "2"})
	content := pairs(4)
	a := s.submit(s.dataset("pairs"), content)
	jobID := a.body.text("job_id")
	done := s.wait(s.begin("pairs", content))
	link := s.call("GET", "/v1/jobs/"+done.text("job_id")+"/artifacts/report.json", nil).body.text("url")
	if status, body := s.fetch(link); status != http.StatusOK {
		t.Fatalf("fresh download: %d %s", status, body)
	}
	s.eventually(func() bool { status, _ := s.fetch(link); return status == http.StatusForbidden })
	// The upload URL is older than the download URL that has just expired.
	if status, body := s.upload(a, content); status != http.StatusForbidden {
		t.Errorf("expired upload: %d %s", status, body)
	}
	fresh := s.call("POST", "/v1/import-jobs/"+jobID+"/upload-url", object{})
	if fresh.status != http.StatusOK {
		t.Fatalf("upload-url: %d %v", fresh.status, fresh.body)
	}
	if status, body := s.upload(fresh, content); status != http.StatusOK {
		t.Fatalf("fresh upload: %d %s", status, body)
	}
	s.complete(jobID)
	if j := s.wait(jobID); j.text("status") != "succeeded" && j.text("status") != "partial" {
		t.Errorf("job: %v", j)
	}
	again := s.call("GET", "/v1/jobs/"+done.text("job_id")+"/artifacts/report.json", nil).body.text("url")
	if status, body := s.fetch(again); status != http.StatusOK {
		t.Errorf("fresh download after expiry: %d %s", status, body)
	}
	s.audit()
}

// eventually polls something outside this process, with a deadline.
func (s *system) eventually(holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatal("it did not come to that")
}
