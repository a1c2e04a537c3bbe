package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"testing"
)

// TestTheStoreRefusesWhatWasNotDeclared uploads the wrong thing in every way: the store itself says no.
func TestTheStoreRefusesWhatWasNotDeclared(t *testing.T) {
	s := start(t, 1<<20, nil)
	content := pairs(4)
	sum := sha256.Sum256(content)
	other := sha256.Sum256([]byte("another file"))
	body := spec(s.dataset("pairs"), content)
	body["file"].(object)["sha256"] = hex.EncodeToString(sum[:])
	a := s.call("POST", "/v1/import-jobs", body, "Idempotency-Key", key())
	if a.status != http.StatusAccepted {
		t.Fatalf("submit: %d %v", a.status, a.body)
	}
	jobID := a.body.text("job_id")
	if c := s.call("POST", "/v1/import-jobs/"+jobID+"/complete", object{}); c.status != http.StatusConflict || c.body.text("error.code") != "UPLOAD_NOT_FOUND" || c.body.at("error.retryable") != true {
		t.Errorf("complete before the upload: %d %v", c.status, c.body)
	}
	swapped := bytes.Replace(content, []byte("key0,0"), []byte("key0,9"), 1)
	for name, try := range map[string]func() (int, string){
		"longer":      func() (int, string) { return s.upload(a, append(bytes.Clone(content), '\n')) },
		"shorter":     func() (int, string) { return s.upload(a, content[:len(content)-1]) },
		"other bytes": func() (int, string) { return s.upload(a, swapped) },
		"other checksum": func() (int, string) {
			return s.upload(a, swapped, "X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(other[:]))
		},
		"other type":   func() (int, string) { return s.upload(a, content, "Content-Type", "text/plain") },
		"no condition": func() (int, string) { return s.upload(a, content, "If-None-Match", "") },
	} {
		if status, answer := try(); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, answer := s.upload(a, content); status != http.StatusOK {
		t.Fatalf("the declared file: %d %s", status, answer)
	}
	if status, answer := s.upload(a, content); status != http.StatusPreconditionFailed {
		t.Errorf("a second upload: %d %s", status, answer)
	}
	if c := s.call("POST", "/v1/import-jobs/"+jobID+"/complete", object{}); c.status != http.StatusAccepted {
		t.Fatalf("complete: %d %v", c.status, c.body)
	}
	j := s.wait(jobID)
	if j.text("status") != "succeeded" || j.text("result.ledger.input_sha256") != hex.EncodeToString(sum[:]) {
		t.Errorf("job: %v", j)
	}
	if c := s.call("POST", "/v1/import-jobs/"+jobID+"/complete", object{}); c.status != http.StatusAccepted || c.body.text("status") != "succeeded" {
		t.Errorf("complete again: %d %v", c.status, c.body)
	}
	s.audit()
}

// TestAnUploadWhoseClientWentAwayIsCompleted: the file is there, nobody says so, sweep does.
func TestAnUploadWhoseClientWentAwayIsCompleted(t *testing.T) {
	s := start(t, 1<<20, nil)
	content := pairs(4)
	a := s.submit(s.dataset("pairs"), content)
	if status, answer := s.upload(a, content); status != http.StatusOK {
		t.Fatalf("upload: %d %s", status, answer)
	}
	s.sweepNow()
	if j := s.wait(a.body.text("job_id")); j.text("status") != "succeeded" {
		t.Errorf("job: %v", j)
	}
	s.audit()
}
