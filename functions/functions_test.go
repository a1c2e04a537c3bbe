// Package functions_test hands events, shaped as AWS sends them, to the handlers as they are deployed: through Lambda's own
// decoding, with everything wired, and with an endpoint that knows no item in place of AWS.
package functions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"pintu/internal/app"
	"pintu/internal/compute"
	"pintu/internal/logline"
)

// emptyAWS answers every call as tables without items and queues without messages do, and notes the calls.
type emptyAWS struct {
	mu    sync.Mutex
	calls map[string]int
}

func (a *emptyAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	a.mu.Lock()
	a.calls[operation]++
	a.mu.Unlock()
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	answer := map[string]string{"GetItem": `{}`, "Query": `{"Items":[],"Count":0,"ScannedCount":0}`, "ChangeMessageVisibility": `{}`}[operation]
	if answer == "" {
		w.WriteHeader(http.StatusBadRequest)
		answer = `{"__type":"ValidationException","message":"unexpected ` + operation + `"}`
	}
	io.WriteString(w, answer)
}

// invoke runs one event through a function and gives its response and the calls it made.
func invoke(t *testing.T, build func(context.Context, app.Config, *logline.Logger) (app.Handler, error), event string) (response map[string]any, calls map[string]int, log string) {
	t.Helper()
	stub := &emptyAWS{calls: map[string]int{}}
	server := httptest.NewServer(stub)
	defer server.Close()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"} {
		t.Setenv(name, value)
	}
	payload, err := os.ReadFile(event)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := app.Config{Stage: "prod", ControlTable: "control", RecordsTable: "records", Bucket: "bucket", ChunkBytes: app.DefaultChunkBytes,
		PlanQueueURL: server.URL + "/1/plan", ProcessQueueURL: server.URL + "/1/process", URLLife: time.Minute}
	h, err := build(t.Context(), c, logline.New(&out, time.Now))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := lambda.NewHandler(h).Invoke(t.Context(), payload)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if err := json.Unmarshal(answer, &response); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return response, stub.calls, out.String()
}

func TestEventsReachTheirWork(t *testing.T) {
	for name, c := range map[string]struct {
		build  func(context.Context, app.Config, *logline.Logger) (app.Handler, error)
		event  string
		status float64 // of HTTP answers
		code   string
		failed []any // of SQS answers
		calls  map[string]int
		log    string
	}{
		"api, health": {build: app.API, event: "api/testdata/health.json", status: 200, calls: map[string]int{}, log: `"route":"/v1/health"`},
		"api, a token that nobody has": {build: app.API, event: "api/testdata/jobs.json", status: 401, code: "UNAUTHORIZED",
			calls: map[string]int{}, log: `"code":"UNAUTHORIZED"`},
		"datasets, a token that nobody has": {build: app.Datasets(compute.Evaluator), event: "datasets/testdata/put.json", status: 401, code: "UNAUTHORIZED",
			calls: map[string]int{}, log: `"route":"/v1/datasets/{name}"`},
		"datasets knows nothing else": {build: app.Datasets(compute.Evaluator), event: "api/testdata/jobs.json", status: 404, code: "NOT_FOUND", calls: map[string]int{}, log: `"NOT_FOUND"`},
		"plan, a job that is gone is acknowledged": {build: app.Plan, event: "plan/testdata/message.json",
			calls: map[string]int{"GetItem": 1}, log: `"queue":"plan"`},
		"process, a message that cannot be read comes back": {build: app.Process(compute.Evaluator), event: "process/testdata/broken.json",
			failed: []any{map[string]any{"itemIdentifier": "2e1424d4-f796-459a-8184-9c92662be6da"}},
			calls:  map[string]int{"ChangeMessageVisibility": 1}, log: `"error":"message body: `},
		"sweep looks at every shard": {build: app.Sweep, event: "sweep/testdata/tick.json", calls: map[string]int{"Query": 8}, log: `"looked":0`},
	} {
		t.Run(name, func(t *testing.T) {
			response, calls, log := invoke(t, c.build, c.event)
			if c.status != 0 {
				checkHTTP(t, response, c.status, c.code)
			}
			if failed, _ := response["batchItemFailures"].([]any); !cmp.Equal(c.failed, failed) {
				t.Errorf("failures %v, want %v", failed, c.failed)
			}
			if diff := cmp.Diff(c.calls, calls); diff != "" {
				t.Errorf("calls: %s", diff)
			}
			if strings.Count(log, "\n") != 1 || !strings.Contains(log, c.log) {
				t.Errorf("want one line with %s, got %s", c.log, log)
			}
		})
	}
}

func checkHTTP(t *testing.T, response map[string]any, status float64, code string) {
	t.Helper()
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	text, _ := response["body"].(string)
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatalf("body %q: %v", text, err)
	}
	if response["statusCode"] != status || body.Error.Code != code {
		t.Errorf("status %v code %q, want %v %q", response["statusCode"], body.Error.Code, status, code)
	}
}
