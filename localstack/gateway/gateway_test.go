package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pintu/localstack/lambda"
	"pintu/localstack/template"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func system() *template.System {
	return &template.System{
		Functions: []template.Function{
			{LogicalID: "Api", Routes: []template.Route{{Method: "ANY", Path: "/v1/{proxy+}"}, {Method: "ANY", Path: "/v1/datasets/{name}"}, {Method: "GET", Path: "/v1/datasets/{name}/only"}}},
			{LogicalID: "Datasets", Routes: []template.Route{{Method: "PUT", Path: "/v1/datasets/{name}"}, {Method: "POST", Path: "/v1/datasets/all"}}},
		},
		API: template.API{LogicalID: "Door", Stage: "dev", BinaryTypes: []string{"application/zip"}, Responses: map[string]template.GatewayResponse{
			"DEFAULT_4XX":         {Template: `{"code":"$context.error.responseType","id":"$context.requestId"}`},
			"INTEGRATION_FAILURE": {Status: 502, Template: `{"code":"UPSTREAM_GATEWAY","said":$context.error.messageString}`, Headers: map[string]string{"Retry-After": "1"}},
		}},
	}
}

// front is a gateway over a function that is written as a Go function, with the last event it was given.
type front struct {
	*Gateway
	function string
	event    []byte
	log      bytes.Buffer
}

func newFront(t *testing.T, f func(ctx context.Context) (lambda.Result, error)) *front {
	t.Helper()
	out := &front{}
	g, err := New(Config{System: system(), Account: "000000000000", Log: &out.log, Now: func() time.Time { return time.Unix(1764494400, 5e6) },
		Invoke: func(ctx context.Context, id string, payload []byte) (lambda.Result, error) {
			out.function, out.event = id, payload
			return f(ctx)
		}})
	if err != nil {
		t.Fatal(err)
	}
	out.Gateway = g
	return out
}

func saying(payload string) func(context.Context) (lambda.Result, error) {
	return func(context.Context) (lambda.Result, error) { return lambda.Result{Payload: []byte(payload)}, nil }
}

func (f *front) ask(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTheEvent compares with the event as AWS sends it, generated values made equal.
func TestTheEvent(t *testing.T) {
	f := newFront(t, saying(`{"statusCode":200}`))
	r := httptest.NewRequest("POST", "http://abc123.execute-api.us-east-1.example:8080/v1/datasets/pesanan%20harian/?tag=a&tag=b+c&empty", strings.NewReader(`{"qty":"ð"}`))
	r.RemoteAddr = "192.0.2.7:5555"
	r.Header = http.Header{"Content-Type": {"application/json"}, "X-Tag": {"one", "two"}, "User-Agent": {"curl/8"}, "Content-Length": {"12"}, "X-Forwarded-For": {"198.51.100.1"}}
	answer := f.ask(r)
	got := string(f.event)
	got = strings.ReplaceAll(got, answer.Header.Get("X-Amzn-Requestid"), "REQUEST-ID")
	got = strings.ReplaceAll(got, answer.Header.Get("X-Amz-Apigw-Id"), "EXTENDED-ID")
	got = regexp.MustCompile(`Root=1-[0-9a-f]{8}-[0-9a-f]{24}`).ReplaceAllString(got, "TRACE")
	want, err := os.ReadFile("testdata/event.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(t, want), decoded(t, []byte(got))); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if f.function != "Api" || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]`).MatchString(answer.Header.Get("X-Amzn-Requestid")) {
		t.Errorf("function %s, request id %q", f.function, answer.Header.Get("X-Amzn-Requestid"))
	}
	var official events.APIGatewayProxyRequest
	d := json.NewDecoder(bytes.NewReader(f.event))
	if err := d.Decode(&official); err != nil || official.RequestContext.Identity.SourceIP != "192.0.2.7" || official.Body != `{"qty":"ð"}` {
		t.Errorf("as the official type: %+v, %v", official, err)
	}
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("decode %s: %v", b, err)
	}
	return v
}

func TestWhatIsAbsentIsNull(t *testing.T) {
	f := newFront(t, saying(`{}`))
	f.ask(httptest.NewRequest("GET", "/v1/jobs", nil))
	for _, part := range []string{`"queryStringParameters":null`, `"multiValueQueryStringParameters":null`, `"stageVariables":null`, `"body":null`, `"isBase64Encoded":false`, `"userAgent":null`} {
		if !bytes.Contains(f.event, []byte(part)) {
			t.Errorf("event has no %s: %s", part, f.event)
		}
	}
}

func TestOnlyBinaryTypesAreEncoded(t *testing.T) {
	f := newFront(t, saying(`{}`))
	for contentType, want := range map[string]string{"application/zip": `"body":"gA==","isBase64Encoded":true`, "text/csv": `"body":"\ufffd","isBase64Encoded":false`} {
		r := httptest.NewRequest("POST", "/v1/x", strings.NewReader("\x80"))
		r.Header.Set("Content-Type", contentType)
		f.ask(r)
		if !bytes.Contains(f.event, []byte(want)) {
			t.Errorf("%s: event has no %s: %s", contentType, want, f.event)
		}
	}
}

func TestRoutes(t *testing.T) {
	for _, c := range []struct{ method, path, function, resource, parameters string }{
		{"GET", "/v1/jobs/job_1/rows", "Api", "/v1/{proxy+}", "proxy=jobs/job_1/rows"},
		{"GET", "/v1/jobs/", "Api", "/v1/{proxy+}", "proxy=jobs"},
		{"PUT", "/v1/datasets/orders", "Datasets", "/v1/datasets/{name}", "name=orders"},
		{"GET", "/v1/datasets/orders", "Api", "/v1/datasets/{name}", "name=orders"},
		{"GET", "/v1/datasets/a%2Fb%20c", "Api", "/v1/datasets/{name}", "name=a/b c"},
		{"POST", "/v1/datasets/all", "Datasets", "/v1/datasets/all", ""},
		{"GET", "/v1/datasets/all", "", "", ""},         // the exact resource has no GET, and no other is asked
		{"PUT", "/v1/datasets/orders/only", "", "", ""}, // nor here
		{"GET", "/v1/datasets/orders/records/1", "Api", "/v1/{proxy+}", "proxy=datasets/orders/records/1"},
		{"GET", "/v1", "", "", ""},
		{"GET", "/", "", "", ""},
		{"GET", "/v2/jobs", "", "", ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			f := newFront(t, saying(`{}`))
			answer := f.ask(httptest.NewRequest(c.method, c.path, nil))
			var e event
			if f.event != nil {
				if err := json.Unmarshal(f.event, &e); err != nil {
					t.Fatal(err)
				}
			}
			var parameters []string
			for k, v := range e.PathParameters {
				parameters = append(parameters, k+"="+v)
			}
			if f.function != c.function || e.Resource != c.resource || strings.Join(parameters, " ") != c.parameters {
				t.Errorf("function %q, resource %q, parameters %q", f.function, e.Resource, parameters)
			}
			if c.function == "" && (answer.StatusCode != 403 || !strings.Contains(text(t, answer), `"code":"MISSING_AUTHENTICATION_TOKEN"`)) {
				t.Errorf("status %d", answer.StatusCode)
			}
		})
	}
}

func TestRoutesThatCannotStandTogether(t *testing.T) {
	for name, routes := range map[string][]template.Route{
		"twice":           {{Method: "GET", Path: "/a/{b}"}, {Method: "GET", Path: "/a/{b}"}},
		"parameter names": {{Method: "GET", Path: "/a/{b}"}, {Method: "GET", Path: "/a/{c}/d"}},
	} {
		if _, err := New(Config{System: &template.System{Functions: []template.Function{{LogicalID: "F", Routes: routes}}}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, payload, accept string
		status                int
		header                map[string]string
		cookies               int
		body                  string
	}{
		{name: "plain", payload: `{"statusCode":201,"headers":{"Content-Type":"text/csv","X-Count":3},"body":"a,b"}`, status: 201, header: map[string]string{"Content-Type": "text/csv", "X-Count": "3"}, body: "a,b"},
		{name: "defaults", payload: `{}`, status: 200, header: map[string]string{"Content-Type": "application/json"}},
		{name: "status as text", payload: `{"statusCode":"404","body":null}`, status: 404},
		{name: "several values", payload: `{"statusCode":200,"multiValueHeaders":{"set-cookie":["a=1","b=2"]},"headers":{"Set-Cookie":"b=2"}}`, status: 200, cookies: 2},
		{name: "remapped", payload: `{"statusCode":401,"headers":{"WWW-Authenticate":"Bearer","Allow":"GET"}}`, status: 401, header: map[string]string{"WWW-Authenticate": "", "X-Amzn-Remapped-Www-Authenticate": "Bearer", "Allow": "GET"}},
		{name: "binary", payload: `{"statusCode":200,"body":"gA==","isBase64Encoded":true}`, accept: "application/zip, */*", status: 200, body: "\x80"},
		{name: "binary not asked for", payload: `{"statusCode":200,"body":"gA==","isBase64Encoded":true}`, accept: "*/*", status: 200, body: "gA=="},
		{name: "not modified", payload: `{"statusCode":304,"headers":{"ETag":"\"1\""}}`, status: 304, header: map[string]string{"ETag": `"1"`, "Content-Length": ""}},
		{name: "unknown field", payload: `{"statusCode":200,"bodi":""}`, status: 502, header: map[string]string{"Retry-After": "1"}, body: `{"code":"UPSTREAM_GATEWAY","said":"Internal server error"}`},
		{name: "no JSON", payload: `oops`, status: 502, body: `{"code":"UPSTREAM_GATEWAY","said":"Internal server error"}`},
		{name: "impossible status", payload: `{"statusCode":99}`, status: 502, body: `{"code":"UPSTREAM_GATEWAY","said":"Internal server error"}`},
		{name: "broken base64", payload: `{"body":"!","isBase64Encoded":true}`, accept: "application/zip", status: 502, body: `{"code":"UPSTREAM_GATEWAY","said":"Internal server error"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFront(t, saying(c.payload))
			r := httptest.NewRequest("GET", "/v1/x", nil)
			r.Header.Set("Accept", c.accept)
			answer := f.ask(r)
			if got := text(t, answer); answer.StatusCode != c.status || got != c.body || len(answer.Cookies()) != c.cookies {
				t.Errorf("status %d, body %q, cookies %v", answer.StatusCode, got, answer.Cookies())
			}
			for name, want := range c.header {
				if got := answer.Header.Get(name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			if (c.status == 502) != strings.Contains(f.log.String(), "Api failed: ") {
				t.Errorf("log %q", f.log.String())
			}
		})
	}
}

func TestFailuresOfTheFunction(t *testing.T) {
	for _, c := range []struct {
		name   string
		result lambda.Result
		err    error
		status int
		body   string
	}{
		{"failed", lambda.Result{Failed: true, Payload: []byte(`{"errorMessage":"secret cause"}`)}, nil, 502, "UPSTREAM_GATEWAY"},
		{"not invoked", lambda.Result{}, errors.New("closed"), 502, "UPSTREAM_GATEWAY"},
		{"event too large for Lambda", lambda.Result{}, lambda.ErrTooLarge, 413, "REQUEST_TOO_LARGE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFront(t, func(context.Context) (lambda.Result, error) { return c.result, c.err })
			answer := f.ask(httptest.NewRequest("GET", "/v1/x", nil))
			if got := text(t, answer); answer.StatusCode != c.status || !strings.Contains(got, c.body) || strings.Contains(got, "secret") {
				t.Errorf("status %d, body %q", answer.StatusCode, got)
			}
		})
	}
}

func TestABodyOverTenMegabytesIsRefused(t *testing.T) {
	f := newFront(t, saying(`{}`))
	answer := f.ask(httptest.NewRequest("POST", "/v1/x", bytes.NewReader(make([]byte, maxBody+1))))
	if answer.StatusCode != 413 || f.event != nil {
		t.Errorf("status %d, invoked: %v", answer.StatusCode, f.event != nil)
	}
}

func TestTheGatewayWaits29SecondsAndTheFunctionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finished := false
		f := newFront(t, func(context.Context) (lambda.Result, error) {
			<-time.After(40 * time.Second)
			finished = true
			return lambda.Result{Payload: []byte(`{}`)}, nil
		})
		start := time.Now()
		answer := f.ask(httptest.NewRequest("GET", "/v1/x", nil))
		if waited := time.Since(start); answer.StatusCode != 504 || waited != 29*time.Second {
			t.Errorf("status %d after %v", answer.StatusCode, waited)
		}
		if got := text(t, answer); got != `{"message":"Endpoint request timed out"}` {
			t.Errorf("body %q", got)
		}
		<-time.After(time.Minute)
		if !finished {
			t.Error("the function was stopped")
		}
	})
}
