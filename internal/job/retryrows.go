package job

import (
	"context"
	"errors"
	"slices"

	"pintu/internal/access"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/quarantine"
)

// RetryRows makes an import job that tries quarantined rows of a job again, at a dataset version (0: the
// newest). Rows that are named must be workable now; which rows all the others are is found by the new
// job's plan, which takes them one by one.
func (s *Service) RetryRows(ctx context.Context, caller access.Caller, in idempotency.Intent, requestID string, jobID id.Job, sel quarantine.Selection, version int) (Submitted, error) {
	if found, outcome, err := s.replayed(ctx, caller, in); err != nil || found != nil {
		return s.withGrant(ctx, found, true, outcome, err)
	}
	draft, err := s.rowsDraft(ctx, caller, requestID, jobID, sel)
	if err != nil {
		return Submitted{}, err
	}
	if draft.Spec.DatasetVersion, err = s.datasets.ResolveVersion(ctx, caller.Tenant, draft.Spec.Dataset, version); err != nil {
		return Submitted{}, err
	}
	if err := s.rows.Workable(ctx, caller.Tenant, jobID, sel.Numbers); err != nil {
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
	s.begin(ctx, j)
	return Submitted{Job: j, Outcome: idempotency.Created, Allowance: &allowance}, nil
}

// begin takes the rows that were named, so that nobody is told they are workable, and has the job looked at.
// Both are done again by others if they fail here: the plan takes what it lists, and the job is due.
func (s *Service) begin(ctx context.Context, j Job) {
	if j.Rows.Numbers != nil {
		_ = s.rows.Take(ctx, j.Tenant, j.RowsOf, *j.Rows, j.ID, func(quarantine.Row) error { return nil })
	}
	if j.Slot != NoSlot {
		_ = s.hints.Send(ctx, j.Hint())
	}
}

// rowsDraft is the job that is about to be made. It goes by the rules of the job of the rows, but that its
// rows are applied one by one, and rejected for what they are and not for how many.
func (s *Service) rowsDraft(ctx context.Context, caller access.Caller, requestID string, jobID id.Job, sel quarantine.Selection) (Job, error) {
	asked, err := s.store.Job(ctx, caller.Tenant, jobID)
	if err != nil {
		return Job{}, err
	}
	if !asked.Status.Terminal() {
		return Job{}, wrongState(asked, "rows can be tried again when the job has ended")
	}
	of := asked
	if asked.RowsOf != "" {
		sel.Retry = asked.ID
		if of, err = s.store.Job(ctx, caller.Tenant, asked.RowsOf); err != nil {
			return Job{}, err
		}
	}
	if !of.keptRows() {
		return Job{}, wrongState(of, "nothing of this job was applied, so its rows cannot be applied alone: correct the file and import it again")
	}
	now := s.now().UTC()
	spec := of.Spec
	spec.Atomicity, spec.MaxRejected, spec.MaxRejectedPercent = "per_row", quarantine.MaxRetryRows, nil
	spec.File, spec.DeduplicationKey, spec.ForceReprocess = File{Name: of.Spec.File.Name}, "", false
	var work []int64
	if of.Since != 0 { // of a reprocessing: what others changed since is left alone still
		work = append(slices.Clone(of.Work), of.Epoch)
	}
	return Job{
		Since: of.Since, Work: work, Tenant: caller.Tenant, ID: id.NewJob(now), Kind: Import, Status: Queued, Client: caller.Client, RequestID: requestID,
		Attempt: asked.Attempt + 1, RowsOf: of.ID, Rows: &sel, CreatedAt: now, UploadedAt: now, DueAt: now.Add(LookAgain),
		Spec: spec, Slot: NoSlot, TimeLimit: caller.Limits.JobTime,
	}, nil
}

// keptRows tells that the rows which were not rejected are in: the job was no dry run, and not one of
// all or nothing that came to nothing.
func (j Job) keptRows() bool {
	whole := j.Spec.Atomicity == AllOrNothing && (j.Status == Failed || j.Status == Canceled)
	return !j.Spec.DryRun && !whole
}
