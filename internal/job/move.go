package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
)

// Complete tells that the upload is done: the object is checked against what was declared and its
// version pinned. A client may say so any number of times.
func (s *Service) Complete(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job) (Moved, error) {
	if found, _, err := s.replayed(ctx, caller, in); err != nil || found != nil {
		return moved(found, true, err)
	}
	j, err := s.store.Job(ctx, caller.Tenant, jobID)
	if err != nil {
		return Moved{}, err
	}
	for range maxRaces {
		if j.Status != Uploading {
			if j.UploadedAt.IsZero() {
				return Moved{}, wrongState(j, "this upload can no longer be completed")
			}
			return s.same(ctx, caller, in, j)
		}
		queued, err := s.CompleteUpload(ctx, caller, in, j)
		if errors.Is(err, ErrIntentTaken) {
			found, _, err := s.replayed(ctx, caller, in)
			return moved(found, true, err)
		}
		if !errors.Is(err, ErrMoved) {
			return moved(&queued, false, err)
		}
		if j, err = s.store.Job(ctx, caller.Tenant, jobID); err != nil {
			return Moved{}, err
		}
	}
	return Moved{}, busy()
}

// same answers a request whose job is already as it asks it to be. Its key is remembered like any other
// that was answered with a job; when it was taken meanwhile, the request that took it was this one, sent twice.
func (s *Service) same(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) (Moved, error) {
	if in.Key == "" {
		return Moved{Job: j}, nil
	}
	err := s.store.RememberSame(ctx, caller, in, j)
	if errors.Is(err, ErrIntentTaken) {
		found, _, err := s.replayed(ctx, caller, in)
		return moved(found, true, err)
	}
	return Moved{Job: j}, err
}

// CompleteUpload checks the object of a job that is uploading and queues the job. It serves the request
// and sweep alike; sweep's caller has no limits. An object that is not what was declared fails the job.
func (s *Service) CompleteUpload(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) (Job, error) {
	obj, found, err := s.blob.Head(ctx, j.Input.Key)
	if err != nil {
		return j, err
	}
	if !found {
		return j, fault.New(fault.UploadNotFound, "nothing was uploaded yet; send the file to the upload URL first, then complete again")
	}
	if mismatch := compare(j.Spec.File, obj); mismatch != nil {
		e := Ending{Job: j, Status: Failed, At: s.now().UTC(), Result: Result{RowsTotal: nil},
			Error: &Failure{Code: mismatch.Code, Message: mismatch.Message, Details: mismatch.Details}}
		if _, err := s.End(ctx, e); err != nil {
			return j, err
		}
		return j, mismatch
	}
	now := s.now().UTC()
	j.UploadedAt, j.DueAt = now, now.Add(LookAgain)
	j.Input.VersionID, j.Input.SizeBytes, j.Input.SHA256 = obj.VersionID, obj.SizeBytes, obj.SHA256
	j, err = s.store.Enqueue(ctx, caller, in, j, caller.Limits.ActiveJobs)
	if err != nil {
		return j, err
	}
	if j.Slot == NoSlot {
		return j, nil
	}
	// A hint that cannot be sent now is sent by sweep: the job is due.
	_ = s.hints.Send(ctx, j.Hint())
	return j, nil
}

// compare tells how an uploaded object differs from what was declared, or nil.
func compare(f File, obj Object) *fault.Error {
	mismatch := func(what string, declared, uploaded any) *fault.Error {
		return fault.New(fault.UploadMismatch, "the uploaded file's %s is not the declared one; submit a new job with the right declaration", what).
			With("declared", declared).With("uploaded", uploaded).With("what", what)
	}
	switch {
	case obj.SizeBytes != f.SizeBytes:
		return mismatch("size_bytes", f.SizeBytes, obj.SizeBytes)
	case obj.ContentType != f.ContentType:
		return mismatch("content_type", f.ContentType, obj.ContentType)
	case f.SHA256 != "" && obj.SHA256 != "" && f.SHA256 != obj.SHA256:
		return mismatch("sha256", f.SHA256, obj.SHA256)
	}
	return nil
}

// Cancel ends a job that no worker has begun, and asks the workers of a running one to stop.
func (s *Service) Cancel(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job) (Moved, error) {
	if found, _, err := s.replayed(ctx, caller, in); err != nil || found != nil {
		return moved(found, true, err)
	}
	for range maxRaces {
		j, err := s.store.Job(ctx, caller.Tenant, jobID)
		if err != nil {
			return Moved{}, err
		}
		if j.Status == Canceled || j.Status == Running && !j.CancelRequestedAt.IsZero() {
			return s.same(ctx, caller, in, j)
		}
		if !j.Status.Terminal() && !j.CommittedAt.IsZero() {
			return Moved{}, wrongState(j, "all rows were found good and are being applied; this can no longer be canceled")
		}
		if j.Status.Terminal() {
			return Moved{}, wrongState(j, "a finished job cannot be canceled")
		}
		err = s.cancel(ctx, caller, in, j)
		if errors.Is(err, ErrIntentTaken) {
			found, _, err := s.replayed(ctx, caller, in)
			return moved(found, true, err)
		}
		if errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return Moved{}, err
		}
		j, err = s.store.Job(ctx, caller.Tenant, jobID)
		return Moved{Job: j}, err
	}
	return Moved{}, busy()
}

func (s *Service) cancel(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) error {
	now := s.now().UTC()
	if j.Status != Running {
		_, err := s.End(ctx, Ending{Job: j, Status: Canceled, CanceledBy: "client", At: now, Caller: caller, Intent: in})
		return err
	}
	j.CancelRequestedAt, j.CanceledBy, j.DueAt = now, "client", now.Add(LookAgain)
	if err := s.store.RequestCancel(ctx, caller, in, j); err != nil {
		return err
	}
	_ = s.hints.Send(ctx, j.Hint()) // lost: sweep sends it, the job is due
	return nil
}

// End writes a terminal state, and sends the hints of jobs that got its slot.
func (s *Service) End(ctx context.Context, e Ending) (Job, error) {
	if !slices.Contains(moves[e.Job.Status], e.Status) {
		return e.Job, fmt.Errorf("end job %s: no move from %s to %s: %w", e.Job.ID, e.Job.Status, e.Status, ErrMoved)
	}
	promoted, err := s.store.End(ctx, e)
	if err != nil {
		return e.Job, err
	}
	_ = s.hints.Send(ctx, promoted...) // lost: sweep sends them, the jobs are due
	ended := e.Job
	ended.Status, ended.FinishedAt, ended.Error, ended.Result = e.Status, e.At, e.Error, &e.Result
	return ended, nil
}

// Hint is the message that has the job looked at.
func (j Job) Hint() Hint {
	return Hint{Kind: HintPlan, Tenant: j.Tenant, JobID: j.ID, Chunk: -1, RequestID: j.RequestID}
}

func moved(j *Job, replayed bool, err error) (Moved, error) {
	if err != nil {
		return Moved{}, err
	}
	if j == nil {
		return Moved{}, busy()
	}
	return Moved{Job: *j, Replayed: replayed}, nil
}

func busy() error {
	return fault.New(fault.DependencyUnavailable, "too many requests about this job at once; try again").After(time.Second)
}
