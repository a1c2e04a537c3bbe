package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"pintu/internal/fault"
	"pintu/internal/netguard"
)

// Times bound one try.
type Times struct {
	netguard.Limits
	// Answer is how long the first bytes of an answer's body are waited for. What the try came to is known by
	// then: its status has been read.
	Answer time.Duration
}

// DefaultTimes give a receiver ten seconds to answer; whoever needs longer answers first and works afterwards.
var DefaultTimes = Times{Limits: netguard.Limits{Connect: 4 * time.Second, FirstByte: 10 * time.Second, Total: 15 * time.Second}, Answer: 2 * time.Second}

const userAgent = "Pintu-Webhooks/1"

// Sender makes tries. It is safe for concurrent use.
type Sender struct {
	guard *netguard.Guard
	times Times
	now   func() time.Time
}

// NewSender makes a sender whose every connection the guard judges.
func NewSender(guard *netguard.Guard, times Times, now func() time.Time) *Sender {
	return &Sender{guard: guard, times: times, now: now}
}

// Send makes one try of a claimed delivery, signed at this moment with every secret given. How it went is the
// attempt, whatever the receiver did; an error means that no try was made, or that ctx ended it.
func (s *Sender) Send(ctx context.Context, d Delivery, secrets []Secret, p netguard.Policy) (Attempt, error) {
	start := s.now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return Attempt{}, errors.New("make request: the URL of the delivery is malformed") // err would show it
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", userAgent)
	if d.RequestID != "" {
		req.Header.Set("X-Request-Id", d.RequestID)
	}
	sign(req.Header, d.EventID, start, d.Body, secrets)
	a := Attempt{Number: d.Attempts + 1, At: start}
	s.exchange(req, p, &a)
	a.Duration = s.now().Sub(start)
	if ctx.Err() != nil && a.Status == 0 {
		return Attempt{}, fmt.Errorf("send event: %w", ctx.Err())
	}
	return a, nil
}

// exchange sends a request and notes what came of it.
func (s *Sender) exchange(req *http.Request, p netguard.Policy, a *Attempt) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	resp, err := s.guard.Client(p, s.times.Limits).Do(req.WithContext(ctx))
	if err != nil {
		a.Failure, a.Reason = failure(err)
		return
	}
	defer resp.Body.Close()
	a.Status = resp.StatusCode
	a.RetryAfter = retryAfter(resp.StatusCode, resp.Header.Get("Retry-After"), s.now())
	timer := time.AfterFunc(s.times.Answer, cancel)
	defer timer.Stop()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && len(answer) == 0 {
		answer = nil // a body that does not come changes nothing: the status did
	}
	a.Answer = answer
}

// failure names an error of the client. The error itself holds the URL and addresses: it is never kept.
func failure(err error) (_ Failure, reason string) {
	if refused, ok := fault.As(err); ok {
		reason, _ := refused.Details["reason"].(string)
		return NotAllowed, reason
	}
	var timeout net.Error
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return TimedOut, ""
	case isTLS(err):
		return BadTLS, ""
	case errors.As(err, &dns), errors.As(err, &op) && op.Op == "dial":
		return Unreachable, ""
	}
	return Broken, ""
}

// isTLS goes by the text: most errors of a handshake have no type of their own.
func isTLS(err error) bool {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the URL is not ours
	}
	return errors.Is(err, http.ErrSchemeMismatch) || strings.Contains(err.Error(), "tls: ")
}
