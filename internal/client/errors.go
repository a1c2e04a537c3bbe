package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"pintu/internal/fault"
)

// Error is a request that was refused. Retryable is the API's own word: the same request, with the same
// key, can succeed later.
type Error struct {
	Status     int
	Code       fault.Code // "" when the answer did not come from the API
	Message    string
	Retryable  bool
	Details    map[string]any
	RequestID  string
	RetryAfter time.Duration // 0: no advice
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("HTTP status %d: %s", e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Is tells whether err is a refusal with this code.
func Is(err error, code fault.Code) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Code == code
}

// errorOf reads a refusal. One that is not in the API's shape comes from something between, and is worth
// another try when its status says so.
func errorOf(res *http.Response, body []byte) error {
	var shape struct {
		Error *struct {
			Code      fault.Code     `json:"code"`
			Message   string         `json:"message"`
			Retryable bool           `json:"retryable"`
			Details   map[string]any `json:"details"`
			RequestID string         `json:"request_id"`
		} `json:"error"`
	}
	e := &Error{Status: res.StatusCode, RetryAfter: retryAfter(res.Header), RequestID: res.Header.Get("X-Request-Id")}
	if json.Unmarshal(body, &shape) != nil || shape.Error == nil || shape.Error.Code == "" {
		e.Message = "the answer does not come from the API; is the base URL right?"
		e.Retryable = res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests
		return e
	}
	s := shape.Error
	e.Code, e.Message, e.Retryable, e.Details, e.RequestID = s.Code, s.Message, s.Retryable, s.Details, s.RequestID
	return e
}

// permanentError marks what no repetition mends though it came from no answer.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// retryable tells whether the same call can succeed later: the API said so, or it was never answered.
func retryable(ctx context.Context, err error) bool {
	var permanent permanentError
	if errors.As(err, &permanent) || ctx.Err() != nil {
		return false
	}
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Retryable
	}
	return true
}
