package lambdaio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"pintu/internal/backoff"
	"pintu/internal/logline"
	"pintu/internal/worker"
)

// Source is the queue a function reads.
type Source struct {
	Name        string // "plan" or "process"
	MaxReceives int    // maxReceiveCount of its redrive policy
	Visibility  Visibility
	Jitter      func() float64 // in [0,1)
}

// Visibility decides when a message that failed comes back.
type Visibility interface {
	ComeBack(ctx context.Context, handle string, after time.Duration) error
}

// A message that failed comes back after 5 s at first and 15 min at last: its ten receives outlast half an
// hour of a dependency that is down, while one short hiccup costs seconds.
const (
	firstReturn = 5 * time.Second
	lastReturn  = 15 * time.Minute
)

// comeBackTimeout bounds the call that moves a message's visibility. It is made outside of the work's
// context, which may be over by then.
const comeBackTimeout = 5 * time.Second

// Messages hands each message of a batch to handle, one after the other. What fails is named in the
// response and in its log line, and comes back later; the rest of the batch is acknowledged. It never
// returns an error beside that: then every message of the batch would come back.
func Messages(s Source, handle func(context.Context, worker.Message) error, log *logline.Logger) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, e events.SQSEvent) (out events.SQSEventResponse, _ error) {
		for _, record := range e.Records {
			ctx, line := log.Begin(ctx, "message", slog.String("queue", s.Name), slog.String("message_id", record.MessageId))
			err := s.receive(ctx, record, handle)
			if err != nil {
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
			}
			line.End(err)
		}
		return out, nil
	}
}

func (s Source) receive(ctx context.Context, record events.SQSMessage, handle func(context.Context, worker.Message) error) error {
	m, err := s.message(record)
	if err == nil {
		logline.Add(ctx, slog.String("kind", string(m.Hint.Kind)), slog.String("request_id", m.Hint.RequestID), slog.String("tenant", m.Hint.Tenant),
			slog.String("job_id", string(m.Hint.JobID)), slog.Int("chunk", m.Hint.Chunk), slog.Int("receive", m.ReceiveCount))
		err = guarded(ctx, func() error { return handle(ctx, m) })
	}
	if err != nil {
		err = errors.Join(err, s.comeBack(ctx, record, m.ReceiveCount))
	}
	return err
}

// guarded turns a panic into an error: one message must not take the process, and with it the answers for
// the others of its batch, away.
func guarded(ctx context.Context, work func() error) (err error) {
	defer caught(ctx, &err)
	return work()
}

// message reads a record. One that cannot be read is received until the dead-letter queue has it: no
// sender of ours makes such, so a person must look.
func (s Source) message(record events.SQSMessage) (worker.Message, error) {
	m := worker.Message{Queue: s.Name, MaxReceives: s.MaxReceives}
	var err error
	if m.ReceiveCount, err = strconv.Atoi(record.Attributes["ApproximateReceiveCount"]); err != nil {
		return m, fmt.Errorf("receive count: %w", err)
	}
	sent, err := strconv.ParseInt(record.Attributes["SentTimestamp"], 10, 64)
	if err != nil {
		return m, fmt.Errorf("time sent: %w", err)
	}
	m.SentAt = time.UnixMilli(sent).UTC()
	if err := json.Unmarshal([]byte(record.Body), &m.Hint); err != nil {
		return m, fmt.Errorf("message body: %w", err)
	}
	return m, nil
}

func (s Source) comeBack(ctx context.Context, record events.SQSMessage, receives int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), comeBackTimeout)
	defer cancel()
	after := backoff.Exponential(max(receives, 1), firstReturn, lastReturn, s.Jitter()).Round(time.Second)
	logline.Add(ctx, slog.Int("back_in_s", int(after.Seconds())))
	if err := s.Visibility.ComeBack(ctx, record.ReceiptHandle, after); err != nil {
		return fmt.Errorf("move visibility: %w", err) // the queue's own visibility time-out brings it back
	}
	return nil
}
