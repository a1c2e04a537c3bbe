package sqs

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// withDeadLetters makes a queue whose messages go to another after they were received n times; hidden is the
// visibility timeout of the first.
func (e *env) withDeadLetters(name string, n int, hidden string, dlqAttrs map[string]string) (q, dlq string) {
	e.Helper()
	dlq = e.queue(name+"-dlq", dlqAttrs)
	return e.queue(name, map[string]string{"VisibilityTimeout": hidden, "RedrivePolicy": e.policy(dlq, n)}), dlq
}

func (e *env) policy(dlq string, n int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, e.arn(dlq), n)
}

// bury sends messages and receives them until they are dead letters.
func (e *env) bury(q, dlq string, bodies ...string) {
	e.Helper()
	e.send(q, bodies...)
	for range 200 {
		for _, m := range e.receive(q, 0) {
			if err := e.hide(q, m, 0); err != nil {
				e.Fatal(err)
			}
		}
		if e.counts(q) == "0/0/0" {
			return
		}
	}
	e.Fatalf("still %s in the queue, %s dead letters", e.counts(q), e.counts(dlq))
}

func TestDeadLetters(t *testing.T) {
	conform(t, func(e *env) {
		q, dlq := e.withDeadLetters("a", 2, "1", nil)
		e.send(q, "poison")
		first := e.one(q)
		for n := 2; n <= 3; n++ {
			e.pass(1100 * time.Millisecond)
			if got := len(e.receive(q, 0)); got != 3-n {
				e.Fatalf("receive %d gave %d messages", n, got)
			}
		}
		if got := e.counts(q); got != "0/0/0" {
			e.Errorf("left in the source: %s", got)
		}
		m := e.one(dlq)
		if *m.MessageId != *first.MessageId || *m.Body != "poison" {
			e.Errorf("the dead letter is another message: %v", m)
		}
		if m.Attributes["DeadLetterQueueSourceArn"] != e.arn(q) {
			e.Errorf("its source is %q", m.Attributes["DeadLetterQueueSourceArn"])
		}
		if m.Attributes["SentTimestamp"] != first.Attributes["SentTimestamp"] {
			e.Error("the move changed the time it was sent")
		}
		ls, err := e.ListDeadLetterSourceQueues(e.Context(), &awssqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dlq})
		if err != nil || len(ls.QueueUrls) != 1 || ls.QueueUrls[0] != q {
			e.Errorf("source queues %v, %v", ls, err)
		}
	})
}

func TestDeadLetterRetentionCountsFromTheFirstSend(t *testing.T) {
	conform(t, func(e *env) {
		q, dlq := e.withDeadLetters("a", 1, "1", map[string]string{"MessageRetentionPeriod": "100"})
		e.send(q, "x")
		e.one(q)
		e.pass(70 * time.Second)
		e.none(q, "it was received once and may not be again")
		if got := e.counts(dlq); got != "1/0/0" {
			e.Fatalf("dead letters: %s", got)
		}
		e.pass(31 * time.Second)
		if got := e.counts(dlq); got != "0/0/0" {
			e.Errorf("101 s after the send, 31 s after the move: %s", got)
		}
	})
}

func TestRedrivePolicyIsCheckedAgainstTheDeadLetterQueue(t *testing.T) {
	conform(t, func(e *env) {
		set := func(q string, attrs map[string]string) error {
			_, err := e.SetQueueAttributes(e.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: attrs})
			return err
		}
		q := e.queue("a", nil)
		closed := e.queue("closed", map[string]string{"RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`})
		mine := e.queue("mine", map[string]string{"RedriveAllowPolicy": fmt.Sprintf(`{"redrivePermission":"byQueue","sourceQueueArns":[%q]}`, e.arn(q))})
		fifo := e.queue("f.fifo", map[string]string{"FifoQueue": "true"})
		other := e.queue("b", nil)
		e.refused(set(q, map[string]string{"RedrivePolicy": e.policy(closed, 3)}), "InvalidParameterValue", "use a closed dead-letter queue")
		e.refused(set(q, map[string]string{"RedrivePolicy": e.policy(fifo, 3)}), "InvalidParameterValue", "use a FIFO dead-letter queue")
		e.refused(set(other, map[string]string{"RedrivePolicy": e.policy(mine, 3)}), "InvalidParameterValue", "use another's dead-letter queue")
		if err := set(q, map[string]string{"RedrivePolicy": e.policy(mine, 3)}); err != nil {
			e.Error(err)
		}
		asText := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"3"}`, e.arn(mine))
		if err := set(q, map[string]string{"RedrivePolicy": asText}); err != nil || e.attr(q, "RedrivePolicy") != asText {
			e.Errorf("a count written as text: %v", err)
		}
		if err := set(q, map[string]string{"RedrivePolicy": ""}); err != nil || e.attr(q, "RedrivePolicy") != "" {
			e.Errorf("taking the policy off: %v", err)
		}
	})
}

func (e *env) start(dlq, to string, rate int32) (string, error) {
	in := &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(e.arn(dlq))}
	if to != "" {
		in.DestinationArn = aws.String(e.arn(to))
	}
	if rate > 0 {
		in.MaxNumberOfMessagesPerSecond = &rate
	}
	out, err := e.StartMessageMoveTask(e.Context(), in)
	if err != nil {
		return "", err
	}
	return *out.TaskHandle, nil
}

func (e *env) lastTask(dlq string) types.ListMessageMoveTasksResultEntry {
	e.Helper()
	out, err := e.ListMessageMoveTasks(e.Context(), &awssqs.ListMessageMoveTasksInput{SourceArn: aws.String(e.arn(dlq))})
	if err != nil || len(out.Results) != 1 {
		e.Fatalf("move tasks %v, %v", out, err)
	}
	return out.Results[0]
}

// ended waits for the last task of a dead-letter queue.
func (e *env) ended(dlq string) types.ListMessageMoveTasksResultEntry {
	e.Helper()
	for range 60 {
		if r := e.lastTask(dlq); *r.Status != "RUNNING" && *r.Status != "CANCELLING" {
			return r
		}
		e.pass(time.Second)
	}
	e.Fatal("the task does not end")
	panic("not reached")
}

func TestMoveBackToTheSources(t *testing.T) {
	conform(t, func(e *env) {
		q1, dlq := e.withDeadLetters("a", 1, "30", nil)
		q2 := e.queue("b", map[string]string{"RedrivePolicy": e.policy(dlq, 1)})
		e.bury(q1, dlq, "one", "two")
		e.bury(q2, dlq, "three")
		before := e.receiveMax(dlq, 1, 0)[0]
		if err := e.hide(dlq, before, 0); err != nil {
			e.Fatal(err)
		}
		e.pass(2 * time.Second)
		if _, err := e.start(dlq, "", 0); err != nil {
			e.Fatal(err)
		}
		r := e.ended(dlq)
		if *r.Status != "COMPLETED" || r.ApproximateNumberOfMessagesMoved != 3 || aws.ToInt64(r.ApproximateNumberOfMessagesToMove) != 3 ||
			r.TaskHandle != nil || r.DestinationArn != nil || *r.SourceArn != e.arn(dlq) || r.StartedTimestamp == 0 {
			e.Errorf("the task ended as %+v", r)
		}
		if e.counts(dlq) != "0/0/0" || e.counts(q1) != "2/0/0" || e.counts(q2) != "1/0/0" {
			e.Fatalf("afterwards dlq %s, sources %s and %s", e.counts(dlq), e.counts(q1), e.counts(q2))
		}
		for _, m := range append(e.receive(q1, 0), e.receive(q2, 0)...) {
			at := m.Attributes
			if *m.MessageId == *before.MessageId || at["ApproximateReceiveCount"] != "1" || at["DeadLetterQueueSourceArn"] != "" ||
				at["SentTimestamp"] <= before.Attributes["SentTimestamp"] {
				e.Errorf("the moved message is not a new one: %v", m)
			}
		}
	})
}

func TestMoveWithARate(t *testing.T) {
	conform(t, func(e *env) {
		q, dlq := e.withDeadLetters("a", 1, "30", nil)
		to := e.queue("to", nil)
		e.bury(q, dlq, "1", "2", "3", "4")
		handle, err := e.start(dlq, to, 2)
		if err != nil {
			e.Fatal(err)
		}
		_, err = e.start(dlq, to, 2)
		e.refused(err, "InvalidParameterValue", "start a second task")
		r := e.lastTask(dlq)
		if *r.Status != "RUNNING" || aws.ToString(r.TaskHandle) != handle || aws.ToInt32(r.MaxNumberOfMessagesPerSecond) != 2 ||
			aws.ToInt64(r.ApproximateNumberOfMessagesToMove) != 4 || *r.DestinationArn != e.arn(to) {
			e.Errorf("the running task is %+v", r)
		}
		if got := len(e.receive(to, 5)); got == 0 { // a long poll sees what the task brings
			e.Error("nothing came within five seconds")
		}
		if r := e.ended(dlq); *r.Status != "COMPLETED" || r.ApproximateNumberOfMessagesMoved != 4 {
			e.Errorf("the task ended as %+v", r)
		}
		took := e.counts(dlq)
		if took != "0/0/0" {
			e.Errorf("left in the dead-letter queue: %s", took)
		}
	})
}

func TestMoveCanBeCancelled(t *testing.T) {
	conform(t, func(e *env) {
		q, dlq := e.withDeadLetters("a", 1, "30", nil)
		e.bury(q, dlq, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
		handle, err := e.start(dlq, q, 1)
		if err != nil {
			e.Fatal(err)
		}
		e.pass(2500 * time.Millisecond)
		cancel := func(h string) (int64, error) {
			out, err := e.CancelMessageMoveTask(e.Context(), &awssqs.CancelMessageMoveTaskInput{TaskHandle: &h})
			if err != nil {
				return 0, err
			}
			return out.ApproximateNumberOfMessagesMoved, nil
		}
		moved, err := cancel(handle)
		if err != nil || moved < 1 || moved > 4 {
			e.Errorf("cancelled after %d, %v", moved, err)
		}
		r := e.ended(dlq)
		visible, _ := strconv.Atoi(e.attr(dlq, "ApproximateNumberOfMessages"))
		if *r.Status != "CANCELLED" || int(r.ApproximateNumberOfMessagesMoved)+visible != 10 {
			e.Errorf("the task ended as %+v, %d are left", r, visible)
		}
		_, err = cancel(handle)
		e.refused(err, "InvalidParameterValue", "cancel it again")
		_, err = cancel("00000000-0000-4000-8000-000000000000")
		e.refused(err, "ResourceNotFoundException", "cancel what does not exist")
		if _, err := e.start(dlq, q, 0); err != nil {
			e.Errorf("start again after the cancel: %v", err)
		}
		list, err := e.ListMessageMoveTasks(e.Context(), &awssqs.ListMessageMoveTasksInput{SourceArn: aws.String(e.arn(dlq)), MaxResults: aws.Int32(10)})
		if err != nil || len(list.Results) != 2 || *list.Results[1].Status != "CANCELLED" {
			e.Errorf("tasks, latest first: %+v, %v", list, err)
		}
	})
}

func TestMoveFailsWhenAMessageHasNowhereToGo(t *testing.T) {
	conform(t, func(e *env) {
		q, dlq := e.withDeadLetters("a", 1, "30", nil)
		e.send(dlq, "sent to the dead-letter queue itself")
		if _, err := e.start(dlq, "", 0); err != nil {
			e.Fatal(err)
		}
		if r := e.ended(dlq); *r.Status != "FAILED" || aws.ToString(r.FailureReason) != "CouldNotDetermineMessageSource" {
			e.Errorf("without a source: %+v", r)
		}
		to := e.queue("to", nil)
		if _, err := e.start(dlq, to, 1); err != nil {
			e.Fatal(err)
		}
		if _, err := e.DeleteQueue(e.Context(), &awssqs.DeleteQueueInput{QueueUrl: &to}); err != nil {
			e.Fatal(err)
		}
		if r := e.ended(dlq); *r.Status != "FAILED" || aws.ToString(r.FailureReason) != "AWS.SimpleQueueService.NonExistentQueue" {
			e.Errorf("without a destination: %+v", r)
		}
		if e.counts(dlq) != "1/0/0" || e.counts(q) != "0/0/0" {
			e.Errorf("the message moved: %s, %s", e.counts(dlq), e.counts(q))
		}
	})
}

func TestMoveTasksThatCannotStart(t *testing.T) {
	conform(t, func(e *env) {
		q, dlq := e.withDeadLetters("a", 1, "30", nil)
		_, err := e.start(q, "", 0)
		e.refused(err, "InvalidParameterValue", "move from a queue that is no dead-letter queue")
		_, err = e.start(dlq, dlq, 0)
		e.refused(err, "InvalidParameterValue", "move to itself")
		_, err = e.start(dlq, q, 501)
		e.refused(err, "InvalidParameterValue", "move 501 a second")
		none := e.arn(dlq) + "-none"
		_, err = e.StartMessageMoveTask(e.Context(), &awssqs.StartMessageMoveTaskInput{SourceArn: &none})
		e.refused(err, "ResourceNotFoundException", "move from nowhere")
		_, err = e.StartMessageMoveTask(e.Context(), &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(e.arn(dlq)), DestinationArn: &none})
		e.refused(err, "ResourceNotFoundException", "move to nowhere")
	})
}
