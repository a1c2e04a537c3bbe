package client

import (
	"encoding/json"
	"time"

	"pintu/internal/fault"
)

// Job is the job object as far as programs decide by it; Raw is the whole of it, as it was sent.
type Job struct {
	ID             string    `json:"job_id"`
	Kind           string    `json:"kind"`
	Status         Status    `json:"status"`
	Attempt        int       `json:"attempt"`
	RetryOf        string    `json:"retry_of"` // "": none
	CreatedAt      time.Time `json:"created_at"`
	FinishedAt     time.Time `json:"finished_at"` // zero while not terminal
	Dataset        string    `json:"dataset"`
	DatasetVersion int       `json:"dataset_version"`
	Deduplicated   bool      `json:"deduplicated"`
	Input          Input     `json:"input"`
	Progress       Progress  `json:"progress"`
	Stalled        *Stalled  `json:"stalled"`
	Result         *Result   `json:"result"`
	Warnings       []Warning `json:"warnings"`
	Error          *Failure  `json:"error"` // exactly when Status is Failed

	Raw json.RawMessage `json:"-"`
}

// Status of a job.
type Status string

const (
	Uploading Status = "uploading"
	Queued    Status = "queued"
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Partial   Status = "partial"
	Failed    Status = "failed"
	Canceled  Status = "canceled"
)

// Terminal tells whether the job will never change again.
func (s Status) Terminal() bool {
	return s == Succeeded || s == Partial || s == Failed || s == Canceled
}

// Input is the file of an import.
type Input struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

// Progress of work in hand.
type Progress struct {
	Stage          string `json:"stage"` // "" for none
	RowsProcessed  int64  `json:"rows_processed"`
	RowsAccepted   int64  `json:"rows_accepted"`
	RowsRejected   int64  `json:"rows_rejected"`
	BytesProcessed int64  `json:"bytes_processed"`
	BytesTotal     *int64 `json:"bytes_total"` // nil: not known
}

// Stalled says that an operator must look at a dead-letter queue.
type Stalled struct {
	Since     time.Time `json:"since"`
	Queue     string    `json:"queue"`
	Reason    string    `json:"reason"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Result of a finished import.
type Result struct {
	RowsTotal       *int64               `json:"rows_total"` // nil when the file was not read to its end
	RowsAccepted    int64                `json:"rows_accepted"`
	RowsCreated     int64                `json:"rows_created"`
	RowsUpdated     int64                `json:"rows_updated"`
	RowsUnchanged   int64                `json:"rows_unchanged"`
	RowsSkipped     int64                `json:"rows_skipped"`
	RowsRejected    int64                `json:"rows_rejected"`
	RowsUnprocessed int64                `json:"rows_unprocessed"`
	RejectedByCode  map[fault.Code]int64 `json:"rejected_by_code"`
	Artifacts       []Artifact           `json:"artifacts"`
}

// Artifact is a file that a job left behind.
type Artifact struct {
	Name      string `json:"name"`
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
}

// Warning is something to know about a job that went on.
type Warning struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
}

// Failure is why a job failed.
type Failure struct {
	Code      fault.Code `json:"code"`
	Message   string     `json:"message"`
	Retryable bool       `json:"retryable"`
}

// ImportSpec is the body of a submit. Zero fields are left to the API's defaults.
type ImportSpec struct {
	Dataset            string          `json:"dataset"`
	DatasetVersion     int             `json:"dataset_version,omitempty"` // 0: the newest
	Format             string          `json:"format,omitempty"`
	File               File            `json:"file"`
	Dialect            json.RawMessage `json:"dialect,omitempty"`
	OnConflict         string          `json:"on_conflict,omitempty"` // empty: the dataset's
	VersionColumn      string          `json:"version_column,omitempty"`
	Duplicates         string          `json:"duplicates,omitempty"` // empty: the dataset's
	Atomicity          string          `json:"atomicity,omitempty"`
	DryRun             bool            `json:"dry_run,omitempty"`
	MaxRejected        *int64          `json:"max_rejected,omitempty"`
	MaxRejectedPercent *float64        `json:"max_rejected_percent,omitempty"`
	DeduplicationKey   string          `json:"deduplication_key,omitempty"`
	ForceReprocess     bool            `json:"force_reprocess,omitempty"`
	Metadata           json.RawMessage `json:"metadata,omitempty"`
}

// File is what a submit declares about the upload.
type File struct {
	Name        string `json:"name"`
	SizeBytes   int64  `json:"size_bytes"`
	ContentType string `json:"content_type,omitempty"`
	SHA256      string `json:"sha256,omitempty"` // hex
}

// Upload is a presigned request: exactly these headers, with exactly this method.
type Upload struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt time.Time         `json:"expires_at"`
}

// Submitted is the answer to a submit.
type Submitted struct {
	Job      Job
	Upload   *Upload // only while the job waits for its file
	Replayed bool    // the key was seen before: Job is what it made then, as it is now
}

// Dataset is one version of a dataset; Raw is the whole of it, definition included.
type Dataset struct {
	Name    string          `json:"name"`
	Version int             `json:"version"`
	Raw     json.RawMessage `json:"-"`
}

// Row is a quarantined row as far as programs decide by it.
type Row struct {
	RowNumber      int64           `json:"row_number"`
	Line           int64           `json:"line"`
	Offset         int64           `json:"offset"`
	State          string          `json:"state"`
	Code           fault.Code      `json:"code"`
	Class          string          `json:"class"`
	Field          string          `json:"field"` // "": the row as a whole
	Message        string          `json:"message"`
	Text           *string         `json:"raw"`        // payload, when it is UTF-8
	Binary         []byte          `json:"raw_base64"` // payload, when it is not
	Attempts       int             `json:"attempts"`
	DatasetVersion int             `json:"dataset_version"`
	ETag           string          `json:"etag"`
	RetryJob       string          `json:"retry_job"`      // "": none has taken it yet
	ResolvedBy     string          `json:"resolved_by"`    // "": not resolved
	DiscardReason  string          `json:"discard_reason"` // "": not discarded
	Raw            json.RawMessage `json:"-"`
}

// Payload gives the bytes of the row; ok is false when the API did not send them.
func (r Row) Payload() (b []byte, ok bool) {
	if r.Text != nil {
		return []byte(*r.Text), true
	}
	return r.Binary, r.Binary != nil
}

// Record is a stored record. Values keep every digit and the order they were sent in.
type Record struct {
	Key     string          `json:"key"`
	Values  json.RawMessage `json:"values"`
	Version int64           `json:"version"`
	Raw     json.RawMessage `json:"-"`
}

// Page of a list. NextCursor is empty at the end, and only there.
type Page[T any] struct {
	Entries    []T
	NextCursor string
}

// The methods below let one decoder fill Raw of every type that has it.

type rawKeeper interface{ keep(json.RawMessage) }

func (j *Job) keep(b json.RawMessage)     { j.Raw = b }
func (d *Dataset) keep(b json.RawMessage) { d.Raw = b }
func (r *Row) keep(b json.RawMessage)     { r.Raw = b }
func (r *Record) keep(b json.RawMessage)  { r.Raw = b }

// decodeWhole reads an object and keeps its bytes beside it.
func decodeWhole(body []byte, v rawKeeper) error {
	if err := json.Unmarshal(body, v); err != nil {
		return err
	}
	v.keep(body)
	return nil
}
