// Package sqsqueue sends hints to SQS. It refuses to carry anything but ids: a message that is lost or
// doubled changes nothing.
package sqsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"pintu/internal/fault"
	"pintu/internal/job"
)

// Queues sends to the queue of each kind of hint.
type Queues struct {
	client *sqs.Client
	urls   map[job.HintKind]string
}

// Config names the queues.
type Config struct {
	AWS  aws.Config
	URLs map[job.HintKind]string
}

// New makes Queues.
func New(c Config) *Queues { return &Queues{client: sqs.NewFromConfig(c.AWS), urls: c.URLs} }

// sendTimeout bounds one call. Senders have a hint's state committed already and must not wait long.
const sendTimeout = 10 * time.Second

// batchLimit is SQS's bound on entries of one batch.
const batchLimit = 10

// Send sends hints. Messages of one tenant share a group, so that on a busy queue tenants take turns.
// An error names what was not sent; sweep sends it later.
func (q *Queues) Send(ctx context.Context, hints ...job.Hint) error {
	byKind := map[job.HintKind][]job.Hint{}
	for _, h := range hints {
		byKind[h.Kind] = append(byKind[h.Kind], h)
	}
	var errs []error
	for kind, all := range byKind {
		for len(all) > 0 {
			n := min(len(all), batchLimit)
			errs = append(errs, q.sendBatch(ctx, kind, all[:n]))
			all = all[n:]
		}
	}
	return errors.Join(errs...)
}

func (q *Queues) sendBatch(ctx context.Context, kind job.HintKind, hints []job.Hint) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	entries := make([]types.SendMessageBatchRequestEntry, len(hints))
	for i, h := range hints {
		body, err := json.Marshal(h)
		if err != nil {
			return fmt.Errorf("encode hint: %w", err)
		}
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), MessageGroupId: aws.String(h.Tenant)}
	}
	url := q.urls[kind]
	out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err != nil {
		return fault.Wrap(err, fault.DependencyUnavailable, "the queue did not answer; try again").After(time.Second)
	}
	if n := len(out.Failed); n > 0 {
		return fault.New(fault.DependencyUnavailable, "the queue refused %d of %d messages (%s)", n, len(hints), aws.ToString(out.Failed[0].Code)).After(time.Second)
	}
	return nil
}

// Idle tells that no message of a kind is waiting or delayed. The counts are approximate and may be
// behind; being wrong costs a doubled hint at most.
func (q *Queues) Idle(ctx context.Context, kind job.HintKind) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	url := q.urls[kind]
	names := []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesDelayed}
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return false, fault.Wrap(err, fault.DependencyUnavailable, "the queue did not answer; try again").After(time.Second)
	}
	for _, name := range names {
		if n := out.Attributes[string(name)]; n != "" && n != "0" {
			return false, nil
		}
	}
	return true, nil
}
