package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

const (
	maxWaitSeconds = 25 // API Gateway gives up after 29
	// waitSlice is how many seconds are paid for at a time, so that a wait that ends early costs little more
	// than it took.
	waitSlice = 5
	waitLook  = 500 * time.Millisecond // between two looks at the job
)

func (a *api) getJob(c *call) (reply, error) { return a.showJob(c, "") }

// getImportJob knows import jobs only: another kind's job is not there.
func (a *api) getImportJob(c *call) (reply, error) { return a.showJob(c, job.Import) }

func (a *api) showJob(c *call, kind job.Kind) (reply, error) {
	wait := c.params.wait()
	if err := c.params.problems.err(); err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	seen, err := a.look(c, jobID)
	if err != nil {
		return reply{}, err
	}
	if kind != "" && seen.job.Kind != kind {
		return reply{}, fault.New(fault.JobNotFound, "there is no such job")
	}
	known := c.Header.Get("If-None-Match")
	if wait > 0 && !seen.job.Status.Terminal() && (known == "" || names(known, seen.etag)) {
		if seen, err = a.hold(c, seen, wait); err != nil {
			return reply{}, err
		}
	}
	out := reply{status: http.StatusOK, body: seen.body}
	if names(known, seen.etag) {
		out = reply{status: http.StatusNotModified}
	}
	return out.with("ETag", seen.etag).with("Vary", "Accept-Language").pollable(seen.job).about(jobID), nil
}

// sight is a job as the client would see it now.
type sight struct {
	job  job.Job
	body []byte
	etag string
}

func (a *api) look(c *call, jobID id.Job) (sight, error) {
	j, err := a.Jobs.Get(c.ctx(), c.caller, jobID)
	if err != nil {
		return sight{}, err
	}
	body, err := encode(viewOf(j, c.language))
	sum := sha256.Sum256(body)
	return sight{j, body, `"` + hex.EncodeToString(sum[:12]) + `"`}, err
}

// hold looks at the job again and again until it differs from seen, the time is over, or the client has
// used up its waiting seconds.
func (a *api) hold(c *call, seen sight, wait int) (sight, error) {
	// Looks take time too: a slow store must not carry the answer past the gateway's own limit.
	ctx, cancel := context.WithTimeout(c.ctx(), time.Duration(wait)*time.Second)
	defer cancel()
	for left := wait; left > 0; {
		granted, err := a.Access.TakeWait(c.ctx(), c.caller, min(left, waitSlice))
		if fault.Is(err, fault.RateLimited) || fault.Is(err, fault.DependencyUnavailable) {
			return seen, nil // empty or busy: the client polls instead
		}
		if err != nil || granted == 0 {
			return seen, err
		}
		for waited := time.Duration(0); waited < time.Duration(granted)*time.Second; waited += waitLook {
			if !sleep(ctx, waitLook) {
				return seen, nil
			}
			now, err := a.look(c, seen.job.ID)
			if err != nil || now.etag != seen.etag {
				return now, err
			}
		}
		left -= granted
	}
	return seen, nil
}

// sleep is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// names tells whether an If-None-Match header names the ETag.
func names(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == etag || tag == "*" {
			return true
		}
	}
	return false
}

// pollable says when to ask again about a job that is not at its end.
func (r reply) pollable(j job.Job) reply {
	switch {
	case j.Status.Terminal():
		return r
	case j.Status == job.Uploading:
		return r.with("Retry-After", "5") // it waits for the client itself
	}
	return r.with("Retry-After", "2") // progress moves at most that often
}

// withRateLimit shows what is left of a client's submits in this minute.
func (r reply) withRateLimit(limit, remaining, reset int) reply {
	return r.with("RateLimit-Limit", strconv.Itoa(limit)).with("RateLimit-Remaining", strconv.Itoa(remaining)).
		with("RateLimit-Reset", strconv.Itoa(reset))
}

func (a *api) listJobs(c *call) (reply, error) {
	p := &c.params
	f := job.Filter{
		Kind: job.Kind(p.oneOf("kind", "import", "export", "snapshot")),
		Status: job.Status(p.oneOf("status", string(job.Uploading), string(job.Queued), string(job.Running),
			string(job.Succeeded), string(job.Partial), string(job.Failed), string(job.Canceled))),
		CreatedAfter: p.time("created_after"),
		Cursor:       p.text("cursor"),
	}
	limit := p.limit(pageLimit(c.caller))
	if err := p.problems.err(); err != nil {
		return reply{}, err
	}
	return page("jobs", limit, func(limit int) ([]jobView, string, error) {
		f.Limit = limit
		got, err := a.Jobs.List(c.ctx(), c.caller, f)
		views := make([]jobView, len(got.Jobs))
		for i, j := range got.Jobs {
			views[i] = viewOf(j, c.language)
		}
		return views, got.NextCursor, err
	})
}

func (a *api) cancelJob(c *call) (reply, error) {
	if err := c.expectEmpty(); err != nil {
		return reply{}, err
	}
	return a.moveJob(c, a.Jobs.Cancel)
}

type mover func(context.Context, access.Caller, idempotency.Intent, id.Job) (job.Moved, error)

// moveJob answers a request that moves a job on and carries no instructions of its own.
func (a *api) moveJob(c *call, move mover) (reply, error) {
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	in, err := c.intent(struct{}{})
	if err != nil {
		return reply{}, err
	}
	done, err := move(c.ctx(), c.caller, in, jobID)
	if err != nil {
		return reply{}, err
	}
	out, err := answer(http.StatusAccepted, viewOf(done.Job, c.language))
	return out.replayed(done.Replayed).pollable(done.Job).about(jobID), err
}

// artifactScope keeps raw rows from tokens that may not read rows.
func artifactScope(r *http.Request) access.Scope {
	if strings.HasPrefix(r.PathValue("name"), "rejected.") {
		return access.RowsRead
	}
	return access.JobsRead
}

// getArtifact gives a signed URL, made now for this caller and kept nowhere.
func (a *api) getArtifact(c *call) (reply, error) {
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	d, err := a.Jobs.Artifact(c.ctx(), c.caller, jobID, c.PathValue("name"))
	if err != nil {
		return reply{}, err
	}
	out, err := answer(http.StatusOK, downloadView{d.URL, stamp(d.ExpiresAt), d.SizeBytes, d.SHA256})
	return out.about(jobID), err
}
