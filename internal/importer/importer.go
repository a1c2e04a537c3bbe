// Package importer turns the bytes of a pinned file into records and quarantined rows: it plans chunks,
// processes them, and finishes the job, so that death, repetition and reordering at any point leave the
// same records, quarantine and counters (PROTOCOL P2 to P6). It refuses to read a record before writing
// it, to hold a file in memory, and to let a clock decide about data.
package importer

import (
	"context"
	"errors"
	"io"
	"time"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

// Chunk is a range of bytes of the input between record boundaries. Whoever holds its newest Version may
// settle its rows.
type Chunk struct {
	Tenant     string
	JobID      id.Job
	Index      int
	Start, End rowio.Position
	Rows       int64
	At         rowio.Position // next row to settle
	Until      int64          // byte offset where this pass ends: End, or in a second run where the first stopped
	Version    int64
	Started    bool
	Done       bool // every row up to At is settled and nobody works on it any more
	Stopped    bool // done before its end
	Again      bool // a row that was settled here lost its key to a smaller row: run once more (PROTOCOL P3)
	Rerun      bool // this is the second run
	Counters   job.Counters
	Trailing   int64 // rows with an empty cell too many
	Stalled    *job.Stalled
}

// Store keeps jobs and chunks. Every method that writes is conditional, and fails with job.ErrMoved when
// its condition does not hold (any more).
type Store interface {
	Job(ctx context.Context, tenant string, jobID id.Job) (job.Job, error)
	Chunk(ctx context.Context, tenant string, jobID id.Job, index int) (Chunk, error)
	// Chunks reads a page of chunks in order, from index on. It is empty at the end.
	Chunks(ctx context.Context, tenant string, jobID id.Job, from int) ([]Chunk, error)

	StartRunning(ctx context.Context, j job.Job, now time.Time) error
	PinPlan(ctx context.Context, j job.Job) error
	// PinRows is PinPlan of a retry of rows, with the list of them as its input.
	PinRows(ctx context.Context, j job.Job) error
	// AddChunk writes chunk k and moves the plan behind it, while k chunks are planned and the plan is open.
	AddChunk(ctx context.Context, c Chunk, plan job.Plan) error
	ClosePlan(ctx context.Context, j job.Job, complete bool, sha256 string) error
	RequestStop(ctx context.Context, j job.Job, why job.Failure) error
	ShowProgress(ctx context.Context, j job.Job, p job.Progress) error
	// Commit marks a job whose rows are staged as accepted, while nobody asked it to stop.
	Commit(ctx context.Context, j job.Job, at time.Time) error
	// SaveCopied moves on how far a committed job has copied, from where it was read.
	SaveCopied(ctx context.Context, j job.Job, to job.Copied) error

	Claim(ctx context.Context, c Chunk) error
	Checkpoint(ctx context.Context, c Chunk) error
	// EndChunk marks the chunk done and counts it on its job.
	EndChunk(ctx context.Context, c Chunk) error
	MarkAgain(ctx context.Context, tenant string, jobID id.Job, chunk int) error
	// RunAgain opens a done chunk for its second run.
	RunAgain(ctx context.Context, c Chunk) error
}

// Records writes records.
type Records interface {
	// WriteRecord is one conditional write. refused is nil when it was applied; else it is what stood in the
	// way. existed tells whether an applied write found a record.
	WriteRecord(ctx context.Context, w Write, a Action, seen Register) (refused *Register, existed bool, err error)
	// StageRecord does the same in a partition of the job's own, and judges by the stored record, which it
	// only reads.
	StageRecord(ctx context.Context, w Write, a Action, seen Register) (refused *Register, existed bool, err error)
	// Staged reads the rows that a job staged in one shard, in order of their keys, behind the given key; at
	// most limit. It is empty at the end.
	Staged(ctx context.Context, j job.Job, shard int, after string, limit int) ([]Write, error)
}

// Quarantine keeps rejected rows; writing one again changes nothing.
type Quarantine interface {
	PutRow(ctx context.Context, tenant string, jobID id.Job, row quarantine.Row) error
	// ChunkRows reads a page of one chunk's rows in row order, after the given row number. Empty at the end.
	ChunkRows(ctx context.Context, tenant string, jobID id.Job, chunk int, after int64) ([]quarantine.Row, error)
}

// Blob reads inputs and writes artifacts.
type Blob interface {
	// Open reads bytes [from, to) of one version; to < 0 means to the end.
	Open(ctx context.Context, key, versionID string, from, to int64) (io.ReadCloser, error)
	// Put streams an object of unknown length in bounded memory.
	Put(ctx context.Context, key, contentType string, body io.Reader) (versionID string, err error)
}

// Definitions gives dataset versions; they never change, so they may be cached.
type Definitions interface {
	Definition(ctx context.Context, tenant, name string, version int) (*dataset.Definition, error)
}

// Ender writes terminal states (job.Service).
type Ender interface {
	End(ctx context.Context, e job.Ending) (job.Job, error)
}

// Access tells whether a client may still do what it asked for earlier.
type Access interface {
	Holds(ctx context.Context, tenant, client string, scope access.Scope) (bool, error)
}

// errYield means: the time of this invocation is used up, progress is kept, a fresh hint was sent.
// The message can be acknowledged.
var errYield = errors.New("time is up, work goes on in a fresh message")

// Config of an Importer.
type Config struct {
	Store       Store
	Records     Records
	Quarantine  Quarantine
	Rows        RowRetries
	Blob        Blob
	Definitions Definitions
	// Compute compiles the computed columns of a definition. Workers of chunks need it; it may be nil elsewhere.
	Compute    func(*dataset.Definition) (dataset.Evaluator, error)
	Access     Access
	Hints      job.Hints
	Jobs       Ender
	Now        func() time.Time
	ChunkBytes int64 // target size of a chunk; pinned on each job by its plan
	BatchRows  int   // rows between checkpoints; pinned likewise. 0 means DefaultBatchRows
	InFlight   int   // rows written at once by one worker. 0 means DefaultInFlight
}

// Defaults of a Config.
const (
	DefaultChunkBytes = 8 << 20
	DefaultBatchRows  = 500 // PROTOCOL B3: checkpoints of all workers of a job share a partition
	DefaultInFlight   = 48
)

// Importer does the work of import jobs.
type Importer struct{ Config }

// New makes an Importer.
func New(c Config) *Importer {
	if c.ChunkBytes <= 0 {
		c.ChunkBytes = DefaultChunkBytes
	}
	if c.BatchRows <= 0 {
		c.BatchRows = DefaultBatchRows
	}
	if c.InFlight <= 0 {
		c.InFlight = DefaultInFlight
	}
	return &Importer{c}
}

// margin is how much of an invocation is kept for the checkpoint and the fresh message.
const margin = 10 * time.Second

// timeUp tells whether the invocation must wrap up.
func timeUp(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < margin
}
