package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"unicode/utf8"

	"pintu/internal/fault"
)

// RowFilter of a list of rows; empty fields do not filter.
type RowFilter struct{ State, Code, Class string }

// Rows gives a page of a job's quarantined rows, in row order.
func (c *Client) Rows(ctx context.Context, jobID string, f RowFilter, cursor string, limit int) (Page[Row], error) {
	q := pageQuery(cursor, limit)
	set(q, "state", f.State)
	set(q, "code", f.Code)
	set(q, "class", f.Class)
	return list[Row](ctx, c, jobPath("jobs", jobID, "/rows"), "rows", q)
}

// Row gives one quarantined row. The error is an *Error with ROW_NOT_FOUND when it is not in quarantine.
func (c *Client) Row(ctx context.Context, jobID string, number int64) (Row, error) {
	q := pageQuery("", 0)
	q.Set("row_number", strconv.FormatInt(number, 10))
	page, err := list[Row](ctx, c, jobPath("jobs", jobID, "/rows"), "rows", q)
	if err != nil {
		return Row{}, err
	}
	if len(page.Entries) != 1 {
		return Row{}, &Error{Status: http.StatusNotFound, Code: fault.RowNotFound, Message: fmt.Sprintf("row %d is not in the quarantine of this job", number)}
	}
	return page.Entries[0], nil
}

// RowChange is what is corrected in a row; zero fields stay.
type RowChange struct {
	Payload []byte
	Class   string
}

// PatchRow corrects a row that still has the etag.
func (c *Client) PatchRow(ctx context.Context, jobID string, number int64, etag string, change RowChange) (r Row, err error) {
	body := map[string]string{}
	if change.Class != "" {
		body["class"] = change.Class
	}
	switch {
	case change.Payload == nil:
	case utf8.Valid(change.Payload):
		body["raw"] = string(change.Payload)
	default:
		body["raw_base64"] = base64.StdEncoding.EncodeToString(change.Payload)
	}
	path := jobPath("jobs", jobID, "/rows/"+strconv.FormatInt(number, 10))
	a, err := c.do(ctx, request{method: http.MethodPatch, path: path, body: body, onlyIf: strconv.Quote(etag)})
	if err != nil {
		return r, err
	}
	return r, whole(a, &r)
}

// RowSelection says which rows a retry takes: those named, or all that the rest lets through.
type RowSelection struct {
	Rows           []int64    `json:"rows,omitempty"`
	Code           fault.Code `json:"code,omitempty"`
	Class          string     `json:"class,omitempty"`
	DatasetVersion int        `json:"dataset_version,omitempty"` // 0: the newest
}

// RetryRows makes a job that tries quarantined rows again.
func (c *Client) RetryRows(ctx context.Context, jobID string, sel RowSelection, key string) (Submitted, error) {
	a, err := c.do(ctx, request{method: http.MethodPost, path: jobPath("jobs", jobID, "/rows/retry"), body: sel, key: key})
	if err != nil {
		return Submitted{}, err
	}
	s := Submitted{Replayed: a.replayed()}
	return s, whole(a, &s.Job)
}

// DiscardRows gives rows up; doing it again changes nothing.
func (c *Client) DiscardRows(ctx context.Context, jobID string, rows []int64, reason string) error {
	body := map[string]any{"rows": rows, "reason": reason}
	_, err := c.do(ctx, request{method: http.MethodPost, path: jobPath("jobs", jobID, "/rows/discard"), body: body})
	return err
}
