package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImport is the main path: what comes out of a file with good, bad and doubled rows.
func TestImport(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(50)
	jobID := s.begin(s.dataset("pairs"), content)
	j := s.wait(jobID)
	got := s.outcome("pairs", j)
	want := naive(content)
	got.Versions, got.Report, got.Chunks, got.Covered = nil, "", 0, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if covered := j.number("result.ledger.covered_bytes"); covered != int64(len(content)) {
		t.Errorf("ledger covers %d of %d bytes", covered, len(content))
	}
	s.audit()
}

// TestResultsDoNotDependOnTheSplit imports one file at several chunk sizes.
func TestResultsDoNotDependOnTheSplit(t *testing.T) {
	content := pairs(40)
	var first *outcome
	for _, size := range []int{16, 64, 1024, 8 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			s := start(t, size, nil)
			got := s.outcome("pairs", s.wait(s.begin(s.dataset("pairs"), content)))
			got.Chunks = 0
			if first == nil {
				first = &got
			}
			if diff := cmp.Diff(*first, got); diff != "" {
				t.Errorf("(-chunks of 16 bytes +these):\n%s", diff)
			}
			s.audit()
		})
	}
}

// TestFiftySubmitsMakeOneJob sends the same request fifty times at once.
func TestFiftySubmitsMakeOneJob(t *testing.T) {
	s := start(t, 1<<20, nil)
	content := pairs(3)
	body := spec(s.dataset("pairs"), content)
	body["deduplication_key"] = "night run"
	answers := make([]answer, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			a, err := s.try(s.token, "POST", "/v1/import-jobs", body, "Idempotency-Key", "one-key")
			if err != nil {
				t.Error(err)
			}
			answers[i] = a
		})
	}
	all.Wait()
	fresh := 0
	for _, a := range answers {
		if a.status != http.StatusAccepted || a.body.text("job_id") != answers[0].body.text("job_id") {
			t.Fatalf("%d %v", a.status, a.body)
		}
		if a.header.Get("Idempotency-Replayed") == "" {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d answers are not marked as replayed, want 1", fresh)
	}
	other := spec("pairs", pairs(4))
	if a := s.call("POST", "/v1/import-jobs", other, "Idempotency-Key", "one-key"); a.status != http.StatusConflict ||
		a.body.text("error.code") != "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD" || a.body.text("error.details.job_id") != answers[0].body.text("job_id") {
		t.Errorf("another payload under the same key: %d %v", a.status, a.body)
	}
	if a := s.call("POST", "/v1/import-jobs", body, "Idempotency-Key", key()); a.status != http.StatusOK || a.body.at("deduplicated") != true ||
		a.body.text("job_id") != answers[0].body.text("job_id") {
		t.Errorf("same business key under another key: %d %v", a.status, a.body)
	}
	if n := len(s.all("/v1/jobs", "jobs")); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	s.audit()
}

// TestOtherTenantsSeeNothing asks for everything of one tenant with another's token.
func TestOtherTenantsSeeNothing(t *testing.T) {
	s := start(t, 1<<20, nil)
	jobID := s.begin(s.dataset("pairs"), pairs(10))
	s.wait(jobID)
	other := s.newClient("rival", "loader", nil)
	_ = other
	token := s.newClient("rival", "reader", allScopes)
	for _, path := range []string{"/v1/jobs/" + jobID, "/v1/jobs/" + jobID + "/rows", "/v1/jobs/" + jobID + "/artifacts/report.json", "/v1/datasets/pairs",
		"/v1/datasets/pairs/records", "/v1/datasets/pairs/records/key0", "/v1/datasets/pairs/versions/1"} {
		if a := s.callAs(token, "GET", path, nil); a.status != http.StatusNotFound {
			t.Errorf("GET %s: %d %v", path, a.status, a.body)
		}
		if a := s.callAs(other, "GET", path, nil); a.status != http.StatusForbidden {
			t.Errorf("GET %s without scopes: %d %v", path, a.status, a.body)
		}
		if a := s.callAs("", "GET", path, nil); a.status != http.StatusUnauthorized {
			t.Errorf("GET %s without token: %d %v", path, a.status, a.body)
		}
	}
	if a := s.callAs(token, "POST", "/v1/jobs/"+jobID+"/cancel", object{}, "Idempotency-Key", key()); a.status != http.StatusNotFound {
		t.Errorf("cancel: %d %v", a.status, a.body)
	}
}

// TestAReplayGivesTheFirstStatus: whether a submit made a job or found one, its replay answers the same.
func TestAReplayGivesTheFirstStatus(t *testing.T) {
	s := start(t, 1<<20, nil)
	body := spec(s.dataset("pairs"), pairs(3))
	body["deduplication_key"] = "once"
	for _, want := range []struct {
		key    string
		status int
	}{{"first", http.StatusAccepted}, {"second", http.StatusOK}} {
		for _, replayed := range []string{"", "true"} {
			a := s.call("POST", "/v1/import-jobs", body, "Idempotency-Key", want.key)
			if a.status != want.status || a.header.Get("Idempotency-Replayed") != replayed {
				t.Errorf("key %s: %d, replayed %q, want %d, %q", want.key, a.status, a.header.Get("Idempotency-Replayed"), want.status, replayed)
			}
		}
	}
}
