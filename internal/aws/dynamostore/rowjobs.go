package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"pintu/internal/access"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// CreateQueued writes a job that needs no upload, with all that must not exist without it.
func (s *Store) CreateQueued(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job) (job.Job, error) {
	for range maxSlotRaces {
		line, err := s.readLine(ctx, j.Tenant, j.Spec.Dataset)
		if err != nil {
			return j, err
		}
		queued := line.admit(j)
		it, err := jobItem(queued)
		if err != nil {
			return j, err
		}
		tx := transaction{op: "queue job"}
		tx.put(s.control, it, notExists(), job.ErrMoved)
		tx.intent(s, caller, in, idempotency.Created, j)
		tx.countJob(s, caller, j)
		line.write(&tx, s)
		if err := tx.run(ctx, s); err != errLineMoved {
			return queued, err
		}
	}
	return j, unavailable("queue job", errLineMoved)
}

// PinRows writes the list that a retry of rows goes by, with the layout of its rows, once.
func (s *Store) PinRows(ctx context.Context, j job.Job) error {
	return s.updateJob(ctx, "pin rows", j, fields{"Plan": j.Plan, "Input": j.Input, "Warnings": j.Warnings, "Progress": j.Progress},
		inStatus(job.Running).And(expression.Name("Plan.Pinned").Equal(expression.Value(false)), planOpen()))
}
