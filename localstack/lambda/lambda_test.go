package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var bootstrap string // path of the test function's binary

func TestMain(m *testing.M) {
	if path := os.Getenv("TEST_ORPHAN_OF"); path != "" {
		becomeParent(path)
		return
	}
	dir, err := os.MkdirTemp("", "bootstrap")
	if err != nil {
		panic(err)
	}
	bootstrap = filepath.Join(dir, "bootstrap")
	build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "./testdata/bootstrap")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the test function: %v\n%s", err, out))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

type answer struct {
	PID       int               `json:"pid"`
	Served    int               `json:"served"`
	RequestID string            `json:"request_id"`
	ARN       string            `json:"arn"`
	Deadline  int64             `json:"deadline"`
	Env       map[string]string `json:"env"`
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) { b.mu.Lock(); defer b.mu.Unlock(); return b.b.Write(p) }
func (b *buffer) String() string              { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

func newBroker(t *testing.T, f Function) (*Broker, *buffer) {
	t.Helper()
	out := &buffer{}
	f.LogicalID, f.Name, f.ARN, f.Bootstrap = "Echo", "door-Echo", "arn:aws:lambda:us-east-1:000000000000:function:door-Echo", bootstrap
	if f.Timeout == 0 {
		f.Timeout = time.Minute
	}
	b := New(Config{Region: "us-east-1", AccessKey: "key", SecretKey: "secret", Endpoint: "http://127.0.0.1:4566", Log: out}, f)
	t.Cleanup(func() { b.Close() })
	return b, out
}

func invoke(t *testing.T, b *Broker, do, text string) Result {
	t.Helper()
	payload, err := json.Marshal(map[string]string{"do": do, "text": text})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Invoke(t.Context(), "Echo", payload)
	if err != nil {
		t.Fatalf("invoke %s: %v", do, err)
	}
	return r
}

func ok(t *testing.T, r Result) (a answer) {
	t.Helper()
	if r.Failed || r.Died {
		t.Fatalf("failed: %s", r.Payload)
	}
	if err := json.Unmarshal(r.Payload, &a); err != nil {
		t.Fatalf("answer %s: %v", r.Payload, err)
	}
	return a
}

func failure(t *testing.T, r Result) (kind, message string) {
	t.Helper()
	var e struct{ ErrorType, ErrorMessage string }
	if err := json.Unmarshal(r.Payload, &e); err != nil || !r.Failed {
		t.Fatalf("failed = %v, payload %s: %v", r.Failed, r.Payload, err)
	}
	return e.ErrorType, e.ErrorMessage
}

func TestAProcessStaysWarmAndSeesWhatLambdaSets(t *testing.T) {
	t.Setenv("SECRET_OF_THE_STACK", "x")
	b, _ := newBroker(t, Function{MemoryMB: 512, LogFormat: "JSON", Env: map[string]string{"TABLE": "things"}})
	before := time.Now()
	first := invoke(t, b, "ok", "")
	one := ok(t, first)
	two := ok(t, invoke(t, b, "ok", ""))
	if one.PID != two.PID || two.Served != 2 {
		t.Errorf("processes %d and %d, served %d: want one warm process", one.PID, two.PID, two.Served)
	}
	if one.RequestID != first.RequestID || one.ARN != "arn:aws:lambda:us-east-1:000000000000:function:door-Echo" {
		t.Errorf("request id %q (want %q), arn %q", one.RequestID, first.RequestID, one.ARN)
	}
	if low := before.Add(time.Minute).UnixMilli(); one.Deadline < low || one.Deadline > low+30_000 {
		t.Errorf("deadline %d, want about %d", one.Deadline, low)
	}
	for name, want := range map[string]string{
		"AWS_LAMBDA_FUNCTION_NAME": "door-Echo", "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
		"AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/door-Echo", "AWS_LAMBDA_LOG_FORMAT": "JSON", "LAMBDA_TASK_ROOT": filepath.Dir(bootstrap),
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
		"AWS_SDK_UA_APP_ID": "Echo-1", "TABLE": "things", "SECRET_OF_THE_STACK": "", "HOME": "",
	} {
		if one.Env[name] != want {
			t.Errorf("%s = %q, want %q", name, one.Env[name], want)
		}
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name, do, text      string
		fn                  Function
		kind, message, logs string
		died, fresh         bool // the result says that the process died; the next invocation has another one
	}{
		{name: "an error is an answer", do: "error", text: "table is gone", kind: "errorString", message: "table is gone"},
		{name: "a panic ends the process", do: "panic", text: "index", kind: "string", message: "index", fresh: true},
		{name: "exit", do: "exit", kind: "Runtime.ExitError", message: "Runtime exited with error: exit status 3", died: true, fresh: true},
		{name: "time-out", do: "hang", fn: Function{Timeout: 300 * time.Millisecond}, kind: "Sandbox.Timedout", message: "Task timed out after 0.30 seconds", logs: "Echo-1 | hanging\n", died: true, fresh: true},
		{name: "answer too large", do: "big", kind: "Function.ResponseSizeTooLarge", message: "6291556", fresh: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, out := newBroker(t, c.fn)
			first := ok(t, invoke(t, b, "ok", ""))
			r := invoke(t, b, c.do, c.text)
			kind, message := failure(t, r)
			if kind != c.kind || !strings.Contains(message, c.message) || r.Died != c.died {
				t.Errorf("type %q, message %q, died %v", kind, message, r.Died)
			}
			after := ok(t, invoke(t, b, "ok", ""))
			if (after.PID != first.PID) != c.fresh {
				t.Errorf("process %d, then %d: want a fresh one: %v", first.PID, after.PID, c.fresh)
			}
			if !strings.Contains(out.String(), c.logs) {
				t.Errorf("log %q has no %q", out.String(), c.logs)
			}
		})
	}
}

func TestAFunctionThatCannotStartFailsItsInvocation(t *testing.T) {
	b, out := newBroker(t, Function{Env: map[string]string{"FAIL_INIT": "1"}})
	r := invoke(t, b, "ok", "")
	if kind, message := failure(t, r); kind != "Runtime.ExitError" || !strings.Contains(message, "exit status 4") || !r.Died {
		t.Errorf("type %q, message %q, died %v", kind, message, r.Died)
	}
	if out.String() != "Echo-1 | no table configured\n" {
		t.Errorf("log %q", out.String())
	}
	missing := New(Config{}, Function{LogicalID: "Echo", Bootstrap: filepath.Join(t.TempDir(), "bootstrap"), Timeout: time.Second})
	t.Cleanup(func() { missing.Close() })
	if kind, message := failure(t, invoke(t, missing, "ok", "")); kind != "Runtime.InvalidEntrypoint" || !strings.Contains(message, "no such file") {
		t.Errorf("type %q, message %q", kind, message)
	}
}

func TestInvocationsRunInParallelUpToTheBound(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer s.Close()
	b, _ := newBroker(t, Function{MaxEnvironments: 2})
	pids := make(chan int)
	for range 3 {
		go func() { pids <- ok(t, invoke(t, b, "get", s.URL)).PID }()
	}
	<-arrived
	<-arrived
	select {
	case <-arrived:
		t.Fatal("three invocations at once, the bound is two")
	default:
	}
	if n := len(b.Processes()); n != 2 {
		t.Errorf("%d processes, want 2", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Invoke(ctx, "Echo", []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Errorf("an invocation without a free process and with a canceled context: %v", err)
	}
	close(release)
	<-arrived
	different := map[int]bool{<-pids: true, <-pids: true, <-pids: true}
	if len(different) != 2 {
		t.Errorf("%d processes served three invocations, want 2", len(different))
	}
}

func TestKillEndsTheProcessUnderWay(t *testing.T) {
	arrived := make(chan struct{}, 2)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done() // the process is gone
	}))
	defer s.Close()
	b, _ := newBroker(t, Function{})
	results := make(chan Result)
	go func() { results <- invoke(t, b, "get", s.URL) }()
	<-arrived
	if b.Kill("Echo-7") || !b.Kill("Echo-1") {
		t.Error("Kill must tell whether there was a process: Echo-7 no, Echo-1 yes")
	}
	r := <-results
	if kind, message := failure(t, r); kind != "Runtime.ExitError" || !strings.Contains(message, "signal: killed") || !r.Died {
		t.Errorf("type %q, message %q, died %v", kind, message, r.Died)
	}
	if got := ok(t, invoke(t, b, "ok", "")); got.Env["AWS_SDK_UA_APP_ID"] != "Echo-2" {
		t.Errorf("next process is %s, want Echo-2", got.Env["AWS_SDK_UA_APP_ID"])
	}
}

func TestAnIdleProcessThatWasKilledIsNotUsed(t *testing.T) {
	b, _ := newBroker(t, Function{})
	first := ok(t, invoke(t, b, "ok", ""))
	for len(b.pools["Echo"].slots) > 0 { // until it has asked for more work
		time.Sleep(time.Millisecond)
	}
	b.Kill("Echo-1")
	if second := ok(t, invoke(t, b, "ok", "")); second.PID == first.PID {
		t.Error("the killed process answered")
	}
}

func TestOutputIsPrefixedLineByLine(t *testing.T) {
	b, out := newBroker(t, Function{})
	ok(t, invoke(t, b, "print", "one\ntwo"))
	b.Close()
	if want := "Echo-1 | one\nEcho-1 | two\nEcho-1 | no endterminated\n"; out.String() != want {
		t.Errorf("log %q, want %q", out.String(), want)
	}
}

func TestWhatIsRefused(t *testing.T) {
	b, _ := newBroker(t, Function{})
	if _, err := b.Invoke(t.Context(), "Echo", make([]byte, MaxPayload+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := b.Invoke(t.Context(), "Nobody", nil); err == nil {
		t.Error("an unknown function was invoked")
	}
	b.Close()
	if _, err := b.Invoke(t.Context(), "Echo", []byte("{}")); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestCloseEndsWhatRuns(t *testing.T) {
	arrived := make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	b, out := newBroker(t, Function{})
	results := make(chan Result)
	go func() { results <- invoke(t, b, "get", s.URL) }()
	<-arrived
	b.Close()
	if out.String() != "Echo-1 | terminated\n" {
		t.Errorf("log %q: want the function's last word after SIGTERM, and nothing of the runtime", out.String())
	}
	if r := <-results; !r.Died {
		t.Errorf("the invocation did not see the end: %s", r.Payload)
	}
	if left := b.Processes(); len(left) != 0 {
		t.Errorf("processes left: %v", left)
	}
}

// becomeParent is the program TestNoProcessOutlivesTheStack kills: it has one idle function process.
func becomeParent(path string) {
	b := New(Config{}, Function{LogicalID: "Echo", Bootstrap: path, Timeout: time.Minute})
	r, err := b.Invoke(context.Background(), "Echo", []byte("{}"))
	var a answer
	if err != nil || json.Unmarshal(r.Payload, &a) != nil {
		panic(fmt.Sprint(err, string(r.Payload)))
	}
	fmt.Println(a.PID)
	select {}
}

func TestNoProcessOutlivesTheStack(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "TEST_ORPHAN_OF="+bootstrap)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanln(out, &pid); err != nil {
		t.Fatalf("read the pid: %v", err)
	}
	if syscall.Kill(pid, 0) != nil {
		t.Fatal("the function does not run")
	}
	parent.Process.Kill()
	parent.Wait()
	for deadline := time.Now().Add(10 * time.Second); runs(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the function outlived the stack by 10 s")
		}
	}
}

// runs tells whether a process runs: one that nobody reaps is gone as well.
func runs(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(status, []byte(") Z "))
}
