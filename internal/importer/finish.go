package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"pintu/internal/fault"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

// finish ends a job whose chunks are all settled: chunks that lost a row to a smaller one run once more,
// then the verdict is taken from exact counters, artifacts are written, and the terminal state last.
func (im *Importer) finish(ctx context.Context, j job.Job) error {
	again, t, err := im.tally(ctx, j)
	if err != nil {
		return err
	}
	if len(again) > 0 && j.CommittedAt.IsZero() { // a worker that was frozen before the commit marks for nothing
		return im.runAgain(ctx, j, again)
	}
	shown := j.Progress
	shown.Stage, shown.At = job.Finalizing, im.Now()
	if err := im.Store.ShowProgress(ctx, j, shown); err != nil && !errors.Is(err, job.ErrMoved) {
		return err
	}
	e := im.verdict(j, t)
	if e.Status == job.Succeeded && j.Exclusive() {
		if e.Job, err = im.publish(ctx, j, t.counters.Accepted()); err != nil {
			return err
		}
	}
	if e.Result.Artifacts, err = im.artifacts(ctx, j, e, t); err != nil {
		return err
	}
	_, err = im.Jobs.End(ctx, e)
	return err
}

// tally is the sum over all chunks.
type tally struct {
	counters job.Counters
	rows     int64 // data records in all chunks
	trailing int64
	ledger   job.Ledger
	samples  []job.SampleError
	rejects  []int // chunks that have quarantined rows, in order
}

// maxSamples bounds result.sample_errors (SPEC 3.3).
const maxSamples = 20

// tally adds up the chunks and checks that they add up: what does not is an error for the operator and
// never papered over.
func (im *Importer) tally(ctx context.Context, j job.Job) (again []Chunk, t tally, err error) {
	ranges, next := sha256.New(), j.Plan.Layout.DataStart.Offset
	err = im.eachChunk(ctx, j, func(c Chunk) error {
		if c.Again {
			again = append(again, c)
		}
		if c.Start.Offset != next {
			return fmt.Errorf("ledger of job %s: chunk %d starts at %d, not at %d", j.ID, c.Index, c.Start.Offset, next)
		}
		if settled := c.Counters.Settled(); !c.Done || !c.Stopped && !c.Again && settled != c.Rows {
			return fmt.Errorf("ledger of job %s: chunk %d settled %d of %d rows (done %v)", j.ID, c.Index, settled, c.Rows, c.Done)
		}
		next = c.End.Offset
		t.add(c)
		writeRange(ranges, c)
		return nil
	})
	if err != nil || len(again) > 0 && j.CommittedAt.IsZero() {
		return again, t, err
	}
	if t.ledger.Chunks == 0 && j.Plan.Complete {
		next = j.Input.SizeBytes // nothing but blank lines behind the header
	}
	if j.Plan.Complete && next != j.Input.SizeBytes {
		return nil, t, fmt.Errorf("ledger of job %s: chunks end at byte %d of %d", j.ID, next, j.Input.SizeBytes)
	}
	t.ledger.InputVersionID, t.ledger.InputBytes, t.ledger.DataStart = j.Input.VersionID, j.Input.SizeBytes, j.Plan.Layout.DataStart.Offset
	t.ledger.CoveredBytes, t.ledger.ChunksSHA256 = next, hex.EncodeToString(ranges.Sum(nil))
	if j.Plan.Complete {
		t.ledger.InputSHA256 = j.Input.SHA256
	}
	t.samples, err = im.samples(ctx, j, t.rejects)
	return nil, t, err
}

// writeRange writes what chunks_sha256 is over.
func writeRange(w io.Writer, c Chunk) {
	fmt.Fprintf(w, "%d-%d:%d:%d\n", c.Start.Offset, c.End.Offset, c.Rows, c.Counters.Settled())
}

func (t *tally) add(c Chunk) {
	t.counters.Add(c.Counters)
	t.rows += c.Rows
	t.trailing += c.Trailing
	t.ledger.Chunks++
	if c.Stopped {
		t.ledger.ChunksStopped++
	}
	if c.Counters.Rejected > 0 {
		t.rejects = append(t.rejects, c.Index)
	}
}

// runAgain opens the marked chunks for their second run (PROTOCOL P3).
func (im *Importer) runAgain(ctx context.Context, j job.Job, again []Chunk) error {
	for _, c := range again {
		if err := im.Store.RunAgain(ctx, c); err != nil {
			return fmt.Errorf("run chunk %d again: %w", c.Index, err)
		}
		if err := im.Hints.Send(ctx, ChunkHint(j, c.Index)); err != nil {
			return err
		}
	}
	return nil
}

func (im *Importer) samples(ctx context.Context, j job.Job, chunks []int) ([]job.SampleError, error) {
	var out []job.SampleError
	err := im.eachKept(ctx, j, chunks, func(r quarantine.Row) (more bool, err error) {
		out = append(out, job.SampleError{RowNumber: r.RowNumber, Line: r.Line, Field: r.Field, Code: r.Code, Class: string(r.Class), Message: r.Message})
		return len(out) < maxSamples, nil
	})
	return out, err
}

// verdict is what the exact counters say. A cancel that was answered goes before everything else; the
// write of any other verdict is refused when a cancel comes in between.
func (im *Importer) verdict(j job.Job, t tally) job.Ending {
	e := job.Ending{Job: j, At: im.Now().UTC(), Result: result(j, t), Warnings: warnings(j, t)}
	accepted, rejected := t.counters.Accepted(), t.counters.Rejected
	switch {
	case !j.CancelRequestedAt.IsZero():
		e.Status, e.CanceledBy = job.Canceled, j.CanceledBy
	case j.Stop != nil:
		e.Status, e.Error = job.Failed, j.Stop
	case rejected > j.Spec.MaxRejected:
		why := tooManyRejected(j.Spec.MaxRejected)
		e.Status, e.Error = job.Failed, &why
	case overPercent(j.Spec.MaxRejectedPercent, rejected, t.rows):
		e.Status, e.Error = job.Failed, &job.Failure{Code: fault.TooManyRejected, Details: map[string]any{"max_rejected_percent": *j.Spec.MaxRejectedPercent},
			Message: fmt.Sprintf("more than %g%% of the rows were rejected; mend the file or raise max_rejected_percent", *j.Spec.MaxRejectedPercent)}
	case accepted == 0 && rejected > 0:
		e.Status, e.Error = job.Failed, &job.Failure{Code: fault.AllRowsRejected, Message: "no row was accepted; see result.sample_errors and the quarantined rows"}
	case rejected > 0 && j.Spec.Atomicity == job.AllOrNothing:
		e.Status, e.Error = job.Failed, &job.Failure{Code: fault.TooManyRejected, Details: map[string]any{"max_rejected": 0, "rows_rejected": rejected},
			Message: "the import is all or nothing and some rows were rejected, so no row was applied; mend them and import the file again"}
	case rejected > 0:
		e.Status = job.Partial
	default:
		e.Status = job.Succeeded
	}
	if e.Status != job.Succeeded && j.Spec.Atomicity == job.AllOrNothing {
		e.Result.NothingApplied()
	}
	return e
}

func overPercent(limit *float64, rejected, rows int64) bool {
	return limit != nil && rows > 0 && float64(rejected)*100 > *limit*float64(rows)
}

func result(j job.Job, t tally) job.Result {
	r := job.Result{RowsPlanned: t.rows, Counters: t.counters, RowsUnprocessed: t.rows - t.counters.Settled(), SampleErrors: t.samples, Ledger: t.ledger}
	if j.Plan.Complete {
		r.RowsTotal = &t.rows
	}
	return r
}

func warnings(j job.Job, t tally) []job.Warning {
	w := j.Warnings
	if t.trailing > 0 {
		w = append(w, job.Warning{Code: fault.TrailingDelimiter, Message: "rows end in a delimiter too many; the empty cell was ignored", Details: map[string]any{"rows": t.trailing}})
	}
	return w
}

// expires is when an artifact of a job that ends now goes.
func expires(j job.Job, now time.Time) time.Time {
	return now.Add(time.Duration(j.Spec.Retention.ResultsDays) * 24 * time.Hour)
}
