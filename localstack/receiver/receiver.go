// Package receiver is a webhook receiver for tests that misbehaves as receivers on the internet do: it refuses,
// hangs, trickles, redirects, answers too late, too much or in another protocol. It runs on loopback, keeps what
// it received within a bound, and knows nothing of deliveries or signatures.
package receiver

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Behaviour is what a receiver does with a request. It is the first part of the path.
type Behaviour string

const (
	OK            Behaviour = "ok"             // 200 and a short body
	NoContent     Behaviour = "no-content"     // 204
	Refuse        Behaviour = "refuse"         // no listener behind the port
	Hang          Behaviour = "hang"           // reads the request and never answers
	Late          Behaviour = "late"           // answers 200 when the sender has given up
	Trickle       Behaviour = "trickle"        // 200, then a byte of the body now and then, without end
	TrickleHeader Behaviour = "trickle-header" // a byte of the header now and then, without end
	Redirect      Behaviour = "redirect"       // 302 to OK
	Huge          Behaviour = "huge"           // 200 and HugeBytes of body
	Bomb          Behaviour = "bomb"           // 200 and a body that inflates to HugeBytes
	Reset         Behaviour = "reset"          // the connection is reset after the request
	Garbage       Behaviour = "garbage"        // an answer that is no HTTP
	BadTLS        Behaviour = "bad-tls"        // a certificate that nobody trusts, for another host and expired
	PlainTLS      Behaviour = "plain-tls"      // plain HTTP where TLS was expected
	Gone          Behaviour = "gone"           // 410
	Busy          Behaviour = "busy"           // 503 with Retry-After
	Fail          Behaviour = "fail"           // 500
)

// HugeBytes is the size of answers that are too large.
const HugeBytes = 50 << 20

// RetryAfterSeconds is what Busy asks for.
const RetryAfterSeconds = 120

// Bounds of what is kept.
const (
	maxKept  = 1000    // requests
	maxBytes = 1 << 20 // of each body
)

// Request is one request that was read to its end.
type Request struct {
	At     time.Time
	Path   string
	Header http.Header
	Body   []byte
}

// Server is a running receiver.
type Server struct {
	plain, tls *http.Server
	plainAddr  string
	tlsAddr    string
	refusing   *unheard
	tick       time.Duration
	closing    chan struct{}

	mu       sync.Mutex
	received []Request
	written  int64          // bytes of the last Huge answer that went out
	now, top map[string]int // requests in hand by path, and the most there were
}

// Start runs a receiver on ports of its own. tick is the pace of the trickling behaviours.
func Start(tick time.Duration) (*Server, error) {
	s := &Server{tick: tick, closing: make(chan struct{}), now: map[string]int{}, top: map[string]int{}}
	inflating() // not while somebody waits for the answer
	certificate, err := untrusted()
	if err != nil {
		return nil, err
	}
	if s.refusing, err = listenTo(); err != nil {
		return nil, err
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	secure, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.plainAddr, s.tlsAddr = plain.Addr().String(), secure.Addr().String()
	s.plain, s.tls = s.serve(plain), s.serve(secure)
	return s, nil
}

func (s *Server) serve(l net.Listener) *http.Server {
	srv := &http.Server{Handler: s, ErrorLog: quiet}
	go srv.Serve(l) // ends with Close
	return srv
}

// Close ends the receiver and every answer that it holds back.
func (s *Server) Close() {
	close(s.closing)
	s.plain.Close()
	s.tls.Close()
	s.refusing.Close()
}

// URL gives the address of a behaviour. name parts callers of the same behaviour.
func (s *Server) URL(b Behaviour, name string) string {
	scheme, addr := "http", s.plainAddr
	switch b {
	case Refuse:
		addr = s.refusing.addr
	case BadTLS:
		scheme, addr = "https", s.tlsAddr
	case PlainTLS:
		scheme = "https"
	}
	return scheme + "://" + addr + "/" + string(b) + "/" + name
}

// Received gives the requests for a URL of this receiver, oldest first.
func (s *Server) Received(url string) (got []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.received {
		if strings.HasSuffix(url, r.Path) {
			got = append(got, r)
		}
	}
	return got
}

// Written tells how much of the last Huge answer the sender took, in bytes, buffers between included.
func (s *Server) Written() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

// ServeHTTP keeps the request and behaves.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	if err != nil {
		return
	}
	s.keep(Request{At: time.Now(), Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	defer s.count(r.URL.Path, -1)
	switch b, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); Behaviour(b) {
	case OK:
		io.WriteString(w, "thank you")
	case NoContent:
		w.WriteHeader(http.StatusNoContent)
	case Hang:
		s.hold(r)
		panic(http.ErrAbortHandler)
	case Late:
		s.hold(r)
	case Trickle:
		s.trickle(w, r)
	case TrickleHeader:
		s.trickleHeader(w)
	case Redirect:
		http.Redirect(w, r, s.URL(OK, "redirected"), http.StatusFound)
	case Huge:
		s.huge(w)
	case Bomb:
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(inflating())
	case Reset:
		reset(w)
	case Garbage:
		garbage(w)
	case Gone:
		w.WriteHeader(http.StatusGone)
	case Busy:
		w.Header().Set("Retry-After", fmt.Sprint(RetryAfterSeconds))
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		http.Error(w, "out of order", http.StatusInternalServerError)
	}
}

func (s *Server) keep(r Request) {
	s.count(r.Path, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.received) < maxKept {
		s.received = append(s.received, r)
	}
}

func (s *Server) count(path string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[path] += by
	s.top[path] = max(s.top[path], s.now[path])
}

// AtOnce tells how many requests for a URL there were at the same time, at most.
func (s *Server) AtOnce(url string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, top := range s.top {
		if strings.HasSuffix(url, path) {
			n = max(n, top)
		}
	}
	return n
}

// hold waits until the sender has gone.
func (s *Server) hold(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing:
	}
}

func (s *Server) trickle(w http.ResponseWriter, r *http.Request) {
	flusher := http.NewResponseController(w)
	ticker := time.NewTicker(s.tick)
	defer ticker.Stop()
	for {
		if _, err := w.Write([]byte(".")); err != nil || flusher.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

func (s *Server) trickleHeader(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	ticker := time.NewTicker(s.tick)
	defer ticker.Stop()
	for next := "HTTP/1.1 200 OK\r\nX: "; ; next = "x" {
		if _, err := io.WriteString(conn, next); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-s.closing:
			return
		}
	}
}

func (s *Server) huge(w http.ResponseWriter) {
	w.Header().Set("Content-Length", fmt.Sprint(HugeBytes))
	n, _ := io.CopyN(w, zeros{}, HugeBytes) // the sender hangs up: that is what is measured
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = n
}

func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

func garbage(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "220 mail.example.com ESMTP\r\n")
}

// inflating gives a body that is small on the wire and HugeBytes when it is unpacked.
var inflating = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.CopyN(z, zeros{}, HugeBytes) // a buffer takes all that memory has
	z.Close()
	return b.Bytes()
})

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
