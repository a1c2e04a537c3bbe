// Package fault holds every error code of the contract: what it is called, whether a retry can
// help, and who must act. It refuses to know about HTTP: status codes are chosen in httpapi alone.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code is a stable error code (SPEC 3.1). Adding one is a change of the OpenAPI document.
type Code string

// Codes of API answers.
const (
	InvalidRequest         Code = "INVALID_REQUEST"
	IdempotencyKeyRequired Code = "IDEMPOTENCY_KEY_REQUIRED"
	InvalidIdempotencyKey  Code = "INVALID_IDEMPOTENCY_KEY"
	Unauthorized           Code = "UNAUTHORIZED"
	Forbidden              Code = "FORBIDDEN"
	NotFound               Code = "NOT_FOUND"
	JobNotFound            Code = "JOB_NOT_FOUND"
	DatasetNotFound        Code = "DATASET_NOT_FOUND"
	VersionNotFound        Code = "VERSION_NOT_FOUND"
	RecordNotFound         Code = "RECORD_NOT_FOUND"
	RowNotFound            Code = "ROW_NOT_FOUND"
	ArtifactNotFound       Code = "ARTIFACT_NOT_FOUND"
	MethodNotAllowed       Code = "METHOD_NOT_ALLOWED"
	KeyReused              Code = "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD"
	InvalidJobState        Code = "INVALID_JOB_STATE"
	InvalidRowState        Code = "INVALID_ROW_STATE"
	UploadMismatch         Code = "UPLOAD_MISMATCH"
	UploadNotFound         Code = "UPLOAD_NOT_FOUND"
	ArtifactExpired        Code = "ARTIFACT_EXPIRED"
	PreconditionFailed     Code = "PRECONDITION_FAILED"
	PreconditionRequired   Code = "PRECONDITION_REQUIRED"
	PayloadTooLarge        Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType   Code = "UNSUPPORTED_MEDIA_TYPE"
	InvalidSchema          Code = "INVALID_SCHEMA"
	InvalidExpression      Code = "INVALID_EXPRESSION"
	RateLimited            Code = "RATE_LIMITED"
	TooManyActiveJobs      Code = "TOO_MANY_ACTIVE_JOBS"
	Internal               Code = "INTERNAL"
	DependencyUnavailable  Code = "DEPENDENCY_UNAVAILABLE"
)

// Codes of jobs (job.error).
const (
	UploadExpired     Code = "UPLOAD_EXPIRED"
	DeadLetterExpired Code = "DEAD_LETTER_EXPIRED"
	JobTimeLimit      Code = "JOB_TIME_LIMIT"
	InvalidEncoding   Code = "INVALID_ENCODING"
	FileNotText       Code = "FILE_NOT_TEXT"
	EmptyFile         Code = "EMPTY_FILE"
	HeaderInvalid     Code = "HEADER_INVALID"
	MissingColumns    Code = "MISSING_COLUMNS"
	DuplicateColumns  Code = "DUPLICATE_COLUMNS"
	MalformedCSV      Code = "MALFORMED_CSV"
	MalformedJSONL    Code = "MALFORMED_JSONL"
	TooManyRejected   Code = "TOO_MANY_REJECTED"
	AllRowsRejected   Code = "ALL_ROWS_REJECTED"
)

// Codes of rows. InvalidEncoding and Internal serve rows too.
const (
	MissingValue       Code = "MISSING_VALUE"
	TypeMismatch       Code = "TYPE_MISMATCH"
	ConstraintViolated Code = "CONSTRAINT_VIOLATED"
	WrongColumnCount   Code = "WRONG_COLUMN_COUNT"
	MalformedRow       Code = "MALFORMED_ROW"
	DuplicateKey       Code = "DUPLICATE_KEY_IN_FILE"
	KeyConflict        Code = "KEY_CONFLICT"
	RecordTooLarge     Code = "RECORD_TOO_LARGE"
	TransformFailed    Code = "TRANSFORM_FAILED"
)

// Codes of warnings.
const (
	HeaderTrimmed     Code = "HEADER_TRIMMED"
	ColumnIgnored     Code = "COLUMN_IGNORED"
	TrailingDelimiter Code = "TRAILING_DELIMITER"
	MixedRecordEnds   Code = "MIXED_RECORD_ENDS"
	RowsInDoubt       Code = "ROWS_IN_DOUBT"
)

var retryable = map[Code]bool{
	UploadNotFound: true, RateLimited: true, TooManyActiveJobs: true, Internal: true, DependencyUnavailable: true,
	UploadExpired: true, DeadLetterExpired: true, JobTimeLimit: true,
}

// Retryable tells whether the same request, or a retry of the job, can succeed later.
func (c Code) Retryable() bool { return retryable[c] }

// Error is an answer to whoever asked: a code, a message that says what to do, and details. The
// cause, when there is one, is for the log and never reaches a client.
type Error struct {
	Code       Code
	Message    string
	Details    map[string]any
	RetryAfter time.Duration // zero: no advice
	cause      error
}

// New makes an error of a code with a message for people.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an error of a code that keeps its cause for the log.
func Wrap(cause error, code Code, format string, args ...any) *Error {
	e := New(code, format, args...)
	e.cause = cause
	return e
}

// With adds one detail and returns the error.
func (e *Error) With(name string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[name] = value
	return e
}

// After sets how long the caller should wait before the next try and returns the error.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = d
	return e
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

func (e *Error) Unwrap() error { return e.cause }

// As finds the first *Error in err's chain.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// Is tells whether err carries the code.
func Is(err error, code Code) bool {
	e, ok := As(err)
	return ok && e.Code == code
}
