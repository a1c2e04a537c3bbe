package access

import (
	"context"
	"time"

	"pintu/internal/fault"
)

// Meter counts what clients use, each count in one conditional write.
type Meter interface {
	// CountSubmit adds one to the client's submits of now's minute unless they have reached limit. n is
	// the count after it.
	CountSubmit(ctx context.Context, tenant, client string, limit int, now time.Time) (n int, ok bool, err error)
	// CountWait adds seconds to the client's waiting of now's minute unless that would pass limit. n is
	// the sum after it, or the sum in the way.
	CountWait(ctx context.Context, tenant, client string, seconds, limit int, now time.Time) (n int, ok bool, err error)
	// ReadUse gives the counts of now's minute and of jobs that are not terminal.
	ReadUse(ctx context.Context, tenant, client string, now time.Time) (Use, error)
}

// Allowance is a client's room for submits in the current clock minute.
type Allowance struct {
	Limit        int
	Remaining    int
	ResetSeconds int // until the next minute, 1 to 60
}

// Use is what a client has under way.
type Use struct {
	SubmitsThisMinute     int
	ActiveJobs            int // queued or running
	UploadingJobs         int
	WaitSecondsThisMinute int
}

// TakeSubmit takes one submit from the client's minute. When none is left the error is RATE_LIMITED with
// the seconds until the next minute; the allowance is valid in both cases.
func (s *Service) TakeSubmit(ctx context.Context, c Caller) (Allowance, error) {
	now := s.now()
	reset := 60 - now.Second()
	limit := c.Limits.SubmitsPerMinute
	n, ok, err := s.store.CountSubmit(ctx, c.Tenant, c.Client, limit, now)
	if err != nil {
		return Allowance{}, err
	}
	if !ok {
		return Allowance{Limit: limit, ResetSeconds: reset}, rateLimited(limit, reset)
	}
	return Allowance{Limit: limit, Remaining: limit - n, ResetSeconds: reset}, nil
}

func rateLimited(limit, reset int) error {
	return fault.New(fault.RateLimited, "this client may submit %d jobs a minute; try again in %d s", limit, reset).
		With("limit", limit).With("retry_after_seconds", reset).After(time.Duration(reset) * time.Second)
}

// TakeWait takes up to seconds from the client's waiting time of this minute and gives how many it got,
// 0 when none is left.
func (s *Service) TakeWait(ctx context.Context, c Caller, seconds int) (granted int, err error) {
	now, limit := s.now(), c.Limits.WaitSecondsPerMinute
	for granted = min(seconds, limit); granted > 0; {
		n, ok, err := s.store.CountWait(ctx, c.Tenant, c.Client, granted, limit, now)
		if err != nil {
			return 0, err
		}
		if ok {
			return granted, nil
		}
		granted = min(granted-1, limit-n) // shrinks each time, so that the loop ends
	}
	return 0, nil
}

// Use gives what the caller has under way.
func (s *Service) Use(ctx context.Context, c Caller) (Use, error) {
	return s.store.ReadUse(ctx, c.Tenant, c.Client, s.now())
}

// withDefaults replaces every limit that is zero by the default.
func (l Limits) withDefaults() (Limits, error) {
	if min(int64(l.SubmitsPerMinute), int64(l.ActiveJobs), int64(l.UploadingJobs), l.MaxFileBytes, int64(l.MaxPageSize),
		int64(l.JobTime), int64(l.WaitSecondsPerMinute)) < 0 {
		return l, fault.New(fault.InvalidRequest, "a limit cannot be negative")
	}
	d := DefaultLimits()
	fill(&l.SubmitsPerMinute, d.SubmitsPerMinute)
	fill(&l.ActiveJobs, d.ActiveJobs)
	fill(&l.UploadingJobs, d.UploadingJobs)
	fill(&l.MaxFileBytes, d.MaxFileBytes)
	fill(&l.MaxPageSize, d.MaxPageSize)
	fill(&l.JobTime, d.JobTime)
	fill(&l.WaitSecondsPerMinute, d.WaitSecondsPerMinute)
	return l, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
