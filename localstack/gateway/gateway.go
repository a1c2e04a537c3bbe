// Package gateway is the front of an API Gateway REST API with Lambda proxy integrations (event version 1.0): it
// chooses the resource as API Gateway does, makes the event, and turns the function's answer or failure into the
// response a client gets. Limits are API Gateway's: 10 MB in, 29 s, 6 MB through Lambda.
//
// It serves one stage at the root, as a custom domain does, and refuses to authorize, to throttle or to transform:
// functions check their callers themselves.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"pintu/localstack/lambda"
	"pintu/localstack/template"
)

// Limits of API Gateway.
const (
	maxBody         = 10 << 20
	integrationTime = 29 * time.Second
)

// Invoke runs a function by its logical id.
type Invoke func(ctx context.Context, logicalID string, payload []byte) (lambda.Result, error)

// Config of a Gateway.
type Config struct {
	System  *template.System
	Invoke  Invoke
	Account string
	Now     func() time.Time // of the request context; nil means time.Now
	// Log gets one line per failed integration: clients are told nothing of the cause. nil drops it.
	Log io.Writer
}

// Gateway is an http.Handler.
type Gateway struct {
	cfg  Config
	root *node
}

// New makes a gateway of the routes of a system's functions. Two events for one route are an error.
func New(c Config) (*Gateway, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	g := &Gateway{cfg: c, root: &node{}}
	for _, f := range c.System.Functions {
		for _, r := range f.Routes {
			if err := g.root.add(r, f.LogicalID); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := g.begin(r)
	w.Header().Set("X-Amzn-Requestid", call.requestID)
	w.Header().Set("X-Amz-Apigw-Id", call.extendedID)
	resource, parameters := g.root.match(r.URL.EscapedPath())
	function := resource.function(r.Method)
	if function == "" {
		g.refuse(w, call, missingToken)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		g.refuse(w, call, requestTooLarge)
		return
	}
	if err != nil { // the client went away; nobody reads an answer
		return
	}
	event := g.event(r, call, resource.path, parameters, body)
	g.integrate(w, r, call, function, event)
}

// integrate invokes the function and answers with what it says, or with the gateway's own error. The function goes on
// when the client has gone or the time is over, as on AWS.
func (g *Gateway) integrate(w http.ResponseWriter, r *http.Request, c call, function string, event []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), integrationTime)
	type outcome struct {
		result lambda.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := g.cfg.Invoke(ctx, function, event)
		done <- outcome{result, err}
	}()
	defer cancel()
	select {
	case o := <-done:
		switch {
		case errors.Is(o.err, lambda.ErrTooLarge):
			g.refuse(w, c, requestTooLarge)
		case errors.Is(o.err, context.DeadlineExceeded):
			g.refuse(w, c, integrationTimeout)
		case o.err != nil:
			g.fail(w, c, function, o.err.Error())
		case o.result.Failed:
			g.fail(w, c, function, string(o.result.Payload))
		default:
			g.respond(w, r, c, function, o.result.Payload)
		}
	case <-ctx.Done():
		g.refuse(w, c, integrationTimeout)
	}
}

// fail answers 502 and logs why: the client is not told.
func (g *Gateway) fail(w http.ResponseWriter, c call, function, why string) {
	fmt.Fprintf(g.cfg.Log, "gateway | request %s: %s failed: %s\n", c.requestID, function, why)
	g.refuse(w, c, integrationFailure)
}
