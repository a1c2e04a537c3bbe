package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// PutDataset makes definition, a JSON body, the newest version of a dataset. created is false when it
// was that already.
func (c *Client) PutDataset(ctx context.Context, name string, definition json.RawMessage, key string) (d Dataset, created bool, err error) {
	if !json.Valid(definition) {
		return d, false, fmt.Errorf("the definition is no JSON")
	}
	a, err := c.do(ctx, request{method: http.MethodPut, path: "/v1/datasets/" + url.PathEscape(name), body: definition, key: key})
	if err != nil {
		return d, false, err
	}
	return d, a.status == http.StatusCreated, whole(a, &d)
}

// Dataset gives a version; 0 means the newest.
func (c *Client) Dataset(ctx context.Context, name string, version int) (Dataset, error) {
	path := "/v1/datasets/" + url.PathEscape(name)
	if version != 0 {
		path += "/versions/" + strconv.Itoa(version)
	}
	return fetch[Dataset](ctx, c, path, nil)
}

// SubmitImport makes an import job, or finds the one that the key or the deduplication key names.
func (c *Client) SubmitImport(ctx context.Context, spec ImportSpec, key string) (Submitted, error) {
	a, err := c.do(ctx, request{method: http.MethodPost, path: "/v1/import-jobs", body: spec, key: key})
	if err != nil {
		return Submitted{}, err
	}
	return submittedOf(a)
}

func submittedOf(a *answer) (Submitted, error) {
	s := Submitted{Replayed: a.replayed()}
	var more struct {
		Upload *Upload `json:"upload"`
	}
	if err := decode(a, &more); err != nil {
		return Submitted{}, err
	}
	s.Upload = more.Upload
	return s, whole(a, &s.Job)
}

// RenewUpload gives a fresh presigned request for the file of a job that still waits for it.
func (c *Client) RenewUpload(ctx context.Context, jobID string) (Upload, error) {
	a, err := c.do(ctx, request{method: http.MethodPost, path: jobPath("import-jobs", jobID, "/upload-url"), body: struct{}{}})
	if err != nil {
		return Upload{}, err
	}
	var body struct {
		Upload *Upload `json:"upload"`
	}
	if err := decode(a, &body); err != nil {
		return Upload{}, err
	}
	if body.Upload == nil {
		return Upload{}, fmt.Errorf("read answer: it names no upload")
	}
	return *body.Upload, nil
}

// Complete tells that the file is uploaded.
func (c *Client) Complete(ctx context.Context, jobID, key string) (Job, error) {
	return c.move(ctx, jobPath("import-jobs", jobID, "/complete"), key)
}

// Cancel asks a job to end.
func (c *Client) Cancel(ctx context.Context, jobID, key string) (Job, error) {
	return c.move(ctx, jobPath("jobs", jobID, "/cancel"), key)
}

func (c *Client) move(ctx context.Context, path, key string) (j Job, err error) {
	a, err := c.do(ctx, request{method: http.MethodPost, path: path, body: struct{}{}, key: key})
	if err != nil {
		return j, err
	}
	return j, whole(a, &j)
}

// Job gives a job as it is now.
func (c *Client) Job(ctx context.Context, jobID string) (Job, error) {
	return fetch[Job](ctx, c, jobPath("jobs", jobID, ""), nil)
}

// JobFilter of a list of jobs; zero fields do not filter.
type JobFilter struct {
	Kind         string
	Status       Status
	CreatedAfter time.Time
}

// Jobs gives a page of jobs, newest first. limit 0 leaves the size to the API.
func (c *Client) Jobs(ctx context.Context, f JobFilter, cursor string, limit int) (Page[Job], error) {
	q := pageQuery(cursor, limit)
	set(q, "kind", f.Kind)
	set(q, "status", string(f.Status))
	if !f.CreatedAfter.IsZero() {
		q.Set("created_after", f.CreatedAfter.UTC().Format(time.RFC3339))
	}
	return list[Job](ctx, c, "/v1/jobs", "jobs", q)
}

// Records gives a page of a dataset's records.
func (c *Client) Records(ctx context.Context, dataset, cursor string, limit int) (Page[Record], error) {
	return list[Record](ctx, c, recordsPath(dataset), "records", pageQuery(cursor, limit))
}

// Record gives one record; a key of several fields is a JSON array.
func (c *Client) Record(ctx context.Context, dataset, key string) (Record, error) {
	return fetch[Record](ctx, c, recordsPath(dataset), url.Values{"key": {key}}) // a path would lose a slash
}

func recordsPath(dataset string) string {
	return "/v1/datasets/" + url.PathEscape(dataset) + "/records"
}

func jobPath(plural, jobID, rest string) string {
	return "/v1/" + plural + "/" + url.PathEscape(jobID) + rest
}

func pageQuery(cursor string, limit int) url.Values {
	q := url.Values{}
	set(q, "cursor", cursor)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func whole(a *answer, v rawKeeper) error {
	if err := decodeWhole(a.body, v); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// fetch gets one object.
func fetch[T any, P interface {
	*T
	rawKeeper
}](ctx context.Context, c *Client, path string, q url.Values) (v T, err error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, query: q})
	if err != nil {
		return v, err
	}
	return v, whole(a, P(&v))
}

// list gets one page of objects.
func list[T any, P interface {
	*T
	rawKeeper
}](ctx context.Context, c *Client, path, plural string, q url.Values) (page Page[T], err error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, query: q})
	if err != nil {
		return page, err
	}
	body := map[string]json.RawMessage{}
	var entries []json.RawMessage
	if err = decode(a, &body); err == nil {
		err = json.Unmarshal(body[plural], &entries)
	}
	for _, entry := range entries {
		var v T
		if err == nil {
			err = decodeWhole(entry, P(&v))
		}
		page.Entries = append(page.Entries, v)
	}
	if err == nil {
		err = json.Unmarshal(body["next_cursor"], &page.NextCursor)
	}
	if err != nil {
		return Page[T]{}, fmt.Errorf("read page of %s: %w", plural, err)
	}
	return page, nil
}
