package faults

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is an injector before a service that answers every call the same and counts it.
type bench struct {
	*Injector
	executed atomic.Int32
	answer   string
	url      string
	killed   []string
	mu       sync.Mutex
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{answer: "{}"}
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the body: %v", err)
		}
		w.Header().Set("X-Echo", string(body))
		b.executed.Add(1)
		io.WriteString(w, b.answer)
	})
	b.Injector = New(service, func(caller string) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.killed = append(b.killed, caller)
		return true
	})
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// call makes a DynamoDB call as a function process would, without retries.
func (b *bench) call(caller, operation, body string) (*http.Response, error) {
	r, err := http.NewRequest("POST", b.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("User-Agent", "aws-sdk-go-v2/1.48.0 ua/2.1 os/linux app/"+caller+" m/E")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err == nil {
		defer answer.Body.Close()
		_, err = io.ReadAll(answer.Body)
	}
	return answer, err
}

func TestWhichCallsARuleFiresAt(t *testing.T) {
	for _, c := range []struct {
		name string
		rule Rule
		want string // one letter per call: . passes, x fails
	}{
		{"every call", Rule{}, "xxxxxx"},
		{"operation", Rule{Operation: "UpdateItem"}, "x.x.x."},
		{"service", Rule{Service: SQS}, "......"},
		{"function", Rule{Caller: "ProcessFunction"}, "xxxx.."},
		{"process", Rule{Caller: "ProcessFunction-1"}, "xx...."},
		{"body", Rule{Match: func(c Call) bool { return strings.Contains(string(c.Body), "four") }}, "...x.."},
		{"third", Rule{N: 3}, "..x..."},
		{"second update", Rule{Operation: "UpdateItem", N: 2}, "..x..."},
		{"first two", Rule{Operation: "PutItem", Times: 2}, ".x.x.."},
		{"at random", Rule{Probability: 0.5, Seed: 3}, "..x.xx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			c.rule.Error = Throttling
			active := b.Add(c.rule)
			got := ""
			for i, body := range []string{"one", "two", "three", "four", "five", "six"} {
				caller := []string{"ProcessFunction-1", "ProcessFunction-11", "PlanFunction-1"}[i/2]
				answer, err := b.call(caller, []string{"UpdateItem", "PutItem"}[i%2], body)
				switch {
				case err != nil:
					t.Fatal(err)
				case answer.StatusCode == 200:
					got += "."
				default:
					got += "x"
				}
			}
			if got != c.want || active.Hits() != strings.Count(c.want, "x") {
				t.Errorf("calls %s with %d hits, want %s", got, active.Hits(), c.want)
			}
			active.Remove()
			if answer, err := b.call("ProcessFunction-1", "UpdateItem", "one"); err != nil || answer.StatusCode != 200 {
				t.Errorf("after Remove: %v, %v", answer, err)
			}
		})
	}
}

func TestActions(t *testing.T) {
	for _, c := range []struct {
		name     string
		action   Action
		executed int32
		lost     bool // no answer comes
		killed   bool
	}{
		{"fail", Fail, 0, false, false},
		{"reset", Reset, 0, true, false},
		{"lose the reply", LoseReply, 1, true, false},
		{"duplicate", Duplicate, 2, false, false},
		{"kill before", KillBefore, 0, true, true},
		{"kill after", KillAfter, 1, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Add(Rule{Action: c.action, Error: InternalServerError})
			_, err := b.call("ProcessFunction-3", "UpdateItem", "{}")
			if (err != nil) != c.lost || (c.lost && !errors.Is(err, syscall.ECONNRESET)) {
				t.Errorf("error %v, want a reset: %v", err, c.lost)
			}
			if n := b.executed.Load(); n != c.executed {
				t.Errorf("executed %d times, want %d", n, c.executed)
			}
			if want := map[bool]int{true: 1}[c.killed]; len(b.killed) != want || (want == 1 && b.killed[0] != "ProcessFunction-3") {
				t.Errorf("killed %v", b.killed)
			}
		})
	}
}

func TestAHeldCallWaitsForItsRelease(t *testing.T) {
	for name, action := range map[string]Action{"before": HoldBefore, "after": HoldAfter} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			held := b.Add(Rule{Action: action, N: 1})
			done := make(chan error)
			go func() {
				_, err := b.call("F-1", "PutItem", "{}")
				done <- err
			}()
			<-held.Reached()
			if _, err := b.call("F-1", "PutItem", "{}"); err != nil { // others pass
				t.Fatal(err)
			}
			select {
			case <-done:
				t.Fatal("the held call was answered")
			default:
			}
			held.Release()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if n := b.executed.Load(); n != 2 {
				t.Errorf("executed %d times, want 2", n)
			}
		})
	}
}

func TestCloseReleasesHeldCalls(t *testing.T) {
	b := newBench(t)
	held := b.Add(Rule{Action: HoldBefore})
	done := make(chan error)
	go func() {
		_, err := b.call("F-1", "PutItem", "{}")
		done <- err
	}()
	<-held.Reached()
	b.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestTheSDKReadsTheErrors checks that injected errors are what the SDK takes them for.
func TestTheSDKReadsTheErrors(t *testing.T) {
	b := newBench(t)
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &b.url, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1,
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	db, queue, objects := dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg), s3.NewFromConfig(cfg)
	update := func(ctx context.Context) error {
		_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: map[string]ddbtypes.AttributeValue{"pk": &ddbtypes.AttributeValueMemberS{Value: "a"}}})
		return err
	}
	transact := func(ctx context.Context) error {
		put := ddbtypes.TransactWriteItem{Put: &ddbtypes.Put{TableName: aws.String("t"), Item: map[string]ddbtypes.AttributeValue{}}}
		_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []ddbtypes.TransactWriteItem{put, put, put}})
		return err
	}
	send := func(ctx context.Context) error {
		_, err := queue.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(b.url + "/0/q"), MessageBody: aws.String("m")})
		return err
	}
	put := func(ctx context.Context) error {
		_, err := objects.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: strings.NewReader("x")})
		return err
	}
	for _, c := range []struct {
		name string
		err  Error
		call func(context.Context) error
		code string
	}{
		{"throughput", Throughput, update, "ProvisionedThroughputExceededException"},
		{"throttling", Throttling, update, "ThrottlingException"},
		{"conflict", TransactionConflict, update, "TransactionConflictException"},
		{"canceled", TransactionCanceled, transact, "TransactionCanceledException"},
		{"server error", InternalServerError, update, "InternalServerError"},
		{"queue throttled", Throttling, send, "ThrottlingException"},
		{"slow down", SlowDown, put, "SlowDown"},
		{"object store error", InternalServerError, put, "InternalError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer b.Reset()
			b.Add(Rule{Error: c.err})
			err := c.call(t.Context())
			var api smithy.APIError
			if !errors.As(err, &api) || api.ErrorCode() != c.code {
				t.Fatalf("error %v, want code %s", err, c.code)
			}
			var canceled *ddbtypes.TransactionCanceledException
			if errors.As(err, &canceled) {
				if r := canceled.CancellationReasons; len(r) != 3 || aws.ToString(r[0].Code) != "TransactionConflict" || aws.ToString(r[1].Code) != "None" {
					t.Errorf("reasons %v", r)
				}
			}
		})
	}
	if n := b.executed.Load(); n != 0 {
		t.Errorf("%d calls were executed", n)
	}
}

func TestOperationsOfS3(t *testing.T) {
	for _, c := range []struct{ method, target, want string }{
		{"PUT", "/b/k?x-id=PutObject", "PutObject"}, {"PUT", "/b/k/l?partNumber=1&uploadId=u&x-id=UploadPart", "UploadPart"}, {"POST", "/b/k?uploads", "CreateMultipartUpload"},
		{"POST", "/b/k?uploadId=u", "CompleteMultipartUpload"}, {"DELETE", "/b/k?uploadId=u", "AbortMultipartUpload"}, {"DELETE", "/b/k", "DeleteObject"},
		{"GET", "/b/k?versionId=v", "GetObject"}, {"HEAD", "/b/k", "HeadObject"}, {"GET", "/b/k?uploadId=u", "ListParts"}, {"HEAD", "/b", "HeadBucket"},
		{"GET", "/b?list-type=2", "ListObjectsV2"}, {"POST", "/b?delete", "DeleteObjects"}, {"POST", "/b", "PostObject"}, {"PUT", "/b", "BucketPUT"},
	} {
		if got := read(httptest.NewRequest(c.method, c.target, nil)); got.Operation != c.want || got.Service != S3 {
			t.Errorf("%s %s is %s of %s, want %s", c.method, c.target, got.Operation, got.Service, c.want)
		}
	}
	r := httptest.NewRequest("PUT", "/b/k", nil)
	r.Header.Set("X-Amz-Copy-Source", "b/old")
	if got := read(r).Operation; got != "CopyObject" {
		t.Errorf("copy is %s", got)
	}
}

func TestCountersAndConsumedCapacity(t *testing.T) {
	b := newBench(t)
	b.answer = `{"ConsumedCapacity":{"TableName":"t","CapacityUnits":2.5}}`
	for range 2 {
		if answer, err := b.call("ProcessFunction-1", "UpdateItem", `{"TableName":"t"}`); err != nil || answer.Header.Get("X-Echo") != `{"TableName":"t"}` {
			t.Fatalf("the body was changed without Measure: %v, %v", answer, err)
		}
	}
	b.Measure()
	answer, err := b.call("ProcessFunction-2", "UpdateItem", `{"TableName":"t"}`)
	if err != nil || answer.Header.Get("X-Echo") != `{"ReturnConsumedCapacity":"TOTAL","TableName":"t"}` {
		t.Fatalf("the figures were not asked for: %v, %v", answer, err)
	}
	if _, err := b.call("ProcessFunction-2", "Query", `{}`); err != nil {
		t.Fatal(err)
	}
	b.answer = `{"ConsumedCapacity":[{"TableName":"t","CapacityUnits":4,"WriteCapacityUnits":4},{"TableName":"u","CapacityUnits":2,"WriteCapacityUnits":2}]}`
	if _, err := b.call("PlanFunction-1", "TransactWriteItems", `{"a":1}`); err != nil {
		t.Fatal(err)
	}
	if n := b.Count(Rule{Caller: "ProcessFunction", Operation: "UpdateItem"}); n != 3 {
		t.Errorf("counted %d updates, want 3", n)
	}
	if got, want := b.Used(Rule{}), (Usage{ReadUnits: 2.5, WriteUnits: 8.5}); got != want {
		t.Errorf("used %+v, want %+v", got, want)
	}
	if got, want := b.Used(Rule{Caller: "PlanFunction"}), (Usage{WriteUnits: 6}); got != want {
		t.Errorf("used by plan %+v, want %+v", got, want)
	}
}
