package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/oklog/ulid/v2"

	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

// A retry of quarantined rows is an import like any other, but for three things: its input is a list of rows
// that its plan makes, each row of the list is read in the layout of the file it came from, and what becomes
// of a row is written to the row itself, in the quarantine of the job of that file.

// RowRetries is what a retry does with the rows of another job (quarantine.Service). of is that job.
type RowRetries interface {
	// Take puts the selected rows into the retry's hand and calls f with each, in row order.
	Take(ctx context.Context, tenant string, of id.Job, sel quarantine.Selection, retry id.Job, f func(quarantine.Row) error) error
	Resolve(ctx context.Context, tenant string, of id.Job, chunk int, rowNumber int64, retry id.Job) error
	Fail(ctx context.Context, tenant string, of id.Job, chunk int, rowNumber int64, retry id.Job, a quarantine.Attempt) error
	// Failed calls f with every row that the retry could not apply, in row order, until f says stop.
	Failed(ctx context.Context, tenant string, of id.Job, retry id.Job, f func(quarantine.Row) (more bool, err error)) error
}

// listed is one line of the list, as JSON.
type listed struct {
	RowNumber int64  `json:"row_number"`
	Chunk     int    `json:"chunk"` // of the job of the row
	Line      int64  `json:"line"`
	Offset    int64  `json:"offset"`
	Attempt   int    `json:"attempt"` // number of this one, if it fails
	Raw       []byte `json:"raw"`
	RawKey    string `json:"raw_key,omitempty"` // object that holds the bytes instead
}

// listLayout cuts a list into its lines.
func listLayout() rowio.Layout {
	return rowio.Layout{Format: rowio.FormatJSONL, RecordEnd: rowio.RecordEndLF, MaxRecordBytes: rowio.DefaultMaxRecordBytes, DataStart: rowio.Position{Line: 1, Row: 1}}
}

// boundaries is the layout by which an input is cut into chunks.
func boundaries(j job.Job) rowio.Layout {
	if j.RowsOf != "" {
		return listLayout()
	}
	return j.Plan.Layout
}

// pinRows takes the rows, writes the list of them, and pins it as the input. A plan that dies on the way
// does it again: what it took it finds in its hand.
func (im *Importer) pinRows(ctx context.Context, j job.Job) (job.Job, error) {
	of, err := im.Store.Job(ctx, j.Tenant, j.RowsOf)
	if err != nil {
		return j, err
	}
	def, schema, err := im.schema(ctx, j)
	if err != nil {
		return j, err
	}
	layout := of.Plan.Layout
	l, err := lay(j, def, schema, layout)
	if err != nil {
		return j, err
	}
	j.Warnings = nil
	for _, w := range l.warnings {
		j.Warnings = append(j.Warnings, job.Warning{Code: w.Code, Message: w.Message, Details: w.Details})
	}
	hashed, err := sha256.New().(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return j, err
	}
	list, err := im.writeList(ctx, j)
	if err != nil {
		return j, err
	}
	layout.DataStart = listLayout().DataStart
	j.Input = job.Input{Key: list.Key, VersionID: list.VersionID, SizeBytes: list.SizeBytes}
	j.Plan = job.Plan{Pinned: true, Layout: layout, ChunkBytes: im.ChunkBytes, BatchRows: im.BatchRows, At: layout.DataStart, HashState: hashed}
	j.Progress = job.Progress{Stage: job.Processing}
	return j, im.Store.PinRows(ctx, j)
}

// writeList writes the list under a name of this try's own: when two plans list at once, the one that pins
// its list first goes on.
func (im *Importer) writeList(ctx context.Context, j job.Job) (job.Artifact, error) {
	var failed error
	key := fmt.Sprintf("uploads/%s/%s/rows-%s.jsonl", j.Tenant, j.ID, ulid.Make())
	list, err := im.putArtifact(ctx, key, "application/jsonl", func(w io.Writer) error {
		out := json.NewEncoder(w)
		failed = im.Rows.Take(ctx, j.Tenant, j.RowsOf, *j.Rows, j.ID, func(r quarantine.Row) error {
			if timeUp(ctx) {
				return errYield
			}
			return out.Encode(listed{RowNumber: r.RowNumber, Chunk: r.Chunk, Line: r.Line, Offset: r.Offset, Attempt: r.Attempts + 1, Raw: r.Raw, RawKey: r.RawKey})
		})
		return failed
	})
	if failed != nil {
		return list, fmt.Errorf("list rows: %w", failed) // the upload failed of it
	}
	return list, err
}

// records are the data records of one chunk.
type records interface {
	Next() (rowio.Record, error)
	// Position is the place in the input behind the last record.
	Position() rowio.Position
}

// newRecords reads a chunk of a file, or of a list of rows.
func (im *Importer) newRecords(ctx context.Context, j job.Job, body io.Reader, at rowio.Position) (records, *inHand) {
	if j.RowsOf == "" {
		return rowio.NewReader(body, j.Plan.Layout, at), nil
	}
	hand := &inHand{rows: map[int64]listed{}}
	return &listReader{ctx: ctx, im: im, lines: rowio.NewReader(body, listLayout(), at), one: newOneReader(j.Plan.Layout), hand: hand}, hand
}

// inHand are the rows that were read and have no outcome yet.
type inHand struct {
	mu   sync.Mutex
	rows map[int64]listed
}

func (h *inHand) put(l listed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows[l.RowNumber] = l
}

func (h *inHand) take(rowNumber int64) listed {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.rows[rowNumber]
	delete(h.rows, rowNumber)
	return l
}

// listReader gives the rows of a list as the records they were in their file.
type listReader struct {
	ctx   context.Context
	im    *Importer
	lines *rowio.Reader
	one   *oneReader
	hand  *inHand
}

func (r *listReader) Position() rowio.Position { return r.lines.Position() }

func (r *listReader) Next() (rowio.Record, error) {
	line, err := r.lines.Next()
	if err != nil {
		return rowio.Record{}, err
	}
	var l listed
	if err := json.Unmarshal(line.Raw, &l); err != nil {
		return rowio.Record{}, fmt.Errorf("read line %d of the list of rows: %w", line.Row, err)
	}
	if l.RawKey != "" {
		if l.Raw, err = r.im.head(r.ctx, l.RawKey, int64(r.one.layout.MaxRecordBytes)+1); err != nil {
			return rowio.Record{}, err
		}
	}
	rec, err := r.one.read(l)
	if err != nil {
		return rowio.Record{}, fmt.Errorf("read row %d: %w", l.RowNumber, err)
	}
	l.Raw = nil
	r.hand.put(l)
	return rec, nil
}

// head reads the first bytes of an object: one more than a record may have shows that it is too long.
func (im *Importer) head(ctx context.Context, key string, most int64) ([]byte, error) {
	body, err := im.Blob.Open(ctx, key, "", 0, -1)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(body, most))
	return raw, errors.Join(err, body.Close())
}

// oneReader reads payloads, each of which must be exactly one record.
type oneReader struct {
	layout rowio.Layout // of the file they come from
	body   bytes.Reader
	first  *rowio.Reader
	second *rowio.Reader // for what stands behind the record; nil until something does
}

func newOneReader(layout rowio.Layout) *oneReader {
	return &oneReader{layout: layout, first: rowio.NewReader(bytes.NewReader(nil), layout, rowio.Position{})}
}

func (o *oneReader) read(l listed) (rowio.Record, error) {
	at := rowio.Position{Offset: l.Offset, Line: l.Line, Row: l.RowNumber}
	o.body.Reset(l.Raw)
	o.first.Reset(&o.body, at)
	rec, err := o.first.Next()
	switch {
	case errors.Is(err, io.EOF):
		rec.Bad = &rowio.RowProblem{Code: rowio.CodeMalformedRow, Message: "the payload holds no record"}
	case err != nil:
		return rec, err
	case rec.Bad == nil && o.goesOn(l.Raw[o.first.Position().Offset-l.Offset:]):
		rec.Bad = &rowio.RowProblem{Code: rowio.CodeMalformedRow, Message: "the payload holds more than one record"}
	}
	rec.Row, rec.Line, rec.Offset, rec.Raw, rec.RawBytes = l.RowNumber, l.Line, l.Offset, nil, 0
	return rec, nil
}

// goesOn tells whether there is another record in what stands behind the first one.
func (o *oneReader) goesOn(rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	if o.second == nil {
		o.second = rowio.NewReader(bytes.NewReader(nil), o.layout, rowio.Position{})
	}
	o.second.Reset(bytes.NewReader(rest), rowio.Position{})
	_, err := o.second.Next()
	return !errors.Is(err, io.EOF)
}

// keep writes what became of a rejected row: into the quarantine of this job, or to the row that was tried
// again.
func (w *worker) keep(ctx context.Context, row quarantine.Row, rawBytes int64, l listed) error {
	if w.hand == nil {
		return w.im.quarantine(ctx, w.job, row, rawBytes)
	}
	return w.im.Rows.Fail(ctx, w.job.Tenant, w.job.RowsOf, l.Chunk, l.RowNumber, w.job.ID, quarantine.Attempt{
		Number: l.Attempt, Code: row.Code, Class: row.Class, Field: row.Field, Message: row.Message, DatasetVersion: row.DatasetVersion,
	})
}

// listed is the row's line in the list of a retry.
func (w *worker) listed(rowNumber int64) listed {
	if w.hand == nil {
		return listed{}
	}
	return w.hand.take(rowNumber)
}

// resolve marks a row that was tried again and is applied now.
func (b *batch) resolve(rowNumber int64) error {
	w := b.w
	if w.hand == nil {
		return nil
	}
	l := w.listed(rowNumber)
	err := patiently(b.ctx, func() error {
		return w.im.Rows.Resolve(b.ctx, w.job.Tenant, w.job.RowsOf, l.Chunk, rowNumber, w.job.ID)
	})
	return moved(err, rowNumber)
}

// moved tells what it means that a row in hand is not as it must be: its retry is over, and this worker was
// frozen meanwhile.
func moved(err error, rowNumber int64) error {
	if errors.Is(err, quarantine.ErrMoved) {
		err = job.ErrMoved
	}
	if err != nil {
		return fmt.Errorf("outcome of row %d: %w", rowNumber, err)
	}
	return nil
}

// eachKept calls f with the rows that a job could not apply, in row order, until f says stop. chunks are
// those of the job that have any.
func (im *Importer) eachKept(ctx context.Context, j job.Job, chunks []int, f func(quarantine.Row) (more bool, err error)) error {
	if j.RowsOf != "" && len(chunks) > 0 {
		return im.Rows.Failed(ctx, j.Tenant, j.RowsOf, j.ID, f)
	}
	for _, chunk := range chunks {
		if more, err := im.eachKeptOf(ctx, j, chunk, f); err != nil || !more {
			return err
		}
	}
	return nil
}

func (im *Importer) eachKeptOf(ctx context.Context, j job.Job, chunk int, f func(quarantine.Row) (more bool, err error)) (more bool, err error) {
	for after := int64(0); ; {
		rows, err := im.Quarantine.ChunkRows(ctx, j.Tenant, j.ID, chunk, after)
		if err != nil || len(rows) == 0 {
			return true, err
		}
		for _, r := range rows {
			if more, err := f(r); err != nil || !more {
				return false, err
			}
			after = r.RowNumber
		}
	}
}
