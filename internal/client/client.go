// Package client is the Go client of the HTTP API. Every call may be repeated by itself, because every
// call that makes something carries an idempotency key that the caller chose; what the API calls
// retryable is tried again, as late as it asks. It refuses to know anything of AWS but the presigned
// requests that the API hands out, and never shows or keeps the URL of one.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Config of a Client.
type Config struct {
	BaseURL string // of the deployment; /v1 comes after it
	Token   string
	HTTP    *http.Client // nil: one of its own
	// RetryFor bounds how long one call is repeated; 0 means two minutes.
	RetryFor time.Duration
	// OnRetry is told before a call is repeated: why, and after how long. May be nil.
	OnRetry func(err error, wait time.Duration)
}

// Client talks to one deployment as one client of it. It is safe for concurrent use.
type Client struct {
	base     string
	token    string
	http     *http.Client
	retryFor time.Duration
	onRetry  func(error, time.Duration)
}

const (
	tryTimeout      = 40 * time.Second // API Gateway itself gives up after 29
	defaultRetryFor = 2 * time.Minute
	firstWait       = 500 * time.Millisecond
	longestWait     = 20 * time.Second
	maxAnswerBytes  = 16 << 20 // the API's own answers end at 6 MB
)

// New makes a Client. The error says what is wrong with the base URL or the token.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the base URL must be http:// or https:// and a host, without query")
	}
	if c.Token == "" || strings.ContainsFunc(c.Token, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return nil, errors.New("the token must be visible characters without spaces")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	if c.RetryFor == 0 {
		c.RetryFor = defaultRetryFor
	}
	return &Client{base: strings.TrimRight(c.BaseURL, "/"), token: c.Token, http: c.HTTP, retryFor: c.RetryFor, onRetry: c.OnRetry}, nil
}

// request is one call of the API.
type request struct {
	method  string
	path    string // escaped, from /v1 on
	query   url.Values
	body    any    // JSON; json.RawMessage is sent as it is; nil: none
	key     string // Idempotency-Key, "" for none
	ifMatch string // If-None-Match
	onlyIf  string // If-Match
}

// answer is a successful reply: 2xx or 304.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) replayed() bool { return a.header.Get("Idempotency-Replayed") == "true" }

// retryAfter is the seconds form of Retry-After, 0 when there is none.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// do sends the request until it is answered for good. The error is an *Error, or what kept the request
// from being answered.
func (c *Client) do(ctx context.Context, r request) (*answer, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
	}
	return retry(ctx, c, func() (*answer, error) { return c.try(ctx, r, body) })
}

// retry runs op until it succeeds, fails for good, or the time for repeating is over.
func retry[T any](ctx context.Context, c *Client, op func() (T, error)) (T, error) {
	p := &pace{exponential: backoff.NewExponentialBackOff()}
	p.exponential.InitialInterval, p.exponential.MaxInterval = firstWait, longestWait
	out, err := backoff.Retry(ctx, func() (T, error) {
		out, err := op()
		p.last = err
		if err != nil && !retryable(ctx, err) {
			return out, backoff.Permanent(err)
		}
		return out, err
	}, backoff.WithBackOff(p), backoff.WithMaxElapsedTime(c.retryFor), backoff.WithNotify(func(err error, wait time.Duration) {
		if c.onRetry != nil {
			c.onRetry(err, wait)
		}
	}))
	if err != nil && p.last != nil && !errors.Is(err, p.last) { // ended while waiting for the next try
		return out, fmt.Errorf("%w (last try: %w)", err, p.last)
	}
	return out, err
}

// pace waits as long as the last answer asked, and else exponentially longer.
type pace struct {
	exponential *backoff.ExponentialBackOff
	last        error
}

func (p *pace) Reset() { p.exponential.Reset() }

func (p *pace) NextBackOff() time.Duration {
	next := p.exponential.NextBackOff()
	var refusal *Error
	if errors.As(p.last, &refusal) && refusal.RetryAfter > 0 {
		return refusal.RetryAfter
	}
	return next
}

// try sends the request once.
func (c *Client) try(ctx context.Context, r request, body []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	req, err := c.newRequest(ctx, r, body)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, withoutURL(err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s %s: read answer: %w", r.method, r.path, err)
	}
	if len(text) > maxAnswerBytes {
		return nil, fmt.Errorf("%s %s: the answer is larger than %d bytes", r.method, r.path, maxAnswerBytes)
	}
	if res.StatusCode/100 != 2 && res.StatusCode != http.StatusNotModified {
		return nil, errorOf(res, text)
	}
	return &answer{res.StatusCode, res.Header, text}, nil
}

func (c *Client) newRequest(ctx context.Context, r request, body []byte) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, withoutURL(err))
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	for name, value := range map[string]string{"Idempotency-Key": r.key, "If-None-Match": r.ifMatch, "If-Match": r.onlyIf} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// withoutURL takes the URL out of an error: a presigned one is a secret while it lives.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// decode reads an answer into v.
func decode(a *answer, v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}
