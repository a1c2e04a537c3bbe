package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/rowio"
)

const leastImport = `{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1234}}`

// submitting gives a fixture that takes submits, and where the last one is put.
func submitting() (*fixture, *job.ImportSpec, *idempotency.Intent) {
	f, spec, intent := newFixture(), &job.ImportSpec{}, &idempotency.Intent{}
	f.jobs.submit = func(in idempotency.Intent, _ string, s job.ImportSpec) (job.Submitted, error) {
		*spec, *intent = s, in
		grant := &job.Grant{Method: "PUT", URL: "https://bucket.example/key?sig=a&b=c", Headers: map[string]string{"Content-Type": "text/csv"}, ExpiresAt: clock}
		return job.Submitted{Job: importJob(job.Uploading), Grant: grant, Outcome: idempotency.Created, Allowance: &access.Allowance{Limit: 600, Remaining: 599, ResetSeconds: 30}}, nil
	}
	return f, spec, intent
}

func TestSubmitFillsInDefaults(t *testing.T) {
	f, spec, _ := submitting()
	a := f.do(t, request{method: "POST", path: "/v1/import-jobs", body: leastImport})
	got := decode[map[string]any](t, a, 202)
	want := job.ImportSpec{
		Dataset: "orders", Format: "csv", UploadMethod: "put", Encoding: "utf-8", Atomicity: "per_row",
		File:        job.File{Name: "orders.csv", SizeBytes: 1234, ContentType: "text/csv"},
		MaxRejected: 100_000, ReuseWindowSeconds: 86_400, Retention: job.Retention{InputDays: 7, ResultsDays: 30, QuarantineDays: 30}, Metadata: json.RawMessage("{}"),
	}
	if diff := cmp.Diff(want, *spec); diff != "" {
		t.Error(diff)
	}
	upload := got["upload"].(map[string]any)
	if upload["url"] != "https://bucket.example/key?sig=a&b=c" || got["deduplicated"] != false || got["job_id"] != jobID {
		t.Errorf("%s", a.body)
	}
	for name, want := range map[string]string{"RateLimit-Limit": "600", "RateLimit-Remaining": "599", "RateLimit-Reset": "30", "Retry-After": "5", "Idempotency-Replayed": "", "Cache-Control": "no-store"} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestSubmitReadsEverything(t *testing.T) {
	f, spec, _ := submitting()
	body := `{"dataset":"orders","dataset_version":3.0,"format":"csv","upload_method":"put",
		"file":{"name":"pesanan Juli.csv","size_bytes":1e3,"content_type":"text/csv; charset=utf-8","sha256":"` + strings.Repeat("AB", 32) + `"},
		"dialect":{"delimiter":";","header":false},"encoding":"UTF-8","on_conflict":"if_unchanged","version_column":"versi ke","duplicates":"last_wins","atomicity":"all_or_nothing",
		"dry_run":true,"max_rejected":0,"max_rejected_percent":12.5,"callback_url":null,"deduplication_key":"juli 2026","force_reprocess":true,
		"reuse_window_seconds":0,"retention":{"input_days":1,"results_days":365},"metadata":{"b":[1,{"z":1.50,"a":"<x>"}],"a":null}}`
	decode[map[string]any](t, f.do(t, request{method: "POST", path: "/v1/import-jobs", body: body}), 202)
	no, percent := false, 12.5
	want := job.ImportSpec{
		Dataset: "orders", DatasetVersion: 3, Format: "csv", UploadMethod: "put", Encoding: "utf-8", OnConflict: "if_unchanged", VersionColumn: "versi ke",
		Duplicates: "last_wins", Atomicity: "all_or_nothing", DryRun: true,
		File:    job.File{Name: "pesanan Juli.csv", SizeBytes: 1000, ContentType: "text/csv; charset=utf-8", SHA256: strings.Repeat("ab", 32)},
		Dialect: &rowio.Dialect{Delimiter: ";", Header: &no}, MaxRejectedPercent: &percent, DeduplicationKey: "juli 2026", ForceReprocess: true,
		Retention: job.Retention{InputDays: 1, ResultsDays: 365, QuarantineDays: 30}, Metadata: json.RawMessage(`{"a":null,"b":[1,{"a":"<x>","z":1.50}]}`),
	}
	if diff := cmp.Diff(want, *spec); diff != "" {
		t.Error(diff)
	}
}

// Reported: a file with tabs between its cells could not be declared, though a dataset may declare it.
func TestSubmitTakesATabAsDelimiter(t *testing.T) {
	f, spec, _ := submitting()
	body := `{"dataset":"orders","file":{"name":"orders.tsv","size_bytes":1234},"dialect":{"delimiter":"\t"}}`
	decode[map[string]any](t, f.do(t, request{method: "POST", path: "/v1/import-jobs", body: body}), 202)
	if spec.Dialect == nil || spec.Dialect.Delimiter != "\t" {
		t.Errorf("dialect %+v", spec.Dialect)
	}
}

// TestSameMeaningSameFingerprint keeps clients that cannot serialise identically from meeting 409.
func TestSameMeaningSameFingerprint(t *testing.T) {
	f, _, intent := submitting()
	fingerprint := func(body string) string {
		decode[map[string]any](t, f.do(t, request{method: "POST", path: "/v1/import-jobs", body: body}), 202)
		return intent.Fingerprint
	}
	least := fingerprint(leastImport)
	for _, same := range []string{
		`{"file":{"size_bytes":1234,"name":"orders.csv"},"dataset":"orders"}`,
		`{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1234.0,"content_type":null,"sha256":null},"dataset_version":null,"metadata":null,"retention":null,"dialect":null}`,
		`{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1234,"content_type":"text/csv"},"dialect":{},"encoding":"utf-8","max_rejected":100000,"metadata":{},"retention":{"input_days":7}}`,
		`{"dataset":"orders","file":{"name":"orders\u002ecsv","size_bytes":1234}}`,
	} {
		if fingerprint(same) != least {
			t.Errorf("another fingerprint: %s", same)
		}
	}
	for _, other := range []string{
		`{"dataset":"orders2","file":{"name":"orders.csv","size_bytes":1234}}`,
		`{"dataset":"orders","dataset_version":1,"file":{"name":"orders.csv","size_bytes":1234}}`,
		`{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1235}}`,
		`{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1234},"metadata":{"a":1}}`,
		`{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1234},"dialect":{"header":true}}`,
	} {
		if fingerprint(other) == least {
			t.Errorf("the same fingerprint: %s", other)
		}
	}
	ordered := fingerprint(`{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1},"metadata":{"a":1,"b":{"c":2,"d":3}}}`)
	if fingerprint(`{"dataset":"orders","file":{"name":"orders.csv","size_bytes":1},"metadata":{"b":{"d":3,"c":2}, "a":1}}`) != ordered {
		t.Error("the order of metadata changes the fingerprint")
	}
}

// TestTheSameKeyOnAnotherJobIsAnotherIntent: the concrete path is part of what a key stands for.
func TestTheSameKeyOnAnotherJobIsAnotherIntent(t *testing.T) {
	f := newFixture()
	seen := map[string]bool{}
	f.jobs.cancel = func(in idempotency.Intent, _ id.Job) (job.Moved, error) {
		seen[in.Fingerprint] = true
		return job.Moved{Job: importJob(job.Running)}, nil
	}
	f.jobs.complete = f.jobs.cancel
	for _, path := range []string{"/v1/jobs/" + jobID + "/cancel", "/v1/jobs/job_01KYZ0D4M0Q8X6V5T4S3R2Q1P1/cancel", "/v1/import-jobs/" + jobID + "/complete"} {
		f.do(t, request{method: "POST", path: path})
		f.do(t, request{method: "POST", path: path, body: "{}"})
	}
	if len(seen) != 3 {
		t.Errorf("%d fingerprints for 3 intents", len(seen))
	}
}

// TestSubmitRefuses names what is wrong, each thing by its path.
func TestSubmitRefuses(t *testing.T) {
	f, _, _ := submitting()
	field := func(name, value string) string {
		return strings.TrimSuffix(leastImport, "}") + `,"` + name + `":` + value + "}"
	}
	file := func(members string) string { return `{"dataset":"orders","file":{` + members + `}}` }
	for _, c := range []struct{ name, body, path, reason string }{
		{"no body", ``, "dataset", "is required"},
		{"not JSON", `{"dataset":}`, "", "is not JSON"},
		{"two values", leastImport + `{}`, "", "is not JSON"},
		{"not an object", `[]`, "", "must be an object, is an array"},
		{"not UTF-8", "{\"dataset\":\"\xff\"}", "", "is not UTF-8"},
		{"twice", `{"dataset":"a","dataset":"b"}`, "", `holds the name "dataset" twice`},
		{"twice inside", field("metadata", `{"a":{"b":1,"b":2}}`), "", `holds the name "b" twice`},
		{"deep", field("metadata", strings.Repeat(`{"a":`, 40)+"1"+strings.Repeat("}", 40)), "", "nested deeper"},
		{"unknown", field("datset", `1`), "datset", "unknown field"},
		{"unknown inside", file(`"name":"a","size_bytes":1,"size":1`), "file.size", "unknown field"},
		{"dataset's type", `{"dataset":1,"file":{"name":"a","size_bytes":1}}`, "dataset", "must be a string, is a number"},
		{"dataset's form", `{"dataset":"Orders","file":{"name":"a","size_bytes":1}}`, "dataset", "lower-case"},
		{"no file", `{"dataset":"orders"}`, "file", "is required"},
		{"file's type", `{"dataset":"orders","file":"a.csv"}`, "file", "must be an object, is a string"},
		{"no size", file(`"name":"a"`), "file.size_bytes", "is required"},
		{"size null", file(`"name":"a","size_bytes":null`), "file.size_bytes", "is required"},
		{"size text", file(`"name":"a","size_bytes":"12"`), "file.size_bytes", "must be a whole number, is a string"},
		{"size fraction", file(`"name":"a","size_bytes":1.5`), "file.size_bytes", "must be a whole number"},
		{"size negative", file(`"name":"a","size_bytes":-1`), "file.size_bytes", "must be from 0"},
		{"size huge", file(`"name":"a","size_bytes":1e400`), "file.size_bytes", "must be a whole number"},
		{"no name", file(`"size_bytes":1`), "file.name", "is required"},
		{"name empty", file(`"name":"","size_bytes":1`), "file.name", "must have 1 to 255 characters"},
		{"name long", file(`"name":"` + strings.Repeat("é", 256) + `","size_bytes":1`), "file.name", "must have 1 to 255 characters, has 256"},
		{"name control", file(`"name":"a\r\nX: y","size_bytes":1`), "file.name", "control character"},
		{"type no slash", file(`"name":"a","size_bytes":1,"content_type":"csv"`), "file.content_type", "media type"},
		{"type not ASCII", file(`"name":"a","size_bytes":1,"content_type":"text/csv; name=é"`), "file.content_type", "media type"},
		{"type padded", file(`"name":"a","size_bytes":1,"content_type":" text/csv"`), "file.content_type", "media type"},
		{"sha256 short", file(`"name":"a","size_bytes":1,"sha256":"abc"`), "file.sha256", "64 hexadecimal"},
		{"sha256 letters", file(`"name":"a","size_bytes":1,"sha256":"` + strings.Repeat("z", 64) + `"`), "file.sha256", "64 hexadecimal"},
		{"version 0", field("dataset_version", `0`), "dataset_version", "must be from 1"},
		{"dialect of jsonl", field("format", `"jsonl","dialect":{"delimiter":";"}`), "dialect", "belongs to format csv"},
		{"xml", field("format", `"xml"`), "format", "must be one of csv, jsonl"},
		{"format's type", field("format", `7`), "format", "must be one of csv, jsonl"},
		{"post", field("upload_method", `"post"`), "upload_method", "not available yet"},
		{"multipart", field("upload_method", `"multipart"`), "upload_method", "not available yet"},
		{"on_conflict", field("on_conflict", `"merge"`), "on_conflict", "must be one of update, skip, reject, if_unchanged"},
		{"if_unchanged alone", field("on_conflict", `"if_unchanged"`), "version_column", "is required with on_conflict if_unchanged"},
		{"version_column of skip", field("on_conflict", `"skip","version_column":"v"`), "version_column", "belongs to on_conflict if_unchanged"},
		{"version_column's type", field("version_column", `1`), "version_column", "must be a string"},
		{"duplicates", field("duplicates", `"first_wins"`), "duplicates", "must be one of reject, last_wins"},
		{"atomicity", field("atomicity", `"per_file"`), "atomicity", "must be one of per_row, all_or_nothing"},
		{"dry_run's type", field("dry_run", `"no"`), "dry_run", "must be true or false"},
		{"encoding", field("encoding", `"latin1"`), "encoding", "latin1 is not available yet"},
		{"encoding's type", field("encoding", `8`), "encoding", "must be a string"},
		{"callback_url", field("callback_url", `"https://example.com/hook"`), "callback_url", "webhooks are not available yet"},
		{"dialect unknown", field("dialect", `{"lineTerminator":"\n"}`), "dialect.lineTerminator", "unknown field"},
		{"dialect long", field("dialect", `{"delimiter":";;"}`), "dialect.delimiter", "must have 1 to 1 characters"},
		{"dialect clash", field("dialect", `{"delimiter":"\""}`), "dialect", "quoteChar"},
		{"dialect's type", field("dialect", `";"`), "dialect", "must be an object"},
		{"max_rejected", field("max_rejected", `-1`), "max_rejected", "must be from 0"},
		{"percent", field("max_rejected_percent", `100.1`), "max_rejected_percent", "must be from 0 to 100"},
		{"percent's type", field("max_rejected_percent", `"5"`), "max_rejected_percent", "must be a number"},
		{"key empty", field("deduplication_key", `""`), "deduplication_key", "must have 1 to 255 characters"},
		{"force's type", field("force_reprocess", `1`), "force_reprocess", "must be true or false, is a number"},
		{"window", field("reuse_window_seconds", `2592001`), "reuse_window_seconds", "must be from 0 to 2592000"},
		{"retention", field("retention", `{"input_days":0}`), "retention.input_days", "must be from 1 to 365"},
		{"retention unknown", field("retention", `{"days":1}`), "retention.days", "unknown field"},
		{"metadata's type", field("metadata", `[]`), "metadata", "must be an object, is an array"},
		{"metadata large", field("metadata", `{"a":"`+strings.Repeat("x", 4089)+`"}`), "metadata", "must be at most 4096 bytes of JSON, is 4097"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := f.do(t, request{method: "POST", path: "/v1/import-jobs", body: c.body}).failed(t, 400, fault.InvalidRequest)
			for _, p := range e.Error.Details.Fields {
				if p.Path == c.path && strings.Contains(p.Reason, c.reason) {
					return
				}
			}
			t.Errorf("no problem at %q with %q in %v", c.path, c.reason, e.Error.Details.Fields)
		})
	}
}

func TestSubmitTakesWhatIsJustWithinBounds(t *testing.T) {
	f, _, _ := submitting()
	for _, members := range []string{
		`"metadata":{"a":"` + strings.Repeat("x", 4088) + `"}`, `"deduplication_key":"` + strings.Repeat("é", 255) + `"`,
		`"version_column":"v"`, `"on_conflict":"skip","version_column":null`, // null: the dataset's rule, which may be if_unchanged
		`"max_rejected_percent":100`, `"reuse_window_seconds":2592000`, `"retention":{"input_days":365}`,
	} {
		body := strings.TrimSuffix(leastImport, "}") + "," + members + "}"
		decode[map[string]any](t, f.do(t, request{method: "POST", path: "/v1/import-jobs", body: body}), 202)
	}
}

func TestSubmitListsEveryProblemAtOnce(t *testing.T) {
	f, _, _ := submitting()
	body := `{"dataset":"","file":{"name":3,"x":1},"dataset_version":-1,"callback_url":"https://a.example","b":1,"a":2}`
	e := f.do(t, request{method: "POST", path: "/v1/import-jobs", body: body}).failed(t, 400, fault.InvalidRequest)
	var paths []string
	for _, p := range e.Error.Details.Fields {
		paths = append(paths, p.Path)
	}
	want := []string{"dataset", "dataset_version", "file.name", "file.size_bytes", "file.x", "callback_url", "a", "b"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(e.Error.Message, "7 more in details.fields") {
		t.Errorf("message %q", e.Error.Message)
	}
}

func TestSubmitAnswersByOutcome(t *testing.T) {
	for _, c := range []struct {
		name         string
		outcome      idempotency.Outcome
		replayed     bool
		status       job.Status
		code         int
		deduplicated bool
	}{
		{"made", idempotency.Created, false, job.Uploading, 202, false},
		{"replayed", idempotency.Created, true, job.Running, 202, false},
		{"deduplicated", idempotency.Deduplicated, false, job.Succeeded, 200, true},
		{"deduplicated and replayed", idempotency.Deduplicated, true, job.Succeeded, 200, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture()
			f.jobs.submit = func(idempotency.Intent, string, job.ImportSpec) (job.Submitted, error) {
				return job.Submitted{Job: importJob(c.status), Outcome: c.outcome, Replayed: c.replayed}, nil
			}
			a := f.do(t, request{method: "POST", path: "/v1/import-jobs", body: leastImport})
			got := decode[map[string]any](t, a, c.code)
			if got["deduplicated"] != c.deduplicated || got["upload"] != nil || a.Header.Get("RateLimit-Limit") != "" {
				t.Errorf("%v\n%s", a.Header, a.body)
			}
			if replayed := a.Header.Get("Idempotency-Replayed") == "true"; replayed != c.replayed {
				t.Errorf("Idempotency-Replayed: %t", replayed)
			}
			if polls := a.Header.Get("Retry-After") != ""; polls == c.status.Terminal() {
				t.Errorf("Retry-After %q in status %s", a.Header.Get("Retry-After"), c.status)
			}
		})
	}
}

func TestSubmitOverTheLimit(t *testing.T) {
	f := newFixture()
	f.jobs.submit = func(idempotency.Intent, string, job.ImportSpec) (job.Submitted, error) {
		return job.Submitted{}, fault.New(fault.RateLimited, "too many").With("limit", 600).With("retry_after_seconds", 42).After(42e9)
	}
	a := f.do(t, request{method: "POST", path: "/v1/import-jobs", body: leastImport})
	e := a.failed(t, 429, fault.RateLimited)
	if !e.Error.Retryable {
		t.Error("not retryable")
	}
	for name, want := range map[string]string{"Retry-After": "42", "RateLimit-Limit": "600", "RateLimit-Remaining": "0", "RateLimit-Reset": "42"} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f.jobs.submit = func(idempotency.Intent, string, job.ImportSpec) (job.Submitted, error) {
		return job.Submitted{}, fault.New(fault.TooManyActiveJobs, "too many").With("limit", 100)
	}
	a = f.do(t, request{method: "POST", path: "/v1/import-jobs", body: leastImport})
	a.failed(t, 429, fault.TooManyActiveJobs)
	if a.Header.Get("Retry-After") != "30" || a.Header.Get("RateLimit-Limit") != "" {
		t.Errorf("%v", a.Header)
	}
}

func TestSubmitCarriesTheRequestID(t *testing.T) {
	f := newFixture()
	var got string
	f.jobs.submit = func(_ idempotency.Intent, requestID string, _ job.ImportSpec) (job.Submitted, error) {
		got = requestID
		return job.Submitted{Job: importJob(job.Uploading)}, nil
	}
	f.do(t, request{method: "POST", path: "/v1/import-jobs", body: leastImport, header: map[string]string{"X-Request-Id": "req-5"}})
	if got != "req-5" {
		t.Errorf("request id %q", got)
	}
}

func TestCompleteAndUploadURL(t *testing.T) {
	f := newFixture()
	f.jobs.complete = func(_ idempotency.Intent, got id.Job) (job.Moved, error) {
		if got != jobID {
			t.Errorf("job %s", got)
		}
		return job.Moved{Job: importJob(job.Queued), Replayed: true}, nil
	}
	a := f.do(t, request{method: "POST", path: "/v1/import-jobs/" + jobID + "/complete", body: `{"parts":null}`})
	if got := decode[map[string]any](t, a, 202); got["status"] != "queued" || a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v\n%s", a.Header, a.body)
	}
	for _, bad := range []string{`{"parts":[]}`, `{"part":1}`, `[]`, `{`} {
		f.do(t, request{method: "POST", path: "/v1/import-jobs/" + jobID + "/complete", body: bad}).failed(t, 400, fault.InvalidRequest)
	}
	f.jobs.complete = func(idempotency.Intent, id.Job) (job.Moved, error) {
		return job.Moved{}, fault.New(fault.UploadNotFound, "nothing was uploaded yet")
	}
	a = f.do(t, request{method: "POST", path: "/v1/import-jobs/" + jobID + "/complete"})
	if e := a.failed(t, 409, fault.UploadNotFound); !e.Error.Retryable || a.Header.Get("Retry-After") == "" {
		t.Errorf("%v\n%s", a.Header, a.body)
	}

	f.jobs.uploadURL = func(idempotency.Intent, id.Job) (job.Submitted, error) {
		return job.Submitted{Job: importJob(job.Uploading), Grant: &job.Grant{Method: "PUT", URL: "https://b.example/k", Headers: map[string]string{"If-None-Match": "*"}, ExpiresAt: clock}}, nil
	}
	a = f.do(t, request{method: "POST", path: "/v1/import-jobs/" + jobID + "/upload-url"})
	if want := `{"upload":{"method":"PUT","url":"https://b.example/k","headers":{"If-None-Match":"*"},"expires_at":"2026-07-27T10:15:30Z"}}`; string(a.body) != want {
		t.Errorf("got  %s\nwant %s", a.body, want)
	}
	f.jobs.uploadURL = func(idempotency.Intent, id.Job) (job.Submitted, error) {
		return job.Submitted{Job: importJob(job.Queued), Replayed: true}, nil
	}
	if a = f.do(t, request{method: "POST", path: "/v1/import-jobs/" + jobID + "/upload-url"}); string(a.body) != `{"upload":null}` {
		t.Errorf("%s", a.body)
	}
	f.do(t, request{method: "POST", path: "/v1/import-jobs/" + jobID + "/upload-url", body: `{"x":1}`}).failed(t, 400, fault.InvalidRequest)
}

func TestWhatCannotBeAJobIDNamesNoJob(t *testing.T) {
	f := newFixture() // no function of it is called
	for _, bad := range []string{"x", "job_1", "job_01kyz0d4m0q8x6v5t4s3r2q1p0", "evt_01KYZ0D4M0Q8X6V5T4S3R2Q1P0", "%2e%2e", jobID + "%2Fx"} {
		for _, path := range []string{"GET /v1/jobs/%s", "GET /v1/import-jobs/%s", "GET /v1/jobs/%s/rows", "GET /v1/jobs/%s/artifacts/report.json", "POST /v1/jobs/%s/cancel", "POST /v1/import-jobs/%s/complete", "POST /v1/import-jobs/%s/upload-url"} {
			method, path, _ := strings.Cut(fmt.Sprintf(path, bad), " ")
			f.do(t, request{method: method, path: path}).failed(t, 404, fault.JobNotFound)
		}
	}
}
