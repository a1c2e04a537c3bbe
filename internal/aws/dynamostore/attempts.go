package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"pintu/internal/access"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// CreateAttempt writes the next attempt of a job with all that must not exist without it, and its name on
// the job before it. One that needs no upload gets a slot or a place in the line as well.
func (s *Store) CreateAttempt(ctx context.Context, caller access.Caller, in idempotency.Intent, j, of job.Job, stale id.Job) (job.Job, error) {
	for range maxSlotRaces {
		tx := transaction{op: "retry job"}
		made := j
		if j.Status == job.Queued {
			line, err := s.readLine(ctx, j.Tenant, j.Spec.Dataset)
			if err != nil {
				return j, err
			}
			made = line.admit(j)
			line.write(&tx, s)
		}
		it, err := jobItem(made)
		if err != nil {
			return j, err
		}
		tx.put(s.control, it, notExists(), job.ErrMoved)
		tx.intent(s, caller, in, idempotency.Created, made)
		tx.update(s.control, jobKey(of.Tenant, of.ID), setAll(fields{"RetriedBy": made.ID}), inStatus(of.Status).And(noSuccessor()), job.ErrMoved)
		tx.dedupe(s, made, stale)
		tx.countJob(s, caller, made)
		if err := tx.run(ctx, s); err != errLineMoved {
			return made, err
		}
	}
	return j, unavailable("retry job", errLineMoved)
}

// RememberRetry writes an intent that found the attempt j of a job, while it is that.
func (s *Store) RememberRetry(ctx context.Context, caller access.Caller, in idempotency.Intent, of, j job.Job) error {
	tx := transaction{op: "remember retry"}
	tx.check(s.control, jobKey(of.Tenant, of.ID), expression.Name("RetriedBy").Equal(expression.Value(j.ID)), job.ErrMoved)
	tx.intent(s, caller, in, idempotency.Created, j)
	return tx.run(ctx, s)
}

func noSuccessor() expression.ConditionBuilder {
	return expression.AttributeNotExists(expression.Name("RetriedBy")).Or(expression.Name("RetriedBy").Equal(expression.Value("")))
}
