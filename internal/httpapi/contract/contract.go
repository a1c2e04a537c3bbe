// Package contract checks exchanges of the HTTP API against its OpenAPI document, for tests. It refuses to
// be part of the program: the document is what clients were promised, and only tests need to be told when
// an answer differs from it.
package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"pintu/infra"
)

// Validator knows the document. It is safe for concurrent use.
type Validator struct {
	doc    *openapi3.T
	router routers.Router
}

// New reads the embedded document.
func New() (*Validator, error) {
	doc, err := openapi3.NewLoader().LoadFromData(infra.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("read the paths of the OpenAPI document: %w", err)
	}
	return &Validator{doc, router}, nil
}

// Check compares one exchange with the document. The path of req must start with /v1. The answer must be
// one that the document gives for the operation: status, headers, media type and body; and a request that
// was answered with success must be one that the document allows. res.Body can be read afterwards.
func (v *Validator) Check(req *http.Request, body []byte, res *http.Response) error {
	if err := v.check(req, body, res); err != nil {
		return fmt.Errorf("%s %s answered %d: %w", req.Method, req.URL.EscapedPath(), res.StatusCode, err)
	}
	return nil
}

func (v *Validator) check(req *http.Request, body []byte, res *http.Response) error {
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	in, err := v.find(req, body)
	switch {
	case errors.Is(err, routers.ErrPathNotFound):
		return v.checkUnbound("NotFound", http.StatusNotFound, res, answer)
	case errors.Is(err, routers.ErrMethodNotAllowed):
		return v.checkUnbound("MethodNotAllowed", http.StatusMethodNotAllowed, res, answer)
	case err != nil:
		return err
	}
	if res.StatusCode < 400 {
		if err := checkRequest(in, body); err != nil {
			return fmt.Errorf("a request that the document does not allow: %w", err)
		}
	}
	return checkAnswer(in, res, answer)
}

// CheckRequest tells whether the document allows the request. Answers are not looked at.
func (v *Validator) CheckRequest(req *http.Request, body []byte) error {
	in, err := v.find(req, body)
	if err != nil {
		return err
	}
	return checkRequest(in, body)
}

// find gives the operation of a request, ready to be checked.
func (v *Validator) find(req *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	req = req.Clone(context.Background())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	route, params, err := v.router.FindRoute(req)
	if err != nil {
		return nil, err
	}
	return &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, QueryParams: req.URL.Query(), Route: route,
		Options: &openapi3filter.Options{MultiError: true, SkipSettingDefaults: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}, nil
}

// checkRequest also refuses what the library lets pass: query parameters that the operation does not have.
func checkRequest(in *openapi3filter.RequestValidationInput, body []byte) error {
	for name := range in.QueryParams {
		if in.Route.Operation.Parameters.GetByInAndName("query", name) == nil {
			return fmt.Errorf("query parameter %s is not in the document", name)
		}
	}
	if len(body) > 0 && in.Route.Operation.RequestBody == nil {
		return errors.New("the operation takes no body")
	}
	return openapi3filter.ValidateRequest(context.Background(), in)
}

// promised are headers that mean something to clients: an answer has them only where the document says so.
var promised = []string{"Allow", "Etag", "Idempotency-Replayed", "Location", "Ratelimit-Limit", "Ratelimit-Remaining",
	"Ratelimit-Reset", "Retry-After", "Vary", "Www-Authenticate"}

func checkAnswer(in *openapi3filter.RequestValidationInput, res *http.Response, body []byte) error {
	ref := in.Route.Operation.Responses.Status(res.StatusCode)
	if ref == nil {
		return errors.New("the document has no such status for the operation")
	}
	if err := checkHeaders(ref.Value, res.Header); err != nil {
		return err
	}
	if len(ref.Value.Content) == 0 {
		if len(body) > 0 {
			return errors.New("an answer with a body where there must be none")
		}
		return nil
	}
	if got := res.Header.Get("Content-Type"); got != "application/json; charset=utf-8" {
		return fmt.Errorf("content type %q", got)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header,
		Options: &openapi3filter.Options{MultiError: true, IncludeResponseStatus: true}}
	return openapi3filter.ValidateResponse(context.Background(), out.SetBodyBytes(body))
}

func checkHeaders(promise *openapi3.Response, got http.Header) error {
	known := map[string]bool{}
	for name, header := range promise.Headers {
		known[http.CanonicalHeaderKey(name)] = true
		if header.Value.Required && got.Get(name) == "" {
			return fmt.Errorf("header %s is missing", name)
		}
	}
	for name := range got {
		if slices.Contains(promised, name) && !known[name] {
			return fmt.Errorf("header %s is not in the document", name)
		}
	}
	return nil
}

// checkUnbound checks an answer that belongs to no operation.
func (v *Validator) checkUnbound(component string, status int, res *http.Response, body []byte) error {
	if res.StatusCode != status {
		return fmt.Errorf("the document does not know this operation, so the answer must be %d", status)
	}
	promise := v.doc.Components.Responses[component].Value
	if err := checkHeaders(promise, res.Header); err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("read the error: %w", err)
	}
	schema := promise.Content["application/json"].Schema.Value
	return schema.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse())
}
