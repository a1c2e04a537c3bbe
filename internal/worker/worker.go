// Package worker takes queue messages: it marks a message that is received for the last time, has the
// processor of its job work on it, and says whether it can be acknowledged. Only who saw the work done,
// or the job over, acknowledges (PROTOCOL A13). It refuses to know what the work is.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/job"
)

// Message is a hint as it was received.
type Message struct {
	Hint         job.Hint
	ReceiveCount int // this receive included
	MaxReceives  int // after that many the queue moves it to its dead-letter queue
	SentAt       time.Time
	Queue        string
}

// Processor works on jobs of one kind.
type Processor interface {
	// Advance does what a job as a whole needs next.
	Advance(ctx context.Context, h job.Hint) error
	// Process works on one chunk.
	Process(ctx context.Context, h job.Hint) error
}

// Store keeps the marks of stalled work.
type Store interface {
	Job(ctx context.Context, tenant string, jobID id.Job) (job.Job, error)
	MarkStalled(ctx context.Context, j job.Job, mark job.Stalled) error
	ClearStalled(ctx context.Context, j job.Job, chunk int) error
}

// Handler handles messages.
type Handler struct {
	store     Store
	processor Processor
	now       func() time.Time
}

// New makes a Handler.
func New(store Store, processor Processor, now func() time.Time) *Handler {
	return &Handler{store: store, processor: processor, now: now}
}

// deadLetterRetention is how long a dead-letter queue keeps a message, counted from its first send:
// moving it there does not make it younger (PROTOCOL A10).
const deadLetterRetention = 14 * 24 * time.Hour

// Handle works on one message. nil acknowledges it; an error leaves it to the queue.
func (h *Handler) Handle(ctx context.Context, m Message) error {
	last := m.ReceiveCount >= m.MaxReceives
	if last {
		if over, err := h.mark(ctx, m); over || err != nil {
			return err
		}
	}
	err := h.work(ctx, m.Hint)
	if fault.Is(err, fault.JobNotFound) {
		return nil // past its retention, or lost by a restore: there is nothing to work on
	}
	if err != nil {
		return err
	}
	return h.clear(ctx, m.Hint)
}

func (h *Handler) work(ctx context.Context, hint job.Hint) error {
	switch hint.Kind {
	case job.HintPlan:
		return h.processor.Advance(ctx, hint)
	case job.HintProcess:
		return h.processor.Process(ctx, hint)
	}
	return fmt.Errorf("message of kind %q: no such work", hint.Kind)
}

// mark shows people that this message may be about to enter the dead-letter queue. It is written before
// the work: work that kills its process could not write it afterwards.
func (h *Handler) mark(ctx context.Context, m Message) (over bool, err error) {
	j, err := h.store.Job(ctx, m.Hint.Tenant, m.Hint.JobID)
	if fault.Is(err, fault.JobNotFound) || err == nil && j.Status.Terminal() {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	mark := job.Stalled{Since: h.now().UTC(), Queue: m.Queue, Reason: fmt.Sprintf("received %d times without getting through", m.ReceiveCount),
		Chunk: m.Hint.Chunk, ExpiresAt: m.SentAt.Add(deadLetterRetention).UTC()}
	if err := h.store.MarkStalled(ctx, j, mark); err != nil && !errors.Is(err, job.ErrMoved) {
		return false, err
	}
	return false, nil
}

// clear takes the mark of this work away, if there still is one.
func (h *Handler) clear(ctx context.Context, hint job.Hint) error {
	j, err := h.store.Job(ctx, hint.Tenant, hint.JobID)
	if err != nil || j.StalledCount == 0 || j.Status.Terminal() {
		return err
	}
	if err := h.store.ClearStalled(ctx, j, hint.Chunk); err != nil && !errors.Is(err, job.ErrMoved) {
		return err
	}
	return nil
}
