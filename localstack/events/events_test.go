package events

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.uber.org/goleak"

	"pintu/localstack/clock"
	"pintu/localstack/lambda"
	"pintu/localstack/sqs"
	"pintu/localstack/template"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const arn = "arn:aws:sqs:us-east-1:000000000000:work"

// inProcess is an SDK transport without a network, so that everything can run in a bubble of synctest.
type inProcess struct{ handler http.Handler }

func (p inProcess) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// line is a queue with a source that reads it.
type line struct {
	t      *testing.T
	client *awssqs.Client
	server *sqs.Server
	url    string
	log    bytes.Buffer
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func newLine(t *testing.T, m template.Source, concurrency int, atOnce bool, f func(events.SQSEvent) (lambda.Result, error)) *line {
	t.Helper()
	server, err := sqs.New(sqs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, server: server}
	l.client = awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://queue.example"), HTTPClient: inProcess{server},
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	out, err := l.client.CreateQueue(t.Context(), &awssqs.CreateQueueInput{QueueName: aws.String("work"), Attributes: map[string]string{"VisibilityTimeout": "60"}})
	if err != nil {
		t.Fatal(err)
	}
	l.url = aws.ToString(out.QueueUrl)
	m.Queue, m.QueueARN = "work", arn
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	s := &Source{Mapping: m, Function: "Work", QueueURL: l.url, Region: "us-east-1", SQS: l.client, Concurrency: concurrency, RedeliverAtOnce: atOnce, Log: &l.log,
		Invoke: func(_ context.Context, id string, payload []byte) (lambda.Result, error) {
			var e events.SQSEvent
			if err := json.Unmarshal(payload, &e); err != nil || id != "Work" {
				t.Errorf("event %s for %s: %v", payload, id, err)
			}
			return f(e)
		}}
	l.done.Go(func() { s.Run(ctx) })
	return l
}

func (l *line) send(bodies ...string) {
	l.t.Helper()
	for _, b := range bodies {
		if _, err := l.client.SendMessage(l.t.Context(), &awssqs.SendMessageInput{QueueUrl: &l.url, MessageBody: aws.String(b)}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// left gives the bodies that are still in the queue.
func (l *line) left() string {
	var out []string
	for _, m := range l.server.Peek("work") {
		out = append(out, m.Body)
	}
	return strings.Join(out, " ")
}

func (l *line) end() {
	l.stop()
	l.done.Wait()
	l.server.Close()
}

func bodies(e events.SQSEvent) string {
	var out []string
	for _, r := range e.Records {
		out = append(out, r.Body)
	}
	return strings.Join(out, " ")
}

// secondFails reports the message "b".
func secondFails(e events.SQSEvent) (lambda.Result, error) {
	for _, r := range e.Records {
		if r.Body == "b" {
			return answer(`{"batchItemFailures":[{"itemIdentifier":"` + r.MessageId + `"}]}`)
		}
	}
	return answer(`{"batchItemFailures":[]}`)
}

// tape is what invocations note and tests read, from goroutines of their own.
type tape struct {
	mu    sync.Mutex
	notes []string
}

// add notes one invocation and tells its number.
func (p *tape) add(note string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, note)
	return len(p.notes)
}

func (p *tape) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.notes)
}

func answer(text string) (lambda.Result, error) { return lambda.Result{Payload: []byte(text)}, nil }

func TestTheEventIsWhatAWSSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got events.SQSMessage
		l := newLine(t, template.Source{BatchSize: 1}, 1, false, func(e events.SQSEvent) (lambda.Result, error) {
			got = e.Records[0]
			return answer("null")
		})
		defer l.end()
		_, err := l.client.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: &l.url, MessageBody: aws.String(`{"kind":"plan"}`), MessageAttributes: map[string]types.MessageAttributeValue{
			"RequestId": {DataType: aws.String("String"), StringValue: aws.String("r-1")}, "Raw": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got.MessageId == "" || got.ReceiptHandle == "" || got.Body != `{"kind":"plan"}` || got.Md5OfBody != fmt.Sprintf("%x", md5.Sum([]byte(got.Body))) ||
			got.EventSource != "aws:sqs" || got.EventSourceARN != arn || got.AWSRegion != "us-east-1" {
			t.Errorf("record %+v", got)
		}
		for _, name := range []string{"ApproximateReceiveCount", "SentTimestamp", "SenderId", "ApproximateFirstReceiveTimestamp"} {
			if got.Attributes[name] == "" {
				t.Errorf("no attribute %s in %v", name, got.Attributes)
			}
		}
		if a := got.MessageAttributes["RequestId"]; a.DataType != "String" || aws.ToString(a.StringValue) != "r-1" || a.StringListValues == nil {
			t.Errorf("attribute RequestId %+v", a)
		}
		if a := got.MessageAttributes["Raw"]; a.DataType != "Binary" || string(a.BinaryValue) != "\x00\x01" {
			t.Errorf("attribute Raw %+v", a)
		}
	})
}

func TestWhatIsDeletedAndWhatComesBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		report bool
		answer func(e events.SQSEvent) (lambda.Result, error)
		left   string
	}{
		{"success", true, func(events.SQSEvent) (lambda.Result, error) { return answer(`{"batchItemFailures":[]}`) }, ""},
		{"null is success", true, func(events.SQSEvent) (lambda.Result, error) { return answer("null") }, ""},
		{"some", true, secondFails, "b"},
		{"not asked to report", false, secondFails, ""},
		{"unknown id", true, func(events.SQSEvent) (lambda.Result, error) {
			return answer(`{"batchItemFailures":[{"itemIdentifier":"other"}]}`)
		}, "a b c"},
		{"empty id", true, func(events.SQSEvent) (lambda.Result, error) {
			return answer(`{"batchItemFailures":[{"itemIdentifier":""}]}`)
		}, "a b c"},
		{"no JSON", true, func(events.SQSEvent) (lambda.Result, error) { return answer(`oops`) }, "a b c"},
		{"the function failed", true, func(events.SQSEvent) (lambda.Result, error) {
			return lambda.Result{Failed: true, Died: true, Payload: []byte(`{}`)}, nil
		}, "a b c"},
		{"not invoked", true, func(events.SQSEvent) (lambda.Result, error) { return lambda.Result{}, lambda.ErrClosed }, "a b c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls tape
				l := newLine(t, template.Source{BatchSize: 3, Window: 5 * time.Second, ReportFailures: c.report}, 1, false, func(e events.SQSEvent) (lambda.Result, error) {
					calls.add(bodies(e))
					return c.answer(e)
				})
				defer l.end()
				l.send("a", "b", "c")
				<-time.After(10 * time.Second)
				synctest.Wait()
				if got := l.left(); got != c.left || !slices.Equal(calls.all(), []string{"a b c"}) {
					t.Errorf("left %q after %q, want %q", got, calls.all(), c.left)
				}
				<-time.After(60 * time.Second) // the visibility time-out
				synctest.Wait()
				if again := len(calls.all()) > 1; again != (c.left != "") {
					t.Errorf("invocations %q", calls.all())
				}
			})
		})
	}
}

func TestMessagesOfADeadFunctionCanComeBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var calls tape
		l := newLine(t, template.Source{BatchSize: 1, ReportFailures: true}, 1, true, func(events.SQSEvent) (lambda.Result, error) {
			if calls.add("") == 1 {
				return lambda.Result{Failed: true, Died: true}, nil
			}
			return answer("null")
		})
		defer l.end()
		l.send("a")
		for l.left() != "" {
			<-time.After(time.Second)
		}
		synctest.Wait()
		if waited := time.Since(start); waited > 10*time.Second || len(calls.all()) != 2 {
			t.Errorf("%d invocations in %v, want 2 at once", len(calls.all()), waited)
		}
	})
}

func TestABatchIsFullOrItsWindowIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var got tape
		l := newLine(t, template.Source{BatchSize: 3, Window: 10 * time.Second}, 1, false, func(e events.SQSEvent) (lambda.Result, error) {
			got.add(bodies(e) + " after " + time.Since(start).Round(time.Second).String())
			return answer("")
		})
		defer l.end()
		l.send("a")
		<-time.After(4 * time.Second)
		l.send("b", "c", "d")
		<-time.After(20 * time.Second)
		synctest.Wait()
		if diff := strings.Join(got.all(), "; "); diff != "a b c after 4s; d after 14s" {
			t.Errorf("batches %s", diff)
		}
	})
}

func TestNoMoreBatchesAtOnceThanAllowedAndNoneTakenBeforeThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		running, most := 0, 0
		l := newLine(t, template.Source{BatchSize: 1}, 2, false, func(events.SQSEvent) (lambda.Result, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			<-release
			mu.Lock()
			running--
			mu.Unlock()
			return answer("")
		})
		defer l.end()
		l.send("a", "b", "c", "d")
		synctest.Wait()
		waiting := 0
		for _, m := range l.server.Peek("work") {
			if !m.InFlight {
				waiting++
			}
		}
		if running != 2 || waiting != 2 {
			t.Errorf("%d batches run, %d messages wait, want 2 and 2", running, waiting)
		}
		close(release)
		for l.left() != "" {
			<-time.After(time.Second)
		}
		if most != 2 {
			t.Errorf("%d batches at once, want 2", most)
		}
	})
}

func TestAScheduleFiresAtTheStartAndByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var fired []events.EventBridgeEvent
		c := clock.New()
		start := c.Now()
		var log bytes.Buffer
		s := &Schedule{Rule: template.Schedule{Name: "Tick", Every: time.Minute}, Function: "Sweep", Region: "us-east-1", Account: "000000000000", Clock: c, Log: &log,
			Invoke: func(_ context.Context, id string, payload []byte) (lambda.Result, error) {
				var e events.EventBridgeEvent
				if err := json.Unmarshal(payload, &e); err != nil || id != "Sweep" {
					t.Errorf("event %s for %s: %v", payload, id, err)
				}
				mu.Lock()
				defer mu.Unlock()
				fired = append(fired, e)
				return lambda.Result{Failed: len(fired) == 2, Payload: []byte("boom")}, nil
			}}
		ctx, cancel := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() { s.Run(ctx) })
		at := func(want int, when time.Duration) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(fired) != want || fired[want-1].Time.Sub(start.Truncate(time.Second)) != when {
				t.Errorf("fired %d times, last at %v, want %d at %v", len(fired), fired[len(fired)-1].Time.Sub(start), want, when)
			}
		}
		at(1, 0)
		<-time.After(time.Minute)
		at(2, time.Minute)
		c.Advance(5*time.Minute + 30*time.Second) // over five firings: one
		at(3, 6*time.Minute+30*time.Second)
		c.Advance(30 * time.Second)
		at(4, 7*time.Minute)
		cancel()
		done.Wait()
		if e := fired[0]; e.Source != "aws.events" || e.DetailType != "Scheduled Event" || string(e.Detail) != "{}" || len(e.Resources) != 1 || e.AccountID != "000000000000" {
			t.Errorf("event %+v", e)
		}
		if log.String() != "schedule | Tick of Sweep failed: boom\n" {
			t.Errorf("log %q", log.String())
		}
	})
}
