package httpapi_test

import (
	"encoding/base64"
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
	"pintu/internal/quarantine"
)

const rowsPath = "/v1/jobs/" + jobID + "/rows"

func badRow() quarantine.Row {
	return quarantine.Row{RowNumber: 3, Line: 4, Offset: 181, Raw: []byte("A3,\n"), State: quarantine.Quarantined, Code: fault.MissingValue,
		Class: quarantine.Data, Field: "qty", Message: "is empty", Attempts: 1, DatasetVersion: 1, Rev: 7}
}

func TestListOneRow(t *testing.T) {
	f := newFixture()
	f.rows.list = func(_ id.Job, filter quarantine.Filter, _ string, _ int) (quarantine.Page, error) {
		if filter.Row != 3 {
			t.Errorf("asked for row %d", filter.Row)
		}
		return quarantine.Page{Rows: []quarantine.Row{badRow()}}, nil
	}
	decode[any](t, f.do(t, request{method: "GET", path: rowsPath + "?row_number=3"}), 200)
	for _, bad := range []string{"row_number=0", "row_number=x", "row_number=3&limit=1", "row_number=3&cursor=c", "row_number=1000000000000"} {
		f.do(t, request{method: "GET", path: rowsPath + "?" + bad}).failed(t, 400, fault.InvalidRequest)
	}
}

func TestPatchRow(t *testing.T) {
	f := newFixture()
	var got string
	f.rows.patch = func(_ id.Job, n int64, matches func(string) bool, change quarantine.Change) (quarantine.Row, error) {
		if !matches("7") {
			return quarantine.Row{}, fault.New(fault.PreconditionFailed, "row %d was changed since you read it; read it again", n).With("row_number", n)
		}
		got = fmt.Sprint("row ", n)
		row := badRow()
		row.Rev++
		if change.Raw != nil {
			got += fmt.Sprintf(" raw %q", *change.Raw)
			row.Raw = *change.Raw
		}
		if change.Class != nil {
			got += " class " + string(*change.Class)
		}
		return row, nil
	}
	for _, c := range []struct{ etag, body, want string }{
		{`"7"`, `{"raw":"A3,2\n"}`, `row 3 raw "A3,2\n"`},
		{`7`, `{"raw":"A3,\"2\"","class":"code"}`, `row 3 raw "A3,\"2\"" class code`},
		{`"6", "7"`, `{"raw_base64":"/2E="}`, `row 3 raw "\xffa"`},
		{`*`, `{"class":"data","raw":null}`, `row 3 class data`},
	} {
		a := f.do(t, request{method: "PATCH", path: rowsPath + "/3", body: c.body, header: map[string]string{"If-Match": c.etag}})
		decode[any](t, a, 200)
		if got != c.want || a.Header.Get("ETag") != `"8"` {
			t.Errorf("%s %s: %s with ETag %s, want %s", c.etag, c.body, got, a.Header.Get("ETag"), c.want)
		}
	}
	for _, c := range []struct {
		path, etag, body string
		status           int
		code             fault.Code
	}{
		{"/3", "", `{"raw":"x"}`, 428, fault.PreconditionRequired},
		{"/3", `"6"`, `{"raw":"x"}`, 412, fault.PreconditionFailed},
		{"/3", `W/"7"`, `{"raw":"x"}`, 412, fault.PreconditionFailed},
		{"/3", `"7"`, `{}`, 400, fault.InvalidRequest},
		{"/3", `"7"`, `{"raw":"x","raw_base64":"eA=="}`, 400, fault.InvalidRequest},
		{"/3", `"7"`, `{"raw":""}`, 400, fault.InvalidRequest},
		{"/3", `"7"`, `{"raw":1}`, 400, fault.InvalidRequest},
		{"/3", `"7"`, `{"raw_base64":"%"}`, 400, fault.InvalidRequest},
		{"/3", `"7"`, `{"class":"other"}`, 400, fault.InvalidRequest},
		{"/3", `"7"`, `{"state":"resolved"}`, 400, fault.InvalidRequest},
		{"/0", `"7"`, `{"raw":"x"}`, 404, fault.RowNotFound},
		{"/03", `"7"`, `{"raw":"x"}`, 404, fault.RowNotFound},
		{"/x", `"7"`, `{"raw":"x"}`, 404, fault.RowNotFound},
	} {
		header := map[string]string{"If-Match": c.etag}
		f.do(t, request{method: "PATCH", path: rowsPath + c.path, body: c.body, header: header}).failed(t, c.status, c.code)
	}
}

// The largest payload is taken however it is written, and one byte more is told to be too large.
func TestPatchRowBoundsThePayload(t *testing.T) {
	f := newFixture()
	var got int
	f.rows.patch = func(_ id.Job, _ int64, _ func(string) bool, change quarantine.Change) (quarantine.Row, error) {
		got = len(*change.Raw)
		return badRow(), nil
	}
	const most = 256 << 10
	escaped := func(n int) string { return `{"raw":"` + strings.Repeat(`\u0001`, n) + `"}` }
	encoded := func(n int) string {
		return `{"raw_base64":"` + base64.StdEncoding.EncodeToString(make([]byte, n)) + `"}`
	}
	for name, body := range map[string]func(int) string{"escaped": escaped, "base64": encoded} {
		header := map[string]string{"If-Match": `"7"`}
		decode[any](t, f.do(t, request{method: "PATCH", path: rowsPath + "/3", body: body(most), header: header}), 200)
		if got != most {
			t.Errorf("%s: got %d bytes", name, got)
		}
		e := f.do(t, request{method: "PATCH", path: rowsPath + "/3", body: body(most + 1), header: header}).failed(t, 413, fault.PayloadTooLarge)
		if e.Error.Details.LimitBytes != most {
			t.Errorf("%s: the limit is told as %d", name, e.Error.Details.LimitBytes)
		}
	}
}

func TestRetryRows(t *testing.T) {
	f := newFixture()
	var got string
	f.jobs.retryRows = func(in idempotency.Intent, of id.Job, sel quarantine.Selection, version int) (job.Submitted, error) {
		text, err := json.Marshal(sel)
		got = fmt.Sprint(string(text), " at ", version)
		j := importJob(job.Queued)
		j.RowsOf, j.Attempt = of, 2
		return job.Submitted{Job: j, Replayed: in.Key == "again", Allowance: &access.Allowance{Limit: 10, Remaining: 9, ResetSeconds: 5}}, err
	}
	for body, want := range map[string]string{
		``:   `{"rows":null,"code":"","class":""} at 0`,
		`{}`: `{"rows":null,"code":"","class":""} at 0`,
		`{"rows":[6,3,6],"code":null,"class":null,"dataset_version":2}`: `{"rows":[3,6],"code":"","class":""} at 2`,
		`{"code":"TRANSFORM_FAILED"}`:                                   `{"rows":null,"code":"TRANSFORM_FAILED","class":""} at 0`,
		`{"class":"code"}`:                                              `{"rows":null,"code":"","class":"code"} at 0`,
	} {
		a := f.do(t, request{method: "POST", path: rowsPath + "/retry", body: body})
		shown := decode[struct {
			RetryOf string `json:"retry_of"`
			Attempt int    `json:"attempt"`
			Status  string `json:"status"`
		}](t, a, 202)
		if got != want || shown.RetryOf != jobID || shown.Attempt != 2 || shown.Status != "queued" || a.Header.Get("RateLimit-Remaining") != "9" {
			t.Errorf("%s: asked %s and showed %+v %v", body, got, shown, a.Header)
		}
	}
	again := f.do(t, request{method: "POST", path: rowsPath + "/retry", header: map[string]string{"Idempotency-Key": "again"}})
	if again.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("a replay is not shown as one")
	}
	for body, path := range map[string]string{
		`{"rows":[]}`: "rows", `{"rows":[0]}`: "rows[0]", `{"rows":[1,"2"]}`: "rows[1]", `{"rows":[1.5]}`: "rows[0]", `{"rows":3}`: "rows",
		`{"rows":[3],"code":"TYPE_MISMATCH"}`: "rows", `{"rows":[3],"class":"data"}`: "rows", `{"code":"EMPTY_FILE"}`: "code", `{"class":"x"}`: "class",
		`{"dataset_version":0}`: "dataset_version", `{"all":true}`: "all", `{"rows":[` + strings.Repeat("1,", 1000) + `2]}`: "rows",
	} {
		e := f.do(t, request{method: "POST", path: rowsPath + "/retry", body: body}).failed(t, 400, fault.InvalidRequest)
		if e.Error.Details.Fields[0].Path != path {
			t.Errorf("%.60s: %v", body, e.Error.Details.Fields)
		}
	}
	f.do(t, request{method: "POST", path: rowsPath + "/retry", header: map[string]string{"Idempotency-Key": ""}}).failed(t, 400, fault.IdempotencyKeyRequired)
	f.jobs.retryRows = func(idempotency.Intent, id.Job, quarantine.Selection, int) (job.Submitted, error) {
		return job.Submitted{}, fault.New(fault.InvalidRowState, "row 3 is retrying").With("state", "retrying").With("row_number", 3)
	}
	f.do(t, request{method: "POST", path: rowsPath + "/retry", body: `{"rows":[3]}`}).failed(t, 409, fault.InvalidRowState)
}

// Absent, null and default are the same intent, and so are the same rows in another order.
func TestRetryRowsHasOneFingerprintForOneMeaning(t *testing.T) {
	f := newFixture()
	seen := map[string]bool{}
	f.jobs.retryRows = func(in idempotency.Intent, _ id.Job, _ quarantine.Selection, _ int) (job.Submitted, error) {
		seen[in.Fingerprint] = true
		return job.Submitted{Job: importJob(job.Queued)}, nil
	}
	for _, body := range []string{`{"rows":[3,6]}`, `{"rows":[6,3,3],"class":null,"dataset_version":null}`} {
		f.do(t, request{method: "POST", path: rowsPath + "/retry", body: body})
	}
	if len(seen) != 1 {
		t.Errorf("%d fingerprints of one request", len(seen))
	}
	f.do(t, request{method: "POST", path: rowsPath + "/retry", body: `{"rows":[3]}`})
	if len(seen) != 2 {
		t.Error("another request has the same fingerprint")
	}
}

func TestDiscardRows(t *testing.T) {
	f := newFixture()
	f.rows.discard = func(in idempotency.Intent, _ id.Job, rows []int64, reason string) (bool, error) {
		if diff := cmp.Diff([]int64{4, 9}, rows); diff != "" || reason != "gone" {
			t.Errorf("asked to discard %v for %q", rows, reason)
		}
		return in.Key == "", nil
	}
	for _, key := range []string{"key-1", ""} { // a key is accepted, not required
		a := f.do(t, request{method: "POST", path: rowsPath + "/discard", body: `{"rows":[9,4],"reason":"gone"}`, header: map[string]string{"Idempotency-Key": key}})
		got := decode[map[string]any](t, a, 200)
		if fmt.Sprint(got["discarded"]) != "[4 9]" || (a.Header.Get("Idempotency-Replayed") == "true") != (key == "") {
			t.Errorf("%v %v", got, a.Header)
		}
	}
	for body, path := range map[string]string{
		`{"rows":[4]}`: "reason", `{"reason":"gone"}`: "rows", `{"rows":[],"reason":"gone"}`: "rows", `{"rows":[4],"reason":""}`: "reason",
		`{"rows":[4],"reason":"` + strings.Repeat("x", 501) + `"}`: "reason", `{"rows":[4],"reason":"gone","x":1}`: "x",
	} {
		e := f.do(t, request{method: "POST", path: rowsPath + "/discard", body: body}).failed(t, 400, fault.InvalidRequest)
		if e.Error.Details.Fields[0].Path != path {
			t.Errorf("%.60s: %v", body, e.Error.Details.Fields)
		}
	}
	f.rows.discard = func(idempotency.Intent, id.Job, []int64, string) (bool, error) {
		return false, fault.New(fault.InvalidJobState, "rows can be worked on when the job has ended").With("status", "running")
	}
	f.do(t, request{method: "POST", path: rowsPath + "/discard", body: `{"rows":[4],"reason":"gone"}`}).failed(t, 409, fault.InvalidJobState)
}

func TestWorkOnRowsNeedsItsScope(t *testing.T) {
	f := newFixture()
	f.caller.Scopes = []access.Scope{access.RowsRead, access.JobsSubmit}
	for _, r := range []request{{method: "PATCH", path: rowsPath + "/3", body: `{}`}, {method: "POST", path: rowsPath + "/retry"}, {method: "POST", path: rowsPath + "/discard"}} {
		if e := f.do(t, r).failed(t, 403, fault.Forbidden); e.Error.Details.RequiredScope != "rows:write" {
			t.Errorf("%s %s needs %s", r.method, r.path, e.Error.Details.RequiredScope)
		}
	}
}
