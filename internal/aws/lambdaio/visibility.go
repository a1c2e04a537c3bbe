package lambdaio

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// QueueVisibility moves the visibility of messages of one queue.
type QueueVisibility struct {
	client *sqs.Client
	url    string
}

// NewQueueVisibility makes a QueueVisibility.
func NewQueueVisibility(c aws.Config, queueURL string) QueueVisibility {
	return QueueVisibility{client: sqs.NewFromConfig(c), url: queueURL}
}

// ComeBack makes a received message visible again after some time, in whole seconds.
func (q QueueVisibility) ComeBack(ctx context.Context, handle string, after time.Duration) error {
	_, err := q.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &q.url, ReceiptHandle: &handle, VisibilityTimeout: int32(after / time.Second),
	})
	return err
}

var _ Visibility = QueueVisibility{}
