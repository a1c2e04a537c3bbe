package importer

import (
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/job"
	"pintu/internal/rowio"
)

// Advance looks at a job and does what it needs next: pin its layout, plan chunks, stop, finish. nil
// means that the message can be acknowledged.
func (im *Importer) Advance(ctx context.Context, h job.Hint) error {
	j, err := im.Store.Job(ctx, h.Tenant, h.JobID)
	if err != nil || j.Status.Terminal() || j.Status == job.Uploading || j.Slot == job.NoSlot {
		return err // over, or not yet this worker's turn: it is due and will be looked at again
	}
	err = im.advance(ctx, j)
	switch {
	case errors.Is(err, errYield):
		return im.Hints.Send(ctx, h)
	case errors.Is(err, job.ErrMoved):
		return im.movedOn(ctx, j, err)
	}
	return err
}

// movedOn decides what a lost race means: nothing when the job is over, else come back.
func (im *Importer) movedOn(ctx context.Context, j job.Job, moved error) error {
	now, err := im.Store.Job(ctx, j.Tenant, j.ID)
	if err == nil && now.Status.Terminal() {
		return nil
	}
	return errors.Join(moved, err)
}

func (im *Importer) advance(ctx context.Context, j job.Job) error {
	var err error
	if j.Status == job.Queued {
		allowed, err := im.Access.Holds(ctx, j.Tenant, j.Client, scopeOf(j))
		if err != nil {
			return err
		}
		if !allowed {
			return im.forbid(ctx, j)
		}
		if j, err = im.start(ctx, j); err != nil {
			return err
		}
	}
	if !j.CancelRequestedAt.IsZero() || j.Stop != nil {
		if j, err = im.stop(ctx, j); err != nil {
			return err
		}
	}
	if !j.Plan.Closed {
		if j, err = im.plan(ctx, j); err != nil || j.Status.Terminal() {
			return err
		}
	}
	if j.Plan.ChunksDone < j.Plan.ChunksPlanned {
		return nil // whoever settles the last chunk sends the next hint
	}
	return im.finish(ctx, j)
}

// scopeOf is what a client must hold for a job to begin.
func scopeOf(j job.Job) access.Scope {
	if j.RowsOf != "" {
		return access.RowsWrite
	}
	return access.JobsSubmit
}

// forbid cancels a job whose client was revoked, or lost the scope, before it started.
func (im *Importer) forbid(ctx context.Context, j job.Job) error {
	_, err := im.Jobs.End(ctx, job.Ending{Job: j, Status: job.Canceled, CanceledBy: "policy", At: im.Now().UTC()})
	return err
}

// start moves a queued job to running; the first receive of its message does.
func (im *Importer) start(ctx context.Context, j job.Job) (job.Job, error) {
	if err := im.Store.StartRunning(ctx, j, im.Now().UTC()); err != nil {
		return j, err
	}
	return im.Store.Job(ctx, j.Tenant, j.ID)
}

// stop closes the plan where it stands and settles the chunks that no worker ever took. All others are
// stopped by whoever holds them, or by the next who receives their message.
func (im *Importer) stop(ctx context.Context, j job.Job) (job.Job, error) {
	if !j.Plan.Closed {
		if err := im.Store.ClosePlan(ctx, j, false, ""); err != nil {
			return j, err
		}
	}
	err := im.eachChunk(ctx, j, func(c Chunk) error {
		if c.Started || c.Done {
			return nil
		}
		c.Done, c.Stopped = true, true
		err := im.Store.EndChunk(ctx, c)
		if errors.Is(err, job.ErrMoved) {
			return nil // a worker took it meanwhile and stops it by itself
		}
		return err
	})
	if err != nil {
		return j, err
	}
	return im.Store.Job(ctx, j.Tenant, j.ID)
}

// plan pins the layout if that is still to be done, and adds chunks from where the plan stands to the
// end of the input.
func (im *Importer) plan(ctx context.Context, j job.Job) (job.Job, error) {
	if !j.Plan.Pinned {
		pin := im.pin
		if j.RowsOf != "" {
			pin = im.pinRows
		}
		pinned, err := pin(ctx, j)
		if p := asProblem(err); p != nil {
			return im.refuse(ctx, j, *p)
		}
		if err != nil {
			return j, err
		}
		j = pinned
	}
	if err := im.addChunks(ctx, &j); err != nil {
		return j, err
	}
	return im.Store.Job(ctx, j.Tenant, j.ID)
}

// inspectBytes bounds how much of the head of a file is looked at to find its layout.
const inspectBytes = 4 << 20

// pin reads the head of the file, decides everything that boundaries and rows depend on, and writes it
// on the job. Later tries, of any version of this code, go by what was pinned.
func (im *Importer) pin(ctx context.Context, j job.Job) (job.Job, error) {
	def, schema, err := im.schema(ctx, j)
	if err != nil {
		return j, err
	}
	layout, warnings, err := im.inspect(ctx, j, def.Dialect)
	if err != nil {
		return j, err
	}
	l, err := lay(j, def, schema, layout)
	if err != nil {
		return j, err
	}
	j.Warnings = nil
	for _, w := range warnings {
		j.Warnings = append(j.Warnings, job.Warning{Code: fault.Code(w.Code), Message: w.Message, Details: w.Details})
	}
	for _, w := range l.warnings {
		j.Warnings = append(j.Warnings, job.Warning{Code: w.Code, Message: w.Message, Details: w.Details})
	}
	hashed, err := im.hashHead(ctx, j, layout.DataStart.Offset)
	if err != nil {
		return j, err
	}
	j.Plan = job.Plan{Pinned: true, Layout: layout, ChunkBytes: im.ChunkBytes, BatchRows: im.BatchRows, At: layout.DataStart, HashState: hashed}
	j.Progress = job.Progress{Stage: job.Processing}
	return j, im.Store.PinPlan(ctx, j)
}

func (im *Importer) inspect(ctx context.Context, j job.Job, dialect rowio.Dialect) (rowio.Layout, []rowio.Warning, error) {
	if j.Spec.Dialect != nil {
		dialect = *j.Spec.Dialect
	}
	look := func(r io.Reader) (rowio.Layout, []rowio.Warning, error) { return rowio.Inspect(r, dialect) }
	if j.Spec.Format == rowio.FormatJSONL {
		look = func(r io.Reader) (rowio.Layout, []rowio.Warning, error) {
			layout, err := rowio.InspectLines(r)
			return layout, nil, err
		}
	}
	if j.Input.SizeBytes == 0 {
		return look(newBytes(nil))
	}
	head, err := im.Blob.Open(ctx, j.Input.Key, j.Input.VersionID, 0, min(j.Input.SizeBytes, inspectBytes))
	if err != nil {
		return rowio.Layout{}, nil, err
	}
	layout, warnings, err := look(head)
	return layout, warnings, errors.Join(err, head.Close())
}

// hashHead gives the state of the input's hash at the first data byte.
func (im *Importer) hashHead(ctx context.Context, j job.Job, end int64) ([]byte, error) {
	sum := sha256.New()
	if end > 0 {
		body, err := im.Blob.Open(ctx, j.Input.Key, j.Input.VersionID, 0, end)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(sum, body); err != nil {
			return nil, errors.Join(fmt.Errorf("hash head of input: %w", err), body.Close())
		}
		if err := body.Close(); err != nil {
			return nil, err
		}
	}
	return sum.(encoding.BinaryMarshaler).MarshalBinary()
}

// asProblem finds the reason for which the whole file is refused.
func asProblem(err error) *job.Failure {
	var p *rowio.Problem
	if errors.As(err, &p) {
		return &job.Failure{Code: fault.Code(p.Code), Message: p.Message, Details: p.Details}
	}
	e, ok := fault.As(err)
	if !ok {
		return nil
	}
	switch e.Code {
	case fault.MissingColumns, fault.HeaderInvalid, fault.DuplicateColumns:
		return &job.Failure{Code: e.Code, Message: e.Message, Details: e.Details}
	}
	return nil
}

// refuse ends a job whose file cannot be imported at all. No chunk was planned, so none will be.
func (im *Importer) refuse(ctx context.Context, j job.Job, why job.Failure) (job.Job, error) {
	if err := im.Store.RequestStop(ctx, j, why); err != nil {
		return j, err
	}
	if err := im.Store.ClosePlan(ctx, j, false, ""); err != nil {
		return j, err
	}
	return im.Store.Job(ctx, j.Tenant, j.ID)
}

// addChunks runs the boundary pass from where the plan stands. Work on a chunk starts before the pass
// ends.
func (im *Importer) addChunks(ctx context.Context, j *job.Job) error {
	sum, err := resumeHash(j.Plan.HashState)
	if err != nil {
		return err
	}
	var body io.ReadCloser = io.NopCloser(newBytes(nil))
	if j.Plan.At.Offset < j.Input.SizeBytes {
		if body, err = im.Blob.Open(ctx, j.Input.Key, j.Input.VersionID, j.Plan.At.Offset, -1); err != nil {
			return err
		}
	}
	err = im.split(ctx, j, rowio.NewSplitter(body, boundaries(*j), j.Plan.At, sum), sum)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return im.closePlan(ctx, j, hex.EncodeToString(sum.Sum(nil)))
}

func (im *Importer) split(ctx context.Context, j *job.Job, s *rowio.Splitter, sum hash.Hash) error {
	for {
		found, err := s.Next(j.Plan.ChunkBytes)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find chunk %d: %w", j.Plan.ChunksPlanned, err)
		}
		if err := im.addChunk(ctx, j, found, sum); err != nil {
			return err
		}
		if timeUp(ctx) {
			return errYield
		}
	}
}

// addChunk writes the next chunk together with the plan's progress, and sends its hint.
func (im *Importer) addChunk(ctx context.Context, j *job.Job, found rowio.Chunk, sum hash.Hash) error {
	state, err := sum.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return err
	}
	index := j.Plan.ChunksPlanned
	c := Chunk{Tenant: j.Tenant, JobID: j.ID, Index: index, Start: found.Start, End: found.End, Rows: found.Rows, At: found.Start, Until: found.End.Offset}
	plan := j.Plan
	plan.ChunksPlanned, plan.At, plan.HashState = index+1, found.End, state
	if err := im.Store.AddChunk(ctx, c, plan); err != nil {
		return err
	}
	j.Plan = plan
	_ = im.Hints.Send(ctx, ChunkHint(*j, index)) // lost: sweep sends the hints of a job without progress
	return nil
}

// ChunkHint is the message that has a chunk processed.
func ChunkHint(j job.Job, index int) job.Hint {
	return job.Hint{Kind: job.HintProcess, Tenant: j.Tenant, JobID: j.ID, Chunk: index, RequestID: j.RequestID}
}

// closePlan ends the pass. A file that is not the one whose hash was declared is refused even though
// the store accepted it.
func (im *Importer) closePlan(ctx context.Context, j *job.Job, sha256 string) error {
	declared := j.Spec.File.SHA256
	if declared != "" && declared != sha256 {
		why := job.Failure{Code: fault.UploadMismatch, Message: "the file's sha256 is not the declared one; submit a new job with the right declaration"}
		if err := im.Store.RequestStop(ctx, *j, why); err != nil {
			return err
		}
	}
	return im.Store.ClosePlan(ctx, *j, true, sha256)
}

func resumeHash(state []byte) (hash.Hash, error) {
	sum := sha256.New()
	if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		return nil, fmt.Errorf("resume hash of input: %w", err)
	}
	return sum, nil
}
