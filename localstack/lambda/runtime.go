package lambda

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// invocation is one event on its way through a process.
type invocation struct {
	id       string
	trace    string
	payload  []byte
	deadline time.Time
	once     sync.Once
	answered chan Result // holds the outcome the process reported
}

func newInvocation(payload []byte) *invocation {
	return &invocation{id: newID(), trace: newTrace(), payload: payload, answered: make(chan Result, 1)}
}

// settle records the first outcome; later ones are dropped.
func (inv *invocation) settle(r Result) {
	inv.once.Do(func() {
		r.RequestID = inv.id
		inv.answered <- r
	})
}

// failed describes a failure of the process as Lambda does.
func (inv *invocation) failed(kind, message string) *Result {
	payload, err := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message})
	if err != nil {
		panic(err) // two strings
	}
	return &Result{RequestID: inv.id, Payload: payload, Failed: true, Died: true}
}

// initialise waits for the first poll of a new process, or gives how it failed to get there.
func (e *environment) initialise(inv *invocation, limit time.Duration) *Result {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-e.polled:
		return nil
	case <-e.exited:
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.initError != nil {
			return &Result{RequestID: inv.id, Payload: e.initError, Failed: true, Died: true}
		}
		return inv.failed("Runtime.ExitError", fmt.Sprintf("RequestId: %s Error: Runtime exited with error: %s", inv.id, e.reason))
	case <-timer.C:
		return inv.failed("Sandbox.Timedout", fmt.Sprintf("RequestId: %s Error: the function did not ask for work within %v of its start", inv.id, limit))
	}
}

// run gives an event to a process that has polled, and waits for the outcome. After a time-out the process is gone.
func (e *environment) run(inv *invocation, timeout time.Duration) Result {
	inv.deadline = time.Now().Add(timeout)
	e.mu.Lock()
	e.current = inv
	e.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case e.work <- inv:
	case <-e.exited:
	}
	select {
	case r := <-inv.answered:
		return r
	case <-e.exited:
		return e.lost(inv)
	case <-timer.C:
		e.kill()
		<-e.exited
		return *inv.failed("Sandbox.Timedout", fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", inv.id, timeout.Seconds()))
	}
}

// lost is the outcome when the process has gone, unless it answered just before.
func (e *environment) lost(inv *invocation) Result {
	select {
	case r := <-inv.answered:
		r.Died = true
		return r
	default:
		return *inv.failed("Runtime.ExitError", fmt.Sprintf("RequestId: %s Error: Runtime exited with error: %s", inv.id, e.reason))
	}
}

// routes is the Runtime API of one process.
func (e *environment) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", e.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", e.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", e.failure)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", e.initFailure)
	mux.HandleFunc("POST /2020-01-01/extension/register", e.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", e.nextEvent)
	return mux
}

// next holds the poll until there is work.
func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	select {
	case e.polled <- struct{}{}:
	default:
	}
	select {
	case inv := <-e.work:
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", e.arn)
		h.Set("Lambda-Runtime-Trace-Id", inv.trace)
		h.Set("Content-Type", "application/json")
		w.Write(inv.payload)
	case <-r.Context().Done():
	case <-e.exited:
	}
}

// invocationOf gives the invocation under way when a request is about it.
func (e *environment) invocationOf(w http.ResponseWriter, r *http.Request) *invocation {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil || e.current.id != r.PathValue("id") {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return nil
	}
	return e.current
}

func (e *environment) response(w http.ResponseWriter, r *http.Request) {
	inv := e.invocationOf(w, r)
	if inv == nil {
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse+1))
	switch {
	case err != nil: // the process went away while it answered; its end says so
		return
	case len(body) > maxResponse:
		message := fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse)
		refuse(w, http.StatusRequestEntityTooLarge, "Function.ResponseSizeTooLarge", message)
		too := inv.failed("Function.ResponseSizeTooLarge", message)
		too.Died = false
		inv.settle(*too)
		return
	}
	accept(w)
	inv.settle(Result{Payload: body})
}

func (e *environment) failure(w http.ResponseWriter, r *http.Request) {
	inv := e.invocationOf(w, r)
	if inv == nil {
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		return
	}
	accept(w)
	inv.settle(Result{Payload: body, Failed: true})
}

func (e *environment) initFailure(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxResponse))
	if err != nil {
		return
	}
	e.mu.Lock()
	e.initError = body
	e.mu.Unlock()
	accept(w)
}

// register lets a process be an extension of its own, which is how a Go function asks for SIGTERM before its end.
func (e *environment) register(w http.ResponseWriter, r *http.Request) {
	var wanted struct{ Events []string }
	if err := json.NewDecoder(io.LimitReader(r.Body, maxResponse)).Decode(&wanted); err != nil || len(wanted.Events) > 0 {
		refuse(w, http.StatusNotImplemented, "Extension.InvalidEventType", "events of extensions are not supported by the embedded stack")
		return
	}
	w.Header().Set("Lambda-Extension-Identifier", newID())
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"functionName":%q,"functionVersion":"$LATEST","handler":"bootstrap"}`, e.name)
}

// nextEvent holds the poll of an extension that has asked for no events, until the process ends.
func (e *environment) nextEvent(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-e.exited:
	}
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	io.WriteString(w, `{"status":"OK"}`)
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errorType":%q,"errorMessage":%q}`, kind, message)
}

// newID is a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newTrace is an X-Ray trace header that asks for no sampling.
func newTrace() string {
	var b [20]byte
	rand.Read(b[:])
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", time.Now().Unix(), hex.EncodeToString(b[:12]), hex.EncodeToString(b[12:]))
}
