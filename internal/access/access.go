// Package access says who is calling: clients of tenants, their tokens, scopes and limits. It refuses
// to cache: a token that was revoked is refused by the next request.
package access

import (
	"slices"
	"time"
)

// Scope is a permission a token carries.
type Scope string

const (
	JobsSubmit    Scope = "jobs:submit"
	JobsRead      Scope = "jobs:read"
	RowsRead      Scope = "rows:read"
	RowsWrite     Scope = "rows:write"
	DatasetsRead  Scope = "datasets:read"
	DatasetsWrite Scope = "datasets:write"
	RecordsRead   Scope = "records:read"
)

// Scopes lists every scope there is.
var Scopes = []Scope{JobsSubmit, JobsRead, RowsRead, RowsWrite, DatasetsRead, DatasetsWrite, RecordsRead}

// Caller is an authenticated client at work: every key it can reach starts with its tenant.
type Caller struct {
	Tenant  string
	Client  string
	TokenID string
	Scopes  []Scope
	Limits  Limits
}

// Can tells whether the caller's token carries the scope.
func (c Caller) Can(s Scope) bool { return slices.Contains(c.Scopes, s) }

// Limits bound what one client may have under way.
type Limits struct {
	SubmitsPerMinute     int // job submits in one clock minute
	ActiveJobs           int // jobs queued or running
	UploadingJobs        int // jobs waiting for their upload
	MaxFileBytes         int64
	MaxPageSize          int
	JobTime              time.Duration // from started_at to the end
	WaitSecondsPerMinute int           // paid by GET /v1/jobs/{id}?wait=
}

// DefaultLimits are those of a client that was given none of its own.
func DefaultLimits() Limits {
	return Limits{SubmitsPerMinute: 600, ActiveJobs: 100, UploadingJobs: 100, MaxFileBytes: 5 << 30, MaxPageSize: 1000,
		JobTime: 24 * time.Hour, WaitSecondsPerMinute: 600}
}
