package job

import (
	"context"
	"errors"
	"slices"

	"pintu/internal/access"
	"pintu/internal/id"
	"pintu/internal/idempotency"
)

// Retry makes the next attempt of an import that failed or was canceled: the same input, options and
// deduplication key, at the same dataset version or the one that is given (0: the newest). It reads the
// whole file again under a new epoch (PROTOCOL A18). A job has one successor, which every further retry
// gives. A job whose file was never checked starts with its upload.
func (s *Service) Retry(ctx context.Context, caller access.Caller, in idempotency.Intent, requestID string, jobID id.Job, version *int) (Submitted, error) {
	if found, outcome, err := s.replayed(ctx, caller, in); err != nil || found != nil {
		return s.withGrant(ctx, found, true, outcome, err)
	}
	var allowance *access.Allowance
	for range maxRaces {
		old, err := s.store.Job(ctx, caller.Tenant, jobID)
		if err != nil {
			return Submitted{}, err
		}
		got, err := s.retry(ctx, caller, in, requestID, old, version, &allowance)
		switch {
		case errors.Is(err, ErrIntentTaken):
			found, outcome, err := s.replayed(ctx, caller, in)
			return s.withGrant(ctx, found, true, outcome, err)
		case errors.Is(err, ErrDedupeTaken), errors.Is(err, ErrMoved):
			continue
		}
		got.Allowance = allowance
		return got, err
	}
	return Submitted{}, busy()
}

// retry is one try. It fails with ErrIntentTaken, ErrDedupeTaken, or with ErrMoved when the job has got a
// successor since it was read.
func (s *Service) retry(ctx context.Context, caller access.Caller, in idempotency.Intent, requestID string, old Job, version *int, allowance **access.Allowance) (Submitted, error) {
	if old.RetriedBy != "" {
		return s.found(ctx, idempotency.Created, old.RetriedBy, caller, func(j Job) error { return s.store.RememberRetry(ctx, caller, in, old, j) })
	}
	if err := old.retryable(); err != nil {
		return Submitted{}, err
	}
	draft, err := s.attempt(ctx, caller, requestID, old, version)
	if err != nil {
		return Submitted{}, err
	}
	hit, stale, err := s.deduplicated(ctx, draft)
	if err != nil {
		return Submitted{}, err
	}
	if hit != nil {
		return s.found(ctx, idempotency.Deduplicated, hit.ID, caller, func(j Job) error { return s.store.RememberHit(ctx, caller, in, j) })
	}
	if *allowance == nil {
		a, err := s.rates.TakeSubmit(ctx, caller)
		if err != nil {
			return Submitted{}, err
		}
		*allowance = &a
	}
	made, err := s.store.CreateAttempt(ctx, caller, in, draft, old, stale)
	if err != nil {
		return Submitted{}, err
	}
	if made.Status == Queued && made.Slot != NoSlot {
		_ = s.hints.Send(ctx, made.Hint()) // lost: sweep sends it, the job is due
	}
	return s.withGrant(ctx, &made, false, idempotency.Created, nil)
}

// found answers with a job that is there already, once the intent is remembered with it.
func (s *Service) found(ctx context.Context, outcome idempotency.Outcome, jobID id.Job, caller access.Caller, remember func(Job) error) (Submitted, error) {
	j, err := s.store.Job(ctx, caller.Tenant, jobID)
	if err == nil {
		err = remember(j)
	}
	return s.withGrant(ctx, &j, false, outcome, err)
}

func (j Job) retryable() error {
	switch {
	case j.RowsOf != "":
		return wrongState(j, "this job retries rows of another one; retry those rows again instead")
	case j.Status == Failed || j.Status == Canceled:
		return nil
	case j.Status == Partial:
		return wrongState(j, "only a failed or canceled job can be retried; mend the rejected rows and retry those")
	}
	return wrongState(j, "only a failed or canceled job can be retried")
}

// attempt is the next attempt of a job, about to be made.
func (s *Service) attempt(ctx context.Context, caller access.Caller, requestID string, old Job, version *int) (Job, error) {
	spec := old.Spec
	spec.ForceReprocess = false
	if version != nil {
		v, err := s.datasets.ResolveVersion(ctx, caller.Tenant, spec.Dataset, *version)
		if err != nil {
			return Job{}, err
		}
		spec.DatasetVersion = v
	}
	j := s.draft(caller, requestID, spec)
	j.Attempt, j.RetryOf, j.ReprocessOf, j.Since, j.Work = old.Attempt+1, old.ID, old.ReprocessOf, old.Since, old.work()
	if old.Input.VersionID == "" {
		return j, nil
	}
	return j, s.reuse(ctx, &j, old)
}

// work is the epochs of a job and of what its rows regard as their own work, ascending.
func (j Job) work() []int64 {
	if j.Epoch == 0 { // it never got a slot
		return j.Work
	}
	return append(slices.Clone(j.Work), j.Epoch)
}

// reuse queues a draft with the pinned input of another job.
func (s *Service) reuse(ctx context.Context, j *Job, of Job) error {
	_, found, err := s.blob.Head(ctx, of.Input.Key)
	if err != nil {
		return err
	}
	if !found {
		return wrongState(of, "its file was removed after its retention; submit it again").With("reason", "input_removed")
	}
	j.Status, j.UploadedAt, j.DueAt = Queued, j.CreatedAt, j.CreatedAt.Add(LookAgain)
	j.Input = of.Input
	return nil
}

// Reprocess runs the input of an import that ended well again, good rows included, at another dataset
// version (0: the newest), as a job of its own. A record that another job changed since is left alone.
func (s *Service) Reprocess(ctx context.Context, caller access.Caller, in idempotency.Intent, requestID string, jobID id.Job, version int) (Submitted, error) {
	if found, outcome, err := s.replayed(ctx, caller, in); err != nil || found != nil {
		return s.withGrant(ctx, found, true, outcome, err)
	}
	draft, err := s.again(ctx, caller, requestID, jobID, version)
	if err != nil {
		return Submitted{}, err
	}
	allowance, err := s.rates.TakeSubmit(ctx, caller)
	if err != nil {
		return Submitted{}, err
	}
	j, err := s.store.CreateQueued(ctx, caller, in, draft)
	if errors.Is(err, ErrIntentTaken) {
		found, outcome, err := s.replayed(ctx, caller, in)
		return s.withGrant(ctx, found, true, outcome, err)
	}
	if err != nil {
		return Submitted{}, err
	}
	if j.Slot != NoSlot {
		_ = s.hints.Send(ctx, j.Hint()) // lost: sweep sends it, the job is due
	}
	return Submitted{Job: j, Outcome: idempotency.Created, Allowance: &allowance}, nil
}

// again is the job of a reprocessing, about to be made. It has no deduplication key: that one goes on to
// name the job whose file was asked for.
func (s *Service) again(ctx context.Context, caller access.Caller, requestID string, jobID id.Job, version int) (Job, error) {
	old, err := s.store.Job(ctx, caller.Tenant, jobID)
	if err != nil {
		return Job{}, err
	}
	switch {
	case old.RowsOf != "":
		return Job{}, wrongState(old, "this job retried rows of another one; reprocess that one")
	case old.Status == Failed || old.Status == Canceled:
		return Job{}, wrongState(old, "only a job that ended well can be reprocessed; retry this one, at another dataset_version if need be")
	case !old.Status.Terminal():
		return Job{}, wrongState(old, "a job can be reprocessed when it has ended")
	}
	spec := old.Spec
	spec.DeduplicationKey, spec.ForceReprocess = "", false
	if spec.DatasetVersion, err = s.datasets.ResolveVersion(ctx, caller.Tenant, spec.Dataset, version); err != nil {
		return Job{}, err
	}
	j := s.draft(caller, requestID, spec)
	j.ReprocessOf, j.Since, j.Work = old.ID, old.Epoch, old.work()
	return j, s.reuse(ctx, &j, old)
}
