package importer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"pintu/internal/backoff"
	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

// batch is a run of rows being settled at once, a bounded number of them in flight.
type batch struct {
	w     *worker
	ctx   context.Context
	group *errgroup.Group

	mu       sync.Mutex
	counters job.Counters
	trailing int64
}

func (im *Importer) newBatch(ctx context.Context, w *worker) *batch {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(im.InFlight)
	return &batch{w: w, ctx: ctx, group: group}
}

func (b *batch) ok() bool { return b.ctx.Err() == nil }

// wait returns when no call of the batch is under way any more: a frozen container must not wake up
// with a write still pending.
func (b *batch) wait() error { return b.group.Wait() }

// settle checks one record and sends it on its way. It is where a row is accepted or rejected.
func (b *batch) settle(rec rowio.Record) {
	if rec.TrailingDelimiter {
		b.trailing++
	}
	v := b.w.check(rec)
	var write Write
	if v == nil {
		write = b.w.write(rec)
	}
	rec.Raw, rec.Fields = slices.Clone(rec.Raw), nil // the reader reuses both
	b.group.Go(func() error {
		if v != nil {
			return b.reject(rec, *v)
		}
		return b.apply(write, rec)
	})
}

// check gives the first reason why a record is not a valid row, or nil with the row filled. A panic of a
// check is a fault of ours: the row is kept, class code, and the others go on.
func (w *worker) check(rec rowio.Record) (v *dataset.Violation) {
	if rec.Bad != nil {
		return &dataset.Violation{Code: fault.Code(rec.Bad.Code), Class: string(quarantine.Data), Message: rec.Bad.Message}
	}
	defer func() {
		if recover() != nil {
			v = &dataset.Violation{Code: fault.Internal, Class: string(quarantine.Code), Message: "the row could not be checked; this is a fault of the system, not of the row"}
		}
	}()
	if v := w.judge(rec.Fields, &w.row); v != nil {
		return v
	}
	if recordBytes(w.fields, w.row.Values) > maxRecordBytes {
		return &dataset.Violation{Code: fault.RecordTooLarge, Class: string(quarantine.Data), Message: tooLarge}
	}
	w.expected, v = w.expect(rec.Fields)
	return v
}

// maxRecordBytes bounds the values of a record with their names. DynamoDB takes items of 400 KiB; the rest is
// for key, hashes, source and register. It is judged here and not by the refusal of a write: a row that
// meets another one of its key is refused before its size is looked at, so its code would depend on which
// came first.
const maxRecordBytes = 396 << 10

const tooLarge = "the record is larger than 396 KiB with the names of its fields; shorten its values"

// recordBytes is the size of a record's values as DynamoDB counts it, or a little more.
func recordBytes(fields []string, values []dataset.Value) int {
	size := 0
	for i, v := range values {
		size += len(fields[i]) + len(v.Text) + 2
	}
	return size
}

// rejected makes the quarantine's row of a record.
func (w *worker) rejected(rec rowio.Record, v dataset.Violation) quarantine.Row {
	return quarantine.Row{
		RowNumber: rec.Row, Chunk: w.chunk.Index, Line: rec.Line, Offset: rec.Offset, Raw: rec.Raw,
		State: quarantine.Quarantined, Code: v.Code, Class: quarantine.Class(v.Class), Field: v.Field, Message: v.Message,
		Attempts: 1, DatasetVersion: w.job.Spec.DatasetVersion, Rev: 1, CreatedAt: w.job.StartedAt,
	}
}

// write copies the checked row, whose buffers the next one reuses.
func (w *worker) write(rec rowio.Record) Write {
	size := 0
	for _, v := range w.row.Values {
		size += len(v.Text)
	}
	text := make([]byte, 0, size)
	values := make([]dataset.Value, len(w.row.Values))
	for i, v := range w.row.Values {
		from := len(text)
		text = append(text, v.Text...)
		values[i] = dataset.Value{Kind: v.Kind, Text: text[from:len(text):len(text)]}
	}
	return Write{
		Tenant: w.job.Tenant, Dataset: w.job.Spec.Dataset, Key: string(w.row.Key), Slot: w.job.Slot, Epoch: w.job.Epoch,
		Row: rec.Row, Chunk: w.chunk.Index, Hash: Hash(w.row.Hash), Fields: w.fields, Values: values, JobID: string(w.job.ID), Now: w.im.Now(),
		Rules: w.rules, Expect: w.expected,
	}
}

// apply writes one row until its outcome is known.
func (b *batch) apply(write Write, rec rowio.Record) error {
	outcome, err := b.w.im.settleRow(b.ctx, write, b.w.job, b.w.im.destination(b.w.job), &b.w.marks)
	if err != nil {
		return fmt.Errorf("write row %d: %w", write.Row, err)
	}
	if v := b.w.refusal(outcome); v != nil {
		return b.reject(rec, *v)
	}
	if err := b.resolve(rec.Row); err != nil {
		return err
	}
	b.count(outcome)
	return nil
}

func (b *batch) count(o Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o {
	case Created:
		b.counters.Created++
	case Updated:
		b.counters.Updated++
	case Unchanged:
		b.counters.Unchanged++
	default:
		b.counters.Skipped++
	}
}

// reject quarantines one row and counts it.
func (b *batch) reject(rec rowio.Record, v dataset.Violation) error {
	row, l := b.w.rejected(rec, v), b.w.listed(rec.Row)
	err := patiently(b.ctx, func() error { return b.w.keep(b.ctx, row, rec.RawBytes, l) })
	if err := moved(err, row.RowNumber); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counters.Add(job.Counters{Rejected: 1, ByCode: map[fault.Code]int64{row.Code: 1}, ByClass: map[string]int64{string(row.Class): 1}})
	return nil
}

// marks are the chunks that a worker has marked to run again. Once is enough: a mark goes away when all chunks
// are done, and then no worker of a first run has a row left to settle.
type marks struct {
	mu     sync.Mutex
	chunks map[int]bool
}

func (m *marks) once(chunk int, mark func(int) error) error {
	m.mu.Lock()
	done := m.chunks[chunk]
	m.mu.Unlock()
	if done {
		return nil
	}
	if err := mark(chunk); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.chunks == nil {
		m.chunks = map[int]bool{}
	}
	m.chunks[chunk] = true
	return nil
}

// put is one try to write a row, where it belongs.
type put func(ctx context.Context, w Write, a Action, seen Register) (refused *Register, existed bool, err error)

// destination is where the rows of a job go as they are read.
func (im *Importer) destination(j job.Job) put {
	if j.Staged() {
		return im.Records.StageRecord
	}
	return im.Records.WriteRecord
}

// settleRow drives one row through the register. Every round sees what another writer did in between,
// so it ends as soon as they do.
func (im *Importer) settleRow(ctx context.Context, w Write, j job.Job, put put, m *marks) (Outcome, error) {
	action, outcome, seen := Apply, Created, Register{}
	for {
		var refused *Register
		var existed bool
		err := patiently(ctx, func() (err error) {
			if action == Displace {
				if err = m.once(seen.Own.Chunk, func(chunk int) error { return im.Store.MarkAgain(ctx, j.Tenant, j.ID, chunk) }); err != nil {
					return err
				}
			}
			refused, existed, err = put(ctx, w, action, seen)
			return err
		})
		if err != nil {
			return 0, err
		}
		if refused == nil {
			if action == Apply && existed {
				outcome = Updated
			}
			return outcome, nil
		}
		seen = *refused
		action, outcome = Decide(w, seen)
		switch action {
		case Settled:
			return outcome, nil
		case Fenced:
			return 0, fmt.Errorf("slot %d has a later import: %w", w.Slot, job.ErrMoved)
		case Apply:
			outcome = Created
		}
	}
}

// patiently repeats f while the store says that it is throttled or away. The row keeps its place among
// those in flight, so a throttled table is asked less and less often. The invocation's end is the bound.
func patiently(ctx context.Context, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if !fault.Is(err, fault.DependencyUnavailable) || timeUp(ctx) {
			return err
		}
		wait := time.NewTimer(backoff.Exponential(attempt, 200*time.Millisecond, 5*time.Second, rand.Float64()))
		select {
		case <-ctx.Done():
			wait.Stop()
			return err
		case <-wait.C:
		}
	}
}

// quarantine keeps a rejected row. Bytes that do not fit an item go to the bucket first, those of a line
// longer than a record may be straight from the input.
func (im *Importer) quarantine(ctx context.Context, j job.Job, row quarantine.Row, rawBytes int64) error {
	if rawBytes > quarantine.MaxInlineRaw {
		key := fmt.Sprintf("results/%s/%s/raw/%012d", j.Tenant, j.ID, row.RowNumber)
		body, err := im.Blob.Open(ctx, j.Input.Key, j.Input.VersionID, row.Offset, row.Offset+rawBytes)
		if err != nil {
			return err
		}
		_, err = im.Blob.Put(ctx, key, "application/octet-stream", body)
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
		row.Raw, row.RawKey = nil, key
	}
	return im.Quarantine.PutRow(ctx, j.Tenant, j.ID, row)
}
