package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"

	"pintu/internal/fault"
)

// statuses is the one table from code to HTTP status. A code that is not in it belongs to jobs or rows; as
// the answer to a request it is a fault of ours.
var statuses = map[fault.Code]int{
	fault.InvalidRequest:         http.StatusBadRequest,
	fault.IdempotencyKeyRequired: http.StatusBadRequest,
	fault.InvalidIdempotencyKey:  http.StatusBadRequest,
	fault.Unauthorized:           http.StatusUnauthorized,
	fault.Forbidden:              http.StatusForbidden,
	fault.NotFound:               http.StatusNotFound,
	fault.JobNotFound:            http.StatusNotFound,
	fault.DatasetNotFound:        http.StatusNotFound,
	fault.VersionNotFound:        http.StatusNotFound,
	fault.RecordNotFound:         http.StatusNotFound,
	fault.RowNotFound:            http.StatusNotFound,
	fault.ArtifactNotFound:       http.StatusNotFound,
	fault.MethodNotAllowed:       http.StatusMethodNotAllowed,
	fault.KeyReused:              http.StatusConflict,
	fault.InvalidJobState:        http.StatusConflict,
	fault.InvalidRowState:        http.StatusConflict,
	fault.UploadMismatch:         http.StatusConflict,
	fault.UploadNotFound:         http.StatusConflict,
	fault.ArtifactExpired:        http.StatusGone,
	fault.PreconditionFailed:     http.StatusPreconditionFailed,
	fault.PreconditionRequired:   http.StatusPreconditionRequired,
	fault.PayloadTooLarge:        http.StatusRequestEntityTooLarge,
	fault.UnsupportedMediaType:   http.StatusUnsupportedMediaType,
	fault.InvalidSchema:          http.StatusUnprocessableEntity,
	fault.InvalidExpression:      http.StatusUnprocessableEntity,
	fault.RateLimited:            http.StatusTooManyRequests,
	fault.TooManyActiveJobs:      http.StatusTooManyRequests,
	fault.Internal:               http.StatusInternalServerError,
	fault.DependencyUnavailable:  http.StatusServiceUnavailable,
}

// defaultRetryAfter is the advice when whoever refused gave none.
var defaultRetryAfter = map[fault.Code]time.Duration{
	fault.RateLimited:           5 * time.Second,
	fault.TooManyActiveJobs:     30 * time.Second, // a job has to end first
	fault.DependencyUnavailable: 2 * time.Second,
	fault.UploadNotFound:        2 * time.Second,
}

type errorBody struct {
	Error errorView `json:"error"`
}

type errorView struct {
	Code      fault.Code     `json:"code"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
	RequestID string         `json:"request_id"`
}

// failure turns an error into an answer. Nothing of a cause reaches the client; the log line has it.
func failure(c *call, err error) reply {
	f, ok := fault.As(err)
	if !ok || statuses[f.Code] == 0 {
		f = fault.New(fault.Internal, "something went wrong on our side; send the request again, and name the request_id if that does not help")
	}
	details := maps.Clone(f.Details)
	if details == nil {
		details = map[string]any{}
	}
	out := reply{status: statuses[f.Code], code: f.Code}
	wait := f.RetryAfter
	if wait <= 0 {
		wait = defaultRetryAfter[f.Code]
	}
	if wait > 0 {
		out = out.with("Retry-After", strconv.Itoa(seconds(wait)))
		details["retry_after_seconds"] = seconds(wait)
	}
	if limit, ok := details["limit"].(int); ok && f.Code == fault.RateLimited {
		out = out.withRateLimit(limit, 0, seconds(wait))
	}
	view := errorView{f.Code, c.language.message(f.Code, f.Message), f.Code.Retryable(), details, c.requestID}
	body, err := encode(errorBody{view})
	if err != nil { // a detail that is no JSON: the code still says what matters
		view.Details = map[string]any{}
		body, _ = encode(errorBody{view})
	}
	out.body = body
	return out
}

// answer makes a reply of a status and a value.
func answer(status int, v any) (reply, error) {
	body, err := encode(v)
	return reply{status: status, body: body}, err
}

// encode writes JSON as people would: < > & are left alone.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
