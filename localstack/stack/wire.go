package stack

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// s3Proxy passes requests on to the object store with their Host, path and headers as they came: all of them are signed.
func (s *Stack) s3Proxy() http.Handler {
	target, err := url.Parse(s.s3URL)
	if err != nil {
		panic(err) // the address of a listener
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	s.onClose(func() error { transport.CloseIdleConnections(); return nil })
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = target.Scheme, target.Host
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Host = p.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				http.Error(w, "s3: "+err.Error(), http.StatusBadGateway)
			}
		},
	}
}

// inProcess is an HTTP client that calls a handler directly: the stack's own calls pass no listener and no injector.
type inProcess struct{ handler http.Handler }

func (p inProcess) Do(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	kept := &answer{header: http.Header{}, status: http.StatusOK}
	p.handler.ServeHTTP(kept, in)
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: kept.status, Header: kept.header, Body: io.NopCloser(&kept.body), ContentLength: int64(kept.body.Len()),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r}, nil
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// lockedWriter lets functions, gateway and event sources share one log, a line each.
type lockedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}
