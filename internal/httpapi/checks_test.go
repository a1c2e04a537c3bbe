package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/httpapi"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/record"
)

// TestOrderOfChecks sends requests that are wrong in several ways at once. The first check of the contract's
// order that fails is the one that answers; each row mends one thing more.
func TestOrderOfChecks(t *testing.T) {
	f := newFixture()
	f.jobs.submit = func(idempotency.Intent, string, job.ImportSpec) (job.Submitted, error) {
		return job.Submitted{}, fault.New(fault.DatasetNotFound, "there is no such dataset")
	}
	none, readOnly := []access.Scope{}, []access.Scope{access.JobsRead}
	huge := `{"dataset":"` + strings.Repeat("x", 65<<10) + `"}`
	for _, c := range []struct {
		name   string
		r      request
		scopes []access.Scope
		status int
		code   fault.Code
	}{
		{"route before all", request{method: "PATCH", path: "/v1/import-job", body: "{", header: map[string]string{"Authorization": ""}}, none, 404, fault.NotFound},
		{"method before token", request{method: "PATCH", path: "/v1/import-jobs", body: "{", header: map[string]string{"Authorization": ""}}, none, 405, fault.MethodNotAllowed},
		{"token before scope", request{method: "POST", path: "/v1/import-jobs", body: "{", header: map[string]string{"Authorization": "", "Idempotency-Key": ""}}, none, 401, fault.Unauthorized},
		{"scope before key", request{method: "POST", path: "/v1/import-jobs", body: "{", header: map[string]string{"Idempotency-Key": ""}}, readOnly, 403, fault.Forbidden},
		{"key before size", request{method: "POST", path: "/v1/import-jobs", body: huge, header: map[string]string{"Idempotency-Key": ""}}, access.Scopes, 400, fault.IdempotencyKeyRequired},
		{"key's form before size", request{method: "POST", path: "/v1/import-jobs", body: huge, header: map[string]string{"Idempotency-Key": "a b"}}, access.Scopes, 400, fault.InvalidIdempotencyKey},
		{"size before media type", request{method: "POST", path: "/v1/import-jobs", body: huge, header: map[string]string{"Content-Type": "text/csv"}}, access.Scopes, 413, fault.PayloadTooLarge},
		{"media type before syntax", request{method: "POST", path: "/v1/import-jobs", body: "{", header: map[string]string{"Content-Type": "text/csv"}}, access.Scopes, 415, fault.UnsupportedMediaType},
		{"syntax before references", request{method: "POST", path: "/v1/import-jobs", body: "{"}, access.Scopes, 400, fault.InvalidRequest},
		{"references last", request{method: "POST", path: "/v1/import-jobs", body: leastImport}, access.Scopes, 404, fault.DatasetNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.caller.Scopes = c.scopes
			f.do(t, c.r).failed(t, c.status, c.code)
		})
	}
}

func TestUnknownAddresses(t *testing.T) {
	f := newFixture()
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/jobs/", "/v1//jobs", "/v1/./jobs", "/v1/jobs/../limits", "/v2/jobs", "/v1/datasets/orders/records/a/b", "/v1/jobs/" + jobID + "/rerun"} {
		t.Run(path, func(t *testing.T) {
			a := f.do(t, request{method: "GET", path: path, header: map[string]string{"Authorization": ""}})
			a.failed(t, 404, fault.NotFound)
		})
	}
}

func TestOtherMethodsNameThoseThatWork(t *testing.T) {
	f := newFixture()
	for path, want := range map[string]string{"/v1/datasets/orders": "GET, PUT", "/v1/import-jobs": "POST", "/v1/jobs/" + jobID: "GET"} {
		for _, method := range []string{"DELETE", "HEAD", "OPTIONS"} {
			a := f.do(t, request{method: method, path: path})
			a.failed(t, 405, fault.MethodNotAllowed)
			if got := a.Header.Get("Allow"); got != want {
				t.Errorf("%s %s: Allow %q, want %q", method, path, got, want)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	f := newFixture()
	f.access.use = func() (access.Use, error) { return access.Use{}, nil }
	for _, bad := range []string{"", "Bearer", "Bearer ", token, "Basic " + token, "Bearer " + token + "x"} {
		a := f.do(t, request{method: "GET", path: "/v1/limits", header: map[string]string{"Authorization": bad}})
		a.failed(t, 401, fault.Unauthorized)
		if got := a.Header.Get("WWW-Authenticate"); got != "Bearer" {
			t.Errorf("Authorization %q: WWW-Authenticate %q", bad, got)
		}
	}
	for _, good := range []string{"Bearer " + token, "bearer " + token, "Bearer  " + token} {
		decode[map[string]any](t, f.do(t, request{method: "GET", path: "/v1/limits", header: map[string]string{"Authorization": good}}), 200)
	}
}

func TestEveryOperationRefusesATokenWithoutItsScope(t *testing.T) {
	f := newFixture()
	f.caller.Scopes = nil
	for path, scope := range map[string]string{
		"PUT /v1/datasets/orders": "datasets:write", "GET /v1/datasets/orders": "datasets:read", "GET /v1/datasets/orders/versions/1": "datasets:read",
		"GET /v1/datasets/orders/records": "records:read", "GET /v1/datasets/orders/records/a": "records:read",
		"POST /v1/import-jobs": "jobs:submit", "GET /v1/import-jobs/" + jobID: "jobs:read", "POST /v1/import-jobs/" + jobID + "/complete": "jobs:submit",
		"POST /v1/import-jobs/" + jobID + "/upload-url": "jobs:submit", "GET /v1/jobs": "jobs:read", "GET /v1/jobs/" + jobID: "jobs:read",
		"POST /v1/jobs/" + jobID + "/cancel": "jobs:submit", "GET /v1/jobs/" + jobID + "/rows": "rows:read",
		"GET /v1/jobs/" + jobID + "/artifacts/report.json": "jobs:read", "GET /v1/jobs/" + jobID + "/artifacts/rejected.csv": "rows:read",
	} {
		method, path, _ := strings.Cut(path, " ")
		e := f.do(t, request{method: method, path: path}).failed(t, 403, fault.Forbidden)
		if e.Error.Details.RequiredScope != scope {
			t.Errorf("%s %s: required_scope %q, want %q", method, path, e.Error.Details.RequiredScope, scope)
		}
	}
}

func TestIdempotencyKeys(t *testing.T) {
	f := newFixture()
	var seen idempotency.Intent
	f.jobs.cancel = func(in idempotency.Intent, _ id.Job) (job.Moved, error) {
		seen = in
		return job.Moved{Job: importJob(job.Running)}, nil
	}
	path := "/v1/jobs/" + jobID + "/cancel"
	for _, bad := range []string{"a b", "ü", strings.Repeat("k", 256)} {
		f.do(t, request{method: "POST", path: path, header: map[string]string{"Idempotency-Key": bad}}).failed(t, 400, fault.InvalidIdempotencyKey)
	}
	f.do(t, request{method: "POST", path: path, header: map[string]string{"Idempotency-Key": ""}})
	if seen != (idempotency.Intent{}) {
		t.Errorf("a request without a key has the intent %+v", seen)
	}
	f.do(t, request{method: "POST", path: path, header: map[string]string{"Idempotency-Key": strings.Repeat("k", 255)}})
	if len(seen.Key) != 255 || seen.Fingerprint == "" {
		t.Errorf("intent %+v", seen)
	}
}

func TestTwoIdempotencyKeyHeadersAreRefused(t *testing.T) {
	f := newFixture()
	h := f.handler()
	double := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Add("Idempotency-Key", "key-2")
		h.ServeHTTP(w, r)
	})
	exchange(t, double, request{method: "POST", path: "/v1/import-jobs", body: leastImport}).failed(t, 400, fault.InvalidIdempotencyKey)
}

func TestMediaTypes(t *testing.T) {
	f := newFixture()
	f.jobs.cancel = func(idempotency.Intent, id.Job) (job.Moved, error) {
		return job.Moved{Job: importJob(job.Running)}, nil
	}
	path := "/v1/jobs/" + jobID + "/cancel"
	for _, good := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		decode[map[string]any](t, f.do(t, request{method: "POST", path: path, body: "{}", header: map[string]string{"Content-Type": good}}), 202)
	}
	for _, bad := range []string{"", "text/plain", "application/json; charset=utf-16", "application/jsonl", "multipart/form-data"} {
		f.do(t, request{method: "POST", path: path, body: "{}", header: map[string]string{"Content-Type": bad}}).failed(t, 415, fault.UnsupportedMediaType)
	}
	f.do(t, request{method: "POST", path: path, body: "{}", header: map[string]string{"Content-Encoding": "gzip"}}).failed(t, 415, fault.UnsupportedMediaType)
	decode[map[string]any](t, f.do(t, request{method: "POST", path: path}), 202) // no body, no media type
}

func TestSizes(t *testing.T) {
	f := newFixture()
	for path, limit := range map[string]int{"POST /v1/import-jobs": 64 << 10, "PUT /v1/datasets/orders": dataset.MaxBytes} {
		method, path, _ := strings.Cut(path, " ")
		fits := `{"` + strings.Repeat("x", limit-4) + `":`
		f.do(t, request{method: method, path: path, body: fits}).failed(t, 400, fault.InvalidRequest)
		e := f.do(t, request{method: method, path: path, body: fits + " "}).failed(t, 413, fault.PayloadTooLarge)
		if e.Error.Details.LimitBytes != limit {
			t.Errorf("%s: limit_bytes %d, want %d", path, e.Error.Details.LimitBytes, limit)
		}
	}
}

// TestABodyOfUnknownLengthIsBoundedToo sends a body without Content-Length.
func TestABodyOfUnknownLengthIsBoundedToo(t *testing.T) {
	f := newFixture()
	h := f.handler()
	unknown := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ContentLength = -1
		h.ServeHTTP(w, r)
	})
	exchange(t, unknown, request{method: "POST", path: "/v1/import-jobs", body: strings.Repeat(" ", 64<<10+1)}).failed(t, 413, fault.PayloadTooLarge)
}

func TestUnknownQueryParametersAreRefusedEverywhere(t *testing.T) {
	f := newFixture()
	for _, path := range []string{"GET /v1/jobs", "GET /v1/jobs/" + jobID, "GET /v1/datasets/orders", "GET /v1/datasets/orders/records", "GET /v1/jobs/" + jobID + "/rows",
		"GET /v1/limits", "GET /v1/health", "GET /v1/openapi.json", "POST /v1/import-jobs"} {
		method, path, _ := strings.Cut(path, " ")
		e := f.do(t, request{method: method, path: path + "?b=1&a=%00"}).failed(t, 400, fault.InvalidRequest)
		want := []problem{{"a", "unknown parameter"}, {"b", "unknown parameter"}}
		if fmt.Sprint(e.Error.Details.Fields) != fmt.Sprint(want) {
			t.Errorf("%s: %v", path, e.Error.Details.Fields)
		}
	}
	f.do(t, request{method: "GET", path: "/v1/jobs?limit=1&limit=2"}).failed(t, 400, fault.InvalidRequest)
	f.do(t, request{method: "GET", path: "/v1/jobs?limit=1;cursor=2"}).failed(t, 400, fault.InvalidRequest)
	f.do(t, request{method: "GET", path: "/v1/jobs?cursor=%FF"}).failed(t, 400, fault.InvalidRequest)
}

func TestRequestIDs(t *testing.T) {
	f := newFixture()
	long := strings.Repeat("r", 128)
	for given, kept := range map[string]bool{"req-1": true, long: true, long + "r": false, "a b": false, "ü": false, "": false} {
		a := f.do(t, request{method: "GET", path: "/v1/health", header: map[string]string{"X-Request-Id": given}})
		got := a.Header.Get("X-Request-Id")
		if kept != (got == given) || !kept && !strings.HasPrefix(got, "req_") {
			t.Errorf("X-Request-Id %q came back as %q", given, got)
		}
	}
	e := f.do(t, request{method: "GET", path: "/v1/none", header: map[string]string{"X-Request-Id": "req-9"}}).failed(t, 404, fault.NotFound)
	if e.Error.RequestID != "req-9" {
		t.Errorf("request_id %q", e.Error.RequestID)
	}
}

func TestLanguages(t *testing.T) {
	f := newFixture()
	for accept, indonesian := range map[string]bool{
		"": false, "id": true, "id-ID": true, "ID": true, "en": false, "en, id;q=0.5": false, "id;q=0.9, en;q=0.8": true, "en;q=0.1,id": true,
		"fr, id;q=0.2": true, "fr": false, "id;q=0": false, "id;q=x": false, "*": false,
	} {
		e := f.do(t, request{method: "GET", path: "/v1/none", header: map[string]string{"Accept-Language": accept}}).failed(t, 404, fault.NotFound)
		if got := strings.HasPrefix(e.Error.Message, "Alamat ini tidak ada"); got != indonesian {
			t.Errorf("Accept-Language %q: %s", accept, e.Error.Message)
		}
	}
}

// TestCausesStayInTheLog makes the store fail with everything that must neither reach a client nor a log.
func TestCausesStayInTheLog(t *testing.T) {
	_, badNumber := strconv.Atoi("salary of 9000")
	signed := "https://bucket.s3.amazonaws.com/key?X-Amz-Signature=abcdef"
	for name, err := range map[string]error{
		"plain":      errors.New("dial tcp 10.0.0.7: refused"),
		"job's code": fault.New(fault.EmptyFile, "a code that no request is answered with"),
		"url":        fmt.Errorf("head: %w", &url.Error{Op: "Head", URL: signed, Err: errors.New("timeout")}),
		"number":     fmt.Errorf("read: %w", badNumber),
		"bare url":   errors.New("get " + signed + " failed"),
		"token":      errors.New("client sent " + token),
		"deadline":   context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			f.jobs.get = func(id.Job) (job.Job, error) { return job.Job{}, err }
			a := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID, header: map[string]string{"X-Request-Id": "req-7"}})
			e := a.failed(t, 500, fault.Internal)
			if !e.Error.Retryable || strings.Contains(string(a.body), "refused") || strings.Contains(string(a.body), "EMPTY_FILE") {
				t.Errorf("%s", a.body)
			}
			line := f.log.String()
			if !strings.Contains(line, `"cause"`) || !strings.Contains(line, `"request_id":"req-7"`) {
				t.Errorf("log: %s", line)
			}
			for _, secret := range []string{"X-Amz-Signature", "salary", "secretsecret", jobID} {
				if strings.Contains(line, secret) {
					t.Errorf("the log holds %s: %s", secret, line)
				}
			}
		})
	}
}

func TestAPanicIsAnInternalErrorWithoutItsValue(t *testing.T) {
	for name, value := range map[string]any{"text": "row: Budi, 9000", "runtime": nil} {
		f := newFixture()
		f.jobs.get = func(id.Job) (job.Job, error) {
			if value != nil {
				panic(value)
			}
			var none []string
			_ = none[0] // a panic of the runtime, which may be quoted
			return job.Job{}, nil
		}
		f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID}).failed(t, 500, fault.Internal)
		line := f.log.String()
		if strings.Contains(line, "Budi") || !strings.Contains(line, "checks_test.go") {
			t.Errorf("%s: log: %s", name, line)
		}
		if value == nil && !strings.Contains(line, "index out of range") {
			t.Errorf("%s: log: %s", name, line)
		}
	}
}

func TestRefusalsThatSayWhenToComeBack(t *testing.T) {
	f := newFixture()
	for _, c := range []struct {
		err    error
		status int
		after  int
	}{
		{fault.New(fault.DependencyUnavailable, "busy"), 503, 2},
		{fault.New(fault.DependencyUnavailable, "busy").After(90e9), 503, 90},
		{fault.New(fault.DependencyUnavailable, "busy").After(1), 503, 1}, // rounded up: 0 would mean at once
	} {
		f.jobs.get = func(id.Job) (job.Job, error) { return job.Job{}, c.err }
		a := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID})
		e := a.failed(t, c.status, fault.DependencyUnavailable)
		if got := a.Header.Get("Retry-After"); got != strconv.Itoa(c.after) || e.Error.Details.RetryAfterSeconds != c.after {
			t.Errorf("Retry-After %s, details %d, want %d", got, e.Error.Details.RetryAfterSeconds, c.after)
		}
	}
}

func TestTheLogLine(t *testing.T) {
	f := newFixture()
	f.records.get = func(string, string, string) (record.Record, bool, error) { return record.Record{}, false, nil }
	f.do(t, request{method: "GET", path: "/v1/datasets/orders/records/budi@example.com", header: map[string]string{"X-Request-Id": "req-3"}}).failed(t, 404, fault.RecordNotFound)
	line := f.log.String()
	for _, want := range []string{`"request_id":"req-3"`, `"route":"/v1/datasets/{name}/records/{key}"`, `"status":404`, `"code":"RECORD_NOT_FOUND"`, `"client_id":"shop"`, `"tenant":"acme"`, `"token_id":"abcdefghijklmnop"`} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	if strings.Contains(line, "budi") || strings.Count(line, "\n") != 1 {
		t.Errorf("log: %s", line)
	}
}

func TestDatasetsFunctionKnowsOneOperation(t *testing.T) {
	f := newFixture()
	f.datasets.put = func(_ idempotency.Intent, _ string, def *dataset.Definition) (dataset.Put, error) {
		return dataset.Put{Version: ordersVersion(), Outcome: idempotency.NewVersion}, nil
	}
	h := httpapi.NewDatasets(f.config())
	decode[map[string]any](t, exchange(t, h, request{method: "PUT", path: "/v1/datasets/orders", body: ordersDefinition}), 201)
	exchange(t, h, request{method: "PUT", path: "/v1/datasets/orders", body: ordersDefinition, header: map[string]string{"Authorization": ""}}).failed(t, 401, fault.Unauthorized)
	exchange(t, h, request{method: "PUT", path: "/v1/datasets/orders", body: "{"}).failed(t, 400, fault.InvalidRequest)
	exchange(t, h, request{method: "PUT", path: "/v1/none", body: "{"}).failed(t, 404, fault.NotFound)
}
