// Package id makes and checks the prefixed ULIDs of the contract (job_…, evt_…). It refuses to be a
// clock: two ids of different processes are not ordered by time.
package id

import (
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Job identifies one job: "job_" and 26 characters of a ULID.
type Job string

const jobPrefix = "job_"

// NewJob makes a job id whose time part is now.
func NewJob(now time.Time) Job {
	return Job(jobPrefix + ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String())
}

// ParseJob checks the form of a job id. ok is false for anything that NewJob could not have made.
func ParseJob(s string) (_ Job, ok bool) {
	rest, found := strings.CutPrefix(s, jobPrefix)
	if !found {
		return "", false
	}
	u, err := ulid.ParseStrict(rest)
	if err != nil || u.String() != rest {
		return "", false
	}
	return Job(s), true
}

// NewRequest makes an id for a request that brought none: "req_" and a ULID.
func NewRequest(now time.Time) string {
	return "req_" + ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String()
}
