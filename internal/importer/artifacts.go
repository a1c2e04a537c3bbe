package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"

	"github.com/oklog/ulid/v2"
)

func newBytes(b []byte) *bytes.Reader { return bytes.NewReader(b) }

// artifacts writes the files of a finished job under a name of this try's own: when two finish at once,
// the terminal state names the files of the one that wrote it (PROTOCOL A8). Contents hold no clock and
// list rows in row order, so every try writes the same bytes.
func (im *Importer) artifacts(ctx context.Context, j job.Job, e job.Ending, t tally) ([]job.Artifact, error) {
	prefix := fmt.Sprintf("results/%s/%s/%s/", j.Tenant, j.ID, ulid.Make())
	report, err := reportJSON(j, e)
	if err != nil {
		return nil, err
	}
	out := make([]job.Artifact, 0, 2)
	put := func(name, contentType string, body func(io.Writer) error) error {
		a, err := im.putArtifact(ctx, prefix+name, contentType, body)
		a.Name, a.ExpiresAt = name, expires(j, e.At)
		out = append(out, a)
		return err
	}
	if len(t.rejects) > 0 {
		name, contentType := "rejected.csv", "text/csv"
		if j.Plan.Layout.Format == rowio.FormatJSONL {
			name, contentType = "rejected.jsonl", "application/jsonl"
		}
		err := put(name, contentType, func(w io.Writer) error { return im.writeRejected(ctx, j, t.rejects, w) })
		if err != nil {
			return nil, err
		}
	}
	err = put("report.json", "application/json", func(w io.Writer) error { _, err := w.Write(report); return err })
	return out, err
}

// putArtifact streams what body writes into the bucket, counting and hashing on the way.
func (im *Importer) putArtifact(ctx context.Context, key, contentType string, body func(io.Writer) error) (job.Artifact, error) {
	r, w := io.Pipe()
	count := &counting{w: w, sum: sha256.New()}
	written := make(chan error, 1)
	go func() {
		err := body(count)
		written <- err
		w.CloseWithError(err) // nil closes with EOF
	}()
	version, err := im.Blob.Put(ctx, key, contentType, r)
	r.CloseWithError(errors.New("upload ended")) // frees the writer when the upload gave up first
	if werr := <-written; err == nil {
		err = werr
	}
	if err != nil {
		return job.Artifact{}, fmt.Errorf("write artifact: %w", err)
	}
	return job.Artifact{Key: key, VersionID: version, SizeBytes: count.n, SHA256: hex.EncodeToString(count.sum.Sum(nil))}, nil
}

type counting struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	return n, err
}

// writeRejected lists every quarantined row with its reason and exact bytes, in row order. The file can
// be mended and imported again as it is.
func (im *Importer) writeRejected(ctx context.Context, j job.Job, chunks []int, w io.Writer) error {
	out := rowio.NewRejectWriter(w, j.Plan.Layout)
	if err := out.Header(); err != nil {
		return err
	}
	return im.eachKept(ctx, j, chunks, func(r quarantine.Row) (more bool, err error) {
		reject := rowio.Reject{Row: r.RowNumber, Code: string(r.Code), Field: r.Field, Class: string(r.Class), Message: r.Message, Raw: r.Raw}
		if r.RawKey == "" {
			return true, out.Write(reject)
		}
		// These bytes did not fit the row's item. They may be those of a line as long as the file.
		body, err := im.Blob.Open(ctx, r.RawKey, "", 0, -1)
		if err != nil {
			return false, err
		}
		return true, errors.Join(out.WriteFrom(reject, body), body.Close())
	})
}

// reportJSON is report.json: the outcome of the job for machines that were not there when it ended.
func reportJSON(j job.Job, e job.Ending) ([]byte, error) {
	r, c := e.Result, e.Result.Counters
	report := struct {
		JobID           string            `json:"job_id"`
		Dataset         string            `json:"dataset"`
		DatasetVersion  int               `json:"dataset_version"`
		Status          job.Status        `json:"status"`
		RowsTotal       *int64            `json:"rows_total"`
		RowsAccepted    int64             `json:"rows_accepted"`
		RowsCreated     int64             `json:"rows_created"`
		RowsUpdated     int64             `json:"rows_updated"`
		RowsUnchanged   int64             `json:"rows_unchanged"`
		RowsSkipped     int64             `json:"rows_skipped"`
		RowsRejected    int64             `json:"rows_rejected"`
		RowsUnprocessed int64             `json:"rows_unprocessed"`
		RejectedByCode  any               `json:"rejected_by_code"`
		RejectedByClass any               `json:"rejected_by_class"`
		SampleErrors    []job.SampleError `json:"sample_errors"`
		Error           *job.Failure      `json:"error"`
		Warnings        []job.Warning     `json:"warnings"`
		InputSHA256     string            `json:"input_sha256"`
		InputBytes      int64             `json:"input_bytes"`
	}{
		string(j.ID), j.Spec.Dataset, j.Spec.DatasetVersion, e.Status, r.RowsTotal, c.Accepted(), c.Created, c.Updated, c.Unchanged, c.Skipped,
		c.Rejected, r.RowsUnprocessed, c.ByCode, c.ByClass, r.SampleErrors, e.Error, e.Warnings, r.Ledger.InputSHA256, r.Ledger.InputBytes,
	}
	b, err := json.MarshalIndent(report, "", " ")
	return append(b, '\n'), err
}
