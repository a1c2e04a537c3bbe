// Package events feeds functions the way AWS's event sources do: batches of SQS messages, and schedules. It takes only
// what its invocations have room for, deletes what a function acknowledged, and leaves the rest to the queue's
// visibility time-out and redrive policy.
//
// It refuses to judge failures: whether a function was killed, timed out or returned an error, its messages come back
// as the queue decides. It knows nothing of filters, FIFO queues and batches above ten.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"pintu/localstack/lambda"
	"pintu/localstack/template"
)

// Invoke runs a function by its logical id.
type Invoke func(ctx context.Context, logicalID string, payload []byte) (lambda.Result, error)

// Source reads one queue for one function.
type Source struct {
	Mapping  template.Source
	Function string // logical id
	QueueURL string
	Region   string
	SQS      *sqs.Client
	Invoke   Invoke
	// Concurrency bounds the batches under way.
	Concurrency int
	// RedeliverAtOnce makes messages visible again as soon as their invocation has failed as a whole, instead of when
	// their visibility time-out ends. Tests that kill functions want it; AWS does not do it.
	RedeliverAtOnce bool
	// Log gets a line per failed invocation and per failed call of the queue.
	Log io.Writer
}

// pollWait is how long a receive waits for a message, as AWS's pollers do.
const pollWait = 20 * time.Second

// Run polls until ctx ends, then waits for the batches under way.
func (s *Source) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, max(s.Concurrency, 1))
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		batch := s.collect(ctx)
		if len(batch) == 0 {
			<-slots
			continue
		}
		running.Go(func() {
			defer func() { <-slots }()
			s.deliver(ctx, batch)
		})
	}
}

// collect receives until the batch is full or its window is over; the window opens with the first message.
func (s *Source) collect(ctx context.Context) []types.Message {
	batch := s.receive(ctx, s.Mapping.BatchSize, pollWait)
	if len(batch) == 0 {
		return nil
	}
	for until := time.Now().Add(s.Mapping.Window); len(batch) < s.Mapping.BatchSize; {
		left := time.Until(until).Truncate(time.Second) // receives wait in whole seconds
		if left <= 0 {
			break
		}
		batch = append(batch, s.receive(ctx, s.Mapping.BatchSize-len(batch), left)...)
		if ctx.Err() != nil {
			break
		}
	}
	return batch
}

func (s *Source) receive(ctx context.Context, n int, wait time.Duration) []types.Message {
	out, err := s.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &s.QueueURL, MaxNumberOfMessages: int32(n), WaitTimeSeconds: int32(wait / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}, MessageAttributeNames: []string{"All"},
	})
	if err != nil {
		if ctx.Err() == nil {
			s.logf("receive: %v", err)
			pause(ctx, time.Second)
		}
		return nil
	}
	return out.Messages
}

// pause keeps a queue that is gone from being asked in a tight loop.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// deliver invokes the function with a batch and settles each message. Settling goes on after ctx has ended: what was
// acknowledged must not come back.
func (s *Source) deliver(ctx context.Context, batch []types.Message) {
	failed, whole := s.outcome(ctx, batch)
	settle := context.WithoutCancel(ctx)
	var done []types.DeleteMessageBatchRequestEntry
	var back []types.ChangeMessageVisibilityBatchRequestEntry
	for i, m := range batch {
		id := aws.String(fmt.Sprint(i))
		if !whole && !failed[aws.ToString(m.MessageId)] {
			done = append(done, types.DeleteMessageBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle})
		} else if whole {
			back = append(back, types.ChangeMessageVisibilityBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle})
		}
	}
	if len(done) > 0 {
		out, err := s.SQS.DeleteMessageBatch(settle, &sqs.DeleteMessageBatchInput{QueueUrl: &s.QueueURL, Entries: done})
		if err != nil {
			s.logf("delete: %v", err)
		} else if len(out.Failed) > 0 {
			s.logf("delete: %s", aws.ToString(out.Failed[0].Message))
		}
	}
	if len(back) > 0 && s.RedeliverAtOnce {
		if _, err := s.SQS.ChangeMessageVisibilityBatch(settle, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &s.QueueURL, Entries: back}); err != nil {
			s.logf("make visible: %v", err)
		}
	}
}

// outcome runs the function and tells which messages it did not acknowledge: some, or the whole batch.
func (s *Source) outcome(ctx context.Context, batch []types.Message) (failed map[string]bool, whole bool) {
	payload, err := json.Marshal(s.event(batch))
	if err != nil {
		panic(err) // strings and maps of strings
	}
	result, err := s.Invoke(ctx, s.Function, payload)
	if err != nil {
		if !errors.Is(err, lambda.ErrClosed) && ctx.Err() == nil {
			s.logf("%v", err)
		}
		return nil, true
	}
	if result.Failed {
		s.logf("%s failed: %s", s.Function, result.Payload)
		return nil, true
	}
	if !s.Mapping.ReportFailures {
		return nil, false
	}
	failed, err = failures(result.Payload, batch)
	if err != nil {
		s.logf("%s: %v; the whole batch counts as failed", s.Function, err)
		return nil, true
	}
	return failed, false
}

// failures reads a partial batch response. Lambda takes an empty answer as success, and anything it cannot read, an
// empty identifier or an unknown one as failure of the whole batch.
func failures(payload []byte, batch []types.Message) (map[string]bool, error) {
	if text := strings.TrimSpace(string(payload)); text == "" || text == "null" {
		return nil, nil
	}
	var answer struct {
		Items []struct {
			ID *string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(payload, &answer); err != nil {
		return nil, fmt.Errorf("read batch item failures: %w", err)
	}
	known := map[string]bool{}
	for _, m := range batch {
		known[aws.ToString(m.MessageId)] = true
	}
	failed := map[string]bool{}
	for _, item := range answer.Items {
		if id := aws.ToString(item.ID); known[id] {
			failed[id] = true
			continue
		}
		return nil, fmt.Errorf("batch item failure %q is no message of the batch", aws.ToString(item.ID))
	}
	return failed, nil
}

func (s *Source) logf(format string, args ...any) {
	fmt.Fprintf(s.Log, "events | %s: %s\n", s.Mapping.Queue, fmt.Sprintf(format, args...))
}
