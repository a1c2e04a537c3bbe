package job

import (
	"context"
	"time"

	"pintu/internal/access"
	"pintu/internal/id"
	"pintu/internal/idempotency"
)

// Service is what clients can do with jobs.
type Service struct {
	store Store
	blob  Blob
	hints Hints
	now   func() time.Time
}

// Config of a Service.
type Config struct {
	Store Store
	Blob  Blob
	Hints Hints
	Now   func() time.Time
}

// New makes a Service.
func New(c Config) *Service {
	return &Service{store: c.Store, blob: c.Blob, hints: c.Hints, now: c.Now}
}

// Submitted is the answer to a submit.
type Submitted struct {
	Job      Job
	Grant    *Grant // how to upload, only while the job is uploading
	Outcome  idempotency.Outcome
	Replayed bool // the key was seen before: Job is the first one, as it is now
}

// Moved is the answer to a request that moves a job on.
type Moved struct {
	Job      Job
	Replayed bool
}

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

// Hint is a queue message: it carries ids, the store is the truth (HOUSE decision 1).
type Hint struct {
	Kind      HintKind `json:"kind"`
	Tenant    string   `json:"tenant"`
	JobID     id.Job   `json:"job_id"`
	Chunk     int      `json:"chunk"`
	RequestID string   `json:"request_id"`
}

// HintKind says which step to look at.
type HintKind string

const (
	HintPlan    HintKind = "plan"    // queue plan: plan pass, stop, or finish, whatever the job needs next
	HintProcess HintKind = "process" // queue process: one chunk
)

// Hints sends hints to the queue of their kind.
type Hints interface {
	Send(ctx context.Context, hints ...Hint) error
}

// Blob is the object store as jobs need it.
type Blob interface {
	PresignPut(ctx context.Context, key string, f File) (Grant, error)
	PresignGet(ctx context.Context, key, versionID, downloadName string) (url string, expiresAt time.Time, err error)
	// Head gives what is stored under key now. found is false when there is nothing.
	Head(ctx context.Context, key string) (obj Object, found bool, err error)
}

// Object is one stored version.
type Object struct {
	VersionID   string
	SizeBytes   int64
	ContentType string
	SHA256      string // lower-case hex; empty when the store does not have it
}

var _ = access.Caller{}
