package job

import (
	"context"
	"errors"
	"time"

	"pintu/internal/access"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/quarantine"
)

// What a store answers when a condition was not met.
var (
	ErrIntentTaken = errors.New("the idempotency key was taken by another request")
	ErrDedupeTaken = errors.New("the deduplication key names another job by now")
	ErrMoved       = errors.New("the job is no longer in the state that was read")
)

// Store keeps jobs. Each method is one conditional write or one transaction; all reads are strongly
// consistent but for ListJobs' index.
type Store interface {
	FindIntent(ctx context.Context, caller access.Caller, in idempotency.Intent, now time.Time) (*idempotency.Record, error)
	// Job fails with JOB_NOT_FOUND.
	Job(ctx context.Context, tenant string, jobID id.Job) (Job, error)
	ListJobs(ctx context.Context, tenant string, f Filter) (Page, error)
	OldestStalled(ctx context.Context, j Job) (*Stalled, error)
	// Deduplicated gives the job that the draft's deduplication key names, or "".
	Deduplicated(ctx context.Context, draft Job) (id.Job, error)
	// CreateJob writes job, intent, deduplication record and counter together. stale is the job that the
	// deduplication record must still name, or "". Fails with ErrIntentTaken, ErrDedupeTaken, TOO_MANY_ACTIVE_JOBS.
	CreateJob(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job, stale id.Job) error
	// RememberHit writes the intent while the deduplication record still names j.
	RememberHit(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) error
	// RememberSame writes the intent of a request that found j as it asks it to be.
	RememberSame(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) error
	// CreateAttempt writes the next attempt of a job, uploading or queued, and names it on that job, which has
	// none yet; else as CreateJob. Fails with ErrMoved too.
	CreateAttempt(ctx context.Context, caller access.Caller, in idempotency.Intent, j, of Job, stale id.Job) (Job, error)
	// RememberRetry writes the intent of a retry that found the attempt j of another job.
	RememberRetry(ctx context.Context, caller access.Caller, in idempotency.Intent, of, j Job) error
	RenewWindow(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) error
	// Enqueue moves j from uploading to queued with its pinned input, and gives it a slot or a place in
	// the line. limit 0 does not check the active-job limit. Fails with ErrMoved, TOO_MANY_ACTIVE_JOBS.
	Enqueue(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job, limit int) (Job, error)
	// CreateQueued writes a job whose input is not uploaded, with its intent and counter, and gives it a slot
	// or a place in the line. Fails with ErrIntentTaken, TOO_MANY_ACTIVE_JOBS.
	CreateQueued(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) (Job, error)
	// RequestCancel marks a running job that is not committed. Fails with ErrMoved.
	RequestCancel(ctx context.Context, caller access.Caller, in idempotency.Intent, j Job) error
	// End writes a terminal state and all that goes with it (PROTOCOL P6): counter given back, slot handed
	// on. It gives hints for the jobs that got a slot. Fails with ErrMoved.
	End(ctx context.Context, e Ending) ([]Hint, error)
}

// Ending is a terminal state about to be written.
type Ending struct {
	Job    Job // as it was read; its status, and for a running job its chunk counts, are conditions
	Status Status
	Error  *Failure
	Result Result
	At     time.Time
	// CanceledBy is set when Status is canceled. A running job ends otherwise only while no cancel was
	// requested.
	CanceledBy string
	Warnings   []Warning
	Caller     access.Caller      // of a cancel request
	Intent     idempotency.Intent // zero but for a cancel request
}

// Datasets resolves references.
type Datasets interface {
	// ResolveVersion checks that a version exists; 0 means the newest. Fails with DATASET_NOT_FOUND,
	// VERSION_NOT_FOUND.
	ResolveVersion(ctx context.Context, tenant, dataset string, version int) (int, error)
}

// Rows are the quarantined rows of jobs (quarantine.Service).
type Rows interface {
	// Workable fails with ROW_NOT_FOUND, INVALID_ROW_STATE, INVALID_JOB_STATE.
	Workable(ctx context.Context, tenant string, jobID id.Job, rowNumbers []int64) error
	// Take puts the selected rows of a job into the hand of a retry.
	Take(ctx context.Context, tenant string, of id.Job, sel quarantine.Selection, retry id.Job, f func(quarantine.Row) error) error
}

// Rates counts submits.
type Rates interface {
	// TakeSubmit fails with RATE_LIMITED.
	TakeSubmit(ctx context.Context, caller access.Caller) (access.Allowance, error)
}

// Blob is the object store as jobs need it.
type Blob interface {
	PresignPut(ctx context.Context, key string, f File) (Grant, error)
	PresignGet(ctx context.Context, key, versionID, downloadName string) (url string, expiresAt time.Time, err error)
	// Head gives what is stored under key now. found is false when there is nothing.
	Head(ctx context.Context, key string) (obj Object, found bool, err error)
}

// Hints sends hints to the queue of their kind.
type Hints interface {
	Send(ctx context.Context, hints ...Hint) error
}

// Hint is a queue message: it carries ids, the store is the truth.
type Hint struct {
	Kind      HintKind `json:"kind"`
	Tenant    string   `json:"tenant"`
	JobID     id.Job   `json:"job_id"`
	Chunk     int      `json:"chunk"`
	RequestID string   `json:"request_id"`
}

// HintKind says which step to look at, and which queue carries it.
type HintKind string

const (
	HintPlan    HintKind = "plan"    // whatever the job needs next: plan pass, stopping, finishing
	HintProcess HintKind = "process" // one chunk
)

// Grant is a presigned permission: send exactly these headers with exactly this method.
type Grant struct {
	Method    string
	URL       string
	Headers   map[string]string
	ExpiresAt time.Time
}

// Download is a signed permission to fetch an artifact.
type Download struct {
	URL       string
	ExpiresAt time.Time
	SizeBytes int64
	SHA256    string
}

// Object is one stored version.
type Object struct {
	VersionID   string
	SizeBytes   int64
	ContentType string
	SHA256      string // lower-case hex; empty when the store does not have it
}

// Filter of a list of jobs; zero fields do not filter.
type Filter struct {
	Kind         Kind
	Status       Status
	CreatedAfter time.Time
	Cursor       string // sort position only; the partition comes from the caller
	Limit        int
}

// Page of a list. NextCursor is empty at the end, and only there.
type Page struct {
	Jobs       []Job
	NextCursor string
}

// Passes tells whether a job passes the filter's kind and status.
func (f Filter) Passes(j Job) bool {
	return (f.Kind == "" || j.Kind == f.Kind) && (f.Status == "" || j.Status == f.Status)
}
