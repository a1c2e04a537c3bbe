package httpapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

const retryPath, reprocessPath = "/v1/jobs/" + jobID + "/retry", "/v1/jobs/" + jobID + "/reprocess"

// runningAgain gives a fixture that makes jobs of others, and the dataset versions that were asked for:
// -1 is a retry at the version of its job.
func runningAgain() (*fixture, *[]int, *[]idempotency.Intent) {
	f, versions, intents := newFixture(), &[]int{}, &[]idempotency.Intent{}
	made := job.Submitted{Job: importJob(job.Queued), Outcome: idempotency.Created, Allowance: &access.Allowance{Limit: 600, Remaining: 599, ResetSeconds: 30}}
	made.Job.RetryOf, made.Job.Attempt = jobID, 2
	f.jobs.retry = func(in idempotency.Intent, _ id.Job, version *int) (job.Submitted, error) {
		n := -1
		if version != nil {
			n = *version
		}
		*versions, *intents = append(*versions, n), append(*intents, in)
		return made, nil
	}
	f.jobs.reprocess = func(in idempotency.Intent, _ id.Job, version int) (job.Submitted, error) {
		*versions, *intents = append(*versions, version), append(*intents, in)
		return made, nil
	}
	return f, versions, intents
}

func TestRetryAndReprocess(t *testing.T) {
	f, versions, intents := runningAgain()
	for _, path := range []string{retryPath, reprocessPath} {
		for _, body := range []string{"", "{}", `{"dataset_version":null}`, `{"dataset_version":2}`} {
			a := f.do(t, request{method: "POST", path: path, body: body})
			got := decode[map[string]any](t, a, 202)
			if got["retry_of"] != jobID || got["attempt"] != 2.0 || a.Header.Get("RateLimit-Remaining") != "599" {
				t.Errorf("%s", a.body)
			}
		}
	}
	if diff := cmp.Diff([]int{-1, -1, -1, 2, 0, 0, 0, 2}, *versions); diff != "" {
		t.Error(diff)
	}
	prints := map[string]int{}
	for _, in := range *intents {
		prints[in.Fingerprint]++
	}
	if len(prints) != 4 {
		t.Errorf("%d fingerprints for 4 intents", len(prints))
	}
}

// TestRetryFindsAnotherJob: of the same business intent, still waiting for its file.
func TestRetryFindsAnotherJob(t *testing.T) {
	f := newFixture()
	f.jobs.retry = func(idempotency.Intent, id.Job, *int) (job.Submitted, error) {
		return job.Submitted{Job: importJob(job.Uploading), Grant: &job.Grant{Method: "PUT", URL: "https://bucket.example/key", ExpiresAt: clock, Headers: map[string]string{}},
			Outcome: idempotency.Deduplicated}, nil
	}
	got := decode[map[string]any](t, f.do(t, request{method: "POST", path: retryPath}), 200)
	if got["deduplicated"] != true || got["upload"] == nil {
		t.Errorf("got %v", got)
	}
}

func TestRetryRefuses(t *testing.T) {
	f, _, _ := runningAgain()
	for _, path := range []string{retryPath, reprocessPath} {
		f.do(t, request{method: "POST", path: path, body: `{"dataset_version":0}`}).failed(t, 400, fault.InvalidRequest)
		f.do(t, request{method: "POST", path: path, body: `{"version":1}`}).failed(t, 400, fault.InvalidRequest)
	}
	f.jobs.retry = func(idempotency.Intent, id.Job, *int) (job.Submitted, error) {
		return job.Submitted{}, fault.New(fault.InvalidJobState, "only a failed or canceled job can be retried: the job is partial").With("status", "partial")
	}
	f.do(t, request{method: "POST", path: retryPath}).failed(t, 409, fault.InvalidJobState)
	f.jobs.reprocess = func(idempotency.Intent, id.Job, int) (job.Submitted, error) {
		return job.Submitted{}, fault.New(fault.VersionNotFound, "dataset orders has no version 7")
	}
	f.do(t, request{method: "POST", path: reprocessPath, body: `{"dataset_version":7}`}).failed(t, 404, fault.VersionNotFound)
}
