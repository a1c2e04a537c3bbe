package contract

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	jsonType = "application/json; charset=utf-8"
	health   = `{"status":"ok"}`
	notFound = `{"error":{"code":"NOT_FOUND","message":"no","retryable":false,"details":{},"request_id":"r"}}`
)

// exchange is one request and its answer, as a test describes them.
type exchange struct {
	method, path, body string
	status             int
	header             map[string]string // of the answer; X-Request-Id and Content-Type are there unless ""
	answer             string
}

func (e exchange) check(t *testing.T) error {
	t.Helper()
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(e.method, e.path, strings.NewReader(e.body))
	req.Header.Set("Content-Type", "application/json")
	return v.Check(req, []byte(e.body), e.response())
}

func (e exchange) response() *http.Response {
	h := http.Header{}
	h.Set("X-Request-Id", "req-1")
	h.Set("Content-Type", jsonType)
	for name, value := range e.header {
		h.Set(name, value)
		if value == "" {
			h.Del(name)
		}
	}
	return &http.Response{StatusCode: e.status, Header: h, Body: io.NopCloser(strings.NewReader(e.answer))}
}

// TestValidator shows that each kind of difference is seen: a validator that lets one pass would make every
// contract test weaker without a sign.
func TestValidator(t *testing.T) {
	id := "job_01KYZ0D4M0Q8X6V5T4S3R2Q1P0"
	etag := map[string]string{"ETag": `"0a"`, "Content-Type": ""}
	for _, c := range []struct {
		name string
		e    exchange
		want string // "" when the exchange is as promised
	}{
		{"as promised", exchange{"GET", "/v1/health", "", 200, nil, health}, ""},
		{"field too many", exchange{"GET", "/v1/health", "", 200, nil, `{"status":"ok","version":1}`}, "additional properties 'version' not allowed"},
		{"wrong value", exchange{"GET", "/v1/health", "", 200, nil, `{"status":"up"}`}, "doesn't match schema"},
		{"not JSON", exchange{"GET", "/v1/health", "", 200, nil, `ok`}, "decode"},
		{"media type", exchange{"GET", "/v1/health", "", 200, map[string]string{"Content-Type": "text/html"}, health}, "content type"},
		{"status", exchange{"GET", "/v1/health", "", 204, nil, ""}, "no such status"},
		{"header missing", exchange{"GET", "/v1/health", "", 200, map[string]string{"X-Request-Id": ""}, health}, "header X-Request-Id is missing"},
		{"header not promised", exchange{"GET", "/v1/health", "", 200, map[string]string{"ETag": `"0a"`}, health}, "header Etag is not in the document"},
		{"header's form", exchange{"GET", "/v1/health", "", 200, map[string]string{"X-Request-Id": "a b"}, health}, "X-Request-Id"},
		{"unknown parameter taken", exchange{"GET", "/v1/health?x=1", "", 200, nil, health}, "query parameter x"},
		{"body taken", exchange{"GET", "/v1/health", "{}", 200, nil, health}, "takes no body"},
		{"bad parameter taken", exchange{"GET", "/v1/jobs/" + id + "?wait=26s", "", 304, etag, ""}, "wait"},
		{"not modified", exchange{"GET", "/v1/jobs/" + id, "", 304, etag, ""}, ""},
		{"not modified without ETag", exchange{"GET", "/v1/jobs/" + id, "", 304, nil, ""}, "header ETag is missing"},
		{"not modified with a body", exchange{"GET", "/v1/jobs/" + id, "", 304, etag, "{}"}, "body where there must be none"},
		{"another code", exchange{"GET", "/v1/jobs/" + id, "", 404, nil, notFound}, "/error/code"},
		{"unknown address", exchange{"GET", "/v1/none", "", 404, nil, notFound}, ""},
		{"unknown address taken", exchange{"GET", "/v1/none", "", 200, nil, health}, "must be 404"},
		{"unknown method", exchange{"POST", "/v1/health", "", 405, map[string]string{"Allow": "GET"}, strings.Replace(notFound, "NOT_FOUND", "METHOD_NOT_ALLOWED", 1)}, ""},
		{"no Allow", exchange{"POST", "/v1/health", "", 405, nil, strings.Replace(notFound, "NOT_FOUND", "METHOD_NOT_ALLOWED", 1)}, "header Allow is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.e.check(t)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTransport(t *testing.T) {
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var reported []error
	var sent string
	client := &http.Client{Transport: &Transport{BaseURL: "http://api.test/dev/", Validator: v, Report: func(err error) { reported = append(reported, err) },
		Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			sent = string(body)
			return exchange{status: 404, answer: notFound}.response(), err
		})}}
	for address, want := range map[string]int{"http://api.test/dev/v1/none": 0, "http://api.test/dev/v1/jobs": 1, "http://bucket.test/v1/jobs": 0} {
		reported = nil
		res, err := client.Post(address, "application/json", strings.NewReader(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		if len(reported) != want || sent != `{"a":1}` || string(answer) != notFound || err != nil {
			t.Errorf("%s: reported %v, sent %s, got %s, %v", address, reported, sent, answer, err)
		}
	}
}
