package e2e

import (
	"net/http"
	"sync"
	"testing"
)

// Reported: a request that found its job as it asked it to be was answered with the job, but its key stayed free
// for any other request, and of many at once with one key most did not say that they were replays.
func TestAKeyIsKeptWhenThereWasNothingToDo(t *testing.T) {
	s := start(t, 1<<20, nil)
	dataset := s.dataset("pairs")
	content := pairs(4)

	jobID := s.begin(dataset, content)
	a := s.submit(dataset, content)
	canceled := a.body.text("job_id")
	if c := s.call("POST", "/v1/jobs/"+canceled+"/cancel", object{}); c.status != http.StatusAccepted {
		t.Fatalf("cancel: %d %v", c.status, c.body)
	}
	for _, path := range []string{"/v1/import-jobs/" + jobID + "/complete", "/v1/jobs/" + canceled + "/cancel"} {
		k := key()
		if c := s.call("POST", path, object{}, "Idempotency-Key", k); c.status != http.StatusAccepted || c.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s again: %d, replayed %q", path, c.status, c.header.Get("Idempotency-Replayed"))
		}
		if c := s.call("POST", path, object{}, "Idempotency-Key", k); c.status != http.StatusAccepted || c.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s once more with its key: %d, replayed %q", path, c.status, c.header.Get("Idempotency-Replayed"))
		}
		if c := s.call("POST", "/v1/import-jobs", spec(dataset, content), "Idempotency-Key", k); c.status != http.StatusConflict {
			t.Errorf("the key of %s for a submit: %d %v", path, c.status, c.body)
		}
	}
	s.wait(jobID)
	s.audit()
}

func TestManyCompletesWithOneKeyAreOneAndReplays(t *testing.T) {
	s := start(t, 1<<20, nil)
	content := pairs(4)
	a := s.submit(s.dataset("pairs"), content)
	if status, body := s.upload(a, content); status != http.StatusOK {
		t.Fatalf("upload: %d %s", status, body)
	}
	jobID, k := a.body.text("job_id"), key()
	const n = 20
	replayed := make(chan string, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			c, err := s.try(s.token, "POST", "/v1/import-jobs/"+jobID+"/complete", object{}, "Idempotency-Key", k)
			if err != nil || c.status != http.StatusAccepted {
				t.Errorf("complete: %d %v %v", c.status, c.body, err)
			}
			replayed <- c.header.Get("Idempotency-Replayed")
		})
	}
	all.Wait()
	close(replayed)
	first := 0
	for r := range replayed {
		if r == "" {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d of %d answers are no replays, want 1", first, n)
	}
	s.wait(jobID)
	s.audit()
}
