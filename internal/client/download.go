package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
)

// download is one artifact on its way: what came so far counts, also when the rest needs another request.
type download struct {
	client   *Client
	job      string
	name     string
	w        io.Writer
	sum      hash.Hash
	received int64
}

// grant is a signed permission to fetch.
type grant struct {
	URL       string `json:"url"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

// Artifact writes an artifact of a job to w and checks size and SHA-256 against what the job says. A broken
// connection is taken up where it broke. On an error, what was written is not the artifact.
func (c *Client) Artifact(ctx context.Context, jobID, name string, w io.Writer) error {
	d := &download{client: c, job: jobID, name: name, w: w, sum: sha256.New()}
	g, err := retry(ctx, c, func() (grant, error) { return d.next(ctx) })
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(d.sum.Sum(nil)); d.received != g.SizeBytes || got != g.SHA256 {
		return fmt.Errorf("fetch %s: got %d bytes with SHA-256 %s, want %d with %s", name, d.received, got, g.SizeBytes, g.SHA256)
	}
	return nil
}

// next asks for a permission, which is short-lived, and fetches what is missing.
func (d *download) next(ctx context.Context) (g grant, err error) {
	path := jobPath("jobs", d.job, "/artifacts/"+url.PathEscape(d.name))
	a, err := d.client.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return g, permanentError{err} // it was repeated already
	}
	if err := decode(a, &g); err != nil {
		return g, permanentError{err}
	}
	if d.received < g.SizeBytes {
		err = d.fetch(ctx, g)
	}
	return g, err
}

func (d *download) fetch(ctx context.Context, g grant) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL, nil)
	if err != nil {
		return permanentError{fmt.Errorf("fetch %s: %w", d.name, withoutURL(err))}
	}
	if d.received > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.received))
	}
	res, err := d.client.http.Do(req)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", d.name, withoutURL(err))
	}
	defer res.Body.Close()
	want := http.StatusOK
	if d.received > 0 {
		want = http.StatusPartialContent
	}
	if res.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // the status says enough without it
		if err := storeError("fetch "+d.name, res, text); err != nil {
			return err
		}
		return permanentError{fmt.Errorf("fetch %s: the object store answered %d, want %d", d.name, res.StatusCode, want)}
	}
	if err := d.copy(res.Body); err != nil {
		return err
	}
	if d.received < g.SizeBytes {
		return fmt.Errorf("fetch %s: ended after %d of %d bytes", d.name, d.received, g.SizeBytes)
	}
	return nil
}

// copy keeps trouble with the writer, which ends the download, apart from trouble with the connection.
func (d *download) copy(body io.Reader) error {
	w := &writer{w: io.MultiWriter(d.w, d.sum)}
	n, err := io.Copy(w, body)
	d.received += n
	if w.err != nil {
		return permanentError{fmt.Errorf("fetch %s: write: %w", d.name, w.err)}
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", d.name, err)
	}
	return nil
}

type writer struct {
	w   io.Writer
	err error
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.err = errors.Join(w.err, err)
	return n, err
}
