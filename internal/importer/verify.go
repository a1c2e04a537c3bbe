package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

// Entries reads what one slot of a record's register says; nil when there is no such record or entry.
type Entries interface {
	Entry(ctx context.Context, tenant, dataset, key string, slot int) (*Entry, error)
}

// Verification is what holding a job's ledger against the input and the stored records came to.
type Verification struct {
	JobID     id.Job   `json:"job_id"`
	Bytes     int64    `json:"bytes"`     // of the input that were read and hashed
	Chunks    int      `json:"chunks"`    // found again by splitting the input anew
	Rows      int64    `json:"rows"`      // in them
	Accepted  int64    `json:"accepted"`  // rows whose record carries them
	Rejected  int64    `json:"rejected"`  // rows in quarantine
	Skipped   int64    `json:"skipped"`   // rows that gave way to another, or to another job's record
	Overtaken int64    `json:"overtaken"` // rows whose place in the record a later import has taken since
	Problems  []string `json:"problems"`  // at most maxProblems; none says that everything is proven. No row value is in them
}

// maxProblems bounds what is told: after that many it is clear that something is wrong.
const maxProblems = 50

// Verify proves the ledger of an import that ran to its end: the pinned input has the hash that was told and
// splits into the same chunks, the counters add up, and each row is in quarantine, in its record, or gave way
// to another one. It changes nothing.
func (im *Importer) Verify(ctx context.Context, entries Entries, tenant string, jobID id.Job) (Verification, error) {
	j, err := im.Store.Job(ctx, tenant, jobID)
	if err != nil {
		return Verification{}, err
	}
	if !j.Status.Terminal() || j.Result == nil || !j.Plan.Pinned {
		return Verification{}, fmt.Errorf("job %s has no ledger: it is %s", jobID, j.Status)
	}
	v := &verifier{im: im, entries: entries, job: j}
	v.report.JobID = jobID
	v.law()
	if err := v.split(ctx); err != nil {
		return v.report, err
	}
	v.sums()
	if j.RowsOf != "" { // the outcomes of its rows are with the job of their file
		return v.report, nil
	}
	for _, c := range v.chunks {
		if err := v.rows(ctx, c); err != nil {
			return v.report, err
		}
	}
	v.outcomes()
	return v.report, nil
}

type verifier struct {
	im      *Importer
	entries Entries
	job     job.Job
	chunks  []Chunk

	mu     sync.Mutex
	report Verification
}

func (v *verifier) problem(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
	}
}

func (v *verifier) equal(what string, told, found any) {
	if told != found {
		v.problem("%s: the ledger says %v, found %v", what, told, found)
	}
}

// law checks that the rows of the result add up.
func (v *verifier) law() {
	r := v.job.Result
	v.equal("rows accounted for", r.RowsPlanned, r.Counters.Settled()+r.RowsUnprocessed)
	if r.RowsTotal != nil {
		v.equal("rows_total", *r.RowsTotal, r.RowsPlanned)
	}
	var byCode, byClass int64
	for _, n := range r.Counters.ByCode {
		byCode += n
	}
	for _, n := range r.Counters.ByClass {
		byClass += n
	}
	v.equal("rejected_by_code", r.Counters.Rejected, byCode)
	v.equal("rejected_by_class", r.Counters.Rejected, byClass)
}

// split reads the whole input once: it hashes it and cuts it into chunks as the plan did.
func (v *verifier) split(ctx context.Context) error {
	j, l := v.job, v.job.Result.Ledger
	if err := v.im.eachChunk(ctx, j, func(c Chunk) error { v.chunks = append(v.chunks, c); return nil }); err != nil {
		return err
	}
	state, err := v.im.hashHead(ctx, j, j.Plan.Layout.DataStart.Offset)
	if err != nil {
		return err
	}
	sum, err := resumeHash(state)
	if err != nil {
		return err
	}
	var body io.ReadCloser = io.NopCloser(newBytes(nil))
	if start := j.Plan.Layout.DataStart.Offset; start < j.Input.SizeBytes {
		if body, err = v.im.Blob.Open(ctx, j.Input.Key, j.Input.VersionID, start, -1); err != nil {
			return err
		}
	}
	read := &counting{w: io.Discard, sum: sum}
	err = v.cut(rowio.NewSplitter(body, boundaries(j), j.Plan.Layout.DataStart, read))
	if err = errors.Join(err, body.Close()); err != nil {
		return err
	}
	v.report.Bytes = j.Plan.Layout.DataStart.Offset + read.n
	v.equal("input_version_id", l.InputVersionID, j.Input.VersionID)
	if l.InputSHA256 != "" {
		v.equal("input_bytes", l.InputBytes, v.report.Bytes)
		v.equal("input_sha256", l.InputSHA256, hex.EncodeToString(sum.Sum(nil)))
	}
	return nil
}

// cut compares the chunks with those of the plan. A plan that was stopped has only the first of them.
func (v *verifier) cut(s *rowio.Splitter) error {
	for n := 0; ; n++ {
		found, err := s.Next(v.job.Plan.ChunkBytes)
		if errors.Is(err, io.EOF) {
			if n < len(v.chunks) {
				v.problem("the ledger has %d chunks, the input only %d", len(v.chunks), n)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("split input: %w", err)
		}
		switch {
		case n < len(v.chunks):
			v.report.Chunks++
			v.report.Rows += found.Rows
			c := v.chunks[n]
			v.equal(fmt.Sprintf("start of chunk %d", n), c.Start, found.Start)
			v.equal(fmt.Sprintf("end of chunk %d", n), c.End, found.End)
			v.equal(fmt.Sprintf("rows of chunk %d", n), c.Rows, found.Rows)
		case v.job.Plan.Complete:
			v.problem("the input has a chunk %d that the ledger lacks", n)
		}
	}
}

// sums checks that the chunks add up to the result.
func (v *verifier) sums() {
	r, ranges := v.job.Result, sha256.New()
	var sum job.Counters
	var stopped int
	for _, c := range v.chunks {
		sum.Add(c.Counters)
		if c.Stopped {
			stopped++
		} else {
			v.equal(fmt.Sprintf("rows settled in chunk %d", c.Index), c.Rows, c.Counters.Settled())
		}
		writeRange(ranges, c)
	}
	if v.job.Spec.Atomicity == job.AllOrNothing && v.job.Status != job.Succeeded {
		sum.Created, sum.Updated, sum.Unchanged = 0, 0, 0
	}
	v.equal("counters of the chunks", fmt.Sprint(r.Counters), fmt.Sprint(sum))
	v.equal("chunks", r.Ledger.Chunks, len(v.chunks))
	v.equal("chunks_stopped", r.Ledger.ChunksStopped, stopped)
	v.equal("chunks_sha256", r.Ledger.ChunksSHA256, hex.EncodeToString(ranges.Sum(nil)))
}

// rows reads what a chunk settled and looks for each row where it must be.
func (v *verifier) rows(ctx context.Context, c Chunk) error {
	rejected := map[int64]bool{}
	_, err := v.im.eachKeptOf(ctx, v.job, c.Index, func(r quarantine.Row) (bool, error) {
		rejected[r.RowNumber] = true
		return true, nil
	})
	if err != nil {
		return err
	}
	v.equal(fmt.Sprintf("rows of chunk %d in quarantine", c.Index), c.Counters.Rejected, int64(len(rejected)))
	v.report.Rejected += int64(len(rejected))
	settled := c
	settled.At, settled.Until = c.Start, c.At.Offset
	w, err := v.im.newWorker(ctx, v.job, settled, true)
	if err != nil {
		return err
	}
	return errors.Join(v.each(ctx, w, rejected), w.body.Close())
}

func (v *verifier) each(ctx context.Context, w *worker, rejected map[int64]bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(v.im.InFlight)
	for ctx.Err() == nil {
		rec, err := w.reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read chunk %d: %w", w.chunk.Index, err), group.Wait())
		}
		if rejected[rec.Row] {
			continue
		}
		if bad := w.check(rec); bad != nil {
			v.problem("row %d is not in quarantine and is not valid: %s", rec.Row, bad.Code)
			continue
		}
		row, key := rec.Row, string(w.row.Key)
		group.Go(func() error { return v.find(ctx, w, row, key) })
	}
	return group.Wait()
}

// find looks at the record of a row that was not rejected.
func (v *verifier) find(ctx context.Context, w *worker, row int64, key string) error {
	e, err := v.entries.Entry(ctx, v.job.Tenant, v.job.Spec.Dataset, key, v.job.Slot)
	if err != nil {
		return fmt.Errorf("look at the record of row %d: %w", row, err)
	}
	count := &v.report.Accepted
	switch written := !v.job.Staged() || !v.job.CommittedAt.IsZero(); {
	case !written:
		if e != nil && e.Epoch == v.job.Epoch {
			v.problem("row %d is in its record, though nothing was to be written", row)
		}
		return nil
	case e != nil && e.Epoch > v.job.Epoch:
		count = &v.report.Overtaken
	case e != nil && e.Epoch == v.job.Epoch && e.Row == row:
	case e != nil && e.Epoch == v.job.Epoch && w.rules.LastWins, w.rules.OnConflict == Skip:
		count = &v.report.Skipped
	default:
		v.problem("row %d was not rejected, and its record does not carry it", row)
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	*count++
	return nil
}

// outcomes compares what was found with what was counted: rows that a later import has overtaken may have
// been either.
func (v *verifier) outcomes() {
	if v.job.Staged() && v.job.CommittedAt.IsZero() {
		return
	}
	c, found := v.job.Result.Counters, v.report
	within := func(what string, told, found int64) {
		if told < found || told > found+v.report.Overtaken {
			v.problem("%s: the ledger says %d, found %d and %d that a later import has overtaken", what, told, found, v.report.Overtaken)
		}
	}
	within("rows_accepted", c.Accepted(), found.Accepted)
	within("rows_skipped", c.Skipped, found.Skipped)
}
