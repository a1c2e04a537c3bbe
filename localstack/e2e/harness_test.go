// Package e2e drives the real function binaries on the embedded stack from outside: over HTTP, the object
// store and the queues, as clients and operators do. Every answer of the API is held against the OpenAPI
// document, and everything stored against the audit.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/httpapi/contract"
	"pintu/localstack/audit"
	"pintu/localstack/faults"
	"pintu/localstack/permissions"
	"pintu/localstack/stack"
)

// system is one running stack with a client of one tenant.
type system struct {
	t     testing.TB
	stack *stack.Stack
	db    *dynamodb.Client
	http  *http.Client
	token string
	log   *syncBuffer
}

// syncBuffer gathers what functions log.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// root is the repository. The object store changes the working directory, so it is found out first.
var root, rootErr = filepath.Abs("../..")

// start runs a stack of its own for a test. Chunks are small, so that small files make many.
func start(t testing.TB, chunkBytes int, env map[string]string) *system {
	t.Helper()
	settings := map[string]string{"PINTU_CHUNK_BYTES": fmt.Sprint(chunkBytes)}
	for name, value := range env {
		settings[name] = value
	}
	if rootErr != nil {
		t.Fatal(rootErr)
	}
	s := &system{t: t, log: &syncBuffer{}}
	var err error
	s.stack, err = stack.Start(t.Context(), stack.Config{Root: root, Env: map[string]map[string]string{"*": settings}, Log: s.log, RedeliverAtOnce: true})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	t.Cleanup(func() {
		if err := s.stack.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() && os.Getenv("PINTU_E2E_LOG") != "" {
			t.Log(s.log.String())
		}
	})
	s.hold()
	s.db = dynamodb.NewFromConfig(s.stack.Client())
	validator, err := contract.New()
	if err != nil {
		t.Fatal(err)
	}
	s.http = &http.Client{Timeout: 60 * time.Second, Transport: &contract.Transport{BaseURL: s.stack.URL(), Validator: validator, Report: func(err error) { t.Error(err) },
		Base: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(s.http.CloseIdleConnections)
	s.token = s.newClient("acme", "loader", access.Scopes)
	return s
}

// hold checks every call of a function against the role that the template gives it.
func (s *system) hold() {
	s.t.Helper()
	roles, err := permissions.Read(filepath.Join(root, "template.yaml"), s.stack.System())
	if err != nil {
		s.t.Fatal(err)
	}
	s.stack.Faults().Add(faults.Rule{Match: func(c faults.Call) bool {
		if err := roles.Check(c); err != nil {
			s.t.Error(err)
		}
		return false
	}})
}

// newClient makes a client as an operator does, and gives its token.
func (s *system) newClient(tenant, client string, scopes []access.Scope) string {
	s.t.Helper()
	control, records := s.tables()
	store := dynamostore.New(dynamostore.Config{AWS: s.stack.Client(), ControlTable: control, RecordsTable: records})
	limits := access.DefaultLimits()
	limits.SubmitsPerMinute, limits.ActiveJobs, limits.UploadingJobs = 100_000, 10_000, 10_000
	token, err := access.New(access.Config{Store: store, Now: time.Now}).CreateClient(s.t.Context(), tenant, client, scopes, limits, time.Time{})
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *system) tables() (control, records string) {
	env := s.stack.Env("ApiFunction")
	return env["PINTU_CONTROL_TABLE"], env["PINTU_RECORDS_TABLE"]
}

// answer is what the API said.
type answer struct {
	status int
	header http.Header
	body   object
}

type object map[string]any

// at reads a value by path: "error.code".
func (o object) at(path string) any {
	var v any = map[string]any(o)
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

func (o object) text(path string) string { v, _ := o.at(path).(string); return v }

func (o object) number(path string) int64 { v, _ := o.at(path).(float64); return int64(v) }

// call sends one request. header holds pairs of name and value.
func (s *system) call(method, path string, body any, header ...string) answer {
	s.t.Helper()
	return s.callAs(s.token, method, path, body, header...)
}

func (s *system) callAs(token, method, path string, body any, header ...string) answer {
	s.t.Helper()
	a, err := s.try(token, method, path, body, header...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (s *system) try(token, method, path string, body any, header ...string) (answer, error) {
	var payload io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		payload = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.stack.URL()+path, payload)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := s.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode, header: res.Header}
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, &a.body)
	}
	return a, err
}

var keys atomic.Int64

// key makes an Idempotency-Key that no other request has.
func key() string { return fmt.Sprintf("key-%d", keys.Add(1)) }

// dataset makes a dataset of pairs: k is the key, v an integer of at least 0.
func (s *system) dataset(name string) string {
	s.t.Helper()
	a := s.call("PUT", "/v1/datasets/"+name, object{"schema": object{"primaryKey": []string{"k"}, "fields": []object{
		{"name": "k", "type": "string"}, {"name": "v", "type": "integer", "constraints": object{"minimum": 0}}}}})
	if a.status != http.StatusCreated {
		s.t.Fatalf("PUT dataset: %d %v", a.status, a.body)
	}
	return name
}

func spec(dataset string, content []byte) object {
	return object{"dataset": dataset, "format": "csv", "file": object{"name": "pairs.csv", "size_bytes": len(content), "content_type": "text/csv"}}
}

// submit makes a job for a file.
func (s *system) submit(dataset string, content []byte) answer {
	s.t.Helper()
	a := s.call("POST", "/v1/import-jobs", spec(dataset, content), "Idempotency-Key", key())
	if a.status != http.StatusAccepted {
		s.t.Fatalf("submit: %d %v", a.status, a.body)
	}
	return a
}

// upload sends a file as the answer to a submit says.
func (s *system) upload(a answer, content []byte, change ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), a.body.text("upload.method"), a.body.text("upload.url"), bytes.NewReader(content))
	if err != nil {
		s.t.Fatal(err)
	}
	headers, _ := a.body.at("upload.headers").(map[string]any)
	for name, value := range headers {
		if name != "Content-Length" {
			r.Header.Set(name, value.(string))
		}
	}
	for i := 0; i+1 < len(change); i += 2 {
		r.Header.Set(change[i], change[i+1])
	}
	res, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// begin submits, uploads and completes a file.
func (s *system) begin(dataset string, content []byte) string {
	s.t.Helper()
	a := s.submit(dataset, content)
	if status, body := s.upload(a, content); status != http.StatusOK {
		s.t.Fatalf("upload: %d %s", status, body)
	}
	jobID := a.body.text("job_id")
	if c := s.call("POST", "/v1/import-jobs/"+jobID+"/complete", object{}); c.status != http.StatusAccepted {
		s.t.Fatalf("complete: %d %v", c.status, c.body)
	}
	return jobID
}

// wait polls a job until it ended.
func (s *system) wait(jobID string) object {
	s.t.Helper()
	return s.until(jobID, func(j object) bool { return terminal(j.text("status")) })
}

// patience bounds how long a test waits for a job.
const patience = 90 * time.Second

// until polls a job until something holds of it, holding each request open until the job changes.
func (s *system) until(jobID string, holds func(object) bool) object {
	s.t.Helper()
	deadline, etag := time.Now().Add(patience), ""
	var last object
	for time.Now().Before(deadline) {
		a := s.call("GET", "/v1/jobs/"+jobID+"?wait=2s", nil, "If-None-Match", etag)
		switch a.status {
		case http.StatusOK:
			last, etag = a.body, a.header.Get("ETag")
		case http.StatusNotModified:
		default:
			s.t.Fatalf("GET job: %d %v", a.status, a.body)
		}
		if holds(last) {
			return last
		}
	}
	s.t.Fatalf("job did not come so far: %v\n%s", last, tail(s.log.String()))
	return nil
}

func terminal(status string) bool {
	switch status {
	case "succeeded", "partial", "failed", "canceled":
		return true
	}
	return false
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// outcome is what an import left behind, as far as it must not depend on what happened on the way.
type outcome struct {
	Status   string
	Counters map[string]any
	Records  map[string]string
	Versions map[string]int64
	Rejected map[int64]string
	Report   string // rejected.csv
	Chunks   int64
	Covered  int64
}

func (s *system) outcome(dataset string, j object) outcome {
	s.t.Helper()
	o := outcome{Status: j.text("status"), Counters: map[string]any{}, Records: map[string]string{}, Versions: map[string]int64{}, Rejected: map[int64]string{},
		Chunks: j.number("result.ledger.chunks"), Covered: j.number("result.ledger.covered_bytes")}
	result, _ := j.at("result").(map[string]any)
	for name, v := range result {
		if strings.HasPrefix(name, "rows_") || strings.HasPrefix(name, "rejected_by_code") {
			o.Counters[name] = v
		}
	}
	for _, r := range s.all("/v1/datasets/"+dataset+"/records", "records") {
		o.Records[r.text("key")] = fmt.Sprint(r.at("values.v"))
		o.Versions[r.text("key")] = r.number("version")
	}
	for _, r := range s.all("/v1/jobs/"+j.text("job_id")+"/rows", "rows") {
		o.Rejected[r.number("row_number")] = r.text("code")
	}
	if len(o.Rejected) > 0 && terminal(o.Status) {
		o.Report = s.artifact(j.text("job_id"), "rejected.csv")
	}
	return o
}

// all reads a list to its end.
func (s *system) all(path, name string) []object {
	s.t.Helper()
	var out []object
	for cursor := ""; ; {
		page := path + "?limit=500"
		if cursor != "" {
			page += "&cursor=" + cursor
		}
		a := s.call("GET", page, nil)
		if a.status != http.StatusOK {
			s.t.Fatalf("GET %s: %d %v", page, a.status, a.body)
		}
		list, _ := a.body[name].([]any)
		for _, v := range list {
			out = append(out, v.(map[string]any))
		}
		if cursor = a.body.text("next_cursor"); cursor == "" {
			return out
		}
	}
}

func (s *system) artifact(jobID, name string) string {
	s.t.Helper()
	a := s.call("GET", "/v1/jobs/"+jobID+"/artifacts/"+name, nil)
	if a.status != http.StatusOK {
		s.t.Fatalf("GET artifact %s: %d %v", name, a.status, a.body)
	}
	status, body := s.fetch(a.body.text("url"))
	if status != http.StatusOK {
		s.t.Fatalf("fetch artifact %s: %d %s", name, status, body)
	}
	return body
}

func (s *system) fetch(url string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// audit holds everything stored against the promises, twice: a quiet system does not change.
func (s *system) audit() {
	s.t.Helper()
	s.quiet()
	control, records := s.tables()
	var digests [2]string
	for i := range digests {
		report, err := audit.Run(s.t.Context(), audit.Config{DB: s.db, ControlTable: control, RecordsTable: records, Messages: s.messages()})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, v := range report.Violations {
			s.t.Errorf("audit: %s", v)
		}
		digests[i] = report.Digest
	}
	if digests[0] != digests[1] {
		s.t.Error("audit: something changed while nothing was going on")
	}
}

// queues of the system, by logical id in the template.
var queues = []string{"PlanQueue", "ProcessQueue", "PlanDeadLetterQueue", "ProcessDeadLetterQueue"}

func (s *system) queueName(logicalID string) string {
	s.t.Helper()
	for _, q := range s.stack.System().Queues {
		if q.LogicalID == logicalID {
			return q.Name
		}
	}
	s.t.Fatalf("no queue %s in the template", logicalID)
	return ""
}

func (s *system) messages() []string {
	var bodies []string
	for _, q := range queues {
		for _, m := range s.stack.SQS().Peek(s.queueName(q)) {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies
}

// quiet waits until no message is on its way any more.
func (s *system) quiet() {
	s.t.Helper()
	s.eventually(func() bool {
		left := 0
		for _, q := range queues[:2] {
			left += len(s.stack.SQS().Peek(s.queueName(q)))
		}
		return left == 0
	})
}

// sweepNow makes every job that is not over due, and runs sweep.
func (s *system) sweepNow() {
	s.t.Helper()
	control, _ := s.tables()
	pages := dynamodb.NewScanPaginator(s.db, &dynamodb.ScanInput{TableName: &control, FilterExpression: aws.String("attribute_exists(due_at)")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, it := range page.Items {
			_, err := s.db.UpdateItem(s.t.Context(), &dynamodb.UpdateItemInput{TableName: &control, Key: map[string]types.AttributeValue{"pk": it["pk"], "sk": it["sk"]},
				UpdateExpression: aws.String("SET due_at = :now"), ConditionExpression: aws.String("attribute_exists(due_at)"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":now": &types.AttributeValueMemberN{Value: "1"}}})
			if err != nil {
				s.t.Logf("make due: %v", err) // it ended meanwhile
			}
		}
	}
	if _, err := s.stack.Invoke(context.WithoutCancel(s.t.Context()), "SweepFunction", []byte(`{"source":"aws.events","detail-type":"Scheduled Event"}`)); err != nil {
		s.t.Fatalf("sweep: %v\n%s", err, tail(s.log.String()))
	}
}

// pairs makes a file of n rows, one key in five doubled and one row in seven bad.
func pairs(n int) []byte {
	var b bytes.Buffer
	b.WriteString("k,v\n")
	for i := range n {
		switch {
		case i%7 == 6:
			fmt.Fprintf(&b, "key%d,-1\n", i)
		case i%5 == 4:
			fmt.Fprintf(&b, "key%d,%d\n", i-3, i)
		default:
			fmt.Fprintf(&b, "key%d,%d\n", i, i)
		}
	}
	return b.Bytes()
}
