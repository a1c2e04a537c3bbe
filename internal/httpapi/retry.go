package httpapi

import (
	"context"

	"pintu/internal/access"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// retryJob makes the next attempt of a job, or finds the one that it has.
func (a *api) retryJob(c *call) (reply, error) {
	return a.runAgain(c, func(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job, version int) (job.Submitted, error) {
		var other *int // null: as before
		if version != 0 {
			other = &version
		}
		return a.Jobs.Retry(ctx, caller, in, c.requestID, jobID, other)
	})
}

// reprocessJob runs the input of a job that ended well again, as a job of its own.
func (a *api) reprocessJob(c *call) (reply, error) {
	return a.runAgain(c, func(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job, version int) (job.Submitted, error) {
		return a.Jobs.Reprocess(ctx, caller, in, c.requestID, jobID, version)
	})
}

// runAgain answers a request that makes a job of another one, at the dataset version that the body may name.
func (a *api) runAgain(c *call, run func(context.Context, access.Caller, idempotency.Intent, id.Job, int) (job.Submitted, error)) (reply, error) {
	var bad problems
	o := bad.readObject(c.body)
	asked := struct {
		DatasetVersion int `json:"dataset_version"`
	}{int(o.whole("dataset_version", 0, 1, 1<<31-1))}
	o.close()
	if err := bad.err(); err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	in, err := c.intent(asked)
	if err != nil {
		return reply{}, err
	}
	done, err := run(c.ctx(), c.caller, in, jobID, asked.DatasetVersion)
	if err != nil {
		return reply{}, err
	}
	return submitted(c, done)
}
