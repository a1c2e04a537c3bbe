package sqs

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

func (e *env) sendTo(queue, group, dedup, body string) *awssqs.SendMessageOutput {
	e.Helper()
	in := &awssqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body, MessageGroupId: &group}
	if dedup != "" {
		in.MessageDeduplicationId = &dedup
	}
	out, err := e.SendMessage(e.Context(), in)
	if err != nil {
		e.Fatal(err)
	}
	return out
}

func TestAGroupWithManyInFlightYields(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		for i := range 100 {
			e.sendTo(q, "loud", "", fmt.Sprint("loud", i))
		}
		for range 4 {
			e.receive(q, 0)
		}
		e.sendTo(q, "quiet", "", "quiet")
		for i := range 10 { // AWS needs some time to see that a group is loud
			for _, m := range e.receiveMax(q, 1, 0) {
				if *m.Body == "quiet" {
					return
				}
			}
			if e.server != nil {
				e.Fatalf("receive %d gave the loud group another", i)
			}
		}
		e.Error("the quiet group waits behind sixty messages of the loud one")
	})
}

func TestGroupsOfAStandardQueueRunInParallel(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a", nil)
		e.sendTo(q, "g", "", "1")
		e.sendTo(q, "g", "", "2")
		if a, b := e.receiveMax(q, 1, 0), e.receiveMax(q, 1, 0); len(a) != 1 || len(b) != 1 {
			e.Errorf("received %d and %d, want one each", len(a), len(b))
		}
	})
}

func TestFIFOOrder(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "2"})
		for _, b := range []string{"a1", "a2", "a3"} {
			e.sendTo(q, "A", "", b)
		}
		e.sendTo(q, "B", "", "b1")
		first := e.receiveMax(q, 1, 0)
		if got := bodies(first); got != "a1" {
			e.Fatalf("first %q", got)
		}
		if got := bodies(e.receive(q, 0)); got != "b1" {
			e.Errorf("while a1 is in flight %q, want b1", got)
		}
		e.delete(q, first[0])
		if got := bodies(e.receive(q, 0)); got != "a2 a3" {
			e.Errorf("after a1 was deleted %q, want a2 a3", got)
		}
		e.pass(2100 * time.Millisecond)
		got := e.receive(q, 0)
		seen := map[string]string{}
		for _, m := range got {
			seen[m.Attributes["MessageGroupId"]] += *m.Body
			if m.Attributes["SequenceNumber"] == "" || m.Attributes["MessageDeduplicationId"] == "" {
				e.Errorf("attributes %v", m.Attributes)
			}
		}
		if seen["A"] != "a2a3" || seen["B"] != "b1" {
			e.Errorf("after the timeout %v", seen)
		}
	})
}

func TestFIFODeleteFreesTheGroup(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a.fifo", map[string]string{"FifoQueue": "true"})
		e.sendTo(q, "A", "1", "a1")
		e.sendTo(q, "A", "2", "a2")
		first := e.receiveMax(q, 1, 0)[0]
		defer e.later(time.Second, func() { e.delete(q, first) })()
		if got := bodies(e.receive(q, 5)); got != "a2" {
			e.Errorf("a long poll behind a1 gave %q, want a2", got)
		}
	})
}

func TestFIFODeduplication(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a.fifo", map[string]string{"FifoQueue": "true"})
		one := e.sendTo(q, "A", "d", "x")
		if two := e.sendTo(q, "B", "d", "y"); *one.MessageId != *two.MessageId || *one.SequenceNumber != *two.SequenceNumber {
			e.Errorf("the duplicate is %v, the first %v", two, one)
		}
		e.delete(q, e.one(q))
		e.sendTo(q, "A", "d", "x")
		e.none(q, "it is a duplicate of a deleted message")
		e.pass(5*time.Minute + time.Second)
		e.sendTo(q, "A", "d", "x")
		e.one(q)
	})
}

func TestFIFORefusals(t *testing.T) {
	conform(t, func(e *env) {
		q := e.queue("a.fifo", map[string]string{"FifoQueue": "true", "VisibilityTimeout": "1"})
		send := func(in awssqs.SendMessageInput) error {
			in.QueueUrl, in.MessageBody = &q, aws.String("x")
			_, err := e.SendMessage(e.Context(), &in)
			return err
		}
		e.refused(send(awssqs.SendMessageInput{MessageDeduplicationId: aws.String("d")}), "MissingParameter", "send without a group")
		e.refused(send(awssqs.SendMessageInput{MessageGroupId: aws.String("g")}), "InvalidParameterValue", "send without a deduplication id")
		e.refused(send(awssqs.SendMessageInput{MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("d"), DelaySeconds: 3}), "InvalidParameterValue", "send with a delay")
		_, err := e.SetQueueAttributes(e.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"FifoQueue": "false"}})
		e.refused(err, "InvalidAttributeValue", "make it a standard queue")
		e.sendTo(q, "g", "d", "x")
		m := e.one(q)
		e.pass(1100 * time.Millisecond)
		_, err = e.DeleteMessage(e.Context(), &awssqs.DeleteMessageInput{QueueUrl: &q, ReceiptHandle: m.ReceiptHandle})
		e.refused(err, "InvalidParameterValue", "delete with a handle that has expired")
	})
}
