package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// The conformance suite holds a server to what AWS documents, through the SDK. By default it runs in process inside a
// synctest bubble, where sleeping moves the clock and costs nothing. With PINTU_SQS_ENDPOINT it runs against that
// endpoint (credentials and region from the usual variables do not matter: none is checked by emulators) and really
// waits.

// env is one server with a client.
type env struct {
	*testing.T
	*awssqs.Client
	server *Server // nil when the server is outside
}

// conform runs a check of the suite.
func conform(t *testing.T, check func(*env)) {
	t.Helper()
	if url := os.Getenv("PINTU_SQS_ENDPOINT"); url != "" {
		check(&env{T: t, Client: newClient(url, http.DefaultClient)})
		return
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		check(embedded(t, s))
	})
}

func embedded(t *testing.T, s *Server) *env {
	return &env{T: t, Client: newClient("http://sqs.test", inProcess{s}), server: s}
}

func newClient(url string, h aws.HTTPClient) *awssqs.Client {
	return awssqs.New(awssqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), HTTPClient: h,
		Credentials: credentials.NewStaticCredentialsProvider("test", "testtest", ""),
		Retryer:     aws.NopRetryer{},
	})
}

// inProcess calls a handler without a network, so that a bubble's clock can move while calls are waiting.
type inProcess struct{ http.Handler }

func (p inProcess) Do(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.Host = r.URL.Host
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, in)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

var names = fmt.Sprintf("t%d", time.Now().UnixNano())

// queue creates a queue whose name no other run of the suite uses.
func (e *env) queue(name string, attrs map[string]string) string {
	e.Helper()
	full := names + "-" + strings.NewReplacer("/", "-").Replace(e.Name()) + "-" + name
	if len(full) > 80 {
		full = full[:20] + full[len(full)-60:]
	}
	out, err := e.CreateQueue(e.Context(), &awssqs.CreateQueueInput{QueueName: &full, Attributes: attrs})
	if err != nil {
		e.Fatal(err)
	}
	return *out.QueueUrl
}

func (e *env) attr(queue string, name types.QueueAttributeName) string {
	e.Helper()
	out, err := e.GetQueueAttributes(e.Context(), &awssqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{name},
	})
	if err != nil {
		e.Fatal(err)
	}
	return out.Attributes[string(name)]
}

func (e *env) arn(queue string) string { return e.attr(queue, types.QueueAttributeNameQueueArn) }

// counts are the deliverable, in-flight and delayed messages, as one string.
func (e *env) counts(queue string) string {
	e.Helper()
	return e.attr(queue, types.QueueAttributeNameApproximateNumberOfMessages) + "/" +
		e.attr(queue, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible) + "/" +
		e.attr(queue, types.QueueAttributeNameApproximateNumberOfMessagesDelayed)
}

func (e *env) send(queue string, bodies ...string) {
	e.Helper()
	for _, b := range bodies {
		if _, err := e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &queue, MessageBody: &b}); err != nil {
			e.Error(err)
		}
	}
}

// receive takes up to ten messages with all they have, waiting up to the given seconds for the first.
func (e *env) receive(queue string, wait int32) []types.Message {
	e.Helper()
	return e.receiveMax(queue, 10, wait)
}

func (e *env) receiveMax(queue string, n, wait int32) []types.Message {
	e.Helper()
	out, err := e.ReceiveMessage(e.Context(), &awssqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: n, WaitTimeSeconds: wait, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		e.Error(err)
		return nil
	}
	return out.Messages
}

// one receives exactly one message at once.
func (e *env) one(queue string) types.Message {
	e.Helper()
	got := e.receive(queue, 0)
	if len(got) != 1 {
		e.Fatalf("received %d messages, want 1", len(got))
	}
	return got[0]
}

func (e *env) none(queue, why string) {
	e.Helper()
	if got := e.receive(queue, 0); len(got) != 0 {
		e.Fatalf("received %d messages, want none: %s", len(got), why)
	}
}

func (e *env) delete(queue string, m types.Message) {
	e.Helper()
	_, err := e.DeleteMessage(e.Context(), &awssqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
	if err != nil {
		e.Error(err)
	}
}

// pass lets time go by. Outside of a bubble only a person who asked for it waits longer than a few seconds.
func (e *env) pass(d time.Duration) {
	e.Helper()
	if e.server == nil && d > 5*time.Second && os.Getenv("PINTU_SQS_SLOW") == "" {
		e.Skipf("waits %v; set PINTU_SQS_SLOW to run it against an endpoint", d)
	}
	time.Sleep(d)
}

// later does something after a while; the caller waits for its end with the function it gets.
func (e *env) later(d time.Duration, do func()) (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.pass(d)
		do()
	}()
	return func() { <-ended }
}

func (e *env) refused(err error, code, doing string) {
	e.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		e.Errorf("%s: error %v, want code %s", doing, err, code)
	}
}

func bodies(ms []types.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, *m.Body)
	}
	return strings.Join(out, " ")
}

func TestQueueLifeCycle(t *testing.T) {
	conform(t, func(e *env) {
		ctx := e.Context()
		q := e.queue("a", map[string]string{"VisibilityTimeout": "45"})
		name := q[strings.LastIndexByte(q, '/')+1:]
		for range 2 { // creating it again with what it has is no error
			again, err := e.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{
				"VisibilityTimeout": "45", "DelaySeconds": "0"}})
			if err != nil || *again.QueueUrl != q {
				e.Fatalf("created again: %v", err)
			}
		}
		_, err := e.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "46"}})
		e.refused(err, "QueueAlreadyExists", "create with another value")
		url, err := e.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &name})
		if err != nil || *url.QueueUrl != q {
			e.Fatalf("GetQueueUrl: %v", err)
		}
		list, err := e.ListQueues(ctx, &awssqs.ListQueuesInput{QueueNamePrefix: &name})
		if err != nil || len(list.QueueUrls) != 1 || list.QueueUrls[0] != q {
			e.Fatalf("ListQueues: %v %v", list, err)
		}
		if _, err := e.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: &q}); err != nil {
			e.Fatal(err)
		}
		_, err = e.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("x")})
		e.refused(err, "AWS.SimpleQueueService.NonExistentQueue", "send to a deleted queue")
		var gone *types.QueueDoesNotExist
		if !errors.As(err, &gone) {
			e.Errorf("the SDK made %T of it, want QueueDoesNotExist", err)
		}
		_, err = e.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &name})
		e.refused(err, "AWS.SimpleQueueService.NonExistentQueue", "look up a deleted queue")
	})
}

func TestQueuesAreListedInPages(t *testing.T) {
	conform(t, func(e *env) {
		for i := range 5 {
			e.queue(fmt.Sprint("p", i), nil)
		}
		q := e.queue("p", nil)
		prefix := q[strings.LastIndexByte(q, '/')+1:]
		pages := awssqs.NewListQueuesPaginator(e.Client, &awssqs.ListQueuesInput{QueueNamePrefix: &prefix, MaxResults: aws.Int32(4)})
		seen := map[string]bool{}
		sizes := ""
		for pages.HasMorePages() {
			p, err := pages.NextPage(e.Context())
			if err != nil {
				e.Fatal(err)
			}
			sizes += fmt.Sprint(len(p.QueueUrls))
			for _, u := range p.QueueUrls {
				seen[u] = true
			}
		}
		if sizes != "42" || len(seen) != 6 {
			e.Errorf("pages of %s with %d different queues, want 42 with 6", sizes, len(seen))
		}
	})
}

func TestQueueAttributes(t *testing.T) {
	conform(t, func(e *env) {
		ctx := e.Context()
		q := e.queue("a", nil)
		for name, want := range map[types.QueueAttributeName]string{
			"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "0",
			"ReceiveMessageWaitTimeSeconds": "0", "MaximumMessageSize": "1048576",
		} {
			if got := e.attr(q, name); got != want {
				e.Errorf("%s is %q by default, want %q", name, got, want)
			}
		}
		made := e.attr(q, "CreatedTimestamp")
		if made == "" || made != e.attr(q, "LastModifiedTimestamp") {
			e.Errorf("a new queue was created at %q and modified at %q", made, e.attr(q, "LastModifiedTimestamp"))
		}
		e.pass(2 * time.Second)
		_, err := e.SetQueueAttributes(ctx, &awssqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"VisibilityTimeout": "7"}})
		if err != nil || e.attr(q, "VisibilityTimeout") != "7" || e.attr(q, "LastModifiedTimestamp") == made {
			e.Errorf("the change did not show: %v", err)
		}
		if out, err := e.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &q}); err != nil || len(out.Attributes) != 0 {
			e.Errorf("asked for no attribute, got %v, %v", out, err)
		}
		_, err = e.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: &q, AttributeNames: []types.QueueAttributeName{"Colour"}})
		e.refused(err, "InvalidAttributeName", "ask for an attribute that does not exist")
	})
}

func TestAttributesOutOfRangeAreRefused(t *testing.T) {
	cases := []struct{ name, value, code string }{
		{"VisibilityTimeout", "-1", "InvalidAttributeValue"},
		{"VisibilityTimeout", "43201", "InvalidAttributeValue"},
		{"VisibilityTimeout", "soon", "InvalidAttributeValue"},
		{"DelaySeconds", "901", "InvalidAttributeValue"},
		{"MessageRetentionPeriod", "59", "InvalidAttributeValue"},
		{"MessageRetentionPeriod", "1209601", "InvalidAttributeValue"},
		{"ReceiveMessageWaitTimeSeconds", "21", "InvalidAttributeValue"},
		{"MaximumMessageSize", "1023", "InvalidAttributeValue"},
		{"MaximumMessageSize", "1048577", "InvalidAttributeValue"},
		{"Colour", "red", "InvalidAttributeName"},
		{"RedrivePolicy", "{", "InvalidParameterValue"},
		{"RedrivePolicy", `{"deadLetterTargetArn":"dummy","maxReceiveCount":3}`, "InvalidParameterValue"},
		{"RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:none","maxReceiveCount":3}`, "InvalidParameterValue"},
		{"RedriveAllowPolicy", `{"redrivePermission":"some"}`, "InvalidParameterValue"},
	}
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		for i, c := range cases {
			attrs := map[string]string{c.name: c.value}
			_, err := e.CreateQueue(e.Context(), &awssqs.CreateQueueInput{QueueName: aws.String(fmt.Sprint(names, "-bad-", i)), Attributes: attrs})
			e.refused(err, c.code, "create with "+c.name+"="+c.value)
			_, err = e.SetQueueAttributes(e.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: attrs})
			e.refused(err, c.code, "set "+c.name+"="+c.value)
		}
		for _, name := range []string{"", "a b", "a.b", strings.Repeat("x", 81), "a.fifo"} {
			_, err := e.CreateQueue(e.Context(), &awssqs.CreateQueueInput{QueueName: &name})
			e.refused(err, "InvalidParameterValue", "create a queue named "+name)
		}
	})
}

func TestTags(t *testing.T) {
	conform(t, func(e *env) {
		ctx := e.Context()
		q := e.queue("a", nil)
		if _, err := e.TagQueue(ctx, &awssqs.TagQueueInput{QueueUrl: &q, Tags: map[string]string{"a": "1", "b": "2"}}); err != nil {
			e.Fatal(err)
		}
		if _, err := e.UntagQueue(ctx, &awssqs.UntagQueueInput{QueueUrl: &q, TagKeys: []string{"a"}}); err != nil {
			e.Fatal(err)
		}
		out, err := e.ListQueueTags(ctx, &awssqs.ListQueueTagsInput{QueueUrl: &q})
		if err != nil || len(out.Tags) != 1 || out.Tags["b"] != "2" {
			e.Errorf("tags %v, %v", out, err)
		}
	})
}

func TestPurge(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		e.send(q, "flying", "waiting")
		e.receiveMax(q, 1, 0)
		purge := func() error {
			_, err := e.PurgeQueue(e.Context(), &awssqs.PurgeQueueInput{QueueUrl: &q})
			return err
		}
		if err := purge(); err != nil || e.counts(q) != "0/0/0" {
			e.Errorf("after the purge %s, %v", e.counts(q), err)
		}
		e.refused(purge(), "AWS.SimpleQueueService.PurgeQueueInProgress", "purge again at once")
		e.pass(61 * time.Second)
		if err := purge(); err != nil {
			e.Errorf("purge after a minute: %v", err)
		}
	})
}

func TestCancelledReceiveTakesNothing(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		ctx, cancel := context.WithCancel(e.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err := e.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
			if err == nil {
				e.Error("a cancelled receive gave no error")
			}
		}()
		e.pass(time.Second)
		cancel()
		<-ended
		e.pass(time.Second)
		e.send(q, "after")
		e.one(q)
	})
}
