// Package sweep looks at every job whose time has come and sets it going again: hints that were lost,
// uploads finished but not completed or never finished, work without progress, time limits. It goes by
// the due index alone and may run twice at once: it decides nothing that a condition does not confirm.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/importer"
	"pintu/internal/job"
)

// Due names a job to look at.
type Due struct {
	Tenant string
	JobID  id.Job
}

// Store is what sweep reads and writes.
type Store interface {
	DueShards() int
	Due(ctx context.Context, shard int, now time.Time, limit int) ([]Due, error)
	Job(ctx context.Context, tenant string, jobID id.Job) (job.Job, error)
	Chunks(ctx context.Context, tenant string, jobID id.Job, from int) ([]importer.Chunk, error)
	OldestStalled(ctx context.Context, j job.Job) (*job.Stalled, error)
	SaveLook(ctx context.Context, j job.Job, looks int, mark string, due time.Time) error
	RequestStop(ctx context.Context, j job.Job, why job.Failure) error
	MarkStalled(ctx context.Context, j job.Job, mark job.Stalled) error
	// AbandonChunk ends a stalled chunk at its checkpoint, with a warning. It fails with job.ErrMoved when
	// chunk or job moved since they were read.
	AbandonChunk(ctx context.Context, j job.Job, c importer.Chunk, warning job.Warning) error
}

// Jobs moves jobs on (job.Service).
type Jobs interface {
	CompleteUpload(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job) (job.Job, error)
	End(ctx context.Context, e job.Ending) (job.Job, error)
}

// Queue tells whether messages are waiting.
type Queue interface {
	Idle(ctx context.Context, kind job.HintKind) (bool, error)
}

// Sweeper sweeps.
type Sweeper struct {
	store Store
	jobs  Jobs
	hints job.Hints
	queue Queue
	now   func() time.Time
}

// New makes a Sweeper.
func New(store Store, jobs Jobs, hints job.Hints, queue Queue, now func() time.Time) *Sweeper {
	return &Sweeper{store: store, jobs: jobs, hints: hints, queue: queue, now: now}
}

// perShard bounds how many jobs of one shard one sweep looks at; the rest is as due a minute later.
const perShard = 200

// Report counts what one sweep did.
type Report struct {
	Looked int
	Failed int
}

// Run looks at all jobs that are due. A job that cannot be looked at now stays due and does not keep the
// others waiting; the error tells of all of them.
func (s *Sweeper) Run(ctx context.Context) (Report, error) {
	var r Report
	var errs []error
	for shard := range s.store.DueShards() {
		due, err := s.store.Due(ctx, shard, s.now(), perShard)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, d := range due {
			if ctx.Err() != nil {
				return r, errors.Join(append(errs, ctx.Err())...)
			}
			r.Looked++
			if err := s.look(ctx, d); err != nil && !errors.Is(err, job.ErrMoved) {
				r.Failed++
				errs = append(errs, fmt.Errorf("look at job %s: %w", d.JobID, err))
			}
		}
	}
	return r, errors.Join(errs...)
}

func (s *Sweeper) look(ctx context.Context, d Due) error {
	j, err := s.store.Job(ctx, d.Tenant, d.JobID)
	if fault.Is(err, fault.JobNotFound) || err == nil && (j.Status.Terminal() || j.DueAt.After(s.now())) {
		return nil // the index is behind
	}
	if err != nil {
		return err
	}
	if j.Status == job.Uploading {
		return s.upload(ctx, j)
	}
	return s.work(ctx, j)
}

// upload completes an upload whose client went away after it, or ends the job when its window is over.
func (s *Sweeper) upload(ctx context.Context, j job.Job) error {
	_, err := s.jobs.CompleteUpload(ctx, access.Caller{}, idempotency.Intent{}, j)
	if fault.Is(err, fault.UploadMismatch) {
		return nil // the job ended with that
	}
	if !fault.Is(err, fault.UploadNotFound) {
		return err
	}
	now := s.now().UTC()
	// A URL that was given at the last moment, also by a replay of the submit, is good for a while yet.
	last := j.Input.WindowEndsAt.Add(job.DefaultURLLife)
	if now.Before(last) {
		return s.store.SaveLook(ctx, j, 0, "", minTime(now.Add(job.LookAgain), last))
	}
	why := &job.Failure{Code: fault.UploadExpired, Message: "nothing was uploaded before the upload window ended; submit again"}
	_, err = s.jobs.End(ctx, job.Ending{Job: j, Status: job.Failed, Error: why, At: now})
	return err
}

// work sends the hint of a queued or running job again, and does more when job stands still.
func (s *Sweeper) work(ctx context.Context, j job.Job) error {
	j, err := s.limit(ctx, j)
	if err != nil {
		return err
	}
	looks, mark := 0, progressMark(j)
	if mark == j.LookMark {
		looks = j.Looks + 1
	}
	if looks > 0 && j.Status == job.Running {
		tried, err := s.wake(ctx, j, looks)
		if err != nil {
			return err
		}
		if !tried {
			looks-- // only looks that sent something count as tries that came to nothing
		}
	}
	// The due time moves first: a hint whose sending fails is sent by the next look.
	if err := s.store.SaveLook(ctx, j, looks, mark, s.now().Add(nextLook(looks))); err != nil {
		return err
	}
	if j.Slot == job.NoSlot {
		return nil // waits for another job's end, which hands the slot on
	}
	return s.hints.Send(ctx, j.Hint())
}

// limit asks a job to stop that took too long, or whose message is gone from the dead-letter queue. It
// gives the job as it is then.
func (s *Sweeper) limit(ctx context.Context, j job.Job) (job.Job, error) {
	if j.Status != job.Running || stopping(j) || !j.CommittedAt.IsZero() { // what is committed goes on to its end
		return j, nil
	}
	if j.TimeLimit > 0 && s.now().After(j.StartedAt.Add(j.TimeLimit)) {
		return s.stop(ctx, j, fault.JobTimeLimit, fmt.Sprintf("the job did not end within %s; retry it or split the file", j.TimeLimit))
	}
	if j.StalledCount == 0 {
		return j, nil
	}
	oldest, err := s.store.OldestStalled(ctx, j)
	if err != nil || oldest == nil || s.now().Before(oldest.ExpiresAt) {
		return j, err
	}
	return s.stop(ctx, j, fault.DeadLetterExpired, "a message of this job stayed in the dead-letter queue until it expired; retry the job")
}

func (s *Sweeper) stop(ctx context.Context, j job.Job, code fault.Code, message string) (job.Job, error) {
	j.Stop = &job.Failure{Code: code, Message: message}
	return j, s.store.RequestStop(ctx, j, *j.Stop)
}

// stopping tells that the chunks of a job are to stop where they are.
func stopping(j job.Job) bool { return j.Stop != nil || !j.CancelRequestedAt.IsZero() }

// silentLooks is after how many looks without progress, each with its hints sent again, a job is shown as
// stalled although no message of it failed, and a stalled chunk that is to stop is sent no more.
const silentLooks = 3

// wake sends the hints of all open chunks again, unless something waits in the queue that could be them.
func (s *Sweeper) wake(ctx context.Context, j job.Job, looks int) (tried bool, err error) {
	idle, err := s.queue.Idle(ctx, job.HintProcess)
	if err != nil || !idle {
		return false, err
	}
	for from := 0; ; {
		page, err := s.store.Chunks(ctx, j.Tenant, j.ID, from)
		if err != nil || len(page) == 0 {
			return true, err
		}
		for _, c := range page {
			from = c.Index + 1
			if err := s.wakeChunk(ctx, &j, c, looks); err != nil {
				return true, err
			}
		}
	}
}

func (s *Sweeper) wakeChunk(ctx context.Context, j *job.Job, c importer.Chunk, looks int) error {
	switch {
	case c.Done, c.Stalled != nil && !c.Stalled.Silent && !stopping(*j):
		return nil // a stalled chunk's message lies in the dead-letter queue; a second one would follow it there
	case c.Stalled != nil && looks > silentLooks && !(c.Stalled.Silent && s.now().Before(c.Stalled.ExpiresAt)):
		return s.abandon(ctx, j, c)
	}
	if looks == silentLooks {
		mark := job.Stalled{Since: s.now().UTC(), Queue: string(job.HintProcess), Reason: "silent: its messages came to nothing", Silent: true, Chunk: c.Index,
			ExpiresAt: s.now().Add(14 * 24 * time.Hour).UTC()}
		if err := s.store.MarkStalled(ctx, *j, mark); err != nil && !errors.Is(err, job.ErrMoved) {
			return err
		}
	}
	return s.hints.Send(ctx, importer.ChunkHint(*j, c.Index))
}

// abandon ends a chunk that could not even be stopped: nobody gets through the batch behind its checkpoint,
// of which some rows may have been applied. Until its message is gone from the dead-letter queue a redrive
// may still heal it.
func (s *Sweeper) abandon(ctx context.Context, j *job.Job, c importer.Chunk) error {
	if s.now().Before(c.Stalled.ExpiresAt) {
		return nil
	}
	end := c.Start.Row + c.Rows
	if !c.Rerun { // else everything that its first run settled is in doubt
		end = min(end, c.At.Row+int64(j.Plan.BatchRows))
	}
	warning := job.Warning{Code: fault.RowsInDoubt, Message: "these rows may have been applied, and no counter says so: their chunk failed every time, also when it was to stop",
		Details: map[string]any{"chunk": c.Index, "first_row": c.At.Row, "last_row": end - 1}}
	if err := s.store.AbandonChunk(ctx, *j, c, warning); err != nil {
		return err
	}
	j.Plan.ChunksDone++
	j.StalledCount--
	j.Warnings = append(j.Warnings, warning)
	return nil
}

// progressMark is equal for two looks exactly if nothing happened in between.
func progressMark(j job.Job) string {
	return fmt.Sprint(j.Status, j.Slot, j.Plan.Pinned, j.Plan.ChunksPlanned, j.Plan.ChunksDone, j.Plan.Closed, j.Progress.BytesProcessed,
		j.Progress.RowsAccepted, j.Progress.RowsRejected, j.Progress.Stage, j.Stop != nil, !j.CancelRequestedAt.IsZero(), j.Copied)
}

// nextLook doubles with every look that saw nothing new, up to an hour.
func nextLook(looks int) time.Duration {
	return min(job.LookAgain<<min(looks, 10), time.Hour)
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
