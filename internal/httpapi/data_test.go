package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pintu/infra"
	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/quarantine"
	"pintu/internal/record"
)

func TestPutDataset(t *testing.T) {
	f := newFixture()
	var intents []string
	outcome, replayed := idempotency.NewVersion, false
	f.datasets.put = func(in idempotency.Intent, name string, def *dataset.Definition) (dataset.Put, error) {
		intents = append(intents, in.Fingerprint)
		v := ordersVersion()
		v.Name, v.Definition = name, def
		return dataset.Put{Version: v, Outcome: outcome, Replayed: replayed}, nil
	}
	a := f.do(t, request{method: "PUT", path: "/v1/datasets/orders", body: ordersDefinition})
	got := decode[map[string]any](t, a, 201)
	if got["name"] != "orders" || got["version"] != 1.0 || got["created_at"] != "2026-07-27T10:15:30Z" || got["on_conflict"] != "update" {
		t.Errorf("%s", a.body)
	}
	outcome, replayed = idempotency.Unchanged, true
	spelled := `{"duplicates":"reject","schema":{"primaryKey":["order_id"],"missingValues":[""],"fields":[{"type":"string","name":"order_id"},{"name":"qty","type":"integer"}]},"computed":null}`
	a = f.do(t, request{method: "PUT", path: "/v1/datasets/orders", body: spelled})
	decode[map[string]any](t, a, 200)
	if a.Header.Get("Idempotency-Replayed") != "true" || intents[0] != intents[1] {
		t.Errorf("%v, fingerprints %v", a.Header, intents)
	}
	f.do(t, request{method: "PUT", path: "/v1/datasets/orders", body: ordersDefinition, header: map[string]string{"Idempotency-Key": ""}})
	if intents[2] != "" {
		t.Error("a PUT without a key has an intent")
	}
}

func TestPutDatasetRefuses(t *testing.T) {
	f := newFixture()
	for _, c := range []struct {
		name, body string
		status     int
		code       fault.Code
		path       string
	}{
		{"orders", ``, 400, fault.InvalidRequest, ""},
		{"orders", `{`, 400, fault.InvalidRequest, ""},
		{"orders", `{"schema":{},"x":1}`, 400, fault.InvalidRequest, "x"},
		{"orders", `{"schema":{"fields":[{"name":"a"}]}}`, 422, fault.InvalidSchema, "schema.primaryKey"},
		{"orders", strings.TrimSuffix(ordersDefinition, "}") + `,"computed":[{"name":"total"}]}`, 422, fault.InvalidSchema, "computed[0].expression"},
		{"Orders", ordersDefinition, 400, fault.InvalidRequest, "name"},
		{"a%2Fb", ordersDefinition, 400, fault.InvalidRequest, "name"},
		{strings.Repeat("a", 65), ordersDefinition, 400, fault.InvalidRequest, "name"},
	} {
		e := f.do(t, request{method: "PUT", path: "/v1/datasets/" + c.name, body: c.body}).failed(t, c.status, c.code)
		found := false
		for _, p := range e.Error.Details.Fields {
			found = found || p.Path == c.path
		}
		if !found {
			t.Errorf("%s %s: no problem at %q in %v", c.name, c.body, c.path, e.Error.Details.Fields)
		}
	}
}

func TestGetDataset(t *testing.T) {
	f := newFixture()
	f.datasets.getVersion = func(name string, n int) (dataset.Version, error) {
		if n > 1 {
			return dataset.Version{}, fault.New(fault.VersionNotFound, "dataset %s has no version %d", name, n)
		}
		return ordersVersion(), nil
	}
	newest := f.do(t, request{method: "GET", path: "/v1/datasets/orders"})
	first := f.do(t, request{method: "GET", path: "/v1/datasets/orders/versions/1"})
	want := `{"name":"orders","version":1,"created_at":"2026-07-27T10:15:30Z",` + string(ordersVersion().Definition.Canonical()[1:])
	if string(newest.body) != want || string(first.body) != want {
		t.Errorf("%s\n%s\nwant %s", newest.body, first.body, want)
	}
	for path, code := range map[string]fault.Code{
		"none": fault.DatasetNotFound, "No": fault.DatasetNotFound, "No/versions/1": fault.DatasetNotFound,
		"orders/versions/2": fault.VersionNotFound, "orders/versions/0": fault.VersionNotFound, "orders/versions/x": fault.VersionNotFound,
		"orders/versions/01": fault.VersionNotFound, "orders/versions/-1": fault.VersionNotFound, "orders/versions/99999999999999999999": fault.VersionNotFound,
	} {
		f.do(t, request{method: "GET", path: "/v1/datasets/" + path}).failed(t, 404, code)
	}
}

func order(key string) record.Record {
	return record.Record{Key: key, Version: 3, UpdatedAt: clock, Source: record.Source{JobID: jobID, RowNumber: 7}, Values: []record.Value{
		{Field: "order_id", Kind: record.String, Text: key}, {Field: "paid", Kind: record.Bool, Text: "true"},
		{Field: "qty", Kind: record.Number, Text: "12345678901234567890.123456789012345678"}, {Field: "note", Kind: record.Null},
	}}
}

func TestRecords(t *testing.T) {
	f := newFixture()
	f.records.get = func(tenant, dataset, key string) (record.Record, bool, error) {
		if tenant != "acme" || dataset != "orders" {
			t.Errorf("asked for %s of %s", dataset, tenant)
		}
		return order(key), key != "none", nil
	}
	for _, key := range []string{"A1", "a/b", "a b+c", "../x", "50%", "日本", `["a","b"]`} {
		a := f.do(t, request{method: "GET", path: "/v1/datasets/orders/records?key=" + url.QueryEscape(key)})
		if got := decode[map[string]any](t, a, 200); got["key"] != key {
			t.Errorf("?key=%s gave %v", key, got["key"])
		}
		if !strings.Contains(string(a.body), `"qty":12345678901234567890.123456789012345678,`) {
			t.Errorf("a number lost digits: %s", a.body)
		}
		a = f.do(t, request{method: "GET", path: "/v1/datasets/orders/records/" + url.PathEscape(key)})
		if got := decode[map[string]any](t, a, 200); got["key"] != key {
			t.Errorf("/records/%s gave %v", key, got["key"])
		}
	}
	for _, path := range []string{"/records/none", "/records?key=none"} {
		f.do(t, request{method: "GET", path: "/v1/datasets/orders" + path}).failed(t, 404, fault.RecordNotFound)
	}
	for _, path := range []string{"/records/A1", "/records?key=A1", "/records"} {
		f.do(t, request{method: "GET", path: "/v1/datasets/none" + path}).failed(t, 404, fault.DatasetNotFound)
	}
	f.do(t, request{method: "GET", path: "/v1/datasets/orders/records?key=A1&limit=1"}).failed(t, 400, fault.InvalidRequest)
}

// TestKeysAreFoundHoweverTheyAreWritten: keys are compared in NFC, and white space in a JSON array means nothing.
func TestKeysAreFoundHoweverTheyAreWritten(t *testing.T) {
	f := newFixture()
	var asked string
	f.records.get = func(_, _, key string) (record.Record, bool, error) {
		asked = key
		return order("A1"), true, nil
	}
	get := func(key string) string {
		f.do(t, request{method: "GET", path: "/v1/datasets/orders/records?key=" + url.QueryEscape(key)})
		return asked
	}
	if got := get("e\u0301"); got != "é" {
		t.Errorf("asked for %q", got)
	}
	if got := get(`[ "a" ]`); got != `[ "a" ]` {
		t.Errorf("a key of one field was taken for an array: %q", got)
	}
	f.datasets.get = func(_, name string) (dataset.Version, error) {
		def, err := dataset.Parse([]byte(strings.Replace(ordersDefinition, `["order_id"]`, `["order_id","qty"]`, 1)))
		return dataset.Version{Name: name, Number: 1, CreatedAt: clock, Definition: def}, err
	}
	if got := get(`[ "e` + "\u0301" + `", "1" ]`); got != `["é","1"]` {
		t.Errorf("asked for %q", got)
	}
	// Reported: what Python writes for such a key found nothing.
	if got := get(`["\u00e9", "\u003c\/\u2028"]`); got != "[\"é\",\"</\u2028\"]" {
		t.Errorf("asked for %q", got)
	}
	for _, key := range []string{"A1", `["é"]`, `["é",1]`, `["é","1","2"]`} {
		f.do(t, request{method: "GET", path: "/v1/datasets/orders/records?key=" + url.QueryEscape(key)}).failed(t, 404, fault.RecordNotFound)
	}
}

func TestListRecords(t *testing.T) {
	f := newFixture()
	var asked string
	f.records.list = func(tenant, dataset, cursor string, limit, maxBytes int) (record.Page, error) {
		asked = fmt.Sprint(tenant, dataset, cursor, limit, maxBytes)
		return record.Page{Records: []record.Record{order("A1"), order("A2")}, NextCursor: "next"}, nil
	}
	a := f.do(t, request{method: "GET", path: "/v1/datasets/orders/records?cursor=here&limit=2"})
	got := decode[struct {
		Records    []struct{ Key string }
		NextCursor string `json:"next_cursor"`
	}](t, a, 200)
	if len(got.Records) != 2 || got.NextCursor != "next" || asked != fmt.Sprint("acme", "orders", "here", 2, 4_000_000) {
		t.Errorf("%s\nasked for %s", a.body, asked)
	}
	f.records.list = func(_, _, _ string, _, _ int) (record.Page, error) { return record.Page{}, nil }
	if a := f.do(t, request{method: "GET", path: "/v1/datasets/orders/records"}); string(a.body) != `{"next_cursor":null,"records":[]}` {
		t.Errorf("%s", a.body)
	}
	f.records.list = func(_, _, _ string, _, _ int) (record.Page, error) {
		return record.Page{}, fault.New(fault.InvalidRequest, "the cursor is not one of this list").With("fields", []problem{{"cursor", "not one of this list"}})
	}
	f.do(t, request{method: "GET", path: "/v1/datasets/orders/records?cursor=bad"}).failed(t, 400, fault.InvalidRequest)
}

func TestListRows(t *testing.T) {
	f := newFixture()
	var asked string
	row := quarantine.Row{RowNumber: 3, Line: 4, Offset: 181, Raw: []byte("A3,\"x\",\n"), State: quarantine.Quarantined, Code: fault.MissingValue, Class: quarantine.Data,
		Field: "qty", Message: "is empty", Attempts: 1, DatasetVersion: 1, Rev: 1}
	binary, large := row, row
	binary.Raw, binary.Field = []byte{0xff, 'a'}, ""
	large.Raw, large.RawKey = nil, "rows/secret"
	f.rows.list = func(got id.Job, filter quarantine.Filter, cursor string, limit int) (quarantine.Page, error) {
		asked = fmt.Sprint(got, filter, cursor, limit)
		return quarantine.Page{Rows: []quarantine.Row{row, binary, large}}, nil
	}
	a := f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/rows?state=quarantined&code=MISSING_VALUE&class=data&cursor=c&limit=9"})
	want := `{"next_cursor":null,"rows":[` +
		`{"row_number":3,"line":4,"offset":181,"state":"quarantined","code":"MISSING_VALUE","class":"data","field":"qty","message":"is empty","raw":"A3,\"x\",\n","attempts":1,"dataset_version":1,"etag":"1","retry_job":null,"resolved_by":null,"discard_reason":null},` +
		`{"row_number":3,"line":4,"offset":181,"state":"quarantined","code":"MISSING_VALUE","class":"data","field":null,"message":"is empty","raw":null,"raw_base64":"/2E=","attempts":1,"dataset_version":1,"etag":"1","retry_job":null,"resolved_by":null,"discard_reason":null},` +
		`{"row_number":3,"line":4,"offset":181,"state":"quarantined","code":"MISSING_VALUE","class":"data","field":"qty","message":"is empty","raw":null,"attempts":1,"dataset_version":1,"etag":"1","retry_job":null,"resolved_by":null,"discard_reason":null}]}`
	if string(a.body) != want || asked != fmt.Sprint(jobID, quarantine.Filter{State: quarantine.Quarantined, Code: fault.MissingValue, Class: quarantine.Data}, "c", 9) {
		t.Errorf("got  %s\nwant %s\nasked for %s", a.body, want, asked)
	}
	for _, bad := range []string{"state=open", "code=EMPTY_FILE", "class=x", "limit=0"} {
		f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/rows?" + bad}).failed(t, 400, fault.InvalidRequest)
	}
	f.rows.list = func(id.Job, quarantine.Filter, string, int) (quarantine.Page, error) {
		return quarantine.Page{}, fault.New(fault.JobNotFound, "there is no such job")
	}
	f.do(t, request{method: "GET", path: "/v1/jobs/" + jobID + "/rows"}).failed(t, 404, fault.JobNotFound)
}

func TestLimits(t *testing.T) {
	f := newFixture()
	f.caller.Scopes = nil // any token may ask
	f.caller.Limits.MaxPageSize = 5000
	f.access.use = func() (access.Use, error) {
		return access.Use{SubmitsThisMinute: 1, ActiveJobs: 2, UploadingJobs: 3, WaitSecondsThisMinute: 4}, nil
	}
	got := decode[struct {
		ClientID string `json:"client_id"`
		Limits   map[string]struct {
			Limit int64
			Used  *int64
		}
	}](t, f.do(t, request{method: "GET", path: "/v1/limits"}), 200)
	for name, want := range map[string]int64{"submits_per_minute": 1, "active_jobs": 2, "uploading_jobs": 3, "wait_seconds_per_minute": 4} {
		if used := got.Limits[name].Used; used == nil || *used != want {
			t.Errorf("%s: used %v, want %d", name, used, want)
		}
	}
	for name, want := range map[string]int64{"file_bytes": 5 << 30, "page_size": 1000, "job_seconds": 86_400, "upload_url_seconds": 900, "wait_seconds": 25} {
		if l := got.Limits[name]; l.Limit != want || l.Used != nil {
			t.Errorf("%s: %+v, want %d", name, l, want)
		}
	}
}

func TestServiceOperationsNeedNoToken(t *testing.T) {
	f := newFixture()
	f.access.authenticate = nil // would panic
	if a := f.do(t, request{method: "GET", path: "/v1/health", header: map[string]string{"Authorization": ""}}); string(a.body) != `{"status":"ok"}` {
		t.Errorf("%s", a.body)
	}
	a := f.do(t, request{method: "GET", path: "/v1/openapi.json"})
	if string(a.body) != string(infra.OpenAPI) || !json.Valid(a.body) {
		t.Error("another document is served")
	}
}
