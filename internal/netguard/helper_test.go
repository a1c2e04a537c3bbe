package netguard

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"pintu/internal/fault"
)

// errStop ends a dial in a test that has seen enough: the address was admitted.
var errStop = errors.New("stopped before connecting")

// watched is a guard whose every admitted address is recorded; it connects to loopback alone.
type watched struct {
	*Guard
	mu   sync.Mutex
	seen []netip.AddrPort
}

// watch makes a guard over a zone that opens no connection: what it would have dialled is recorded.
func watch(t *testing.T, z *zone, c Config) *watched {
	t.Helper()
	if z == nil {
		z = &zone{}
	}
	c.Resolver = z.serve(t)
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Guard: g}
	g.beforeConnect = func(to netip.AddrPort) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, to)
		if to.Addr().Unmap().IsLoopback() && c.AdmitLoopback {
			return nil
		}
		return errStop
	}
	return w
}

func (w *watched) dialled() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

var source = Policy{Code: InvalidSourceURL}

func limits(redirects int) Limits {
	return Limits{Connect: 2 * time.Second, FirstByte: 2 * time.Second, Total: 5 * time.Second, Redirects: redirects}
}

// fetch gets a URL through a client of the guard.
func (w *watched) fetch(t *testing.T, url string, redirects int) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := w.Client(source, limits(redirects)).Do(req)
	if err == nil {
		t.Cleanup(func() { resp.Body.Close() })
	}
	return resp, err
}

// verdict writes a refusal as "CODE reason", and no refusal as "ok" or "error".
func verdict(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := fault.As(err); ok {
		return fmt.Sprintf("%s %v", e.Code, e.Details["reason"])
	}
	return "error"
}

func text(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
