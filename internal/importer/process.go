package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/job"
	"pintu/internal/rowio"
)

// Process settles the rows of one chunk, from its checkpoint on (PROTOCOL P4). nil means that the message
// can be acknowledged: the chunk is done, the job is over, or a fresh message carries on.
func (im *Importer) Process(ctx context.Context, h job.Hint) error {
	j, err := im.Store.Job(ctx, h.Tenant, h.JobID)
	if err != nil {
		return err
	}
	c, err := im.Store.Chunk(ctx, h.Tenant, h.JobID, h.Chunk)
	if err != nil || c.Done || j.Status.Terminal() {
		return err
	}
	// A batch that somebody began may have rows behind the checkpoint that nobody counted. They are settled
	// by applying one full batch from there; until then the chunk must not stop.
	settled := !c.Started
	c.Started = true
	if err := im.Store.Claim(ctx, c); err != nil {
		return err
	}
	c.Version++
	w, err := im.newWorker(ctx, j, c, settled)
	if err != nil {
		return err
	}
	err = w.run(ctx)
	if cerr := w.body.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, errYield) {
		return im.Hints.Send(ctx, h)
	}
	return err
}

// worker is one claim of one chunk at work.
type worker struct {
	im       *Importer
	job      job.Job
	chunk    Chunk
	settled  bool // the chunk may stop at its checkpoint
	body     io.ReadCloser
	reader   records
	hand     *inHand // rows of a retry; nil for a file
	fields   []string
	keyField string // name of the primary key, for messages
	row      dataset.Row
	expected int64 // version that row was made from
	marks    marks
	laid
}

func (im *Importer) newWorker(ctx context.Context, j job.Job, c Chunk, settled bool) (*worker, error) {
	def, schema, err := im.schema(ctx, j)
	if err != nil {
		return nil, err
	}
	if len(def.Computed) > 0 {
		computed, err := im.Compute(def)
		if err != nil {
			return nil, fmt.Errorf("compile computed columns: %w", err)
		}
		schema = schema.WithEvaluator(computed)
	}
	l, err := lay(j, def, schema, j.Plan.Layout)
	if err != nil {
		return nil, err
	}
	body, err := im.Blob.Open(ctx, j.Input.Key, j.Input.VersionID, c.At.Offset, c.Until)
	if err != nil {
		return nil, err
	}
	reader, hand := im.newRecords(ctx, j, body, c.At)
	return &worker{im: im, job: j, chunk: c, settled: settled, body: body, laid: l, fields: def.ColumnNames(), keyField: strings.Join(def.PrimaryKey(), ","),
		reader: reader, hand: hand}, nil
}

func (im *Importer) schema(ctx context.Context, j job.Job) (*dataset.Definition, *dataset.Schema, error) {
	def, err := im.Definitions.Definition(ctx, j.Tenant, j.Spec.Dataset, j.Spec.DatasetVersion)
	if err != nil {
		return nil, nil, err
	}
	schema, err := def.Compile()
	return def, schema, err
}

// run applies batch after batch until the chunk ends, must stop, or time is up.
func (w *worker) run(ctx context.Context) error {
	for {
		stop := w.mustStop()
		if w.chunk.At.Offset >= w.chunk.Until || stop && w.settled {
			return w.end(ctx)
		}
		if timeUp(ctx) {
			return errYield
		}
		full, err := w.batch(ctx)
		if err != nil {
			return err
		}
		w.settled = w.settled || full
		if err := w.im.Store.Checkpoint(ctx, w.chunk); err != nil {
			return fmt.Errorf("checkpoint of chunk %d: %w", w.chunk.Index, err)
		}
		w.chunk.Version++
		if w.job, err = w.im.Store.Job(ctx, w.job.Tenant, w.job.ID); err != nil {
			return err
		}
		if w.job.Status.Terminal() {
			return nil
		}
		if err := w.im.progress(ctx, w.job, w.chunk); err != nil {
			return err
		}
	}
}

// mustStop tells whether somebody asked for the end. A second run goes through: the register is final
// then, and the rows of the first run are counted by it.
func (w *worker) mustStop() bool {
	return !w.chunk.Rerun && (!w.job.CancelRequestedAt.IsZero() || w.job.Stop != nil)
}

// batch settles the next rows and moves the checkpoint in memory behind them. full tells that it was a
// whole batch or reached the end of the chunk.
func (w *worker) batch(ctx context.Context) (full bool, err error) {
	b := w.im.newBatch(ctx, w)
	n, ended := 0, false
	for n < w.job.Plan.BatchRows && (n == 0 || !timeUp(ctx)) && b.ok() {
		rec, err := w.reader.Next()
		if errors.Is(err, io.EOF) {
			ended = true
			break
		}
		if err != nil {
			return false, errors.Join(fmt.Errorf("read chunk %d: %w", w.chunk.Index, err), b.wait())
		}
		b.settle(rec)
		n++
	}
	if err := b.wait(); err != nil {
		return false, err
	}
	w.chunk.Counters.Add(b.counters)
	w.chunk.Trailing += b.trailing
	w.chunk.At = w.reader.Position()
	if ended {
		w.chunk.At = w.passEnd()
	}
	return ended || n == w.job.Plan.BatchRows, nil
}

// passEnd is the position behind the last byte of this pass, trailing blank lines included.
func (w *worker) passEnd() rowio.Position {
	if w.chunk.Until == w.chunk.End.Offset {
		return w.chunk.End
	}
	at := w.reader.Position()
	at.Offset = w.chunk.Until
	return at
}

// end marks the chunk done, and has the job finished if it was the last one.
func (w *worker) end(ctx context.Context) error {
	w.chunk.Done = true
	w.chunk.Stopped = w.chunk.At.Offset < w.chunk.End.Offset
	err := w.im.Store.EndChunk(ctx, w.chunk)
	if err != nil && !errors.Is(err, job.ErrMoved) {
		return err
	}
	return w.im.finishIfLast(ctx, w.job, err)
}

// finishIfLast sends the job to be finished when all its chunks are settled. moved is the answer of a
// lost race, which stands if the job is not over.
func (im *Importer) finishIfLast(ctx context.Context, j job.Job, moved error) error {
	j, err := im.Store.Job(ctx, j.Tenant, j.ID)
	if err != nil {
		return err
	}
	switch {
	case j.Status.Terminal():
		return nil
	case moved != nil:
		return moved
	case j.Plan.Closed && j.Plan.ChunksDone == j.Plan.ChunksPlanned:
		return im.Hints.Send(ctx, j.Hint())
	}
	return nil
}

// progressEvery bounds how often workers copy their progress to the job for people to see.
const progressEvery = 2 * time.Second

// progress sums the chunks for people now and then, and stops early what will be refused at the end
// anyway.
func (im *Importer) progress(ctx context.Context, j job.Job, c Chunk) error {
	now := im.Now()
	if now.Sub(j.Progress.At) < progressEvery {
		return nil
	}
	p := job.Progress{Stage: job.Processing, At: now}
	var sum job.Counters
	err := im.eachChunk(ctx, j, func(c Chunk) error {
		sum.Add(c.Counters)
		p.BytesProcessed += c.At.Offset - c.Start.Offset
		return nil
	})
	if err != nil {
		return err
	}
	p.RowsAccepted, p.RowsRejected, p.RowsSkipped = sum.Accepted(), sum.Rejected, sum.Skipped
	if err := im.Store.ShowProgress(ctx, j, p); err != nil && !errors.Is(err, job.ErrMoved) {
		return err
	}
	if sum.Rejected <= j.Spec.MaxRejected || j.Stop != nil {
		return nil
	}
	err = im.Store.RequestStop(ctx, j, tooManyRejected(j.Spec.MaxRejected))
	if errors.Is(err, job.ErrMoved) {
		return nil
	}
	return err
}

func tooManyRejected(limit int64) job.Failure {
	return job.Failure{Code: fault.TooManyRejected, Message: fmt.Sprintf("more than %d rows were rejected; mend the file or raise max_rejected", limit),
		Details: map[string]any{"max_rejected": limit}}
}

// eachChunk calls f with every chunk of a job, in order.
func (im *Importer) eachChunk(ctx context.Context, j job.Job, f func(Chunk) error) error {
	for from := 0; ; {
		page, err := im.Store.Chunks(ctx, j.Tenant, j.ID, from)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, c := range page {
			if err := f(c); err != nil {
				return err
			}
			from = c.Index + 1
		}
	}
}
