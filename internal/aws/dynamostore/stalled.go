package dynamostore

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"pintu/internal/importer"
	"pintu/internal/job"
)

// MarkStalled marks a chunk, or the plan (Chunk -1), whose message is about to enter a dead-letter queue.
// It fails with job.ErrMoved when there is a mark already, or nothing left to stall.
func (s *Store) MarkStalled(ctx context.Context, j job.Job, mark job.Stalled) error {
	tx := transaction{op: "mark stalled"}
	f := fields{}
	cond := inStatus(j.Status)
	if mark.Chunk < 0 {
		f["PlanStalled"] = mark
		cond = cond.And(unset("PlanStalled"))
	} else {
		tx.update(s.control, chunkKey(j.Tenant, j.ID, mark.Chunk), setAll(fields{"Stalled": mark}),
			expression.Name("Done").Equal(expression.Value(false)).And(unset("Stalled")), job.ErrMoved)
	}
	u := expression.Add(expression.Name("StalledCount"), expression.Value(1))
	for name, v := range f {
		u = u.Set(expression.Name(name), expression.Value(v))
	}
	tx.update(s.control, jobKey(j.Tenant, j.ID), u, cond, job.ErrMoved)
	return tx.run(ctx, s)
}

// ClearStalled takes a mark away after its message was worked on. Nothing happens when there is none.
func (s *Store) ClearStalled(ctx context.Context, j job.Job, chunk int) error {
	tx := transaction{op: "clear stalled"}
	u := expression.Add(expression.Name("StalledCount"), expression.Value(-1))
	cond := inStatus(j.Status)
	if chunk < 0 {
		u = u.Set(expression.Name("PlanStalled"), expression.Value(nil))
		cond = cond.And(expression.Not(unset("PlanStalled")))
	} else {
		tx.update(s.control, chunkKey(j.Tenant, j.ID, chunk), setAll(fields{"Stalled": nil}), expression.Not(unset("Stalled")), job.ErrMoved)
	}
	tx.update(s.control, jobKey(j.Tenant, j.ID), u, cond, job.ErrMoved)
	return tx.run(ctx, s)
}

// AbandonChunk ends a stalled chunk at its checkpoint and counts it on its job, with a warning. Chunk and
// job must be as they were read: the warnings are written as a whole.
func (s *Store) AbandonChunk(ctx context.Context, j job.Job, c importer.Chunk, warning job.Warning) error {
	tx := transaction{op: "abandon chunk"}
	tx.update(s.control, chunkKey(j.Tenant, j.ID, c.Index), setAll(fields{"Version": c.Version + 1, "Done": true, "Stopped": true, "Stalled": nil}),
		held(c).And(expression.Not(unset("Stalled"))), job.ErrMoved)
	u := setAll(fields{"Warnings": append(slices.Clone(j.Warnings), warning)}).
		Add(expression.Name("Plan.ChunksDone"), expression.Value(1)).Add(expression.Name("StalledCount"), expression.Value(-1))
	tx.update(s.control, jobKey(j.Tenant, j.ID), u,
		inStatus(job.Running).And(expression.Name("Plan.ChunksDone").Equal(expression.Value(j.Plan.ChunksDone))), job.ErrMoved)
	return tx.run(ctx, s)
}

// unset is the condition that an attribute is absent or null.
func unset(name string) expression.ConditionBuilder {
	return expression.AttributeNotExists(expression.Name(name)).Or(expression.AttributeType(expression.Name(name), expression.Null))
}

// OldestStalled gives the oldest mark of a job, or nil. It reads all chunks, which only a job with a mark
// pays for.
func (s *Store) OldestStalled(ctx context.Context, j job.Job) (*job.Stalled, error) {
	oldest := j.PlanStalled
	for from := 0; ; {
		page, err := s.Chunks(ctx, j.Tenant, j.ID, from)
		if err != nil || len(page) == 0 {
			return oldest, err
		}
		for _, c := range page {
			if c.Stalled != nil && (oldest == nil || c.Stalled.Since.Before(oldest.Since)) {
				oldest = c.Stalled
			}
			from = c.Index + 1
		}
	}
}

// SaveLook moves a job's due time, with what sweep saw of its progress. It fails with job.ErrMoved when
// the job's state changed since it was read.
func (s *Store) SaveLook(ctx context.Context, j job.Job, looks int, mark string, due time.Time) error {
	return s.updateJob(ctx, "move due time", j, fields{"Looks": looks, "LookMark": mark, attrDueAt: millis(due)}, inStatus(j.Status))
}
