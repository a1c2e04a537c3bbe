package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

const (
	waitFor    = "20s"           // what one request asks the API to hold
	leastPause = time.Second     // between two looks at a job that moves all the time
	plainPause = 2 * time.Second // when the API gives no advice
)

// Wait looks at a job until it is terminal, and tells changed, which may be nil, of every change on the
// way. Waiting that was broken off is taken up again by another Wait.
func (c *Client) Wait(ctx context.Context, jobID string, changed func(Job)) (Job, error) {
	var seen Job
	look := request{method: http.MethodGet, path: jobPath("jobs", jobID, "")} // the first is answered at once
	for {
		began := time.Now()
		a, err := c.do(ctx, look)
		if err != nil {
			return seen, err
		}
		if a.status != http.StatusNotModified {
			seen = Job{}
			if err := whole(a, &seen); err != nil {
				return seen, err
			}
			look.ifMatch, look.query = a.header.Get("ETag"), url.Values{"wait": {waitFor}}
			if changed != nil {
				changed(seen)
			}
		}
		if seen.Status.Terminal() {
			return seen, nil
		}
		if err := sleep(ctx, pause(a, time.Since(began))); err != nil {
			return seen, err
		}
	}
}

// pause is how long to leave the API alone after an answer that took a while. An answer at once, without
// a change, means that the API would not hold the request: then its advice counts.
func pause(a *answer, took time.Duration) time.Duration {
	want := leastPause
	if a.status == http.StatusNotModified {
		if want = retryAfter(a.header); want == 0 {
			want = plainPause
		}
	}
	return max(0, want-took)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
