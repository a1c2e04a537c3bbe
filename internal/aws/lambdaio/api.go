// Package lambdaio turns what Lambda hands over (REST API requests, SQS batches, schedule ticks) into
// calls of plain Go, and the outcome into what Lambda expects. It refuses to decide anything: routes,
// status codes and retries are chosen by what it calls.
package lambdaio

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"pintu/internal/fault"
	"pintu/internal/logline"
)

const requestIDHeader = "X-Request-Id"

// API serves proxy events of a REST API (format 1.0) with a handler, which writes its own log line; one is
// added here only for what the handler cannot know. It never returns an error: the gateway would answer
// 502 without a word for the client.
func API(h http.Handler, log *logline.Logger) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return func(ctx context.Context, e events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		ctx, line := log.Begin(ctx, "request", slog.String("method", e.HTTPMethod), slog.String("resource", e.Resource))
		out, err := answered(ctx, h, e)
		if err != nil {
			out, _ = failed(e).response(e.HTTPMethod)
			line.Add(slog.String("request_id", requestID(e)), slog.Int("status", out.StatusCode))
			line.End(err)
		}
		return out, nil
	}
}

func answered(ctx context.Context, h http.Handler, e events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	a := newAnswer()
	if err := serve(ctx, h, e, a); err != nil {
		return events.APIGatewayProxyResponse{}, err
	}
	out, bounded := a.response(e.HTTPMethod)
	if !bounded {
		return events.APIGatewayProxyResponse{}, fmt.Errorf("answer of %d bytes is larger than Lambda can return", a.body.Len())
	}
	return out, nil
}

// serve runs the handler. A panic becomes an error, so that the process lives on for the next request.
func serve(ctx context.Context, h http.Handler, e events.APIGatewayProxyRequest, a *answer) (err error) {
	defer caught(ctx, &err)
	r, err := request(ctx, e)
	if err != nil {
		return fmt.Errorf("read event: %w", err)
	}
	h.ServeHTTP(a, r)
	return nil
}

func caught(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		logline.Add(ctx, slog.String("stack", string(debug.Stack())))
		*err = errors.New(logline.Panic(p))
	}
}

// request rebuilds the HTTP request that the gateway received.
func request(ctx context.Context, e events.APIGatewayProxyRequest) (*http.Request, error) {
	body, err := requestBody(e)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, e.HTTPMethod, "/", body)
	if err != nil {
		return nil, err
	}
	r.URL = requestURL(e)
	r.RequestURI = r.URL.RequestURI()
	r.Header = requestHeader(e)
	r.Host = r.Header.Get("Host")
	if r.Host == "" {
		r.Host = e.RequestContext.DomainName
	}
	r.RemoteAddr = net.JoinHostPort(e.RequestContext.Identity.SourceIP, "0") // the gateway tells no port
	return r, nil
}

func requestBody(e events.APIGatewayProxyRequest) (io.Reader, error) {
	if !e.IsBase64Encoded {
		return strings.NewReader(e.Body), nil
	}
	b, err := base64.StdEncoding.DecodeString(e.Body)
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return strings.NewReader(string(b)), nil
}

// requestURL keeps the path as it was sent, escapes included, so that an escaped slash in a path
// parameter stays part of it. Query values reach us decoded; their order among names is lost.
func requestURL(e events.APIGatewayProxyRequest) *url.URL {
	u := &url.URL{Path: ownPath(e)}
	if plain, err := url.PathUnescape(u.Path); err == nil {
		u.Path, u.RawPath = plain, u.Path
	}
	query := url.Values(e.MultiValueQueryStringParameters)
	if query == nil {
		query = url.Values{}
		for name, value := range e.QueryStringParameters {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	return u
}

// ownPath cuts off what stands before the API's own path: the base path of a custom domain, or the stage
// on targets that leave it in.
func ownPath(e events.APIGatewayProxyRequest) string {
	fixed, _, _ := strings.Cut(e.Resource, "{")
	if i := strings.Index(e.Path, fixed); i > 0 && fixed != "/" {
		return e.Path[i:]
	}
	return e.Path
}

func requestHeader(e events.APIGatewayProxyRequest) http.Header {
	h := http.Header{}
	for name, values := range e.MultiValueHeaders {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	if e.MultiValueHeaders == nil {
		for name, v := range e.Headers {
			h.Set(name, v)
		}
	}
	if h.Get(requestIDHeader) == "" && e.RequestContext.RequestID != "" {
		h.Set(requestIDHeader, e.RequestContext.RequestID)
	}
	return h
}

// failed is the contract's answer to a fault of ours. Nothing of the cause leaks.
func failed(e events.APIGatewayProxyRequest) *answer {
	a := newAnswer()
	body, _ := json.Marshal(map[string]any{"error": map[string]any{
		"code":       fault.Internal,
		"message":    "Something went wrong on our side. Try again with the same Idempotency-Key.",
		"retryable":  fault.Internal.Retryable(),
		"details":    map[string]any{},
		"request_id": requestID(e),
	}})
	a.header.Set("Content-Type", "application/json; charset=utf-8")
	a.header.Set(requestIDHeader, requestID(e))
	a.WriteHeader(http.StatusInternalServerError)
	a.body.Write(body)
	return a
}

func requestID(e events.APIGatewayProxyRequest) string { return requestHeader(e).Get(requestIDHeader) }
