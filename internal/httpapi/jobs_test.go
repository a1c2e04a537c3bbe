package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

func ended(status job.Status) job.Job {
	total := int64(10)
	j := importJob(job.Running)
	j.Status, j.FinishedAt = status, clock.Add(3*time.Second)
	j.Input.SHA256 = strings.Repeat("ab", 32)
	j.Result = &job.Result{
		RowsTotal: &total, RowsPlanned: 10,
		Counters: job.Counters{Created: 5, Updated: 1, Unchanged: 1, Rejected: 3, ByCode: map[fault.Code]int64{fault.MissingValue: 2, fault.Internal: 1},
			ByClass: map[string]int64{"data": 2, "code": 1}},
		SampleErrors: []job.SampleError{{RowNumber: 3, Line: 4, Field: "qty", Code: fault.MissingValue, Class: "data", Message: "is empty"},
			{RowNumber: 4, Line: 6, Code: fault.MissingValue, Class: "data", Message: "is empty"}},
		Artifacts: []job.Artifact{{Name: "rejected.csv", Key: "secret-key", VersionID: "secret-version", SizeBytes: 9, SHA256: strings.Repeat("cd", 32), ExpiresAt: clock.Add(time.Hour)}},
		Ledger:    job.Ledger{InputSHA256: strings.Repeat("ab", 32), InputVersionID: "v1", InputBytes: 1234, DataStart: 20, CoveredBytes: 1234, Chunks: 1, ChunksSHA256: strings.Repeat("ef", 32)},
	}
	return j
}

func failedJob() job.Job {
	j := ended(job.Failed)
	j.Result.RowsTotal, j.Result.Ledger = nil, job.Ledger{InputBytes: 1234}
	j.Error = &job.Failure{Code: fault.JobTimeLimit, Message: "took longer than 24 hours", Details: map[string]any{"seconds": 86400}}
	return j
}

func stalledJob() job.Job {
	j := importJob(job.Running)
	j.StalledCount, j.Stalled = 1, &job.Stalled{Since: clock, Queue: "plan", Reason: "silent", Chunk: -1, ExpiresAt: clock.Add(time.Hour)}
	j.Warnings = []job.Warning{{Code: fault.ColumnIgnored, Message: "note is ignored"}}
	j.CancelRequestedAt, j.CanceledBy = clock.Add(2500*time.Millisecond), "client"
	return j
}

// TestJobObject compares whole answers: the shape is the contract. The document is checked beside it.
func TestJobObject(t *testing.T) {
	head := `{"job_id":"` + jobID + `","kind":"import","status":"%s","attempt":1,"retry_of":null,"retried_by":null,"reprocess_of":null,"client_id":"shop","created_at":"2026-07-27T10:15:30Z",` +
		`"uploaded_at":%s,"started_at":%s,"finished_at":%s,"status_url":"/v1/import-jobs/` + jobID + `","dataset":"orders","dataset_version":1,"format":"csv","atomicity":"per_row","dry_run":false,"input":`
	middle := `,"deduplication_key":null,"deduplicated":false,"metadata":{"document_id":"<123>"},`
	tail := `,"retention":{"input_days":7,"results_days":30,"quarantine_days":30},"error":`
	none := `"cancel_requested_at":null,"canceled_by":null,"stalled":null,"stalled_count":0,`
	pinned := `{"name":"orders.csv","size_bytes":1234,"sha256":null,"version_id":"v1"}`
	hashed := `{"name":"orders.csv","size_bytes":1234,"sha256":"` + strings.Repeat("ab", 32) + `","version_id":"v1"}`
	result := `{"rows_total":%s,"rows_planned":%s,"rows_accepted":7,"rows_created":5,"rows_updated":1,"rows_unchanged":1,"rows_skipped":0,"rows_rejected":3,"rows_unprocessed":0,` +
		`"rejected_by_code":{"INTERNAL":1,"MISSING_VALUE":2},"rejected_by_class":{"code":{"rows":1,"advice":"the rows look legitimate, the dataset was not ready for them: correct its schema or computed columns first"},` +
		`"data":{"rows":2,"advice":"the rows themselves are wrong: correct them at their source and import them again"}},` +
		`"sample_errors":[{"row_number":3,"line":4,"field":"qty","code":"MISSING_VALUE","class":"data","message":"is empty"},{"row_number":4,"line":6,"field":null,"code":"MISSING_VALUE","class":"data","message":"is empty"}],` +
		`"artifacts":[{"name":"rejected.csv","size_bytes":9,"sha256":"` + strings.Repeat("cd", 32) + `","expires_at":"2026-07-27T11:15:30Z"}],"ledger":%s}`
	ledger := `{"input_sha256":"` + strings.Repeat("ab", 32) + `","input_version_id":"v1","input_bytes":1234,"data_start":20,"covered_bytes":1234,"chunks":1,"chunks_stopped":0,"chunks_sha256":"` + strings.Repeat("ef", 32) + `"}`
	noLedger := `{"input_sha256":null,"input_version_id":null,"input_bytes":1234,"data_start":0,"covered_bytes":0,"chunks":0,"chunks_stopped":0,"chunks_sha256":null}`
	uploaded, started, finished := `"2026-07-27T10:15:31Z"`, `"2026-07-27T10:15:32Z"`, `"2026-07-27T10:15:33Z"`
	running := `"progress":{"stage":"processing","rows_processed":5,"rows_accepted":4,"rows_rejected":1,"bytes_processed":617,"bytes_total":1234,"percent":50}`
	for _, c := range []struct {
		name string
		j    job.Job
		want string
	}{
		{"uploading", importJob(job.Uploading), fmt.Sprintf(head, "uploading", "null", "null", "null") + `{"name":"orders.csv","size_bytes":1234,"sha256":null,"version_id":null}` + middle + none +
			`"progress":{"stage":null,"rows_processed":0,"rows_accepted":0,"rows_rejected":0,"bytes_processed":0,"bytes_total":null},"result":null,"warnings":[]` + tail + `null}`},
		{"queued", importJob(job.Queued), fmt.Sprintf(head, "queued", uploaded, "null", "null") + pinned + middle + none +
			`"progress":{"stage":null,"rows_processed":0,"rows_accepted":0,"rows_rejected":0,"bytes_processed":0,"bytes_total":1234,"percent":0},"result":null,"warnings":[]` + tail + `null}`},
		{"running", importJob(job.Running), fmt.Sprintf(head, "running", uploaded, started, "null") + pinned + middle + none + running + `,"result":null,"warnings":[]` + tail + `null}`},
		{"stalled", stalledJob(), fmt.Sprintf(head, "running", uploaded, started, "null") + pinned + middle +
			`"cancel_requested_at":"2026-07-27T10:15:32.5Z","canceled_by":"client","stalled":{"since":"2026-07-27T10:15:30Z","queue":"plan","reason":"silent","chunk":null,"expires_at":"2026-07-27T11:15:30Z"},"stalled_count":1,` +
			running + `,"result":null,"warnings":[{"code":"COLUMN_IGNORED","message":"note is ignored","details":{}}]` + tail + `null}`},
		{"partial", ended(job.Partial), fmt.Sprintf(head, "partial", uploaded, started, finished) + hashed + middle + none +
			`"progress":{"stage":null,"rows_processed":10,"rows_accepted":7,"rows_rejected":3,"bytes_processed":1234,"bytes_total":1234,"percent":100},"result":` + fmt.Sprintf(result, "10", "null", ledger) + `,"warnings":[]` + tail + `null}`},
		{"failed", failedJob(), fmt.Sprintf(head, "failed", uploaded, started, finished) + hashed + middle + none +
			`"progress":{"stage":null,"rows_processed":10,"rows_accepted":7,"rows_rejected":3,"bytes_processed":617,"bytes_total":1234,"percent":50},"result":` + fmt.Sprintf(result, "null", "10", noLedger) + `,"warnings":[]` + tail +
			`{"code":"JOB_TIME_LIMIT","message":"took longer than 24 hours","retryable":true,"details":{"seconds":86400}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture()
			f.jobs.get = func(id.Job) (job.Job, error) { return c.j, nil }
			a := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID})
			if diff := cmp.Diff(c.want, string(a.body)); diff != "" || a.StatusCode != 200 {
				t.Errorf("%d %s", a.StatusCode, diff)
			}
			if strings.Contains(string(a.body), "secret") {
				t.Error("a key of the store is shown")
			}
			same := f.do(t, request{method: "GET", path: "/v1/import-jobs/" + jobID})
			if string(same.body) != string(a.body) || same.Header.Get("ETag") != a.Header.Get("ETag") {
				t.Error("/v1/import-jobs/{id} differs from /v1/jobs/{id}")
			}
		})
	}
}

// Reported: a job whose rows were all rejected ended at 99 %.
func TestAFailedJobThatWasReadToItsEndShowsAllOfIt(t *testing.T) {
	f := newFixture()
	f.jobs.get = func(id.Job) (job.Job, error) {
		j := ended(job.Failed)
		j.Error = &job.Failure{Code: fault.AllRowsRejected, Message: "no row was accepted"}
		return j, nil
	}
	got := decode[struct {
		Progress struct {
			BytesProcessed int64 `json:"bytes_processed"`
			Percent        int64
		}
	}](t, f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID}), 200)
	if got.Progress.BytesProcessed != 1234 || got.Progress.Percent != 100 {
		t.Errorf("%+v", got.Progress)
	}
}

func TestTheErrorOfAJobIsTranslatedToo(t *testing.T) {
	f := newFixture()
	f.jobs.get = func(id.Job) (job.Job, error) { return failedJob(), nil }
	english := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID})
	a := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID, header: map[string]string{"Accept-Language": "id"}})
	got := decode[struct {
		Error struct{ Code, Message string }
	}](t, a, 200)
	if got.Error.Code != "JOB_TIME_LIMIT" || got.Error.Message != "Pekerjaan melewati batas waktunya." {
		t.Errorf("%+v", got)
	}
	if a.Header.Get("ETag") == english.Header.Get("ETag") || a.Header.Get("Vary") != "Accept-Language" {
		t.Error("a cache would give one language for the other")
	}
}

func TestAJobOfAnotherKindIsNotThere(t *testing.T) {
	f := newFixture()
	f.jobs.get = func(id.Job) (job.Job, error) {
		j := importJob(job.Running)
		j.Kind = "export"
		return j, nil
	}
	f.do(t, request{method: "GET", path: "/v1/import-jobs/" + jobID}).failed(t, 404, fault.JobNotFound)
}

func TestConditionalGet(t *testing.T) {
	f := newFixture()
	now := importJob(job.Running)
	f.jobs.get = func(id.Job) (job.Job, error) { return now, nil }
	get := func(known string) answer {
		return f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID, header: map[string]string{"If-None-Match": known}})
	}
	etag := get("").Header.Get("ETag")
	for known, want := range map[string]int{etag: 304, "W/" + etag: 304, `"x", ` + etag: 304, "*": 304, `"x"`: 200, strings.Trim(etag, `"`): 200} {
		a := get(known)
		if a.StatusCode != want || a.Header.Get("ETag") != etag || a.Header.Get("Retry-After") != "2" || want == 304 && len(a.body) > 0 {
			t.Errorf("If-None-Match %s: %d %v %s", known, a.StatusCode, a.Header, a.body)
		}
	}
	now.Progress.RowsAccepted++
	if a := get(etag); a.StatusCode != 200 || a.Header.Get("ETag") == etag {
		t.Errorf("a changed job answers %d with ETag %s", a.StatusCode, a.Header.Get("ETag"))
	}
	now = ended(job.Partial)
	if a := get(""); a.Header.Get("Retry-After") != "" {
		t.Errorf("a job at its end asks to be polled: %v", a.Header)
	}
}

// waiting is a job that changes at a given time, and a bucket of waiting seconds.
type waiting struct {
	f         *fixture
	began     time.Time
	changesAt time.Duration // 0: never
	bucket    int
	looks     int
	takeErr   error
}

func newWaiting() *waiting {
	w := &waiting{f: newFixture(), began: time.Now(), bucket: 600}
	w.f.jobs.get = func(id.Job) (job.Job, error) {
		w.looks++
		j := importJob(job.Running)
		if w.changesAt > 0 && time.Since(w.began) >= w.changesAt {
			j.Progress.RowsAccepted++
		}
		return j, nil
	}
	w.f.access.takeWait = func(n int) (int, error) {
		n = min(n, w.bucket)
		w.bucket -= n
		return n, w.takeErr
	}
	return w
}

// get asks and gives the answer and how long it took.
func (w *waiting) get(t *testing.T, wait, known string) (answer, time.Duration) {
	t.Helper()
	began := time.Now()
	a := w.f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "?wait=" + wait, header: map[string]string{"If-None-Match": known}})
	return a, time.Since(began)
}

func TestWait(t *testing.T) {
	const other = `"5d41402abc4b2a76b9719d91"`
	for _, c := range []struct {
		name      string
		wait      string
		known     bool // sends the ETag of the present state
		stale     bool // sends another one
		changesAt time.Duration
		bucket    int
		took      time.Duration
		paid      int
		status    int
	}{
		{name: "until the time is over", wait: "20s", bucket: 600, took: 20 * time.Second, paid: 20, status: 200},
		{name: "until the time is over, known", wait: "25s", known: true, bucket: 600, took: 25 * time.Second, paid: 25, status: 304},
		{name: "until it changes", wait: "20s", changesAt: 7 * time.Second, bucket: 600, took: 7 * time.Second, paid: 10, status: 200},
		{name: "until it changes, known", wait: "20s", known: true, changesAt: 7 * time.Second, bucket: 600, took: 7 * time.Second, paid: 10, status: 200},
		{name: "changed since", wait: "20s", stale: true, bucket: 600, status: 200},
		{name: "no seconds", wait: "0s", bucket: 600, status: 200},
		{name: "bucket empty", wait: "20s", bucket: 0, status: 200},
		{name: "bucket low", wait: "20s", bucket: 3, took: 3 * time.Second, paid: 3, status: 200},
		{name: "bucket runs out", wait: "20s", bucket: 7, took: 7 * time.Second, paid: 7, status: 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaiting()
				known := ""
				if c.known {
					first, _ := w.get(t, "0s", "")
					known = first.Header.Get("ETag")
				}
				if c.stale {
					known = other
				}
				w.changesAt, w.bucket = c.changesAt, c.bucket
				a, took := w.get(t, c.wait, known)
				if took != c.took || c.bucket-w.bucket != c.paid || a.StatusCode != c.status {
					t.Errorf("took %s, paid %d s, answered %d; want %s, %d s, %d", took, c.bucket-w.bucket, a.StatusCode, c.took, c.paid, c.status)
				}
				if a.Header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			})
		})
	}
}

// Reported: only the pauses between two looks counted, so that a slow store carried an answer past the 29 s of
// the gateway.
func TestWaitIsOverWhenItsTimeIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting()
		quick := w.f.jobs.get
		w.f.jobs.get = func(jobID id.Job) (job.Job, error) {
			time.Sleep(300 * time.Millisecond)
			return quick(jobID)
		}
		if a, took := w.get(t, "25s", ""); a.StatusCode != 200 || took > 26*time.Second {
			t.Errorf("answered %d after %s", a.StatusCode, took)
		}
	})
}

func TestWaitIsAnsweredAtOnceForAJobAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting()
		w.f.jobs.get = func(id.Job) (job.Job, error) { return ended(job.Canceled), nil }
		a, took := w.get(t, "20s", "")
		_, again := w.get(t, "20s", a.Header.Get("ETag"))
		if took != 0 || again != 0 || w.bucket != 600 {
			t.Errorf("took %s and %s, paid %d s", took, again, 600-w.bucket)
		}
	})
}

func TestWaitWhenTheBucketCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting()
		for _, code := range []fault.Code{fault.RateLimited, fault.DependencyUnavailable} {
			w.takeErr = fault.New(code, "busy")
			if a, took := w.get(t, "20s", ""); took != 0 || a.StatusCode != 200 {
				t.Errorf("%s: took %s, answered %d", code, took, a.StatusCode)
			}
		}
		w.takeErr = fmt.Errorf("a fault of ours")
		a, _ := w.get(t, "20s", "")
		a.failed(t, 500, fault.Internal)
	})
}

// TestWaitEndsWithTheRequest: a client that hangs up must not be waited for.
func TestWaitEndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting()
		h := w.f.handler()
		hangsUp := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
			defer cancel()
			h.ServeHTTP(rw, r.WithContext(ctx))
		})
		began := time.Now()
		exchange(t, hangsUp, request{method: "GET", path: "/v1/jobs/" + jobID + "?wait=20s"})
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestWaitIsReadStrictly(t *testing.T) {
	f := newFixture()
	for _, bad := range []string{"", "20", "26s", "-1s", "%2B1s", "1.5s", "1m", "s", "20000ms", "99999999999999999999s"} {
		e := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "?wait=" + bad}).failed(t, 400, fault.InvalidRequest)
		if e.Error.Details.Fields[0].Path != "wait" {
			t.Errorf("wait=%s: %v", bad, e.Error.Details.Fields)
		}
	}
}

func TestListJobs(t *testing.T) {
	f := newFixture()
	var got job.Filter
	f.jobs.list = func(filter job.Filter) (job.Page, error) {
		got = filter
		return job.Page{Jobs: []job.Job{importJob(job.Running), ended(job.Partial), failedJob()}, NextCursor: "next"}, nil
	}
	a := f.do(t, request{method: "GET", path: "/v1/jobs?kind=import&status=partial&created_after=2026-07-27T10%3A15%3A30%2B07%3A00&cursor=here&limit=7"})
	page := decode[struct {
		Jobs []struct {
			Status string `json:"status"`
		}
		NextCursor *string `json:"next_cursor"`
	}](t, a, 200)
	want := job.Filter{Kind: job.Import, Status: job.Partial, CreatedAfter: time.Date(2026, 7, 27, 3, 15, 30, 0, time.UTC), Cursor: "here", Limit: 7}
	if !got.CreatedAfter.Equal(want.CreatedAfter) {
		t.Errorf("created_after %s", got.CreatedAfter)
	}
	got.CreatedAfter = want.CreatedAfter
	if diff := cmp.Diff(want, got); diff != "" || len(page.Jobs) != 3 || *page.NextCursor != "next" {
		t.Errorf("%s\n%s", diff, a.body)
	}
	f.jobs.list = func(filter job.Filter) (job.Page, error) {
		got = filter
		return job.Page{}, nil
	}
	if a := f.do(t, request{method: "GET", path: "/v1/jobs"}); string(a.body) != `{"jobs":[],"next_cursor":null}` || got.Limit != 100 {
		t.Errorf("limit %d: %s", got.Limit, a.body)
	}
	f.caller.Limits.MaxPageSize = 50
	f.do(t, request{method: "GET", path: "/v1/jobs"})
	if got.Limit != 50 {
		t.Errorf("limit %d of a client that may have 50", got.Limit)
	}
}

func TestListsAreReadStrictly(t *testing.T) {
	f := newFixture()
	f.caller.Limits.MaxPageSize = 500
	for query, path := range map[string]string{
		"kind=imports": "kind", "status=done": "status", "created_after=yesterday": "created_after", "created_after=2026-07-27": "created_after",
		"limit=0": "limit", "limit=501": "limit", "limit=x": "limit", "limit=": "limit", "limit=1e2": "limit", "kind=": "kind",
	} {
		e := f.do(t, request{method: "GET", path: "/v1/jobs?" + query}).failed(t, 400, fault.InvalidRequest)
		if e.Error.Details.Fields[0].Path != path {
			t.Errorf("%s: %v", query, e.Error.Details.Fields)
		}
	}
	e := f.do(t, request{method: "GET", path: "/v1/jobs?kind=x&status=y&limit=z"}).failed(t, 400, fault.InvalidRequest)
	if len(e.Error.Details.Fields) != 3 {
		t.Errorf("%v", e.Error.Details.Fields)
	}
}

// TestALargePageIsMadeSmaller: 1,000 jobs with 4 KB of quotes each are 16 MB inside Lambda's reply.
func TestALargePageIsMadeSmaller(t *testing.T) {
	f := newFixture()
	metadata, err := json.Marshal(map[string]string{"quotes": strings.Repeat(`"`, 2000)})
	if err != nil {
		t.Fatal(err)
	}
	var limits []int
	f.jobs.list = func(filter job.Filter) (job.Page, error) {
		limits = append(limits, filter.Limit)
		jobs := make([]job.Job, filter.Limit)
		for i := range jobs {
			jobs[i] = importJob(job.Running)
			jobs[i].Spec.Metadata = metadata
		}
		return job.Page{Jobs: jobs, NextCursor: fmt.Sprint(filter.Limit)}, nil
	}
	for _, limit := range []int{1000, 500} { // 500 of them are just above the bound
		limits = nil
		a := f.do(t, request{method: "GET", path: fmt.Sprintf("/v1/jobs?limit=%d", limit)})
		page := decode[struct {
			Jobs       []json.RawMessage
			NextCursor string `json:"next_cursor"`
		}](t, a, 200)
		inReply, err := json.Marshal(string(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if len(inReply) > 4_000_000 || len(page.Jobs) < 300 || page.NextCursor != fmt.Sprint(len(page.Jobs)) || len(limits) != 2 {
			t.Errorf("%d bytes, %d jobs, cursor %s, asked for %v", len(inReply), len(page.Jobs), page.NextCursor, limits)
		}
	}
}

func TestCancel(t *testing.T) {
	f := newFixture()
	f.jobs.cancel = func(in idempotency.Intent, got id.Job) (job.Moved, error) { return job.Moved{Job: stalledJob()}, nil }
	a := f.do(t, request{method: "POST", path: "/v1/jobs/" + jobID + "/cancel"})
	if got := decode[map[string]any](t, a, 202); got["cancel_requested_at"] != "2026-07-27T10:15:32.5Z" {
		t.Errorf("%s", a.body)
	}
	f.jobs.cancel = func(in idempotency.Intent, got id.Job) (job.Moved, error) {
		return job.Moved{}, fault.New(fault.InvalidJobState, "a finished job cannot be canceled").With("status", "succeeded")
	}
	f.do(t, request{method: "POST", path: "/v1/jobs/" + jobID + "/cancel"}).failed(t, 409, fault.InvalidJobState)
	f.do(t, request{method: "POST", path: "/v1/jobs/" + jobID + "/cancel", body: `{"reason":"x"}`}).failed(t, 400, fault.InvalidRequest)
	f.do(t, request{method: "POST", path: "/v1/import-jobs/" + jobID + "/cancel"}).failed(t, 404, fault.NotFound)
	f.jobs.cancel = func(in idempotency.Intent, got id.Job) (job.Moved, error) {
		return job.Moved{}, idempotency.Record{Fingerprint: "other", Ref: jobID}.Match(in)
	}
	f.do(t, request{method: "POST", path: "/v1/jobs/" + jobID + "/cancel"}).failed(t, 409, fault.KeyReused)
}

func TestArtifacts(t *testing.T) {
	f := newFixture()
	f.jobs.artifact = func(_ id.Job, name string) (job.Download, error) {
		if name != "report.json" && name != "rejected.csv" {
			return job.Download{}, fault.New(fault.ArtifactNotFound, "this job has no artifact of that name")
		}
		return job.Download{URL: "https://b.example/k?a=1&b=2", ExpiresAt: clock, SizeBytes: 9, SHA256: strings.Repeat("cd", 32)}, nil
	}
	a := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/artifacts/report.json"})
	if want := `{"url":"https://b.example/k?a=1&b=2","url_expires_at":"2026-07-27T10:15:30Z","size_bytes":9,"sha256":"` + strings.Repeat("cd", 32) + `"}`; string(a.body) != want {
		t.Errorf("%s", a.body)
	}
	if strings.Contains(f.log.String(), "b.example") || a.Header.Get("Cache-Control") != "no-store" {
		t.Error("a signed URL is kept")
	}
	f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/artifacts/..%2Finput"}).failed(t, 404, fault.ArtifactNotFound)
	f.caller.Scopes = f.caller.Scopes[1:2] // jobs:read alone
	decode[map[string]any](t, f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/artifacts/report.json"}), 200)
	for _, name := range []string{"rejected.csv", "%72ejected.csv", "rejected.safe.csv"} {
		f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/artifacts/" + name}).failed(t, 403, fault.Forbidden)
	}
	f.caller.Scopes = newFixture().caller.Scopes
	f.jobs.artifact = func(id.Job, string) (job.Download, error) {
		return job.Download{}, fault.New(fault.ArtifactExpired, "this artifact was removed after its retention")
	}
	f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/artifacts/report.json"}).failed(t, 410, fault.ArtifactExpired)
}
