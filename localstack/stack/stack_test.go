package stack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"pintu/localstack/faults"
)

var root string // of a small system: template.yaml and build/

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "stack")
	if err == nil {
		err = buildSystem(dir)
	}
	if err != nil {
		panic(err)
	}
	root = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}),
		// The object store's HTTP library: one never ends, the other sleeps ten seconds between looks.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

func buildSystem(dir string) error {
	text, err := os.ReadFile("testdata/template.yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "template.yaml"), text, 0o600); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(dir, "build", "Front", "bootstrap"), "./testdata/bootstrap")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the test function: %w\n%s", err, out)
	}
	for _, f := range []string{"Worker", "Ticker"} {
		if err := os.Symlink("Front", filepath.Join(dir, "build", f)); err != nil {
			return err
		}
	}
	return nil
}

type system struct {
	*Stack
	t   *testing.T
	log *bytes.Buffer
}

func start(t *testing.T, c Config) *system {
	t.Helper()
	c.Root = root
	s := &system{t: t, log: &bytes.Buffer{}}
	c.Log = s.log
	stack, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.Stack = stack
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", s.log)
		}
	})
	return s
}

// submit asks for work over HTTP.
func (s *system) submit(name string) {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Post(s.URL()+"/v1/work/"+name, "application/json", strings.NewReader("{}"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	if body, err := io.ReadAll(r.Body); err != nil || r.StatusCode != 202 {
		s.t.Fatalf("POST /v1/work/%s: %s %s %v", name, r.Status, body, err)
	}
}

// counted waits until a name has been counted n times and nothing is left to do, and gives who counted last.
func (s *system) counted(name string, n int) (by string) {
	s.t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	cfg := s.Client()
	cfg.HTTPClient = &http.Client{Transport: transport}
	db := dynamodb.NewFromConfig(cfg)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		out, err := db.GetItem(s.t.Context(), &dynamodb.GetItemInput{TableName: aws.String("pintu-Things"), ConsistentRead: aws.Bool(true),
			Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: name}}})
		if err != nil {
			s.t.Fatal(err)
		}
		got := "0"
		if v, ok := out.Item["n"].(*types.AttributeValueMemberN); ok {
			got = v.Value
		}
		if got == fmt.Sprint(n) && len(s.SQS().Peek("pintu-Jobs")) == 0 {
			if v, ok := out.Item["by"].(*types.AttributeValueMemberS); ok {
				by = v.Value
			}
			return by
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s was counted %s times, want %d; messages left: %+v", name, got, n, s.SQS().Peek("pintu-Jobs"))
		}
	}
}

func TestARequestRunsThroughTheWholeSystem(t *testing.T) {
	s := start(t, Config{})
	s.submit("a")
	if by := s.counted("a", 1); by != "Worker-1" {
		t.Errorf("counted by %q, want Worker-1", by)
	}
	if n := s.Faults().Count(faults.Rule{Service: faults.DynamoDB, Operation: "UpdateItem", Caller: "Worker"}); n != 1 {
		t.Errorf("the injector saw %d updates of the worker, want 1", n)
	}
	if n := s.Faults().Count(faults.Rule{Service: faults.SQS, Operation: "SendMessage", Caller: "Front"}); n != 1 {
		t.Errorf("the injector saw %d sends of the front, want 1", n)
	}
	if env := s.Env("Worker"); env["STAGE"] != "dev" || env["QUEUE"] != s.AWSEndpoint()+"/000000000000/pintu-Jobs" {
		t.Errorf("environment %v", env)
	}
}

func TestAFunctionIsKilledAtANamedPoint(t *testing.T) {
	for name, c := range map[string]struct {
		action faults.Action
		n      int // the count in the end: a call that was executed before the kill counts
	}{"before the write": {faults.KillBefore, 1}, "after the write": {faults.KillAfter, 2}} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{RedeliverAtOnce: true})
			rule := s.Faults().Add(faults.Rule{Caller: "Worker", Operation: "UpdateItem", N: 1, Action: c.action})
			s.submit("a")
			if by := s.counted("a", c.n); by != "Worker-2" || rule.Hits() != 1 {
				t.Errorf("counted by %q after %d kills, want Worker-2 after 1", by, rule.Hits())
			}
			s.Close()
			if !strings.Contains(s.log.String(), "signal: killed") {
				t.Error("the log does not tell of the kill")
			}
		})
	}
}

func TestMessagesOfAKilledFunctionComeBackWhenTheClockIsMoved(t *testing.T) {
	s := start(t, Config{})
	rule := s.Faults().Add(faults.Rule{Caller: "Worker", Operation: "UpdateItem", N: 1, Action: faults.KillBefore})
	s.submit("a")
	<-rule.Reached()
	s.Clock().Advance(3 * time.Minute)
	s.counted("a", 1)
}

func TestALostReplyIsRepeatedByTheSDK(t *testing.T) {
	s := start(t, Config{})
	s.Faults().Add(faults.Rule{Caller: "Worker", Operation: "UpdateItem", N: 1, Action: faults.LoseReply})
	s.submit("a")
	s.counted("a", 2)
}

func TestSchedules(t *testing.T) {
	s := start(t, Config{Schedules: true})
	s.counted("tick", 1)
	s.Clock().Advance(time.Minute)
	s.counted("tick", 2)
	if err := s.FireSchedules(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.counted("tick", 3)
}

func TestStateIsKept(t *testing.T) {
	dir := t.TempDir()
	one := start(t, Config{Data: dir})
	one.submit("a")
	one.counted("a", 1)
	version := one.put("k", "kept")
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	two := start(t, Config{Data: dir})
	two.counted("a", 1)
	two.submit("a")
	two.counted("a", 2)
	if got := two.get("k", version); got != "kept" {
		t.Errorf("object %q after the restart", got)
	}
}

// objects is an S3 client of the endpoint, and what must be closed after.
func (s *system) objects() (*s3.Client, *http.Transport) {
	transport := &http.Transport{}
	cfg := s.Client()
	cfg.HTTPClient = &http.Client{Transport: transport}
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }), transport
}

func (s *system) put(key, text string) (version string) {
	s.t.Helper()
	c, transport := s.objects()
	defer transport.CloseIdleConnections()
	out, err := c.PutObject(s.t.Context(), &s3.PutObjectInput{Bucket: aws.String("pintu-files"), Key: &key, Body: strings.NewReader(text)})
	if err != nil {
		s.t.Fatal(err)
	}
	return aws.ToString(out.VersionId)
}

func (s *system) get(key, version string) string {
	s.t.Helper()
	c, transport := s.objects()
	defer transport.CloseIdleConnections()
	out, err := c.GetObject(s.t.Context(), &s3.GetObjectInput{Bucket: aws.String("pintu-files"), Key: &key, VersionId: &version})
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// Reported: a second stack on the same directory came up and wrote into the journals of the first.
func TestADirectoryBelongsToOneStack(t *testing.T) {
	dir := t.TempDir()
	held := &Stack{}
	if err := held.lock(dir); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Config{Root: root, Data: dir})
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "another stack is running on "+dir) {
		t.Errorf("started beside another stack: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, Config{Data: dir})
}

func TestObjectsAreReachedThroughTheOneEndpoint(t *testing.T) {
	s := start(t, Config{})
	first, second := s.put("k", "one"), s.put("k", strings.Repeat("two", 2<<20))
	if first == second || first == "" {
		t.Errorf("versions %q and %q, want two", first, second)
	}
	if got := s.get("k", first); got != "one" {
		t.Errorf("first version %q", got)
	}
	if n := s.Faults().Count(faults.Rule{Service: faults.S3, Operation: "PutObject"}); n != 2 {
		t.Errorf("the injector saw %d puts, want 2", n)
	}
	c, transport := s.objects()
	defer transport.CloseIdleConnections()
	presigned, err := s3.NewPresignClient(c).PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("pintu-files"), Key: aws.String("up"), IfNoneMatch: aws.String("*")})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{200, 412, 403} {
		url := presigned.URL
		if i == 2 {
			url = strings.Replace(url, "/up?", "/other?", 1)
		}
		r, err := http.NewRequest("PUT", url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = presigned.SignedHeader
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("presigned PUT number %d: %s, want %d", i+1, answer.Status, want)
		}
	}
}

func TestWhyAStackDoesNotStart(t *testing.T) {
	empty := t.TempDir()
	unbuilt := t.TempDir()
	text, err := os.ReadFile("testdata/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(unbuilt, "template.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		cfg        Config
	}{
		{"no template", "template.yaml: no such file", Config{Root: empty}},
		{"not built", "Front is not built (make build)", Config{Root: unbuilt}},
		{"sick", `GET /v1/health answered 503 Service Unavailable: "sick"`, Config{Root: root, Env: map[string]map[string]string{"Front": {"SICK": "1"}}}},
		{"unknown parameter", "no parameter Nonsense", Config{Root: root, Parameters: map[string]string{"Nonsense": "1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Start(t.Context(), c.cfg)
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestCloseLeavesNoProcessAndNoListener(t *testing.T) {
	s := start(t, Config{})
	s.submit("a")
	s.counted("a", 1)
	if len(s.Processes()) == 0 {
		t.Fatal("no process runs")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := s.Processes(); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if r, err := client.Get(s.URL() + "/v1/health"); err == nil {
		r.Body.Close()
		t.Error("the api still answers")
	}
}
