package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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

const token = "pintu_abcdefghijklmnop_secretsecretsecret"

// api is the real HTTP handler over a scripted system, held against the OpenAPI document, with an object
// store beside it. Jobs move on each time they are looked at: the script says along which states.
type api struct {
	*httptest.Server
	mu       sync.Mutex
	path     []job.Status // states that a completed job goes through
	faults   []string     // what happens to the next requests: "lose", or an error code
	requests []string     // method and path of requests to the API
	scopes   []access.Scope
	jobs     []*job.Job
	intents  map[string]idempotency.Record
	versions map[string][]dataset.Version
	objects  map[string][]byte
	rows     []quarantine.Row
	breaks   int // uploads and downloads whose connection breaks half way
}

var validator = sync.OnceValues(contract.New)

// startAPI reports differences from the document through report.
func startAPI(report func(error)) (*api, error) {
	v, err := validator()
	if err != nil {
		return nil, err
	}
	a := &api{path: []job.Status{job.Running, job.Succeeded}, scopes: access.Scopes, intents: map[string]idempotency.Record{},
		versions: map[string][]dataset.Version{}, objects: map[string][]byte{}, rows: fiveRows()}
	handler := httpapi.New(httpapi.Config{Access: a, Jobs: a, Datasets: catalog{a}, Records: a, Rows: rowList{a}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /s3/{key}", a.putObject)
	mux.HandleFunc("GET /s3/{key}", a.getObject)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		a.serve(w, r, handler, func(res *http.Response) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			if err := v.Check(r, body, res); err != nil {
				report(err)
			}
		})
	})
	a.Server = httptest.NewServer(mux)
	return a, nil
}

func (a *api) serve(w http.ResponseWriter, r *http.Request, handler http.Handler, check func(*http.Response)) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	fate := ""
	if len(a.faults) > 0 {
		fate, a.faults = a.faults[0], a.faults[1:]
	}
	a.mu.Unlock()
	if fate != "" && fate != "lose" {
		handler = refusing(fault.Code(fate), a)
	}
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, r)
	check(rec.Result())
	if fate == "lose" {
		panic(http.ErrAbortHandler) // it was done, and nobody hears of it
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

// count tells how often a request came. {job} in it stands for the first job.
func (a *api) count(request string) int {
	if len(a.jobs) > 0 {
		request = strings.ReplaceAll(request, "{job}", string(a.jobs[0].ID))
	}
	n := 0
	for _, r := range a.requests {
		if r == request {
			n++
		}
	}
	return n
}

// refusing is the API as it answers when asking who calls comes to an error.
func refusing(code fault.Code, a *api) http.Handler {
	return httpapi.New(httpapi.Config{Access: refusal{a, code}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
}

type refusal struct {
	*api
	code fault.Code
}

func (r refusal) Authenticate(context.Context, string) (access.Caller, error) {
	wait := time.Second
	if r.code == fault.RateLimited {
		wait = time.Hour
	}
	return access.Caller{}, fault.New(r.code, "the script says so").After(wait)
}

func (a *api) Authenticate(_ context.Context, bearer string) (access.Caller, error) {
	if bearer != token {
		return access.Caller{}, fault.New(fault.Unauthorized, "send a valid token")
	}
	return access.Caller{Tenant: "acme", Client: "shop", Scopes: a.scopes, Limits: access.DefaultLimits()}, nil
}

func (a *api) TakeWait(context.Context, access.Caller, int) (int, error) { return 0, nil }

func (a *api) Use(context.Context, access.Caller) (access.Use, error) { return access.Use{}, nil }

func (a *api) find(jobID id.Job) (*job.Job, error) {
	for _, j := range a.jobs {
		if j.ID == jobID {
			return j, nil
		}
	}
	return nil, fault.New(fault.JobNotFound, "there is no such job")
}

// remembered gives the job that an intent made before.
func (a *api) remembered(in idempotency.Intent) (*job.Job, error) {
	rec, ok := a.intents[in.Key]
	if !ok || in.Key == "" {
		return nil, nil
	}
	if err := rec.Match(in); err != nil {
		return nil, err
	}
	return a.find(id.Job(rec.Ref))
}

func (a *api) remember(in idempotency.Intent, j *job.Job) {
	a.intents[in.Key] = idempotency.Record{Fingerprint: in.Fingerprint, Ref: string(j.ID)}
}

func (a *api) SubmitImport(_ context.Context, _ access.Caller, in idempotency.Intent, _ string, spec job.ImportSpec) (job.Submitted, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j, err := a.remembered(in); j != nil || err != nil {
		return a.granted(j, true, idempotency.Created), err
	}
	if len(a.versions[spec.Dataset]) == 0 {
		return job.Submitted{}, fault.New(fault.DatasetNotFound, "there is no dataset %q", spec.Dataset)
	}
	if spec.DatasetVersion == 0 {
		spec.DatasetVersion = len(a.versions[spec.Dataset])
	}
	for _, j := range a.jobs {
		if spec.DeduplicationKey != "" && j.Spec.DeduplicationKey == spec.DeduplicationKey && !spec.ForceReprocess {
			a.remember(in, j)
			return a.granted(j, false, idempotency.Deduplicated), nil
		}
	}
	j := &job.Job{Tenant: "acme", ID: id.NewJob(time.Now()), Kind: job.Import, Status: job.Uploading, Client: "shop", Attempt: 1, CreatedAt: time.Now(), Spec: spec}
	a.jobs = append(a.jobs, j)
	a.remember(in, j)
	return a.granted(j, false, idempotency.Created), nil
}

func (a *api) granted(j *job.Job, replayed bool, outcome idempotency.Outcome) job.Submitted {
	if j == nil {
		return job.Submitted{}
	}
	s := job.Submitted{Job: *j, Replayed: replayed, Outcome: outcome}
	if j.Status == job.Uploading {
		s.Grant = &job.Grant{Method: "PUT", URL: a.URL + "/s3/" + string(j.ID) + "?sig=secret", ExpiresAt: time.Now().Add(time.Minute), Headers: map[string]string{
			"Content-Length": fmt.Sprint(j.Spec.File.SizeBytes), "Content-Type": j.Spec.File.ContentType, "If-None-Match": "*"}}
	}
	return s
}

func (a *api) UploadURL(_ context.Context, _ access.Caller, _ idempotency.Intent, jobID id.Job) (job.Submitted, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j, err := a.find(jobID)
	return a.granted(j, false, idempotency.Changed), err
}

func (a *api) Complete(_ context.Context, _ access.Caller, in idempotency.Intent, jobID id.Job) (job.Moved, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j, err := a.remembered(in); j != nil || err != nil {
		return job.Moved{Job: *j, Replayed: true}, err
	}
	j, err := a.find(jobID)
	if err != nil {
		return job.Moved{}, err
	}
	content, ok := a.objects[string(jobID)]
	sum := sha256.Sum256(content)
	if !ok || hex.EncodeToString(sum[:]) != j.Spec.File.SHA256 {
		return job.Moved{}, fault.New(fault.UploadMismatch, "the object is not what was declared")
	}
	j.Status, j.UploadedAt = job.Queued, time.Now()
	j.Input = job.Input{VersionID: "v1", SizeBytes: int64(len(content)), SHA256: j.Spec.File.SHA256}
	a.remember(in, j)
	return job.Moved{Job: *j}, nil
}

func (a *api) Cancel(_ context.Context, _ access.Caller, _ idempotency.Intent, jobID id.Job) (job.Moved, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j, err := a.find(jobID)
	if err != nil {
		return job.Moved{}, err
	}
	if j.Status.Terminal() {
		return job.Moved{}, fault.New(fault.InvalidJobState, "the job has ended: it is %s", j.Status).With("status", string(j.Status))
	}
	a.end(j, job.Canceled)
	return job.Moved{Job: *j}, nil
}

// Get moves the job one state on.
func (a *api) Get(_ context.Context, _ access.Caller, jobID id.Job) (job.Job, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j, err := a.find(jobID)
	if err != nil {
		return job.Job{}, err
	}
	seen := *j
	if j.Status != job.Uploading && !j.Status.Terminal() && len(a.path) > 0 {
		next := a.path[0]
		a.path = a.path[1:]
		if next.Terminal() {
			a.end(j, next)
		} else {
			j.Status, j.Progress = next, job.Progress{Stage: job.Processing, RowsAccepted: 4, RowsRejected: 1, BytesProcessed: 10}
		}
		seen = *j
	}
	return seen, nil
}

func (a *api) end(j *job.Job, status job.Status) {
	j.Status, j.FinishedAt = status, time.Now()
	total := int64(10)
	j.Result = &job.Result{RowsTotal: &total, Counters: job.Counters{Created: 10, ByClass: map[string]int64{}}}
	switch status {
	case job.Partial:
		rejected := []byte("order_id,qty,_row_number\nA3,,3\n")
		sum := sha256.Sum256(rejected)
		a.objects["rejected.csv"] = rejected
		j.Result.Counters = job.Counters{Created: 6, Updated: 2, Rejected: 2, ByCode: map[fault.Code]int64{fault.MissingValue: 2}, ByClass: map[string]int64{"data": 2}}
		j.Result.Artifacts = []job.Artifact{{Name: "rejected.csv", SizeBytes: int64(len(rejected)), SHA256: hex.EncodeToString(sum[:]), ExpiresAt: time.Now().Add(time.Hour)}}
	case job.Failed:
		j.Result = nil
		j.Error = &job.Failure{Code: fault.HeaderInvalid, Message: "no column of the file is known to the dataset"}
	case job.Canceled:
		j.Result = nil
		j.CanceledBy = "client"
	}
}

func (a *api) List(_ context.Context, _ access.Caller, f job.Filter) (job.Page, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var page job.Page
	for _, j := range slices.Backward(a.jobs) {
		if f.Status == "" || f.Status == j.Status {
			page.Jobs = append(page.Jobs, *j)
		}
	}
	return page, nil
}

func (a *api) Artifact(_ context.Context, _ access.Caller, jobID id.Job, name string) (job.Download, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j, err := a.find(jobID)
	if err != nil {
		return job.Download{}, err
	}
	if j.Result == nil || len(j.Result.Artifacts) == 0 || j.Result.Artifacts[0].Name != name {
		return job.Download{}, fault.New(fault.ArtifactNotFound, "this job has no artifact of that name")
	}
	f := j.Result.Artifacts[0]
	return job.Download{URL: a.URL + "/s3/" + name + "?sig=secret", ExpiresAt: time.Now().Add(time.Minute), SizeBytes: f.SizeBytes, SHA256: f.SHA256}, nil
}

// catalog is api under the method names of datasets.
type catalog struct{ a *api }

func (c catalog) Put(_ context.Context, _ access.Caller, _ idempotency.Intent, name string, def *dataset.Definition) (dataset.Put, error) {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	versions := c.a.versions[name]
	if n := len(versions); n > 0 && bytes.Equal(versions[n-1].Definition.Canonical(), def.Canonical()) {
		return dataset.Put{Version: versions[n-1], Outcome: idempotency.Unchanged}, nil
	}
	v := dataset.Version{Name: name, Number: len(versions) + 1, CreatedAt: time.Now(), Definition: def}
	c.a.versions[name] = append(versions, v)
	return dataset.Put{Version: v, Outcome: idempotency.NewVersion}, nil
}

func (c catalog) Get(ctx context.Context, tenant, name string) (dataset.Version, error) {
	return c.GetVersion(ctx, tenant, name, len(c.a.versions[name]))
}

func (c catalog) GetVersion(_ context.Context, _, name string, n int) (dataset.Version, error) {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	versions := c.a.versions[name]
	switch {
	case len(versions) == 0:
		return dataset.Version{}, fault.New(fault.DatasetNotFound, "there is no dataset %q", name)
	case n < 1 || n > len(versions):
		return dataset.Version{}, fault.New(fault.VersionNotFound, "dataset %s has no version %d", name, n)
	}
	return versions[n-1], nil
}

// ListRecords has three records, found by their number.
func (a *api) ListRecords(_ context.Context, _, _, cursor string, limit, _ int) (record.Page, error) {
	first, next := window(cursor, limit, 3)
	var page record.Page
	for n := first; n < next; n++ {
		page.Records = append(page.Records, recordNumber(n+1))
	}
	page.NextCursor = cursorAt(next, 3)
	return page, nil
}

func recordNumber(n int) record.Record {
	key := fmt.Sprintf("A/%d", n)
	return record.Record{Key: key, Version: 1, UpdatedAt: time.Date(2026, 7, 27, 10, 15, 30, 0, time.UTC), Source: record.Source{JobID: "job_01KYZ0D4M0Q8X6V5T4S3R2Q1P0", RowNumber: int64(n)},
		Values: []record.Value{{Field: "order_id", Kind: record.String, Text: key}, {Field: "total", Kind: record.Number, Text: "359999.50000000000000000000000000000001"}}}
}

func (a *api) GetRecord(_ context.Context, _, _, key string) (record.Record, bool, error) {
	return recordNumber(1), key == "A/1", nil
}

// fiveRows are rejected alternately for two codes.
func fiveRows() (rows []quarantine.Row) {
	for n := range 5 {
		row := quarantine.Row{RowNumber: int64(n + 1), Line: int64(n + 2), State: quarantine.Quarantined, Code: fault.MissingValue, Class: quarantine.Data,
			Field: "qty", Message: "qty is required", Raw: []byte("A3,,\x1b[2J\n"), Attempts: 1, DatasetVersion: 1, Rev: 1}
		if n%2 == 1 {
			row.Code, row.Field, row.Message = fault.MalformedRow, "", "line one\nline two\x1b[2J"
		}
		rows = append(rows, row)
	}
	return rows
}

func (a *api) RetryRows(_ context.Context, _ access.Caller, in idempotency.Intent, _ string, jobID id.Job, sel quarantine.Selection, version int) (job.Submitted, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j, err := a.remembered(in); j != nil || err != nil {
		return a.granted(j, true, idempotency.Created), err
	}
	of, err := a.find(jobID)
	if err != nil {
		return job.Submitted{}, err
	}
	for _, n := range sel.Numbers {
		if err := a.workable(n); err != nil {
			return job.Submitted{}, err
		}
	}
	j := &job.Job{Tenant: "acme", ID: id.NewJob(time.Now()), Kind: job.Import, Status: job.Queued, Client: "shop", Attempt: 2, RowsOf: jobID, Rows: &sel, CreatedAt: time.Now(), Spec: of.Spec}
	j.Spec.DatasetVersion = max(version, 1)
	a.jobs = append(a.jobs, j)
	a.remember(in, j)
	return job.Submitted{Job: *j}, nil
}

// Retry makes one successor of a job that failed or was canceled.
func (a *api) Retry(_ context.Context, _ access.Caller, in idempotency.Intent, _ string, jobID id.Job, version *int) (job.Submitted, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j, err := a.remembered(in); j != nil || err != nil {
		return a.granted(j, true, idempotency.Created), err
	}
	of, err := a.find(jobID)
	if err != nil {
		return job.Submitted{}, err
	}
	if of.Status != job.Failed && of.Status != job.Canceled {
		return job.Submitted{}, fault.New(fault.InvalidJobState, "only a failed or canceled job can be retried: the job is %s", of.Status).With("status", string(of.Status))
	}
	if of.RetriedBy == "" {
		j := a.runAgain(in, of, version)
		j.Attempt, j.RetryOf, of.RetriedBy = of.Attempt+1, of.ID, j.ID
	}
	j, err := a.find(of.RetriedBy)
	return a.granted(j, false, idempotency.Created), err
}

func (a *api) Reprocess(_ context.Context, _ access.Caller, in idempotency.Intent, _ string, jobID id.Job, version int) (job.Submitted, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j, err := a.remembered(in); j != nil || err != nil {
		return a.granted(j, true, idempotency.Created), err
	}
	of, err := a.find(jobID)
	if err != nil {
		return job.Submitted{}, err
	}
	j := a.runAgain(in, of, &version)
	j.ReprocessOf = of.ID
	return a.granted(j, false, idempotency.Created), nil
}

func (a *api) runAgain(in idempotency.Intent, of *job.Job, version *int) *job.Job {
	j := &job.Job{Tenant: "acme", ID: id.NewJob(time.Now()), Kind: job.Import, Status: job.Queued, Client: "shop", Attempt: 1, CreatedAt: time.Now(), Spec: of.Spec, Input: of.Input}
	if version != nil {
		j.Spec.DatasetVersion = max(*version, 1)
	}
	a.jobs = append(a.jobs, j)
	a.remember(in, j)
	return j
}

func (a *api) workable(n int64) error {
	if n < 1 || n > int64(len(a.rows)) {
		return fault.New(fault.RowNotFound, "row %d is not in the quarantine of this job", n)
	}
	if state := a.rows[n-1].State; state != quarantine.Quarantined {
		return fault.New(fault.InvalidRowState, "row %d is %s", n, state).With("state", string(state)).With("row_number", n)
	}
	return nil
}

func (a *api) Patch(_ context.Context, _ access.Caller, _ id.Job, n int64, matches func(string) bool, change quarantine.Change) (quarantine.Row, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.workable(n); err != nil {
		return quarantine.Row{}, err
	}
	row := &a.rows[n-1]
	if !matches(row.ETag()) {
		return quarantine.Row{}, fault.New(fault.PreconditionFailed, "row %d was changed since you read it; read it again", n)
	}
	if change.Raw != nil {
		row.Raw = *change.Raw
	}
	if change.Class != nil {
		row.Class = *change.Class
	}
	row.Rev++
	return *row, nil
}

func (a *api) Discard(_ context.Context, _ access.Caller, _ idempotency.Intent, _ id.Job, numbers []int64, reason string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range numbers {
		if err := a.workable(n); err != nil && a.rows[n-1].State != quarantine.Discarded {
			return false, err
		}
		a.rows[n-1].State, a.rows[n-1].Reason = quarantine.Discarded, reason
	}
	return false, nil
}

// rowList is api under the method name of rows.
type rowList struct{ *api }

func (a rowList) List(_ context.Context, _ access.Caller, _ id.Job, f quarantine.Filter, cursor string, limit, _ int) (quarantine.Page, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var rows []quarantine.Row
	for _, row := range a.rows {
		if (f.Code == "" || f.Code == row.Code) && (f.Row == 0 || f.Row == row.RowNumber) {
			rows = append(rows, row)
		}
	}
	first, next := window(cursor, limit, len(rows))
	return quarantine.Page{Rows: rows[first:next], NextCursor: cursorAt(next, len(rows))}, nil
}

func window(cursor string, limit, total int) (first, next int) {
	fmt.Sscanf(cursor, "at-%d", &first)
	return first, min(first+limit, total)
}

func cursorAt(n, total int) string {
	if n >= total {
		return ""
	}
	return fmt.Sprintf("at-%d", n)
}

func (a *api) putObject(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.breaks > 0 {
		a.breaks--
		panic(http.ErrAbortHandler)
	}
	key := r.PathValue("key")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if _, taken := a.objects[key]; taken && r.Header.Get("If-None-Match") == "*" {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	a.objects[key] = body
}

func (a *api) getObject(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	content := a.objects[r.PathValue("key")]
	if a.breaks > 0 {
		a.breaks--
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:len(content)/2])
		w.(http.Flusher).Flush() // or the transport asks again by itself
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// The scripted system must not be what makes a script pass: it refuses what the real one refuses.
func TestTheScriptedSystemRefuses(t *testing.T) {
	a, err := startAPI(func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	res, err := http.Post(a.URL+"/v1/import-jobs", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body struct{ Error struct{ Code fault.Code } }
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil || body.Error.Code != fault.Unauthorized {
		t.Errorf("answered %d, %+v, %v", res.StatusCode, body, err)
	}
}
