package storetest

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// Reported: a cursor that no list gave, or one with another created_after, came to 503 and "try again".
func TestListJobsTakesNoMoreThanItsOwnCursors(t *testing.T) {
	store := New(t)
	began := time.Date(2026, 7, 27, 10, 0, 0, 0, time.UTC)
	caller := access.Caller{Tenant: "acme", Client: "loader", Limits: access.DefaultLimits()}
	for n := range 3 {
		at := began.Add(time.Duration(n) * time.Minute)
		j := job.Job{Tenant: "acme", Client: "loader", ID: id.NewJob(at), Kind: job.Import, Status: job.Uploading, CreatedAt: at, DueAt: at, Slot: job.NoSlot}
		if err := store.CreateJob(t.Context(), caller, idempotency.Intent{}, j, ""); err != nil {
			t.Fatal(err)
		}
	}
	first, err := store.ListJobs(t.Context(), "acme", job.Filter{Limit: 1})
	if err != nil || len(first.Jobs) != 1 || first.NextCursor == "" {
		t.Fatalf("first page: %+v, %v", first, err)
	}
	for _, after := range []time.Time{began.Add(time.Minute), began.Add(2 * time.Minute), began.Add(time.Hour)} {
		page, err := store.ListJobs(t.Context(), "acme", job.Filter{Limit: 1, Cursor: first.NextCursor, CreatedAfter: after})
		if err != nil || len(page.Jobs) != 0 || page.NextCursor != "" {
			t.Errorf("behind the first page, after %s: %d jobs, cursor %q, %v", after, len(page.Jobs), page.NextCursor, err)
		}
	}
	jobID := string(first.Jobs[0].ID)
	for _, at := range []string{"#" + jobID, "x#" + jobID, "\x00#" + jobID, "00000000000000a#" + jobID, "0001#" + jobID, "+00000000000001#" + jobID, "001785000000000#job_x"} {
		cursor := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"at":%q}`, at))
		if _, err := store.ListJobs(t.Context(), "acme", job.Filter{Limit: 1, Cursor: cursor}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("cursor at %q: %v, want INVALID_REQUEST", at, err)
		}
	}
}
