package netguard

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits bound one use of a client. All are required but Redirects.
type Limits struct {
	Connect   time.Duration // look-up and connection together; TLS gets as long again
	FirstByte time.Duration // from the request written to the header of the answer read
	Total     time.Duration // the whole exchange, the body of the answer included
	Redirects int           // how many are followed; with 0 a redirect is the answer
}

// maxHeaderBytes bounds the header of an answer.
const maxHeaderBytes = 64 << 10

// Errors of redirects, within the *url.Error that the client gives.
var (
	ErrRedirectLoop     = errors.New("the redirects lead back to where they came from")
	ErrTooManyRedirects = errors.New("there are too many redirects")
)

// Client makes a client that holds every request, redirects included, to the rules: a refusal is a *fault.Error
// in the chain of its error. It has no proxy, no cookies, no HTTP/2 and keeps no connection, so nothing is
// shared between tenants and every request is judged by the address it dials. Compressed answers come as they
// are. The caller bounds the body.
func (g *Guard) Client(p Policy, l Limits) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Client{
		Timeout:       l.Total,
		CheckRedirect: follow(l.Redirects),
		Transport: guarded{g, p, &http.Transport{
			Proxy:                  nil, // with a proxy, only its own address would be judged
			DialContext:            g.dial(p, l.Connect),
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    l.Connect,
			ResponseHeaderTimeout:  l.FirstByte,
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			Protocols:              &protocols,
		}},
	}
}

// follow gives the rule for redirects. Without cookies the same URL gives the same answer: seen twice is a loop.
func follow(limit int) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		if limit == 0 {
			return http.ErrUseLastResponse
		}
		for _, earlier := range via {
			if earlier.URL.String() == next.URL.String() {
				return ErrRedirectLoop
			}
		}
		if len(via) > limit {
			return ErrTooManyRedirects
		}
		return nil
	}
}

// guarded holds each request to the rules of form and lists; the dialler holds it to those of addresses.
type guarded struct {
	guard  *Guard
	policy Policy
	next   http.RoundTripper
}

func (t guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	to, r := parse(req.URL.String())
	if r == nil {
		r = t.guard.judge(to, t.policy)
	}
	if r != nil {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper must, and it was never read
		}
		return nil, t.policy.fault(r)
	}
	clean := req.Clone(req.Context())
	clean.URL, clean.Host = to.url, to.url.Host
	return t.next.RoundTrip(clean)
}

// dial connects to the first address of a host that answers; each is judged before it is tried.
func (g *Guard) dial(p Policy, timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		seen := verdicts{guard: g}
		d := net.Dialer{Timeout: timeout, Resolver: g.resolver, ControlContext: seen.judge}
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(absolute(host), port))
		if err != nil {
			return nil, seen.explain(p, err)
		}
		return conn, nil
	}
}

// verdicts remembers what was said of the addresses of one dial, which may be tried at the same time.
type verdicts struct {
	guard    *Guard
	refused  atomic.Pointer[refusal]
	admitted atomic.Bool
}

// errRefused stops a connection before it is opened.
var errRefused = errors.New("this address is not dialled")

func (v *verdicts) judge(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if r := v.guard.judgeAddress(to); r != nil {
		v.refused.Store(r)
		return errRefused
	}
	v.admitted.Store(true)
	if v.guard.beforeConnect != nil {
		return v.guard.beforeConnect(to)
	}
	return nil
}

// explain makes a dial that failed a refusal when no address could be admitted. When one was, its failure may
// pass, and the refusal of its neighbours says nothing of it.
func (v *verdicts) explain(p Policy, err error) error {
	r := v.refused.Load()
	switch {
	case r != nil && !v.admitted.Load():
		return p.fault(r)
	case errors.Is(err, errRefused):
		return errors.New("no public address of the host answered")
	}
	return err
}
