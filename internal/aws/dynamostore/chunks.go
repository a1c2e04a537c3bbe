package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/id"
	"pintu/internal/importer"
	"pintu/internal/job"
)

var _ importer.Store = (*Store)(nil)

func chunkItem(c importer.Chunk) (item, error) {
	it, err := marshal(chunkKey(c.Tenant, c.JobID, c.Index), c)
	if err != nil {
		return nil, err
	}
	it[attrRejected] = num(c.Counters.Rejected)
	return it, nil
}

// Chunk reads one chunk, strongly consistent.
func (s *Store) Chunk(ctx context.Context, tenant string, jobID id.Job, index int) (importer.Chunk, error) {
	it, err := s.get(ctx, "read chunk", chunkKey(tenant, jobID, index))
	if err != nil {
		return importer.Chunk{}, err
	}
	if it == nil {
		return importer.Chunk{}, fmt.Errorf("chunk %d of job %s does not exist", index, jobID)
	}
	var c importer.Chunk
	return c, unmarshal(it, &c)
}

// Chunks reads a page of a job's chunks in order, strongly consistent. It is empty at the end.
func (s *Store) Chunks(ctx context.Context, tenant string, jobID id.Job, from int) ([]importer.Chunk, error) {
	first := chunkKey(tenant, jobID, from)
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.control, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("pk = :pk AND sk BETWEEN :from AND :to"),
		ExpressionAttributeValues: item{":pk": str(first.pk), ":from": str(first.sk), ":to": str(prefixChunk + "~")},
	})
	if err != nil {
		return nil, unavailable("read chunks", err)
	}
	chunks := make([]importer.Chunk, len(out.Items))
	for i, it := range out.Items {
		if err := unmarshal(it, &chunks[i]); err != nil {
			return nil, err
		}
	}
	return chunks, nil
}

// StartRunning moves a queued job that has a slot to running.
func (s *Store) StartRunning(ctx context.Context, j job.Job, now time.Time) error {
	return s.updateJob(ctx, "start job", j, fields{"Status": job.Running, "StartedAt": now, "Progress.Stage": job.Validating, attrDueAt: millis(now.Add(job.LookAgain))},
		inStatus(job.Queued).And(expression.Name("Slot").Equal(expression.Value(j.Slot))))
}

// PinPlan writes the layout and sizes, once.
func (s *Store) PinPlan(ctx context.Context, j job.Job) error {
	return s.updateJob(ctx, "pin plan", j, fields{"Plan": j.Plan, "Warnings": j.Warnings, "Progress": j.Progress},
		inStatus(job.Running).And(expression.Name("Plan.Pinned").Equal(expression.Value(false)), planOpen()))
}

// AddChunk writes the next chunk together with the plan behind it.
func (s *Store) AddChunk(ctx context.Context, c importer.Chunk, plan job.Plan) error {
	it, err := chunkItem(c)
	if err != nil {
		return err
	}
	tx := transaction{op: "add chunk"}
	tx.put(s.control, it, notExists(), job.ErrMoved)
	tx.update(s.control, jobKey(c.Tenant, c.JobID), setAll(fields{
		"Plan.ChunksPlanned": plan.ChunksPlanned, "Plan.At": plan.At, "Plan.HashState": plan.HashState,
	}), inStatus(job.Running).And(planOpen(), expression.Name("Plan.ChunksPlanned").Equal(expression.Value(c.Index))), job.ErrMoved)
	return tx.run(ctx, s)
}

// ClosePlan ends the plan at the number of chunks that was seen.
func (s *Store) ClosePlan(ctx context.Context, j job.Job, complete bool, sha256 string) error {
	f := fields{"Plan.Closed": true, "Plan.Complete": complete}
	if complete {
		f["Input.SHA256"] = sha256
	}
	return s.updateJob(ctx, "close plan", j, f,
		inStatus(job.Running).And(planOpen(), expression.Name("Plan.ChunksPlanned").Equal(expression.Value(j.Plan.ChunksPlanned))))
}

// RequestStop has a running job end as failed once its chunks have stopped. The first reason stands.
func (s *Store) RequestStop(ctx context.Context, j job.Job, why job.Failure) error {
	none := expression.AttributeNotExists(expression.Name("Stop")).Or(expression.AttributeType(expression.Name("Stop"), expression.Null))
	err := s.updateJob(ctx, "stop job", j, fields{"Stop": why}, inStatus(job.Running).And(none, uncommitted()))
	if !errors.Is(err, job.ErrMoved) {
		return err
	}
	now, rerr := s.Job(ctx, j.Tenant, j.ID)
	if rerr == nil && now.Status == job.Running && now.Stop != nil {
		return nil
	}
	return errors.Join(err, rerr)
}

// ShowProgress copies progress for people, unless somebody did since it was read.
func (s *Store) ShowProgress(ctx context.Context, j job.Job, p job.Progress) error {
	return s.updateJob(ctx, "show progress", j, fields{"Progress": p},
		inStatus(job.Running).And(expression.Name("Progress.At").Equal(expression.Value(j.Progress.At))))
}

// Claim takes a chunk: whoever held it before can no longer write its checkpoint.
func (s *Store) Claim(ctx context.Context, c importer.Chunk) error {
	return s.updateChunk(ctx, "claim chunk", c, fields{"Version": c.Version + 1, "Started": true})
}

// Checkpoint writes how far a claimed chunk has come, with its counters.
func (s *Store) Checkpoint(ctx context.Context, c importer.Chunk) error {
	return s.updateChunk(ctx, "write checkpoint", c, fields{
		"Version": c.Version + 1, "At": c.At, "Counters": c.Counters, "Trailing": c.Trailing, attrRejected: c.Counters.Rejected,
	})
}

// EndChunk marks a chunk done and counts it on its job. Its stalled mark goes with it, and must be as it
// was read: the job's count of marks moves by what was read.
func (s *Store) EndChunk(ctx context.Context, c importer.Chunk) error {
	tx := transaction{op: "end chunk"}
	mark := unset("Stalled")
	if c.Stalled != nil {
		mark = expression.Not(mark)
	}
	tx.update(s.control, chunkKey(c.Tenant, c.JobID, c.Index),
		setAll(fields{"Version": c.Version + 1, "Done": true, "Stopped": c.Stopped, "At": c.At, "Stalled": nil}), held(c).And(mark), job.ErrMoved)
	u := expression.Add(expression.Name("Plan.ChunksDone"), expression.Value(1))
	if c.Stalled != nil {
		u = u.Add(expression.Name("StalledCount"), expression.Value(-1))
	}
	tx.update(s.control, jobKey(c.Tenant, c.JobID), u, inStatus(job.Running), job.ErrMoved)
	return tx.run(ctx, s)
}

// MarkAgain marks a chunk one of whose rows is about to lose its key to a smaller row.
func (s *Store) MarkAgain(ctx context.Context, tenant string, jobID id.Job, chunk int) error {
	c := importer.Chunk{Tenant: tenant, JobID: jobID, Index: chunk}
	return s.update(ctx, "mark chunk", chunkKey(tenant, jobID, chunk), setAll(fields{"Again": true}), exists(), fmt.Errorf("chunk %d does not exist", c.Index))
}

// RunAgain opens a done and marked chunk for its second run, over what the first run settled.
func (s *Store) RunAgain(ctx context.Context, c importer.Chunk) error {
	tx := transaction{op: "run chunk again"}
	tx.update(s.control, chunkKey(c.Tenant, c.JobID, c.Index), setAll(fields{
		"Version": c.Version + 1, "Again": false, "Done": false, "Rerun": true, "Until": c.At.Offset, "At": c.Start,
		"Counters": job.Counters{}, "Trailing": 0, attrRejected: 0,
	}), version(c).And(expression.Name("Done").Equal(expression.Value(true)), expression.Name("Again").Equal(expression.Value(true))), job.ErrMoved)
	tx.update(s.control, jobKey(c.Tenant, c.JobID), expression.Add(expression.Name("Plan.ChunksDone"), expression.Value(-1)), inStatus(job.Running), job.ErrMoved)
	return tx.run(ctx, s)
}

func planOpen() expression.ConditionBuilder {
	return expression.Name("Plan.Closed").Equal(expression.Value(false))
}

func version(c importer.Chunk) expression.ConditionBuilder {
	return expression.Name("Version").Equal(expression.Value(c.Version))
}

// held is the condition of everything that a chunk's holder writes.
func held(c importer.Chunk) expression.ConditionBuilder {
	return version(c).And(expression.Name("Done").Equal(expression.Value(false)))
}

func (s *Store) updateChunk(ctx context.Context, op string, c importer.Chunk, f fields) error {
	return s.update(ctx, op, chunkKey(c.Tenant, c.JobID, c.Index), setAll(f), held(c), job.ErrMoved)
}

func (s *Store) updateJob(ctx context.Context, op string, j job.Job, f fields, cond expression.ConditionBuilder) error {
	return s.update(ctx, op, jobKey(j.Tenant, j.ID), setAll(f), cond, job.ErrMoved)
}

// update is one conditional write to the control table. A refused condition is the given error.
func (s *Store) update(ctx context.Context, op string, k key, u expression.UpdateBuilder, cond expression.ConditionBuilder, refusal error) error {
	e, err := expression.NewBuilder().WithUpdate(u).WithCondition(cond).Build()
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	_, err = s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &s.control, Key: k.item(), UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values()})
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		return refusal
	case err != nil:
		return unavailable(op, err)
	}
	return nil
}
