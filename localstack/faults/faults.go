// Package faults stands before the AWS endpoint and makes calls go wrong as they do in production: throttled, in
// conflict, answered late, answered twice or never, or with the caller killed just before or after them. Because every
// change of state is a call, that is how tests kill the product at a named point: it needs no hook of its own.
//
// It refuses to look into what the services do: a rule sees one request, and counters see one request and its answer.
package faults

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Injector is an http.Handler in front of another one. It is safe for concurrent use.
type Injector struct {
	next http.Handler
	kill func(caller string) bool
	done chan struct{}

	mu       sync.Mutex
	rules    []*Active
	counts   map[Key]int
	measured map[Key]Usage
	measure  bool
}

// New puts an injector before next. kill ends the process with that app id, waits until it is gone, and tells whether
// there was one.
func New(next http.Handler, kill func(caller string) bool) *Injector {
	return &Injector{next: next, kill: kill, done: make(chan struct{}), counts: map[Key]int{}, measured: map[Key]Usage{}}
}

// Add puts a rule into force. Rules are asked in the order they were added; the first that fires decides.
func (i *Injector) Add(r Rule) *Active {
	a := &Active{rule: r, injector: i, reached: make(chan struct{}), gate: make(chan struct{}), rand: rand.New(rand.NewPCG(r.Seed, 1))}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = append(i.rules, a)
	return a
}

// Reset removes every rule, releases what they hold, and clears the counters.
func (i *Injector) Reset() {
	i.mu.Lock()
	rules := i.rules
	i.rules, i.counts, i.measured = nil, map[Key]int{}, map[Key]Usage{}
	i.mu.Unlock()
	for _, a := range rules {
		a.Release()
	}
}

// Close releases every held call and lets none be held again.
func (i *Injector) Close() { close(i.done) }

func (i *Injector) remove(a *Active) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rules = slices.DeleteFunc(i.rules, func(b *Active) bool { return a == b })
}

func (i *Injector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := read(r)
	if c.Service != S3 {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			reset(w) // the caller went away
			return
		}
		c.Body = body
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	a := i.count(c)
	if a == nil {
		i.pass(w, r, c)
		return
	}
	i.act(w, r, c, a)
}

// count books a call and finds the rule that fires at it, if any.
func (i *Injector) count(c Call) *Active {
	i.mu.Lock()
	i.counts[c.key()]++
	rules := slices.Clone(i.rules)
	i.mu.Unlock()
	var first *Active
	for _, a := range rules {
		if first == nil && a.fires(c) {
			first = a
		}
	}
	return first
}

func (i *Injector) act(w http.ResponseWriter, r *http.Request, c Call, a *Active) {
	switch a.rule.Action {
	case Fail:
		io.Copy(io.Discard, r.Body) // a caller still sending might not read the answer
		answer(w, c, a.rule.Error)
	case Reset:
		reset(w)
	case LoseReply:
		i.execute(r, c)
		reset(w)
	case HoldBefore:
		i.hold(r, a)
		i.pass(w, r, c)
	case HoldAfter:
		kept := i.execute(r, c)
		i.hold(r, a)
		kept.copyTo(w)
	case Duplicate:
		i.twice(w, r, c)
	case KillBefore:
		i.kill(c.Caller)
		reset(w)
	case KillAfter:
		i.execute(r, c)
		i.kill(c.Caller)
		reset(w)
	default:
		panic(fmt.Sprintf("faults: unknown action %d", a.rule.Action))
	}
}

// hold waits for the release, the end of the injector or the caller giving up.
func (i *Injector) hold(r *http.Request, a *Active) {
	select {
	case <-a.gate:
	case <-i.done:
	case <-r.Context().Done():
	}
}

// execute runs the call to its end even if the caller has gone, and keeps the answer.
func (i *Injector) execute(r *http.Request, c Call) *recorder {
	kept := newRecorder()
	i.pass(kept, r, c)
	return kept
}

// twice executes a call two times. An S3 body is kept in memory for it.
func (i *Injector) twice(w http.ResponseWriter, r *http.Request, c Call) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		reset(w)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	i.execute(r, c)
	r.Body = io.NopCloser(bytes.NewReader(body))
	i.pass(w, r, c)
}

// reset ends the connection so that the caller sees "connection reset by peer".
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 or a test's recorder: the server closes the stream without an answer
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // without it the close is orderly, which SDKs treat the same
	}
	conn.Close()
}
