package client

import (
	"context"
	"net/http"
)

// Retry makes the next attempt of a job that failed or was canceled, or gives the one it has. version 0 is
// that of the job.
func (c *Client) Retry(ctx context.Context, jobID string, version int, key string) (Submitted, error) {
	return c.again(ctx, jobPath("jobs", jobID, "/retry"), version, key)
}

// Reprocess runs the input of a job that ended well again. version 0 is the newest of the dataset.
func (c *Client) Reprocess(ctx context.Context, jobID string, version int, key string) (Submitted, error) {
	return c.again(ctx, jobPath("jobs", jobID, "/reprocess"), version, key)
}

func (c *Client) again(ctx context.Context, path string, version int, key string) (Submitted, error) {
	body := map[string]int{}
	if version != 0 {
		body["dataset_version"] = version
	}
	a, err := c.do(ctx, request{method: http.MethodPost, path: path, body: body, key: key})
	if err != nil {
		return Submitted{}, err
	}
	return submittedOf(a)
}
