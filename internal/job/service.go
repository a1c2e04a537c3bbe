package job

import (
	"context"
	"errors"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
)

// Service is what clients can do with jobs.
type Service struct {
	store    Store
	blob     Blob
	hints    Hints
	datasets Datasets
	rows     Rows
	rates    Rates
	now      func() time.Time
}

// Config of a Service.
type Config struct {
	Store    Store
	Blob     Blob
	Hints    Hints
	Datasets Datasets
	Rows     Rows
	Rates    Rates
	Now      func() time.Time
}

// New makes a Service.
func New(c Config) *Service {
	return &Service{store: c.Store, blob: c.Blob, hints: c.Hints, datasets: c.Datasets, rows: c.Rows, rates: c.Rates, now: c.Now}
}

// Submitted is the answer to a submit and to upload-url.
type Submitted struct {
	Job       Job
	Grant     *Grant // how to upload, only while the job is uploading
	Outcome   idempotency.Outcome
	Replayed  bool              // the key was seen before: Job is the first one, as it is now
	Allowance *access.Allowance // what is left of the minute; nil when the submit cost nothing
}

// Moved is the answer to a request that moves a job on.
type Moved struct {
	Job      Job
	Replayed bool
}

// maxRaces bounds how often a request looks again after losing a race. Every lost race means that
// another request made progress, so the bound is reached only under an absurd number of them.
const maxRaces = 50

// SubmitImport makes an import job, or finds the one that this intent or this business key already made.
// The order of its steps is the contract: stored key, references, deduplication, limits, transaction.
func (s *Service) SubmitImport(ctx context.Context, caller access.Caller, in idempotency.Intent, requestID string, spec ImportSpec) (Submitted, error) {
	if found, outcome, err := s.replayed(ctx, caller, in); err != nil || found != nil {
		return s.withGrant(ctx, found, true, outcome, err)
	}
	if limit := caller.Limits.MaxFileBytes; spec.File.SizeBytes > limit {
		return Submitted{}, fault.New(fault.PayloadTooLarge, "the file is larger than this client may upload; split it").With("limit_bytes", limit)
	}
	version, err := s.datasets.ResolveVersion(ctx, caller.Tenant, spec.Dataset, spec.DatasetVersion)
	if err != nil {
		return Submitted{}, err
	}
	spec.DatasetVersion = version
	draft := s.draft(caller, requestID, spec)
	var allowance *access.Allowance
	for range maxRaces {
		hit, stale, err := s.deduplicated(ctx, draft)
		if err != nil {
			return Submitted{}, err
		}
		if hit != nil {
			err = s.store.RememberHit(ctx, caller, in, *hit)
		} else {
			if allowance == nil {
				a, limited := s.rates.TakeSubmit(ctx, caller)
				if limited != nil {
					return Submitted{}, limited
				}
				allowance = &a
			}
			err = s.store.CreateJob(ctx, caller, in, draft, stale)
		}
		switch {
		case errors.Is(err, ErrIntentTaken):
			found, outcome, err := s.replayed(ctx, caller, in)
			return s.withGrant(ctx, found, true, outcome, err)
		case errors.Is(err, ErrDedupeTaken):
			continue
		case hit != nil:
			return s.withGrant(ctx, hit, false, idempotency.Deduplicated, err)
		}
		got, err := s.withGrant(ctx, &draft, false, idempotency.Created, err)
		got.Allowance = allowance
		return got, err
	}
	return Submitted{}, fault.New(fault.DependencyUnavailable, "too many requests with this deduplication_key at once; try again").After(time.Second)
}

// replayed finds the job that an earlier request with the same intent made or found, and what it came to
// then. The job is nil when there was no such request.
func (s *Service) replayed(ctx context.Context, caller access.Caller, in idempotency.Intent) (*Job, idempotency.Outcome, error) {
	if in.Key == "" {
		return nil, "", nil
	}
	rec, err := s.store.FindIntent(ctx, caller, in, s.now())
	if err != nil || rec == nil {
		return nil, "", err
	}
	if err := rec.Match(in); err != nil {
		return nil, "", err
	}
	j, err := s.store.Job(ctx, caller.Tenant, id.Job(rec.Ref))
	if err != nil {
		return nil, "", err
	}
	return &j, rec.Outcome, nil
}

func (s *Service) draft(caller access.Caller, requestID string, spec ImportSpec) Job {
	now := s.now().UTC()
	jobID := id.NewJob(now)
	ends := now.Add(UploadWindow)
	return Job{
		Tenant: caller.Tenant, ID: jobID, Kind: Import, Status: Uploading, Client: caller.Client, RequestID: requestID,
		Attempt: 1, CreatedAt: now, DueAt: ends, Spec: spec, Slot: NoSlot, TimeLimit: caller.Limits.JobTime,
		Input: Input{Key: "uploads/" + caller.Tenant + "/" + string(jobID) + "/input", WindowEndsAt: ends},
	}
}

// deduplicated looks for a job of the same business intent that is active, or finished well and lately
// enough. stale is the job that the record names otherwise: CreateJob replaces it on that condition.
func (s *Service) deduplicated(ctx context.Context, draft Job) (hit *Job, stale id.Job, err error) {
	spec := draft.Spec
	if spec.DeduplicationKey == "" {
		return nil, "", nil
	}
	named, err := s.store.Deduplicated(ctx, draft)
	if err != nil || named == "" {
		return nil, "", err
	}
	old, err := s.store.Job(ctx, draft.Tenant, named)
	if fault.Is(err, fault.JobNotFound) {
		return nil, named, nil // its item is past retention
	}
	if err != nil {
		return nil, "", err
	}
	if spec.ForceReprocess || !old.reusable(s.now(), spec.ReuseWindowSeconds) {
		return nil, named, nil
	}
	return &old, named, nil
}

func (j Job) reusable(now time.Time, windowSeconds int64) bool {
	if !j.Status.Terminal() {
		return true
	}
	window := time.Duration(windowSeconds) * time.Second
	return (j.Status == Succeeded || j.Status == Partial) && now.Before(j.FinishedAt.Add(window))
}

// withGrant adds a fresh permission to upload while the job still waits for its file.
func (s *Service) withGrant(ctx context.Context, j *Job, replayed bool, outcome idempotency.Outcome, err error) (Submitted, error) {
	if err != nil {
		return Submitted{}, err
	}
	if j == nil {
		return Submitted{}, fault.New(fault.DependencyUnavailable, "the record of this Idempotency-Key is just expiring; try again").After(time.Second)
	}
	out := Submitted{Job: *j, Outcome: outcome, Replayed: replayed}
	if j.Status != Uploading {
		return out, nil
	}
	grant, err := s.blob.PresignPut(ctx, j.Input.Key, j.Spec.File)
	if err != nil {
		return Submitted{}, err
	}
	out.Grant = &grant
	return out, nil
}

// UploadURL renews the upload window and gives a fresh permission for the same object.
func (s *Service) UploadURL(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job) (Submitted, error) {
	if found, outcome, err := s.replayed(ctx, caller, in); err != nil || found != nil {
		return s.withGrant(ctx, found, true, outcome, err)
	}
	j, err := s.store.Job(ctx, caller.Tenant, jobID)
	if err != nil {
		return Submitted{}, err
	}
	if j.Status != Uploading {
		return Submitted{}, wrongState(j, "the upload is over")
	}
	ends, last := s.now().UTC().Add(UploadWindow), j.CreatedAt.Add(MaxUploadWindow)
	if ends.After(last) {
		ends = last
	}
	if !s.now().Before(last) {
		return Submitted{}, wrongState(j, "the upload window was renewed for as long as it can be")
	}
	j.Input.WindowEndsAt, j.DueAt = ends, ends
	if err := s.store.RenewWindow(ctx, caller, in, j); err != nil {
		return Submitted{}, s.lost(ctx, j, err)
	}
	return s.withGrant(ctx, &j, false, idempotency.Changed, nil)
}

// Get reads one job of the caller's tenant, with the oldest stalled mark if there is one.
func (s *Service) Get(ctx context.Context, caller access.Caller, jobID id.Job) (Job, error) {
	j, err := s.store.Job(ctx, caller.Tenant, jobID)
	if err != nil || j.StalledCount == 0 || j.Status.Terminal() {
		return j, err
	}
	j.Stalled, err = s.store.OldestStalled(ctx, j)
	return j, err
}

// List gives a page of the tenant's jobs, newest first.
func (s *Service) List(ctx context.Context, caller access.Caller, f Filter) (Page, error) {
	return s.store.ListJobs(ctx, caller.Tenant, f)
}

// Artifact signs a download of a file the job left behind. The name is looked up in the result, never
// made into a key.
func (s *Service) Artifact(ctx context.Context, caller access.Caller, jobID id.Job, name string) (Download, error) {
	j, err := s.store.Job(ctx, caller.Tenant, jobID)
	if err != nil {
		return Download{}, err
	}
	if j.Result == nil {
		return Download{}, fault.New(fault.ArtifactNotFound, "this job has no artifacts yet; wait until it ended")
	}
	for _, a := range j.Result.Artifacts {
		if a.Name != name {
			continue
		}
		if !s.now().Before(a.ExpiresAt) {
			return Download{}, fault.New(fault.ArtifactExpired, "this artifact was removed after its retention")
		}
		url, expires, err := s.blob.PresignGet(ctx, a.Key, a.VersionID, string(j.ID)+"-"+a.Name)
		return Download{URL: url, ExpiresAt: expires, SizeBytes: a.SizeBytes, SHA256: a.SHA256}, err
	}
	return Download{}, fault.New(fault.ArtifactNotFound, "this job has no artifact of that name")
}

func wrongState(j Job, why string) *fault.Error {
	return fault.New(fault.InvalidJobState, "%s: the job is %s", why, j.Status).With("status", string(j.Status))
}

// lost turns a refused condition into the state that the winner of the race left.
func (s *Service) lost(ctx context.Context, j Job, err error) error {
	if !errors.Is(err, ErrMoved) {
		return err
	}
	now, err := s.store.Job(ctx, j.Tenant, j.ID)
	if err != nil {
		return err
	}
	return wrongState(now, "another request came first")
}
