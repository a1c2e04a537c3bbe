package sqs

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func (e *env) hide(queue string, m types.Message, seconds int32) error {
	_, err := e.ChangeMessageVisibility(e.Context(), &awssqs.ChangeMessageVisibilityInput{
		QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

func TestVisibilityTimeout(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", map[string]string{"VisibilityTimeout": "2"})
		e.send(q, "x")
		first := e.one(q)
		e.none(q, "it is in flight")
		if got := e.counts(q); got != "0/1/0" {
			e.Errorf("in flight: %s, want 0/1/0", got)
		}
		e.pass(2100 * time.Millisecond)
		if got := e.counts(q); got != "1/0/0" {
			e.Errorf("after the timeout: %s, want 1/0/0", got)
		}
		second := e.one(q)
		if second.Attributes["ApproximateReceiveCount"] != "2" || *second.MessageId != *first.MessageId {
			e.Errorf("came back as %v", second)
		}
		if second.Attributes["ApproximateFirstReceiveTimestamp"] != first.Attributes["ApproximateFirstReceiveTimestamp"] {
			e.Error("the time of the first receive changed")
		}
		e.delete(q, first) // not the latest handle: accepted, without effect
		if got := e.counts(q); got != "0/1/0" {
			e.Errorf("after a delete with the older handle: %s, want 0/1/0", got)
		}
		e.delete(q, second)
		e.delete(q, second)
		if got := e.counts(q); got != "0/0/0" {
			e.Errorf("after the delete: %s", got)
		}
	})
}

func TestDeleteAfterTheTimeoutStillDeletes(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", map[string]string{"VisibilityTimeout": "1"})
		e.send(q, "x")
		m := e.one(q)
		e.pass(1100 * time.Millisecond)
		e.delete(q, m)
		e.none(q, "nobody received it since")
	})
}

func TestChangeVisibility(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", map[string]string{"VisibilityTimeout": "2"})
		e.send(q, "x")
		m := e.one(q)
		if err := e.hide(q, m, 4); err != nil {
			e.Fatal(err)
		}
		e.pass(3 * time.Second)
		e.none(q, "its timeout was extended")
		if err := e.hide(q, m, 0); err != nil {
			e.Fatal(err)
		}
		again := e.one(q)
		e.refused(e.hide(q, m, 5), "InvalidParameterValue", "hide with an older handle")
		e.refused(e.hide(q, again, 43201), "InvalidParameterValue", "hide for more than twelve hours")
		e.refused(e.hide(q, types.Message{ReceiptHandle: aws.String("junk")}, 1), "ReceiptHandleIsInvalid", "hide with a handle that is none")
		if err := e.hide(q, again, 0); err != nil {
			e.Fatal(err)
		}
		e.refused(e.hide(q, again, 5), "AWS.SimpleQueueService.MessageNotInflight", "hide what is not in flight")
		other := e.queue("b", nil)
		e.refused(e.hide(other, again, 5), "ReceiptHandleIsInvalid", "hide with another queue's handle")
	})
}

func TestDelay(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", map[string]string{"DelaySeconds": "3"})
		e.send(q, "late")
		_, err := e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("soon"), DelaySeconds: 1})
		if err != nil {
			e.Fatal(err)
		}
		if got := e.counts(q); got != "0/0/2" {
			e.Errorf("delayed: %s, want 0/0/2", got)
		}
		e.pass(1100 * time.Millisecond)
		if got := bodies(e.receive(q, 0)); got != "soon" {
			e.Errorf("after a second received %q, want soon", got)
		}
		e.pass(2 * time.Second)
		if got := bodies(e.receive(q, 0)); got != "late" {
			e.Errorf("after three seconds received %q, want late", got)
		}
	})
}

func TestRetention(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", map[string]string{"MessageRetentionPeriod": "60"})
		e.send(q, "flying", "waiting")
		e.receiveMax(q, 1, 0)
		e.pass(61 * time.Second)
		if got := e.counts(q); got != "0/0/0" {
			e.Errorf("after the retention period: %s", got)
		}
	})
}

func TestLongPoll(t *testing.T) {
	cases := []struct {
		name string
		wait int32
		do   func(e *env, q string) // before the poll
		then func(e *env, q string) // two seconds into it
		want int
		took time.Duration
	}{
		{"nothing comes", 3, nil, nil, 0, 3 * time.Second},
		{"something is there", 3, func(e *env, q string) { e.send(q, "x") }, nil, 1, 0},
		{"something is sent", 5, nil, func(e *env, q string) { e.send(q, "x") }, 1, 2 * time.Second},
		{"a delay ends", 5, func(e *env, q string) {
			e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("x"), DelaySeconds: 3})
		}, nil, 1, 3 * time.Second},
		{"a visibility timeout ends", 5, func(e *env, q string) { e.send(q, "x"); e.one(q) }, nil, 1, 4 * time.Second},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			conform(t, func(e *env) {
				q := e.queue(fmt.Sprint("q", i), map[string]string{"VisibilityTimeout": "4"})
				if c.do != nil {
					c.do(e, q)
				}
				if c.then != nil {
					defer e.later(2*time.Second, func() { c.then(e, q) })()
				}
				start := time.Now()
				got := len(e.receive(q, c.wait))
				took := time.Since(start)
				if got != c.want || (took-c.took).Abs() > 300*time.Millisecond {
					e.Errorf("received %d after %v, want %d after %v", got, took, c.want, c.took)
				}
			})
		})
	}
}

func TestReceiveRefusesNumbersOutOfRange(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		for _, in := range []awssqs.ReceiveMessageInput{
			{MaxNumberOfMessages: 11}, {MaxNumberOfMessages: -1}, {WaitTimeSeconds: 21}, {VisibilityTimeout: 43201},
		} {
			in.QueueUrl = &q
			_, err := e.ReceiveMessage(e.Context(), &in)
			e.refused(err, "InvalidParameterValue", fmt.Sprintf("receive with %+v", in))
		}
	})
}

func TestEachMessageIsDeliveredOnce(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		const n, workers = 500, 10
		for i := range n {
			e.send(q, fmt.Sprint(i))
		}
		got := make(chan string, n)
		ended := make(chan struct{})
		for range workers {
			go func() {
				defer func() { ended <- struct{}{} }()
				for {
					ms := e.receive(q, 1)
					if len(ms) == 0 {
						return
					}
					for _, m := range ms {
						got <- *m.Body
						e.delete(q, m)
					}
				}
			}()
		}
		for range workers {
			<-ended
		}
		close(got)
		seen := map[string]bool{}
		for b := range got {
			if seen[b] {
				e.Errorf("%s was delivered twice", b)
			}
			seen[b] = true
		}
		if len(seen) != n {
			e.Errorf("%d of %d were delivered", len(seen), n)
		}
	})
}
