package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/httpapi"
	"pintu/internal/httpapi/contract"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/record"
)

// The fakes answer with what a test puts into them; a call that a test did not expect is a nil function.

type fakeAccess struct {
	authenticate func(bearer string) (access.Caller, error)
	takeWait     func(seconds int) (int, error)
	use          func() (access.Use, error)
}

func (f fakeAccess) Authenticate(_ context.Context, bearer string) (access.Caller, error) {
	return f.authenticate(bearer)
}
func (f fakeAccess) TakeWait(_ context.Context, _ access.Caller, seconds int) (int, error) {
	return f.takeWait(seconds)
}
func (f fakeAccess) Use(context.Context, access.Caller) (access.Use, error) { return f.use() }

type fakeJobs struct {
	submit    func(in idempotency.Intent, requestID string, spec job.ImportSpec) (job.Submitted, error)
	complete  func(in idempotency.Intent, jobID id.Job) (job.Moved, error)
	cancel    func(in idempotency.Intent, jobID id.Job) (job.Moved, error)
	uploadURL func(in idempotency.Intent, jobID id.Job) (job.Submitted, error)
	get       func(jobID id.Job) (job.Job, error)
	list      func(f job.Filter) (job.Page, error)
	artifact  func(jobID id.Job, name string) (job.Download, error)
	retry     func(in idempotency.Intent, jobID id.Job, version *int) (job.Submitted, error)
	reprocess func(in idempotency.Intent, jobID id.Job, version int) (job.Submitted, error)
	retryRows func(in idempotency.Intent, jobID id.Job, sel quarantine.Selection, version int) (job.Submitted, error)
}

func (f fakeJobs) SubmitImport(_ context.Context, _ access.Caller, in idempotency.Intent, requestID string, spec job.ImportSpec) (job.Submitted, error) {
	return f.submit(in, requestID, spec)
}
func (f fakeJobs) Complete(_ context.Context, _ access.Caller, in idempotency.Intent, jobID id.Job) (job.Moved, error) {
	return f.complete(in, jobID)
}
func (f fakeJobs) Cancel(_ context.Context, _ access.Caller, in idempotency.Intent, jobID id.Job) (job.Moved, error) {
	return f.cancel(in, jobID)
}
func (f fakeJobs) UploadURL(_ context.Context, _ access.Caller, in idempotency.Intent, jobID id.Job) (job.Submitted, error) {
	return f.uploadURL(in, jobID)
}
func (f fakeJobs) Get(_ context.Context, _ access.Caller, jobID id.Job) (job.Job, error) {
	return f.get(jobID)
}
func (f fakeJobs) List(_ context.Context, _ access.Caller, filter job.Filter) (job.Page, error) {
	return f.list(filter)
}
func (f fakeJobs) Retry(_ context.Context, _ access.Caller, in idempotency.Intent, _ string, jobID id.Job, version *int) (job.Submitted, error) {
	return f.retry(in, jobID, version)
}
func (f fakeJobs) Reprocess(_ context.Context, _ access.Caller, in idempotency.Intent, _ string, jobID id.Job, version int) (job.Submitted, error) {
	return f.reprocess(in, jobID, version)
}
func (f fakeJobs) RetryRows(_ context.Context, _ access.Caller, in idempotency.Intent, _ string, jobID id.Job, sel quarantine.Selection, version int) (job.Submitted, error) {
	return f.retryRows(in, jobID, sel, version)
}
func (f fakeJobs) Artifact(_ context.Context, _ access.Caller, jobID id.Job, name string) (job.Download, error) {
	return f.artifact(jobID, name)
}

type fakeDatasets struct {
	put        func(in idempotency.Intent, name string, def *dataset.Definition) (dataset.Put, error)
	get        func(tenant, name string) (dataset.Version, error)
	getVersion func(name string, n int) (dataset.Version, error)
}

func (f fakeDatasets) Put(_ context.Context, _ access.Caller, in idempotency.Intent, name string, def *dataset.Definition) (dataset.Put, error) {
	return f.put(in, name, def)
}
func (f fakeDatasets) Get(_ context.Context, tenant, name string) (dataset.Version, error) {
	return f.get(tenant, name)
}
func (f fakeDatasets) GetVersion(_ context.Context, _, name string, n int) (dataset.Version, error) {
	return f.getVersion(name, n)
}

type fakeRecords struct {
	list func(tenant, dataset, cursor string, limit, maxBytes int) (record.Page, error)
	get  func(tenant, dataset, key string) (record.Record, bool, error)
}

func (f fakeRecords) ListRecords(_ context.Context, tenant, dataset, cursor string, limit, maxBytes int) (record.Page, error) {
	return f.list(tenant, dataset, cursor, limit, maxBytes)
}
func (f fakeRecords) GetRecord(_ context.Context, tenant, dataset, key string) (record.Record, bool, error) {
	return f.get(tenant, dataset, key)
}

type fakeRows struct {
	list    func(jobID id.Job, f quarantine.Filter, cursor string, limit int) (quarantine.Page, error)
	patch   func(jobID id.Job, n int64, matches func(string) bool, change quarantine.Change) (quarantine.Row, error)
	discard func(in idempotency.Intent, jobID id.Job, rows []int64, reason string) (bool, error)
}

func (f fakeRows) List(_ context.Context, _ access.Caller, jobID id.Job, filter quarantine.Filter, cursor string, limit, _ int) (quarantine.Page, error) {
	return f.list(jobID, filter, cursor, limit)
}
func (f fakeRows) Patch(_ context.Context, _ access.Caller, jobID id.Job, n int64, matches func(string) bool, change quarantine.Change) (quarantine.Row, error) {
	return f.patch(jobID, n, matches, change)
}
func (f fakeRows) Discard(_ context.Context, _ access.Caller, in idempotency.Intent, jobID id.Job, rows []int64, reason string) (bool, error) {
	return f.discard(in, jobID, rows, reason)
}

const (
	jobID = "job_01KYZ0D4M0Q8X6V5T4S3R2Q1P0"
	token = "pintu_abcdefghijklmnop_secretsecretsecret"
)

var clock = time.Date(2026, 7, 27, 10, 15, 30, 0, time.UTC)

// fixture is the API over fakes: a caller with every scope, and a log that can be read.
type fixture struct {
	caller   access.Caller
	access   fakeAccess
	jobs     fakeJobs
	datasets fakeDatasets
	records  fakeRecords
	rows     fakeRows
	log      bytes.Buffer
}

func newFixture() *fixture {
	f := &fixture{caller: access.Caller{Tenant: "acme", Client: "shop", TokenID: "abcdefghijklmnop", Scopes: access.Scopes, Limits: access.DefaultLimits()}}
	f.access.authenticate = func(bearer string) (access.Caller, error) {
		if bearer != token {
			return access.Caller{}, fault.New(fault.Unauthorized, "send a valid token")
		}
		return f.caller, nil
	}
	f.datasets.get = func(_, name string) (dataset.Version, error) {
		if name != "orders" {
			return dataset.Version{}, fault.New(fault.DatasetNotFound, "there is no such dataset")
		}
		return ordersVersion(), nil
	}
	return f
}

func (f *fixture) handler() http.Handler {
	return httpapi.New(f.config())
}

func (f *fixture) config() httpapi.Config {
	return httpapi.Config{Access: f.access, Jobs: f.jobs, Datasets: f.datasets, Records: f.records, Rows: f.rows,
		Log: slog.New(slog.NewJSONHandler(&f.log, nil)), Now: time.Now}
}

var validator = sync.OnceValues(contract.New)

// request is one request of a test; the zero header set is that of a well-behaved client.
type request struct {
	method, path string
	body         string
	header       map[string]string // added to or, when empty, taken from those of a well-behaved client
}

// answer is what came back, already held against the OpenAPI document.
type answer struct {
	*http.Response
	body []byte
}

func (f *fixture) do(t *testing.T, r request) answer {
	t.Helper()
	return exchange(t, f.handler(), r)
}

func exchange(t *testing.T, h http.Handler, r request) answer {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), r.method, r.path, strings.NewReader(r.body))
	req.Header.Set("Authorization", "Bearer "+token)
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.method != http.MethodGet {
		req.Header.Set("Idempotency-Key", "key-1")
	}
	for name, value := range r.header {
		if value == "" {
			req.Header.Del(name)
		} else {
			req.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	res := w.Result()
	v, err := validator()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Check(req, []byte(r.body), res); err != nil {
		t.Errorf("contract: %v\n%s", err, w.Body)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, body}
}

type problem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type errorBody struct {
	Error struct {
		Code      string
		Message   string
		Retryable bool
		Details   struct {
			Fields            []problem
			RequiredScope     string `json:"required_scope"`
			LimitBytes        int    `json:"limit_bytes"`
			RetryAfterSeconds int    `json:"retry_after_seconds"`
		}
		RequestID string `json:"request_id"`
	}
}

// failed reads the error of an answer, which must have the status and code.
func (a answer) failed(t *testing.T, status int, code fault.Code) errorBody {
	t.Helper()
	var e errorBody
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatalf("not an error: %s", a.body)
	}
	if a.StatusCode != status || e.Error.Code != string(code) {
		t.Fatalf("answered %d %s, want %d %s\n%s", a.StatusCode, e.Error.Code, status, code, a.body)
	}
	return e
}

// decode reads a successful answer.
func decode[T any](t *testing.T, a answer, status int) T {
	t.Helper()
	var v T
	if a.StatusCode != status {
		t.Fatalf("answered %d, want %d\n%s", a.StatusCode, status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

const ordersDefinition = `{"schema":{"fields":[{"name":"order_id","type":"string"},{"name":"qty","type":"integer"}],"primaryKey":["order_id"]}}`

func ordersVersion() dataset.Version {
	def, err := dataset.Parse([]byte(ordersDefinition))
	if err != nil {
		panic(err)
	}
	return dataset.Version{Name: "orders", Number: 1, CreatedAt: clock, Definition: def}
}

func importJob(status job.Status) job.Job {
	j := job.Job{
		Tenant: "acme", ID: jobID, Kind: job.Import, Status: status, Client: "shop", RequestID: "req-1", Attempt: 1, CreatedAt: clock,
		Spec: job.ImportSpec{Dataset: "orders", DatasetVersion: 1, Format: "csv", File: job.File{Name: "orders.csv", SizeBytes: 1234},
			Retention: job.DefaultRetention(), Metadata: json.RawMessage(`{"document_id":"<123>"}`)},
	}
	if status == job.Uploading {
		return j
	}
	j.UploadedAt = clock.Add(time.Second)
	j.Input = job.Input{Key: "uploads/acme/secret-key", VersionID: "v1", SizeBytes: 1234}
	if status == job.Queued {
		return j
	}
	j.StartedAt = clock.Add(2 * time.Second)
	j.Progress = job.Progress{Stage: job.Processing, RowsAccepted: 4, RowsRejected: 1, BytesProcessed: 617}
	return j
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
