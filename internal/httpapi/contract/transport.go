package contract

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Transport checks every exchange of an HTTP client with the API while it passes. Requests to other
// addresses, such as presigned URLs, pass unchecked.
type Transport struct {
	Base      http.RoundTripper // nil: http.DefaultTransport
	BaseURL   string            // of the API, without /v1: http://127.0.0.1:4566, https://host/stage
	Validator *Validator
	Report    func(error) // such as t.Error; gets every difference from the document
}

// RoundTrip sends the request and gives the answer as it came.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	path, ours := strings.CutPrefix(req.URL.String(), strings.TrimSuffix(t.BaseURL, "/"))
	if !ours {
		return base.RoundTrip(req)
	}
	body, err := drain(req.Body)
	if err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	if req.Body != nil {
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	res, err := base.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	seen := req.Clone(req.Context())
	if seen.URL, err = url.Parse(path); err == nil {
		err = t.Validator.Check(seen, body, res)
	}
	if err != nil {
		t.Report(err)
	}
	return res, nil
}

func drain(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	b, err := io.ReadAll(body)
	if closing := body.Close(); err == nil {
		err = closing
	}
	return b, err
}
