package httpapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

// jobView is the job object of the contract. Its shape is the same in every status: what has no value is
// null. Only percent is absent while its total is not known.
type jobView struct {
	JobID             id.Job          `json:"job_id"`
	Kind              job.Kind        `json:"kind"`
	Status            job.Status      `json:"status"`
	Attempt           int             `json:"attempt"`
	RetryOf           *string         `json:"retry_of"`
	RetriedBy         *string         `json:"retried_by"`
	ReprocessOf       *string         `json:"reprocess_of"`
	ClientID          string          `json:"client_id"`
	CreatedAt         *string         `json:"created_at"`
	UploadedAt        *string         `json:"uploaded_at"`
	StartedAt         *string         `json:"started_at"`
	FinishedAt        *string         `json:"finished_at"`
	StatusURL         string          `json:"status_url"`
	Dataset           string          `json:"dataset"`
	DatasetVersion    int             `json:"dataset_version"`
	Format            string          `json:"format"`
	Atomicity         string          `json:"atomicity"`
	DryRun            bool            `json:"dry_run"`
	Input             inputView       `json:"input"`
	DeduplicationKey  *string         `json:"deduplication_key"`
	Deduplicated      bool            `json:"deduplicated"`
	Metadata          json.RawMessage `json:"metadata"`
	CancelRequestedAt *string         `json:"cancel_requested_at"`
	CanceledBy        *string         `json:"canceled_by"`
	Stalled           *stalledView    `json:"stalled"`
	StalledCount      int             `json:"stalled_count"`
	Progress          progressView    `json:"progress"`
	Result            *resultView     `json:"result"`
	Warnings          []warningView   `json:"warnings"`
	Retention         job.Retention   `json:"retention"`
	Error             *failureView    `json:"error"`
}

type inputView struct {
	Name      string  `json:"name"`
	SizeBytes int64   `json:"size_bytes"`
	SHA256    *string `json:"sha256"`
	VersionID *string `json:"version_id"`
}

type stalledView struct {
	Since     *string `json:"since"`
	Queue     string  `json:"queue"`
	Reason    string  `json:"reason"`
	Chunk     *int    `json:"chunk"` // null: the plan
	ExpiresAt *string `json:"expires_at"`
}

type progressView struct {
	Stage          *string `json:"stage"`
	RowsProcessed  int64   `json:"rows_processed"`
	RowsAccepted   int64   `json:"rows_accepted"`
	RowsRejected   int64   `json:"rows_rejected"`
	BytesProcessed int64   `json:"bytes_processed"`
	BytesTotal     *int64  `json:"bytes_total"`
	Percent        *int64  `json:"percent,omitempty"`
}

type warningView struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

type failureView struct {
	Code      fault.Code     `json:"code"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
}

// submittedView is the answer to a submit: the job, and how to upload while it waits for its file.
type submittedView struct {
	jobView
	Upload *uploadView `json:"upload"`
}

type uploadView struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt *string           `json:"expires_at"`
}

type downloadView struct {
	URL       string  `json:"url"`
	ExpiresAt *string `json:"url_expires_at"`
	SizeBytes int64   `json:"size_bytes"`
	SHA256    string  `json:"sha256"`
}

func viewOf(j job.Job, lang language) jobView {
	return jobView{
		JobID: j.ID, Kind: j.Kind, Status: j.Status, Attempt: j.Attempt, RetryOf: text(string(cmp.Or(j.RetryOf, j.RowsOf))),
		RetriedBy: text(string(j.RetriedBy)), ReprocessOf: text(string(j.ReprocessOf)), ClientID: j.Client,
		CreatedAt: stamp(j.CreatedAt), UploadedAt: stamp(j.UploadedAt), StartedAt: stamp(j.StartedAt), FinishedAt: stamp(j.FinishedAt),
		StatusURL: "/v1/import-jobs/" + string(j.ID),
		Dataset:   j.Spec.Dataset, DatasetVersion: j.Spec.DatasetVersion, Format: j.Spec.Format, Input: inputOf(j),
		Atomicity: cmp.Or(j.Spec.Atomicity, perRow), DryRun: j.Spec.DryRun,
		DeduplicationKey: text(j.Spec.DeduplicationKey), Metadata: metadataOf(j),
		CancelRequestedAt: stamp(j.CancelRequestedAt), CanceledBy: text(j.CanceledBy),
		Stalled: stalledOf(j.Stalled), StalledCount: j.StalledCount,
		Progress: progressOf(j), Result: resultOf(j), Warnings: warningsOf(j.Warnings), Retention: j.Spec.Retention,
		Error: failureOf(j.Error, lang),
	}
}

func metadataOf(j job.Job) json.RawMessage {
	if len(j.Spec.Metadata) == 0 {
		return json.RawMessage("{}")
	}
	return j.Spec.Metadata
}

// inputOf shows what was declared until the upload is pinned, and what is pinned from then on.
func inputOf(j job.Job) inputView {
	size, sum := j.Spec.File.SizeBytes, j.Spec.File.SHA256
	if j.Input.VersionID != "" {
		size = j.Input.SizeBytes
	}
	if j.Input.SHA256 != "" {
		sum = j.Input.SHA256
	}
	return inputView{j.Spec.File.Name, size, text(sum), text(j.Input.VersionID)}
}

func stalledOf(s *job.Stalled) *stalledView {
	if s == nil {
		return nil
	}
	v := &stalledView{Since: stamp(s.Since), Queue: s.Queue, Reason: s.Reason, ExpiresAt: stamp(s.ExpiresAt)}
	if s.Chunk >= 0 {
		v.Chunk = &s.Chunk
	}
	return v
}

// progressOf shows the copy that workers make now and then; at the end the exact numbers of the result.
func progressOf(j job.Job) progressView {
	p := j.Progress
	v := progressView{Stage: text(string(p.Stage)), RowsAccepted: p.RowsAccepted, RowsRejected: p.RowsRejected,
		RowsProcessed: p.RowsAccepted + p.RowsRejected + p.RowsSkipped, BytesProcessed: p.BytesProcessed}
	if r := j.Result; r != nil {
		v.RowsAccepted, v.RowsRejected, v.RowsProcessed = r.Counters.Accepted(), r.Counters.Rejected, r.Counters.Settled()
	}
	if j.Status.Terminal() {
		v.Stage = nil
	}
	if j.Input.VersionID == "" {
		return v
	}
	total := j.Input.SizeBytes
	if r := j.Result; r != nil && r.RowsTotal != nil && r.RowsUnprocessed == 0 {
		v.BytesProcessed = total // the copy leaves out what stands before the rows, and comes late
	}
	v.BytesTotal = &total
	if total > 0 {
		percent := min(100, 100*v.BytesProcessed/total)
		v.Percent = &percent
	}
	return v
}

func warningsOf(warnings []job.Warning) []warningView {
	views := make([]warningView, len(warnings))
	for i, w := range warnings {
		views[i] = warningView{w.Code, w.Message, detailsOf(w.Details)}
	}
	return views
}

func failureOf(f *job.Failure, lang language) *failureView {
	if f == nil {
		return nil
	}
	return &failureView{f.Code, lang.message(f.Code, f.Message), f.Code.Retryable(), detailsOf(f.Details)}
}

func detailsOf(details map[string]any) map[string]any {
	if details == nil {
		return map[string]any{}
	}
	return details
}

type resultView struct {
	RowsTotal       *int64                         `json:"rows_total"`
	RowsPlanned     *int64                         `json:"rows_planned"` // null but when rows_total is
	RowsAccepted    int64                          `json:"rows_accepted"`
	RowsCreated     int64                          `json:"rows_created"`
	RowsUpdated     int64                          `json:"rows_updated"`
	RowsUnchanged   int64                          `json:"rows_unchanged"`
	RowsSkipped     int64                          `json:"rows_skipped"`
	RowsRejected    int64                          `json:"rows_rejected"`
	RowsUnprocessed int64                          `json:"rows_unprocessed"`
	RejectedByCode  map[fault.Code]int64           `json:"rejected_by_code"`
	RejectedByClass map[quarantine.Class]classView `json:"rejected_by_class"`
	SampleErrors    []sampleView                   `json:"sample_errors"`
	Artifacts       []artifactView                 `json:"artifacts"`
	Ledger          ledgerView                     `json:"ledger"`
}

type classView struct {
	Rows   int64  `json:"rows"`
	Advice string `json:"advice"`
}

type sampleView struct {
	RowNumber int64      `json:"row_number"`
	Line      int64      `json:"line"`
	Field     *string    `json:"field"` // null: the row as a whole
	Code      fault.Code `json:"code"`
	Class     string     `json:"class"`
	Message   string     `json:"message"`
}

type artifactView struct {
	Name      string  `json:"name"`
	SizeBytes int64   `json:"size_bytes"`
	SHA256    string  `json:"sha256"`
	ExpiresAt *string `json:"expires_at"`
}

type ledgerView struct {
	InputSHA256    *string `json:"input_sha256"`
	InputVersionID *string `json:"input_version_id"`
	InputBytes     int64   `json:"input_bytes"`
	DataStart      int64   `json:"data_start"`
	CoveredBytes   int64   `json:"covered_bytes"`
	Chunks         int     `json:"chunks"`
	ChunksStopped  int     `json:"chunks_stopped"`
	ChunksSHA256   *string `json:"chunks_sha256"`
}

// advice says who can mend rows of a class.
var advice = map[quarantine.Class]string{
	quarantine.Data: "the rows themselves are wrong: correct them at their source and import them again",
	quarantine.Code: "the rows look legitimate, the dataset was not ready for them: correct its schema or computed columns first",
}

func resultOf(j job.Job) *resultView {
	r := j.Result
	if r == nil {
		return nil
	}
	n := r.Counters
	v := &resultView{
		RowsTotal: r.RowsTotal, RowsAccepted: n.Accepted(), RowsCreated: n.Created, RowsUpdated: n.Updated,
		RowsUnchanged: n.Unchanged, RowsSkipped: n.Skipped, RowsRejected: n.Rejected, RowsUnprocessed: r.RowsUnprocessed,
		RejectedByCode: map[fault.Code]int64{}, RejectedByClass: map[quarantine.Class]classView{},
		SampleErrors: make([]sampleView, len(r.SampleErrors)), Artifacts: make([]artifactView, len(r.Artifacts)),
		Ledger: ledgerOf(r.Ledger),
	}
	if r.RowsTotal == nil {
		v.RowsPlanned = &r.RowsPlanned
	}
	maps.Copy(v.RejectedByCode, n.ByCode)
	for class, text := range advice {
		v.RejectedByClass[class] = classView{n.ByClass[string(class)], text}
	}
	for i, s := range r.SampleErrors {
		v.SampleErrors[i] = sampleView{s.RowNumber, s.Line, text(s.Field), s.Code, s.Class, s.Message}
	}
	for i, a := range r.Artifacts {
		v.Artifacts[i] = artifactView{a.Name, a.SizeBytes, a.SHA256, stamp(a.ExpiresAt)}
	}
	return v
}

func ledgerOf(l job.Ledger) ledgerView {
	return ledgerView{text(l.InputSHA256), text(l.InputVersionID), l.InputBytes, l.DataStart, l.CoveredBytes, l.Chunks, l.ChunksStopped, text(l.ChunksSHA256)}
}

func uploadOf(g *job.Grant) *uploadView {
	if g == nil {
		return nil
	}
	return &uploadView{g.Method, g.URL, g.Headers, stamp(g.ExpiresAt)}
}

// stamp writes a time in UTC to the millisecond; null for none.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.999Z")
	return &s
}

// text is null for none.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
