package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

// script answers requests one after the other and notes what came.
type script struct {
	mu      sync.Mutex
	answers []func(http.ResponseWriter, *http.Request)
	got     []string
	at      []time.Duration
	began   time.Time
}

// RoundTrip serves without a network, so that time can be that of a synctest bubble.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.at = append(s.at, time.Since(s.began))
	line := r.Method + " " + r.URL.RequestURI()
	for _, name := range []string{"Idempotency-Key", "If-None-Match", "Range"} {
		if v := r.Header.Get(name); v != "" {
			line += " " + name + "=" + v
		}
	}
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
		if len(b) > 0 {
			line += " " + string(b)
		}
	}
	s.got = append(s.got, line)
	if len(s.answers) == 0 {
		s.mu.Unlock()
		return nil, errors.New("the script is over")
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	s.mu.Unlock()
	if next == nil {
		return nil, io.ErrUnexpectedEOF
	}
	w := httptest.NewRecorder()
	next(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// lost is an answer that never comes back.
var lost func(http.ResponseWriter, *http.Request)

func reply(status int, body string, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func refuse(status int, code fault.Code, retryable bool, header ...string) func(http.ResponseWriter, *http.Request) {
	return reply(status, fmt.Sprintf(`{"error":{"code":%q,"message":"because","retryable":%v,"details":{},"request_id":"req_1"}}`, code, retryable), header...)
}

func jobJSON(status Status) string {
	return fmt.Sprintf(`{"job_id":"job_1","kind":"import","status":%q,"finished_at":null,"progress":{"stage":null},"error":null,"result":null}`, status)
}

func newClient(t *testing.T, answers ...func(http.ResponseWriter, *http.Request)) (*Client, *script) {
	t.Helper()
	s := &script{answers: answers}
	c, err := New(Config{BaseURL: "http://api.test/prod/", Token: "pintu_x_y", HTTP: &http.Client{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func (s *script) check(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.got); diff != "" {
		t.Errorf("requests: %s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]Config{
		"no URL":          {Token: "t"},
		"no host":         {BaseURL: "http://", Token: "t"},
		"another scheme":  {BaseURL: "ftp://host", Token: "t"},
		"query":           {BaseURL: "http://host/?a=b", Token: "t"},
		"no token":        {BaseURL: "http://host"},
		"line end in it":  {BaseURL: "http://host", Token: "t\n"},
		"two words in it": {BaseURL: "http://host", Token: "Bearer t"},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What is retryable is sent again, with the same key and body; anything else is not.
func TestCallsAreRepeated(t *testing.T) {
	ok := reply(202, jobJSON(Canceled))
	tests := []struct {
		name    string
		answers []func(http.ResponseWriter, *http.Request)
		tries   int
		want    fault.Code // "": success
	}{
		{"at once", []func(http.ResponseWriter, *http.Request){ok}, 1, ""},
		{"after a lost answer", []func(http.ResponseWriter, *http.Request){lost, lost, ok}, 3, ""},
		{"after a retryable refusal", []func(http.ResponseWriter, *http.Request){refuse(503, fault.DependencyUnavailable, true), ok}, 2, ""},
		{"after a gateway's own answer", []func(http.ResponseWriter, *http.Request){reply(502, "<html>"), reply(504, ""), ok}, 3, ""},
		{"not after a final refusal", []func(http.ResponseWriter, *http.Request){refuse(409, fault.InvalidJobState, false), ok}, 1, fault.InvalidJobState},
		{"retryable is the API's word", []func(http.ResponseWriter, *http.Request){refuse(500, fault.Internal, false), ok}, 1, fault.Internal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newClient(t, tt.answers...)
				j, err := c.Cancel(t.Context(), "job_1", "k1")
				if tt.want == "" && (err != nil || j.Status != Canceled || string(j.Raw) != jobJSON(Canceled)) {
					t.Errorf("Cancel = %+v, %v", j, err)
				}
				if tt.want != "" && !Is(err, tt.want) {
					t.Errorf("error %v", err)
				}
				var want []string
				for range tt.tries {
					want = append(want, "POST /prod/v1/jobs/job_1/cancel Idempotency-Key=k1 {}")
				}
				s.check(t, want...)
			})
		})
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, refuse(429, fault.RateLimited, true, "Retry-After", "17"), refuse(503, fault.DependencyUnavailable, true, "Retry-After", "3"), reply(200, jobJSON(Queued)))
		if _, err := c.Job(t.Context(), "job_1"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]time.Duration{0, 17 * time.Second, 20 * time.Second}, s.at); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRepeatingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t)
		for range 1000 {
			s.answers = append(s.answers, refuse(503, fault.DependencyUnavailable, true))
		}
		began := time.Now()
		_, err := c.Job(t.Context(), "job_1")
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.RequestID != "req_1" || refusal.Status != 503 {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > defaultRetryFor || took < defaultRetryFor-2*longestWait || len(s.got) > 20 {
			t.Errorf("%d tries in %v", len(s.got), took)
		}
	})
}

func TestACanceledContextEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t, refuse(503, fault.DependencyUnavailable, true, "Retry-After", "60"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Job(ctx, "job_1")
		if !errors.Is(err, context.DeadlineExceeded) || !Is(err, fault.DependencyUnavailable) {
			t.Errorf("error %v: it should say that time was over and what the last try came to", err)
		}
	})
}

func TestATryThatHangsIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		c, s := newClient(t, hang, reply(200, jobJSON(Queued)))
		if _, err := c.Job(t.Context(), "job_1"); err != nil || len(s.got) != 2 {
			t.Errorf("%d tries, %v", len(s.got), err)
		}
	})
}

func TestErrorsShowNoURL(t *testing.T) {
	secret := "https://bucket.test/key?X-Amz-Signature=secret"
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t, reply(400, "<Error><Code>BadDigest</Code><Message>"+secret+"</Message></Error>"))
		err := c.Upload(t.Context(), Upload{Method: "PUT", URL: secret}, strings.NewReader("x"), 1, nil)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "BadDigest") {
			t.Errorf("refused: %v", err)
		}
		err = c.Upload(t.Context(), Upload{Method: "PUT", URL: secret}, strings.NewReader("x"), 1, nil)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("broken: %v", err)
		}
		err = c.Upload(t.Context(), Upload{Method: "PUT", URL: "https://%zz/" + "secret"}, strings.NewReader("x"), 1, nil)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("malformed: %v", err)
		}
	})
}

const (
	submitted = `{"job_id":"job_1","status":"uploading","upload":{"method":"PUT","url":"http://s3.test/a?sig=1","headers":{"Content-Length":"5","Content-Type":"text/csv","If-None-Match":"*"},"expires_at":"2026-07-27T10:30:00Z"}}`
	renewed   = `{"upload":{"method":"PUT","url":"http://s3.test/a?sig=2","headers":{"Content-Type":"text/csv"},"expires_at":"2026-07-27T10:45:00Z"}}`

	postJob      = `POST /prod/v1/import-jobs Idempotency-Key=k1 {"dataset":"orders","file":{"name":"o.csv","size_bytes":5}}`
	putFile      = `PUT /a?sig=1 If-None-Match=* a,b` + "\n1"
	postComplete = `POST /prod/v1/import-jobs/job_1/complete Idempotency-Key=complete-job_1 {}`
	postRenew    = `POST /prod/v1/import-jobs/job_1/upload-url {}`
)

func TestImport(t *testing.T) {
	type answers = []func(http.ResponseWriter, *http.Request)
	queued := reply(202, jobJSON(Queued))
	tests := []struct {
		name    string
		answers answers
		want    []string
		status  Status
	}{
		{"straight", answers{reply(202, submitted), reply(200, ""), queued},
			[]string{postJob, putFile, postComplete}, Queued},
		{"submitted earlier and further on", answers{reply(202, strings.Replace(jobJSON(Partial), "{", `{"upload":null,`, 1), "Idempotency-Replayed", "true")},
			[]string{postJob}, Partial},
		{"broken upload", answers{reply(202, submitted), lost, reply(503, "<Error><Code>SlowDown</Code></Error>"), reply(200, ""), queued},
			[]string{postJob, putFile, putFile, putFile, postComplete}, Queued},
		{"the object is there already", answers{reply(202, submitted), reply(412, "<Error><Code>PreconditionFailed</Code></Error>"), queued},
			[]string{postJob, putFile, postComplete}, Queued},
		{"expired request", answers{reply(202, submitted), reply(403, "<Error><Code>AccessDenied</Code></Error>"), reply(200, renewed), reply(200, ""), queued},
			[]string{postJob, putFile, postRenew, "PUT /a?sig=2 a,b\n1", postComplete}, Queued},
		{"completed by sweep meanwhile", answers{reply(202, submitted), reply(200, ""), refuse(409, fault.InvalidJobState, false), reply(200, jobJSON(Running))},
			[]string{postJob, putFile, postComplete, "GET /prod/v1/jobs/job_1"}, Running},
		{"no longer waiting when the request expired", answers{reply(202, submitted), reply(403, ""), refuse(409, fault.InvalidJobState, false), queued},
			[]string{postJob, putFile, postRenew, postComplete}, Queued},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newClient(t, tt.answers...)
				var sent int64
				got, err := c.Import(t.Context(), ImportSpec{Dataset: "orders", File: File{Name: "o.csv", SizeBytes: 5}}, "k1",
					strings.NewReader("a,b\n1 and more"), func(n int64) { sent = n })
				if err != nil || got.Job.Status != tt.status {
					t.Errorf("Import = %+v, %v", got, err)
				}
				if uploaded := len(tt.want) > 1; uploaded && sent != 5 {
					t.Errorf("sent %d bytes", sent)
				}
				s.check(t, tt.want...)
			})
		})
	}
}

func TestImportEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, reply(202, submitted), reply(200, ""), refuse(409, fault.UploadMismatch, false))
		_, err := c.Import(t.Context(), ImportSpec{File: File{SizeBytes: 5}}, "k1", strings.NewReader("a,b\n1"), nil)
		if !Is(err, fault.UploadMismatch) || len(s.got) != 3 {
			t.Errorf("a mismatch: %v after %d requests", err, len(s.got))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := newClient(t, reply(202, submitted))
		for range 20 {
			s.answers = append(s.answers, reply(403, ""), reply(200, renewed))
		}
		_, err := c.Import(t.Context(), ImportSpec{File: File{SizeBytes: 5}}, "k1", strings.NewReader("a,b\n1"), nil)
		if err == nil || len(s.got) > 1+2*maxGrants {
			t.Errorf("presigned requests that are all refused: %v after %d requests", err, len(s.got))
		}
	})
}

func TestUploadSendsTheHeadersAsListed(t *testing.T) {
	var got *http.Request
	c, _ := newClient(t, func(_ http.ResponseWriter, r *http.Request) { got = r })
	up := Upload{Method: "PUT", URL: "http://s3.test/a", Headers: map[string]string{
		"content-length": "0", "Content-Type": "text/csv", "x-amz-checksum-sha256": "abc=", "If-None-Match": "*"}}
	if err := c.Upload(t.Context(), up, strings.NewReader(""), 0, nil); err != nil {
		t.Fatal(err)
	}
	want := http.Header{"Content-Type": {"text/csv"}, "X-Amz-Checksum-Sha256": {"abc="}, "If-None-Match": {"*"}}
	if diff := cmp.Diff(want, got.Header); diff != "" || got.ContentLength != 0 || got.Body != http.NoBody {
		t.Errorf("length %d, body %v, %s", got.ContentLength, got.Body, diff)
	}
	up.Headers["content-length"] = "7"
	if err := c.Upload(t.Context(), up, strings.NewReader("123"), 3, nil); err == nil || !strings.Contains(err.Error(), "has 3 bytes, 7 were declared") {
		t.Errorf("another length than declared: %v", err)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := func(status int, body string, d time.Duration, header ...string) func(http.ResponseWriter, *http.Request) {
			return func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(d)
				reply(status, body, header...)(w, r)
			}
		}
		c, s := newClient(t,
			held(200, jobJSON(Queued), 0, "ETag", `"1"`, "Retry-After", "2"),
			held(304, "", 20*time.Second, "Retry-After", "2"),                             // held for as long as asked
			held(304, "", 0, "Retry-After", "2"),                                          // would not hold it
			held(200, jobJSON(Running), 5*time.Second, "ETag", `"2"`, "Retry-After", "2"), // changed while it was held
			lost,
			held(200, jobJSON(Succeeded), 0, "ETag", `"3"`),
		)
		var seen []Status
		j, err := c.Wait(t.Context(), "job_1", func(j Job) { seen = append(seen, j.Status) })
		if err != nil || j.Status != Succeeded {
			t.Errorf("Wait = %+v, %v", j, err)
		}
		if diff := cmp.Diff([]Status{Queued, Running, Succeeded}, seen); diff != "" {
			t.Error(diff)
		}
		s.check(t, "GET /prod/v1/jobs/job_1",
			`GET /prod/v1/jobs/job_1?wait=20s If-None-Match="1"`, `GET /prod/v1/jobs/job_1?wait=20s If-None-Match="1"`,
			`GET /prod/v1/jobs/job_1?wait=20s If-None-Match="1"`, `GET /prod/v1/jobs/job_1?wait=20s If-None-Match="2"`,
			`GET /prod/v1/jobs/job_1?wait=20s If-None-Match="2"`)
		want := []time.Duration{0, time.Second, 21 * time.Second, 23 * time.Second, 28 * time.Second}
		if diff := cmp.Diff(want, s.at[:5]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWaitThatIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newClient(t, reply(200, jobJSON(Running), "ETag", `"1"`), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if j, err := c.Wait(ctx, "job_1", nil); !errors.Is(err, context.DeadlineExceeded) || j.Status != Running {
			t.Errorf("Wait = %+v, %v", j, err)
		}
	})
}

func TestArtifact(t *testing.T) {
	content := []byte("_row_number,_code\n3,MISSING_VALUE\n")
	sum := sha256.Sum256(content)
	permission := reply(200, fmt.Sprintf(`{"url":"http://s3.test/r?sig=1","size_bytes":%d,"sha256":%q}`, len(content), hex.EncodeToString(sum[:])))
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:10])
	}
	const ask, get, rest = "GET /prod/v1/jobs/job_1/artifacts/rejected.csv", "GET /r?sig=1", "GET /r?sig=1 Range=bytes=10-"
	type answers = []func(http.ResponseWriter, *http.Request)
	tests := []struct {
		name    string
		answers answers
		want    []string
		fails   bool
	}{
		{"straight", answers{permission, reply(200, string(content))}, []string{ask, get}, false},
		{"taken up where it broke", answers{permission, cut, permission, reply(206, string(content[10:]))}, []string{ask, get, ask, rest}, false},
		{"store busy", answers{permission, reply(503, ""), permission, reply(200, string(content))}, []string{ask, get, ask, get}, false},
		{"another content", answers{permission, reply(200, strings.Repeat("x", len(content)))}, []string{ask, get}, true},
		{"longer", answers{permission, reply(200, string(content)+"x")}, []string{ask, get}, true},
		{"the range was ignored", answers{permission, cut, permission, reply(200, string(content))}, []string{ask, get, ask, rest}, true},
		{"gone", answers{refuse(410, fault.ArtifactExpired, false)}, []string{ask}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newClient(t, tt.answers...)
				var got bytes.Buffer
				err := c.Artifact(t.Context(), "job_1", "rejected.csv", &got)
				if (err != nil) != tt.fails || !tt.fails && !bytes.Equal(got.Bytes(), content) {
					t.Errorf("got %q, %v", got.Bytes(), err)
				}
				s.check(t, tt.want...)
			})
		})
	}
}

func TestArtifactThatCannotBeWritten(t *testing.T) {
	c, s := newClient(t, reply(200, `{"url":"http://s3.test/r","size_bytes":3,"sha256":""}`), reply(200, "abc"))
	r, w := io.Pipe()
	r.CloseWithError(errors.New("disk full"))
	if err := c.Artifact(t.Context(), "job_1", "x", w); err == nil || !strings.Contains(err.Error(), "disk full") || len(s.got) != 2 {
		t.Errorf("%v after %d requests", err, len(s.got))
	}
}

func TestPages(t *testing.T) {
	c, s := newClient(t,
		reply(200, `{"rows":[{"row_number":3,"field":null,"raw":"a"},{"row_number":4,"field":"qty"}],"next_cursor":"c2"}`),
		reply(200, `{"records":[],"next_cursor":null}`),
		reply(200, `{"jobs":[]}`),
	)
	page, err := c.Rows(t.Context(), "job_1", RowFilter{Class: "data"}, "c1", 2)
	if err != nil || len(page.Entries) != 2 || page.NextCursor != "c2" || string(page.Entries[0].Raw) != `{"row_number":3,"field":null,"raw":"a"}` || page.Entries[1].Field != "qty" {
		t.Errorf("rows: %+v, %v", page, err)
	}
	records, err := c.Records(t.Context(), "orders", "", 0)
	if err != nil || len(records.Entries) != 0 || records.NextCursor != "" {
		t.Errorf("records: %+v, %v", records, err)
	}
	if page, err := c.Jobs(t.Context(), JobFilter{Status: Failed, CreatedAfter: time.Unix(0, 0)}, "", 5); err == nil {
		t.Errorf("a page without next_cursor was taken for the end: %+v", page)
	}
	s.check(t, "GET /prod/v1/jobs/job_1/rows?class=data&cursor=c1&limit=2", "GET /prod/v1/datasets/orders/records",
		"GET /prod/v1/jobs?created_after=1970-01-01T00%3A00%3A00Z&limit=5&status=failed")
}

func TestDatasetsAndRecords(t *testing.T) {
	version := `{"name":"orders","version":2,"created_at":"2026-07-27T10:15:30Z","schema":{}}`
	c, s := newClient(t, reply(201, version), reply(200, version), reply(200, version), reply(200, version), reply(200, `{"key":"a/b","values":{"total":1.10},"version":3}`))
	for _, want := range []bool{true, false} {
		if d, created, err := c.PutDataset(t.Context(), "orders", []byte(`{"schema": {}}`), "k"); err != nil || created != want || d.Version != 2 || string(d.Raw) != version {
			t.Errorf("PutDataset = %+v, %v, %v", d, created, err)
		}
	}
	for _, n := range []int{0, 2} {
		if d, err := c.Dataset(t.Context(), "orders", n); err != nil || d.Name != "orders" {
			t.Errorf("Dataset = %+v, %v", d, err)
		}
	}
	if r, err := c.Record(t.Context(), "orders", "a/b"); err != nil || string(r.Values) != `{"total":1.10}` {
		t.Errorf("Record = %+v, %v", r, err)
	}
	if _, _, err := c.PutDataset(t.Context(), "orders", []byte(`{`), "k"); err == nil {
		t.Error("sent a definition that is no JSON")
	}
	s.check(t, `PUT /prod/v1/datasets/orders Idempotency-Key=k {"schema":{}}`, `PUT /prod/v1/datasets/orders Idempotency-Key=k {"schema":{}}`,
		"GET /prod/v1/datasets/orders", "GET /prod/v1/datasets/orders/versions/2", "GET /prod/v1/datasets/orders/records?key=a%2Fb")
}
