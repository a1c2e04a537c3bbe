package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/record"
)

// Access knows callers and what they have used.
type Access interface {
	// Authenticate fails with UNAUTHORIZED.
	Authenticate(ctx context.Context, bearer string) (access.Caller, error)
	// TakeWait takes up to seconds from the caller's waiting time and gives how many it got.
	TakeWait(ctx context.Context, c access.Caller, seconds int) (granted int, err error)
	Use(ctx context.Context, c access.Caller) (access.Use, error)
}

// Jobs is what clients can do with jobs.
type Jobs interface {
	SubmitImport(ctx context.Context, c access.Caller, in idempotency.Intent, requestID string, spec job.ImportSpec) (job.Submitted, error)
	Complete(ctx context.Context, c access.Caller, in idempotency.Intent, jobID id.Job) (job.Moved, error)
	UploadURL(ctx context.Context, c access.Caller, in idempotency.Intent, jobID id.Job) (job.Submitted, error)
	Cancel(ctx context.Context, c access.Caller, in idempotency.Intent, jobID id.Job) (job.Moved, error)
	Get(ctx context.Context, c access.Caller, jobID id.Job) (job.Job, error)
	List(ctx context.Context, c access.Caller, f job.Filter) (job.Page, error)
	Retry(ctx context.Context, c access.Caller, in idempotency.Intent, requestID string, jobID id.Job, version *int) (job.Submitted, error)
	Reprocess(ctx context.Context, c access.Caller, in idempotency.Intent, requestID string, jobID id.Job, version int) (job.Submitted, error)
	RetryRows(ctx context.Context, c access.Caller, in idempotency.Intent, requestID string, jobID id.Job, sel quarantine.Selection, version int) (job.Submitted, error)
	Artifact(ctx context.Context, c access.Caller, jobID id.Job, name string) (job.Download, error)
}

// Datasets keeps dataset versions.
type Datasets interface {
	Put(ctx context.Context, c access.Caller, in idempotency.Intent, name string, def *dataset.Definition) (dataset.Put, error)
	// Get gives the newest version.
	Get(ctx context.Context, tenant, name string) (dataset.Version, error)
	GetVersion(ctx context.Context, tenant, name string, n int) (dataset.Version, error)
}

// Records reads stored records. A cursor it did not make is INVALID_REQUEST.
type Records interface {
	ListRecords(ctx context.Context, tenant, dataset, cursor string, limit, maxBytes int) (record.Page, error)
	GetRecord(ctx context.Context, tenant, dataset, key string) (rec record.Record, found bool, err error)
}

// Rows keeps quarantined rows. A cursor it did not make is INVALID_REQUEST.
type Rows interface {
	List(ctx context.Context, c access.Caller, jobID id.Job, f quarantine.Filter, cursor string, limit, maxBytes int) (quarantine.Page, error)
	// Patch changes the row if matches says that its ETag is the one the client saw.
	Patch(ctx context.Context, c access.Caller, jobID id.Job, rowNumber int64, matches func(etag string) bool, change quarantine.Change) (quarantine.Row, error)
	Discard(ctx context.Context, c access.Caller, in idempotency.Intent, jobID id.Job, rowNumbers []int64, reason string) (replayed bool, err error)
}

// Config of the handler. Log gets one line per request.
type Config struct {
	Access   Access
	Jobs     Jobs
	Datasets Datasets
	Records  Records
	Rows     Rows
	// Compute compiles the computed columns of a definition. Who serves PUT of datasets needs it.
	Compute func(*dataset.Definition) (dataset.Evaluator, error)
	Log     *slog.Logger
	Now     func() time.Time
}

type api struct{ Config }

// New makes the handler of the whole API.
func New(c Config) http.Handler {
	a := &api{c}
	return a.handler(a.routes())
}

// NewDatasets makes a handler that knows PUT /v1/datasets/{name} alone. Checking a definition is the only
// part of the API that needs the expression compiler, so it runs in a function of its own. It uses Access,
// Datasets, Log and Now.
func NewDatasets(c Config) http.Handler {
	a := &api{c}
	return a.handler([]route{a.putDatasetRoute()})
}
