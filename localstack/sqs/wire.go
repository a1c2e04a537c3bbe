package sqs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// maxRequest bounds a request body: ten messages share 1 MiB, and JSON may write one byte as six.
const maxRequest = 8 << 20

// call is one request: its context, the prefix of the queue URLs it is answered with, and the time it happens at.
type call struct {
	context.Context
	base string
	now  time.Time
}

type operation func(s *Server, c call, body []byte) (any, error)

var operations = map[string]operation{
	"CreateQueue":                  locked((*Server).createQueue),
	"GetQueueUrl":                  locked((*Server).getQueueURL),
	"ListQueues":                   locked((*Server).listQueues),
	"DeleteQueue":                  locked((*Server).deleteQueue),
	"PurgeQueue":                   locked((*Server).purgeQueue),
	"GetQueueAttributes":           locked((*Server).getQueueAttributes),
	"SetQueueAttributes":           locked((*Server).setQueueAttributes),
	"ListDeadLetterSourceQueues":   locked((*Server).listDeadLetterSources),
	"TagQueue":                     locked((*Server).tagQueue),
	"UntagQueue":                   locked((*Server).untagQueue),
	"ListQueueTags":                locked((*Server).listQueueTags),
	"SendMessage":                  locked((*Server).sendMessage),
	"SendMessageBatch":             locked((*Server).sendMessageBatch),
	"ReceiveMessage":               decoded((*Server).receiveMessage),
	"DeleteMessage":                locked((*Server).deleteMessage),
	"DeleteMessageBatch":           locked((*Server).deleteMessageBatch),
	"ChangeMessageVisibility":      locked((*Server).changeVisibility),
	"ChangeMessageVisibilityBatch": locked((*Server).changeVisibilityBatch),
	"StartMessageMoveTask":         locked((*Server).startMoveTask),
	"ListMessageMoveTasks":         locked((*Server).listMoveTasks),
	"CancelMessageMoveTask":        locked((*Server).cancelMoveTask),
}

// decoded makes an operation of a method that takes its request as a struct.
func decoded[In, Out any](f func(*Server, call, In) (Out, error)) operation {
	return func(s *Server, c call, body []byte) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, clientFault("SerializationException", "SerializationException", "The request is not valid JSON for this operation: %v.", err)
		}
		return f(s, c, in)
	}
}

// locked is decoded for a method that runs under the server's lock at one instant, and whose changes are then
// committed, whether it failed or not: a batch changes state and fails in parts.
func locked[In, Out any](f func(*Server, call, In) (Out, error)) operation {
	return decoded(func(s *Server, c call, in In) (Out, error) {
		var out Out
		err := s.atOnce(c, func(c call) (err error) {
			out, err = f(s, c, in)
			return err
		})
		return out, err
	})
}

// atOnce runs f under the lock with the time set, and commits.
func (s *Server) atOnce(c call, f func(call) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &fault{shape: "ServiceUnavailable", query: "ServiceUnavailable", message: "The server is closed.", status: 503}
	}
	c.now = s.now()
	err := f(c)
	s.commit(c.now)
	if s.failed != nil {
		return s.failed
	}
	return err
}

// ServeHTTP answers one SQS call. The path does not matter: the target header names the operation, the body the queue.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	op := operations[name]
	if r.Method != http.MethodPost || !ok || op == nil {
		writeFault(w, clientFault("UnknownOperationException", "InvalidAction", "The operation %q is not known here.", name))
		return
	}
	body, err := readAll(w, r)
	if err != nil {
		writeFault(w, clientFault("SerializationException", "SerializationException", "The request could not be read: %v.", err))
		return
	}
	out, err := op(s, call{Context: r.Context(), base: s.base(r)}, body)
	if err != nil {
		writeFault(w, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) base(r *http.Request) string {
	if s.cfg.BaseURL != "" {
		return strings.TrimSuffix(s.cfg.BaseURL, "/")
	}
	return "http://" + r.Host
}

func (s *Server) queueURL(c call, name string) string {
	return c.base + "/" + s.cfg.Account + "/" + name
}

// queue finds the queue a URL names and brings it to the present. Only the path counts: one server may be reached
// under several hosts.
func (s *Server) queue(c call, queueURL string) (*queue, error) {
	if queueURL == "" {
		return nil, missing("QueueUrl")
	}
	u, err := url.Parse(queueURL)
	if err != nil {
		return nil, clientFault("InvalidAddress", "InvalidAddress", "The address %s is not valid for this endpoint.", queueURL)
	}
	q := s.queues[path.Base(u.Path)]
	if q == nil {
		return nil, noQueue()
	}
	q.advance(c.now)
	return q, nil
}

func writeFault(w http.ResponseWriter, err error) {
	var f *fault
	if !errors.As(err, &f) {
		f = &fault{shape: "InternalFailure", query: "InternalFailure", message: err.Error(), status: 500}
	}
	side := ";Sender"
	if f.status >= 500 {
		side = ";Receiver"
	}
	w.Header().Set("X-Amzn-Query-Error", f.query+side)
	writeJSON(w, f.status, map[string]string{"__type": "com.amazonaws.sqs#" + f.shape, "message": f.message})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // every answer is a struct of strings and numbers
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-Requestid", newID())
	w.WriteHeader(status)
	w.Write(b)
}

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
}

// newID is a random UUID: message ids, request ids, task ids.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
