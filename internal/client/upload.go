package client

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"pintu/internal/fault"
)

// Import submits an import, uploads content and completes it, picking up wherever an earlier try with the
// same key got to. It returns when the job waits for its work, or is further than that. sent, which may be
// nil, is told how many bytes of the file are on their way; it goes back when an upload is repeated.
func (c *Client) Import(ctx context.Context, spec ImportSpec, key string, content io.ReaderAt, sent func(int64)) (Submitted, error) {
	s, err := c.SubmitImport(ctx, spec, key)
	if err != nil || s.Job.Status != Uploading {
		return s, err
	}
	if err := c.send(ctx, s, content, spec.File.SizeBytes, sent); err != nil {
		return s, err
	}
	// The job's own id makes a good key: it is completed once.
	j, err := c.Complete(ctx, s.Job.ID, "complete-"+s.Job.ID)
	if Is(err, fault.InvalidJobState) { // completed without us meanwhile
		j, err = c.Job(ctx, s.Job.ID)
	}
	if err == nil {
		s.Job = j
	}
	return s, err
}

// maxGrants bounds how many fresh presigned requests one upload may use up. Each lives for minutes.
const maxGrants = 5

func (c *Client) send(ctx context.Context, s Submitted, content io.ReaderAt, size int64, sent func(int64)) error {
	up := s.Upload
	for range maxGrants {
		if up == nil {
			fresh, err := c.RenewUpload(ctx, s.Job.ID)
			if Is(err, fault.InvalidJobState) {
				return nil // it is no longer waiting for its file
			}
			if err != nil {
				return err
			}
			up = &fresh
		}
		err := c.Upload(ctx, *up, content, size, sent)
		if !errors.Is(err, ErrUploadExpired) {
			return err
		}
		up = nil
	}
	return fmt.Errorf("upload: %d presigned requests were refused one after the other", maxGrants)
}

// ErrUploadExpired says that the presigned request is no longer good.
var ErrUploadExpired = errors.New("the presigned request has expired")

// Upload sends size bytes of content by a presigned request, again when the connection breaks. An object
// that is there already is left alone: complete judges it.
func (c *Client) Upload(ctx context.Context, up Upload, content io.ReaderAt, size int64, sent func(int64)) error {
	_, err := retry(ctx, c, func() (struct{}, error) {
		return struct{}{}, c.uploadOnce(ctx, up, io.NewSectionReader(content, 0, size), size, sent)
	})
	return err
}

func (c *Client) uploadOnce(ctx context.Context, up Upload, content io.Reader, size int64, sent func(int64)) error {
	var body io.Reader = http.NoBody
	if size > 0 {
		body = &counted{Reader: content, report: sent}
	}
	req, err := http.NewRequestWithContext(ctx, up.Method, up.URL, io.NopCloser(body))
	if err != nil {
		return permanentError{fmt.Errorf("upload: %w", withoutURL(err))}
	}
	if size == 0 {
		req.Body = http.NoBody
	}
	req.ContentLength = size
	for name, value := range up.Headers {
		if !strings.EqualFold(name, "Content-Length") { // sent from the size
			req.Header.Set(name, value)
		} else if value != strconv.FormatInt(size, 10) {
			return permanentError{fmt.Errorf("upload: the file has %d bytes, %s were declared", size, value)}
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("upload: %w", withoutURL(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("upload: read answer: %w", err)
	}
	return storeError("upload", res, text)
}

// storeError judges an answer of the object store. Its own code is shown; its text may hold the URL.
func storeError(op string, res *http.Response, body []byte) error {
	var shape struct{ Code string }
	_ = xml.Unmarshal(body, &shape) // what is no XML has no code
	if shape.Code == "" {
		shape.Code = http.StatusText(res.StatusCode)
	}
	e := &Error{Status: res.StatusCode, Message: op + ": the object store answered " + shape.Code, RetryAfter: retryAfter(res.Header)}
	switch s := res.StatusCode; {
	case s/100 == 2, s == http.StatusPreconditionFailed: // by If-None-Match: the object is there
		return nil
	case s == http.StatusForbidden:
		return permanentError{fmt.Errorf("%s: %w (%s)", op, ErrUploadExpired, shape.Code)}
	case s >= 500, s == http.StatusTooManyRequests, s == http.StatusConflict, shape.Code == "RequestTimeout":
		e.Retryable = true
	}
	return e
}

// counted reports how much has been read.
type counted struct {
	io.Reader
	n      int64
	report func(int64)
}

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += int64(n)
	if r.report != nil {
		r.report(r.n)
	}
	return n, err
}
