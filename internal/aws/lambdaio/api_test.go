package lambdaio

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pintu/internal/logline"
)

func read[T any](t *testing.T, name string) (event T) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &event); err != nil {
		t.Fatal(err)
	}
	return event
}

// sent runs one event through a handler and gives the reply, and the log line if there was one.
func sent(t *testing.T, e events.APIGatewayProxyRequest, h http.HandlerFunc) (events.APIGatewayProxyResponse, map[string]any) {
	t.Helper()
	var log bytes.Buffer
	out, err := API(h, logline.New(&log, time.Now))(t.Context(), e)
	if err != nil {
		t.Fatalf("API returned an error, want it answered: %v", err)
	}
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); log.Len() > 0 && err != nil {
		t.Fatalf("want at most one log line, got %q: %v", &log, err)
	}
	return out, line
}

type seen struct {
	Method, Path, RawPath, Query, URI, Host, Remote, Body string
	Length                                                int64
	Header                                                http.Header
}

func capture(t *testing.T, e events.APIGatewayProxyRequest) seen {
	t.Helper()
	var s seen
	sent(t, e, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s = seen{r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.RequestURI, r.Host, r.RemoteAddr, string(b), r.ContentLength, r.Header}
	})
	return s
}

func TestRequestIsRebuiltFromARealEvent(t *testing.T) {
	got := capture(t, read[events.APIGatewayProxyRequest](t, "api-get.json"))
	want := seen{
		Method: "GET", Path: "/v1/jobs", RawPath: "/v1/jobs",
		Query:  "created_after=2026-07-27T10%3A15%3A30%2B07%3A00&status=running&status=failed",
		URI:    "/v1/jobs?created_after=2026-07-27T10%3A15%3A30%2B07%3A00&status=running&status=failed",
		Host:   "a1b2c3d4e5.execute-api.eu-west-1.example.test",
		Remote: "198.51.100.7:0",
		Header: http.Header{
			"Accept": {"application/json"}, "Accept-Language": {"id", "en"}, "Authorization": {"Bearer pintu_test_secret"},
			"Cloudfront-Forwarded-Proto": {"https"}, "Host": {"a1b2c3d4e5.execute-api.eu-west-1.example.test"},
			"User-Agent": {"curl/8.5.0"}, "X-Amzn-Trace-Id": {"Root=1-68860000-0123456789abcdef01234567"},
			"X-Forwarded-For": {"198.51.100.7, 203.0.113.9"}, "X-Forwarded-Port": {"443"}, "X-Forwarded-Proto": {"https"},
			"X-Request-Id": {"0d9f1a52-3f0b-4c7e-9b33-6d7d3a1f0001"}, // the gateway's, since the client sent none
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBase64BodyAndOwnRequestID(t *testing.T) {
	got := capture(t, read[events.APIGatewayProxyRequest](t, "api-put.json"))
	if want := `{"name":"€"}`; got.Body != want || got.Length != int64(len(want)) {
		t.Errorf("body %q of %d bytes, want %q", got.Body, got.Length, want)
	}
	if got.Remote != "[2001:db8::7]:0" {
		t.Errorf("remote address %q", got.Remote)
	}
	if id := got.Header.Get("X-Request-Id"); id != "client-7" {
		t.Errorf("request id %q, want the client's own", id)
	}
}

func TestPathIsKeptAsSent(t *testing.T) {
	for name, c := range map[string]struct{ resource, path, wantPath, wantRaw string }{
		"plain":                        {"/v1/{proxy+}", "/v1/jobs/job_1", "/v1/jobs/job_1", "/v1/jobs/job_1"},
		"escaped slash in a key":       {"/v1/datasets/{name}/{proxy+}", "/v1/datasets/o/records/a%2Fb", "/v1/datasets/o/records/a/b", "/v1/datasets/o/records/a%2Fb"},
		"escaped letters":              {"/v1/{proxy+}", "/v1/jobs/%C3%A9", "/v1/jobs/é", "/v1/jobs/%C3%A9"},
		"broken escape":                {"/v1/{proxy+}", "/v1/jobs/100%", "/v1/jobs/100%", ""},
		"stage left in":                {"/v1/{proxy+}", "/prod/v1/jobs", "/v1/jobs", "/v1/jobs"},
		"base path of a custom domain": {"/v1/datasets/{name}", "/import/api/v1/datasets/o", "/v1/datasets/o", "/v1/datasets/o"},
		"own path again further down":  {"/v1/{proxy+}", "/v1/jobs/v1/jobs", "/v1/jobs/v1/jobs", "/v1/jobs/v1/jobs"},
		"root resource":                {"/{proxy+}", "/a/b", "/a/b", "/a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := capture(t, events.APIGatewayProxyRequest{HTTPMethod: "GET", Resource: c.resource, Path: c.path})
			if got.Path != c.wantPath || got.RawPath != c.wantRaw {
				t.Errorf("path %q raw %q, want %q raw %q", got.Path, got.RawPath, c.wantPath, c.wantRaw)
			}
		})
	}
}

func TestEscapedSlashStaysInOnePathValue(t *testing.T) {
	mux := http.NewServeMux()
	var key string
	mux.HandleFunc("GET /v1/datasets/{name}/records/{key}", func(_ http.ResponseWriter, r *http.Request) { key = r.PathValue("key") })
	sent(t, events.APIGatewayProxyRequest{HTTPMethod: "GET", Resource: "/v1/{proxy+}", Path: "/v1/datasets/o/records/a%2Fb"}, mux.ServeHTTP)
	if key != "a/b" {
		t.Errorf("key %q, want a/b", key)
	}
}

func TestSingleValueMapsServeWhenTheOthersAreMissing(t *testing.T) {
	got := capture(t, events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/v1/jobs",
		Headers: map[string]string{"accept": "text/html"}, QueryStringParameters: map[string]string{"limit": "5"}})
	if got.Query != "limit=5" || got.Header.Get("Accept") != "text/html" {
		t.Errorf("query %q header %v", got.Query, got.Header)
	}
}

func TestResponse(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		serve  http.HandlerFunc
		want   events.APIGatewayProxyResponse
	}{
		"nothing written is an empty 200": {
			serve: func(http.ResponseWriter, *http.Request) {},
			want:  events.APIGatewayProxyResponse{StatusCode: 200, MultiValueHeaders: map[string][]string{}},
		},
		"several values of a header": {
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Add("Set-Cookie", "a=1")
				w.Header().Add("Set-Cookie", "b=2")
				w.WriteHeader(202)
				io.WriteString(w, `{"é":1}`)
			},
			want: events.APIGatewayProxyResponse{StatusCode: 202, MultiValueHeaders: map[string][]string{"Set-Cookie": {"a=1", "b=2"}}, Body: `{"é":1}`},
		},
		"bytes that are no text": {
			serve: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte{0xff, 0x00}) },
			want:  events.APIGatewayProxyResponse{StatusCode: 200, MultiValueHeaders: map[string][]string{}, Body: "/wA=", IsBase64Encoded: true},
		},
		"headers set after the status do not count": {
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(103)
				w.WriteHeader(304)
				w.WriteHeader(500)
				w.Header().Set("Late", "1")
			},
			want: events.APIGatewayProxyResponse{StatusCode: 304, MultiValueHeaders: map[string][]string{}},
		},
		"HEAD has no body": {
			method: "HEAD",
			serve:  func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "body") },
			want:   events.APIGatewayProxyResponse{StatusCode: 200, MultiValueHeaders: map[string][]string{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			method := c.method
			if method == "" {
				method = "GET"
			}
			got, line := sent(t, events.APIGatewayProxyRequest{HTTPMethod: method, Path: "/v1/x"}, c.serve)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if line != nil {
				t.Errorf("logged %v, want nothing beside the handler's own line", line)
			}
		})
	}
}

func TestFaultsOfOursAnswerInTheContractsShape(t *testing.T) {
	for name, c := range map[string]struct {
		event events.APIGatewayProxyRequest
		serve http.HandlerFunc
		log   string
	}{
		"panic": {
			serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202); panic("boom") },
			log:   "panic: string",
		},
		"answer too large": {
			serve: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat(`"`, 4<<20)) },
			log:   "answer of 4194304 bytes is larger than Lambda can return",
		},
		"broken base64": {
			event: events.APIGatewayProxyRequest{Body: "%%%", IsBase64Encoded: true},
			log:   "read event: body: illegal base64 data at input byte 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.event
			e.HTTPMethod, e.Path, e.Headers = "POST", "/v1/import-jobs", map[string]string{"X-Request-Id": "client-7"}
			got, line := sent(t, e, c.serve)
			want := `{"error":{"code":"INTERNAL","details":{},"message":"Something went wrong on our side. Try again with the same Idempotency-Key.","request_id":"client-7","retryable":true}}`
			if got.StatusCode != 500 || got.Body != want {
				t.Errorf("status %d body %s", got.StatusCode, got.Body)
			}
			if line["error"] != c.log || line["level"] != "ERROR" {
				t.Errorf("logged %v %v, want ERROR %v", line["level"], line["error"], c.log)
			}
		})
	}
}

// A page of 4 MB that is mostly quotes would be 8 MB in the reply: the bound counts what is really sent.
func TestBodyLengthIsThatOfTheReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("\"\\<>&\n\t\b\x00\x1f\u2028\u2029é€😀a")))).Draw(t, "s")
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonLen([]byte(s)) + 2; got != len(b) {
			t.Fatalf("jsonLen+2 = %d, json has %d: %s", got, len(b), b)
		}
	})
}

func TestBodyComesBackAsWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOf(rapid.Byte()).Draw(rt, "body")
		out, _ := sent(t, events.APIGatewayProxyRequest{HTTPMethod: "POST", Path: "/v1/x", IsBase64Encoded: true,
			Body: base64.StdEncoding.EncodeToString(want)},
			func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
		got := []byte(out.Body)
		if out.IsBase64Encoded {
			got, _ = base64.StdEncoding.DecodeString(out.Body)
		}
		if !bytes.Equal(got, want) {
			rt.Fatalf("got %x want %x", got, want)
		}
	})
}
