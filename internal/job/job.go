// Package job is the life of one unit of work: its states, who may move it from one to the next, and
// what must be written together. It refuses to do the work itself (importer) and to know about HTTP.
package job

import (
	"encoding/json"
	"time"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

// Kind of a job.
type Kind string

// Import is the only kind so far.
const Import Kind = "import"

// Status of a job on the wire.
type Status string

const (
	Uploading Status = "uploading" // waits for its file
	Queued    Status = "queued"    // file checked and pinned; waits for a worker or a slot
	Running   Status = "running"   // a worker took it
	Succeeded Status = "succeeded" // everything is in
	Partial   Status = "partial"   // the main result exists, some rows were rejected
	Failed    Status = "failed"    // see Error
	Canceled  Status = "canceled"  // what was applied stays and is counted
)

// moves lists every legal transition. Terminal states have none: they are written once.
var moves = map[Status][]Status{
	Uploading: {Queued, Failed, Canceled},
	Queued:    {Running, Failed, Canceled},
	Running:   {Succeeded, Partial, Failed, Canceled},
}

// Terminal tells whether a job in this status will never change again.
func (s Status) Terminal() bool { return len(moves[s]) == 0 }

// Stage of work in hand, shown as progress.stage.
type Stage string

const (
	Waiting    Stage = "waiting"    // for a slot of its dataset
	Validating Stage = "validating" // layout being pinned
	Processing Stage = "processing"
	Finalizing Stage = "finalizing"
)

// Job is the item of one job. Zero times and empty strings are null on the wire.
type Job struct {
	Tenant                                       string
	ID                                           id.Job
	Kind                                         Kind
	Status                                       Status
	Client                                       string
	RequestID                                    string // of the submit
	Attempt                                      int
	RowsOf                                       id.Job                // job whose quarantined rows this one tries again, empty for an import of a file
	Rows                                         *quarantine.Selection // which of them
	RetryOf                                      id.Job                // earlier attempt of the same work
	RetriedBy                                    id.Job                // the one later attempt
	ReprocessOf                                  id.Job                // job whose input this one runs again
	CreatedAt, UploadedAt, StartedAt, FinishedAt time.Time
	DueAt                                        time.Time `dynamodbav:"-"` // when sweep must look at it; zero only in a terminal state (PROTOCOL P7)

	Spec  ImportSpec
	Input Input

	TimeLimit time.Duration // from StartedAt to the end

	Slot   int     // import slot of the dataset, NoSlot while none is held; 0 when it holds all of them
	Epoch  int64   // order of imports of the dataset, 0 while none is held
	Beside []int64 // epochs of the imports that held the other slots when this one got its own
	Work   []int64 // epochs of earlier attempts, ascending; of a reprocessing also of the job whose input it is
	Since  int64   // of a reprocessing and its retries: epoch of that job. What was changed since is left alone

	Plan     Plan
	Progress Progress

	// CommittedAt is when an import of all or nothing was accepted as a whole: from then on it goes on to its
	// end, whatever dies, and can be neither canceled nor stopped. Copied is how far its rows are visible.
	CommittedAt time.Time
	Copied      Copied

	CancelRequestedAt time.Time
	CanceledBy        string   // client, operator or policy
	Stop              *Failure // why the job must end as failed once its chunks have stopped

	StalledCount int
	PlanStalled  *Stalled // mark of the plan itself; marks of chunks are on the chunks
	Stalled      *Stalled `dynamodbav:"-"` // the oldest mark, filled in for readers
	Warnings     []Warning
	Result       *Result  // exactly in a terminal state that was running before
	Error        *Failure // exactly in status failed
	Looks        int      // sweeps in a row that saw no progress
	LookMark     string   // what the last sweep saw of the progress
}

// ImportSpec is what the client asked for, defaults filled in. Its JSON is the canonical body of the
// submit: field names and order are part of stored fingerprints.
type ImportSpec struct {
	Dataset            string          `json:"dataset"`
	DatasetVersion     int             `json:"dataset_version"` // pinned at submit; 0 in a request means the newest
	Format             string          `json:"format"`
	UploadMethod       string          `json:"upload_method"`
	File               File            `json:"file"`
	Dialect            *rowio.Dialect  `json:"dialect"`
	Encoding           string          `json:"encoding"`
	OnConflict         string          `json:"on_conflict"` // empty: the dataset version's
	VersionColumn      string          `json:"version_column"`
	Duplicates         string          `json:"duplicates"` // empty: the dataset version's
	Atomicity          string          `json:"atomicity"`
	DryRun             bool            `json:"dry_run"`
	MaxRejected        int64           `json:"max_rejected"`
	MaxRejectedPercent *float64        `json:"max_rejected_percent"`
	DeduplicationKey   string          `json:"deduplication_key"`
	ForceReprocess     bool            `json:"force_reprocess"`
	ReuseWindowSeconds int64           `json:"reuse_window_seconds"`
	Retention          Retention       `json:"retention"`
	Metadata           json.RawMessage `json:"metadata"`
}

// File is what the client declared about its upload.
type File struct {
	Name        string `json:"name"`
	SizeBytes   int64  `json:"size_bytes"`
	ContentType string `json:"content_type"`
	SHA256      string `json:"sha256"` // lower-case hex, empty when not declared
}

// Retention of what a job leaves behind, in days.
type Retention struct {
	InputDays      int `json:"input_days"`
	ResultsDays    int `json:"results_days"`
	QuarantineDays int `json:"quarantine_days"`
}

// AllOrNothing is the atomicity of an import whose rows become visible together; any other is per row.
const AllOrNothing = "all_or_nothing"

// Staged tells that the rows go into a partition of the job's own first: a dry run writes no record, and
// all or nothing none before its commit point (PROTOCOL A20).
func (j Job) Staged() bool { return j.Spec.DryRun || j.Spec.Atomicity == AllOrNothing }

// Exclusive tells that the job holds all slots of its dataset: no other import may change what its rows
// were judged against.
func (j Job) Exclusive() bool { return j.Spec.Atomicity == AllOrNothing && !j.Spec.DryRun }

// Slots is how many imports of one dataset may run at once (PROTOCOL P1); NoSlot is none of them.
const (
	Slots  = 4
	NoSlot = -1
)

// LookAgain is how long sweep leaves a job alone after its state changed or its hint was sent.
const LookAgain = 5 * time.Minute

// Defaults of a submit (SPEC 3.4, 5, 7).
const (
	DefaultMaxRejected  = 100_000
	DefaultReuseSeconds = 24 * 60 * 60
	UploadWindow        = time.Hour        // renewed by upload-url
	MaxUploadWindow     = 24 * time.Hour   // from created_at
	DefaultURLLife      = 15 * time.Minute // of presigned URLs
)

// DefaultRetention is what a job gets that asks for nothing else.
func DefaultRetention() Retention {
	return Retention{InputDays: 7, ResultsDays: 30, QuarantineDays: 30}
}

// Input is the object that was uploaded, as pinned by complete.
type Input struct {
	Key          string
	VersionID    string
	SizeBytes    int64
	SHA256       string    // lower-case hex; from the store when it has it, else from the plan pass
	WindowEndsAt time.Time // end of the upload window
}

// Plan is everything boundaries and rows depend on, and how far the plan pass has come (PROTOCOL P5).
// Layout and the sizes are written once, before the first chunk.
type Plan struct {
	Pinned        bool
	Layout        rowio.Layout
	ChunkBytes    int64
	BatchRows     int
	At            rowio.Position // where the next chunk starts
	HashState     []byte         // SHA-256 of the input up to At, resumable
	ChunksPlanned int
	ChunksDone    int // done or stopped
	Closed        bool
	Complete      bool // the pass reached the end of the input
}

// Progress is a copy for people, made by workers now and then. Exact numbers are written once, at the end.
type Progress struct {
	Stage          Stage
	RowsAccepted   int64
	RowsRejected   int64
	RowsSkipped    int64
	BytesProcessed int64
	At             time.Time
}

// Copied is a place in the rows that a job staged, shard by shard and by key inside a shard.
type Copied struct {
	Shard int
	Key   string // last one that was copied; empty at the start of the shard
	Rows  int64  // copied so far
}

// Failure is why a job failed.
type Failure struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Warning is something a client should know about a job that went on.
type Warning struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Stalled marks a message that is about to enter, or sits in, a dead-letter queue.
type Stalled struct {
	Since     time.Time
	Queue     string
	Reason    string
	Silent    bool // no message of it failed: they were lost, and are sent again
	Chunk     int  // -1 for the plan
	ExpiresAt time.Time
}

// Counters of rows. Accepted = Created + Updated + Unchanged.
type Counters struct {
	Created, Updated, Unchanged, Skipped, Rejected int64
	ByCode                                         map[fault.Code]int64
	ByClass                                        map[string]int64
}

// Accepted rows are those whose content is stored.
func (c Counters) Accepted() int64 { return c.Created + c.Updated + c.Unchanged }

// Settled rows are those with a final outcome.
func (c Counters) Settled() int64 { return c.Accepted() + c.Skipped + c.Rejected }

// Add adds another chunk's or batch's counters.
func (c *Counters) Add(o Counters) {
	c.Created += o.Created
	c.Updated += o.Updated
	c.Unchanged += o.Unchanged
	c.Skipped += o.Skipped
	c.Rejected += o.Rejected
	for k, n := range o.ByCode {
		if c.ByCode == nil {
			c.ByCode = map[fault.Code]int64{}
		}
		c.ByCode[k] += n
	}
	for k, n := range o.ByClass {
		if c.ByClass == nil {
			c.ByClass = map[string]int64{}
		}
		c.ByClass[k] += n
	}
}

// Result is what a finished import came to (SPEC 3.3).
type Result struct {
	RowsTotal       *int64 // nil when the plan pass did not end; RowsPlanned then takes its place
	RowsPlanned     int64
	Counters        Counters
	RowsUnprocessed int64
	SampleErrors    []SampleError // at most 20, in row order
	Artifacts       []Artifact
	Ledger          Ledger
}

// NothingApplied takes back the rows that were found good: of an import of all or nothing that did not
// succeed none was applied.
func (r *Result) NothingApplied() {
	r.RowsUnprocessed += r.Counters.Accepted()
	r.Counters.Created, r.Counters.Updated, r.Counters.Unchanged = 0, 0, 0
}

// SampleError is one rejected row without any of its values.
type SampleError struct {
	RowNumber int64      `json:"row_number"`
	Line      int64      `json:"line"`
	Field     string     `json:"field"`
	Code      fault.Code `json:"code"`
	Class     string     `json:"class"`
	Message   string     `json:"message"`
}

// Artifact is a file a job left behind. Key and VersionID are never shown.
type Artifact struct {
	Name      string
	Key       string
	VersionID string
	SizeBytes int64
	SHA256    string
	ExpiresAt time.Time
}

// Ledger proves that the whole input is accounted for: chunk ranges cover it without gap or overlap.
type Ledger struct {
	InputSHA256    string `json:"input_sha256"` // empty when the plan pass did not end
	InputVersionID string `json:"input_version_id"`
	InputBytes     int64  `json:"input_bytes"`
	DataStart      int64  `json:"data_start"`    // first byte after the header
	CoveredBytes   int64  `json:"covered_bytes"` // DataStart plus the sum of all chunk ranges
	Chunks         int    `json:"chunks"`
	ChunksStopped  int    `json:"chunks_stopped"`
	ChunksSHA256   string `json:"chunks_sha256"` // over "start-end:rows:settled\n" of every chunk, in order
}
