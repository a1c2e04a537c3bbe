package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
)

// Key names one counter.
type Key struct {
	Caller, Service, Operation string
}

// Usage is what DynamoDB says calls consumed.
type Usage struct {
	ReadUnits, WriteUnits float64
}

func (c Call) key() Key { return Key{Caller: c.Caller, Service: c.Service, Operation: c.Operation} }

// Counts gives the number of calls so far, per caller, service and operation.
func (i *Injector) Counts() map[Key]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.counts)
}

// Count adds up the counters a rule's Service, Operation and Caller would match.
func (i *Injector) Count(r Rule) int {
	n := 0
	for k, v := range i.Counts() {
		if k.matches(r) {
			n += v
		}
	}
	return n
}

// Measure starts to add up what DynamoDB calls consume: it asks for the figures in each request. The answers then
// carry ConsumedCapacity even when the caller did not ask.
func (i *Injector) Measure() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.measure = true
}

// Used adds up the usage of the calls a rule's Operation and Caller would match, since Measure.
func (i *Injector) Used(r Rule) Usage {
	i.mu.Lock()
	defer i.mu.Unlock()
	var sum Usage
	for k, u := range i.measured {
		if k.matches(r) {
			sum.ReadUnits += u.ReadUnits
			sum.WriteUnits += u.WriteUnits
		}
	}
	return sum
}

func (k Key) matches(r Rule) bool {
	return (r.Service == "" || r.Service == k.Service) && (r.Operation == "" || r.Operation == k.Operation) && called(r.Caller, k.Caller)
}

// pass executes a call and, when asked to, books what it consumed.
func (i *Injector) pass(w http.ResponseWriter, r *http.Request, c Call) {
	i.mu.Lock()
	measure := i.measure && c.Service == DynamoDB && consumes[c.Operation]
	i.mu.Unlock()
	if _, kept := w.(*recorder); kept {
		// The caller may be gone by the time a kept call ends; it is executed all the same.
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	if !measure {
		i.next.ServeHTTP(w, r)
		return
	}
	body := asking(c.Body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	kept := newRecorder()
	i.next.ServeHTTP(kept, r)
	i.book(c, kept.body.Bytes())
	kept.copyTo(w)
}

// consumes are the DynamoDB operations that take ReturnConsumedCapacity.
var consumes = map[string]bool{"GetItem": true, "PutItem": true, "UpdateItem": true, "DeleteItem": true, "Query": true, "Scan": true,
	"BatchGetItem": true, "BatchWriteItem": true, "TransactGetItems": true, "TransactWriteItems": true}

// asking adds ReturnConsumedCapacity to a request that does not have it.
func asking(body []byte) []byte {
	if bytes.Contains(body, []byte(`"ReturnConsumedCapacity"`)) || !bytes.HasPrefix(body, []byte("{")) {
		return body
	}
	more := `{"ReturnConsumedCapacity":"TOTAL"`
	if !bytes.HasPrefix(body, []byte("{}")) {
		more += ","
	}
	return append([]byte(more), body[1:]...)
}

// capacity is ConsumedCapacity, of one table. Without a split the units are those of the operation's kind.
type capacity struct {
	CapacityUnits, ReadCapacityUnits, WriteCapacityUnits float64
}

func (i *Injector) book(c Call, answer []byte) {
	var one struct{ ConsumedCapacity capacity }
	var many struct{ ConsumedCapacity []capacity }
	all := []capacity{}
	if json.Unmarshal(answer, &one) == nil {
		all = append(all, one.ConsumedCapacity)
	} else if json.Unmarshal(answer, &many) == nil {
		all = many.ConsumedCapacity
	}
	reads := strings.Contains(c.Operation, "Get") || c.Operation == "Query" || c.Operation == "Scan"
	i.mu.Lock()
	defer i.mu.Unlock()
	u := i.measured[c.key()]
	for _, t := range all {
		split := t.ReadCapacityUnits + t.WriteCapacityUnits
		u.ReadUnits += t.ReadCapacityUnits
		u.WriteUnits += t.WriteCapacityUnits
		if split == 0 && reads {
			u.ReadUnits += t.CapacityUnits
		} else if split == 0 {
			u.WriteUnits += t.CapacityUnits
		}
	}
	i.measured[c.key()] = u
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

func (k *recorder) Header() http.Header         { return k.header }
func (k *recorder) WriteHeader(status int)      { k.status = status }
func (k *recorder) Write(b []byte) (int, error) { return k.body.Write(b) }

func (k *recorder) copyTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), k.header)
	w.WriteHeader(k.status)
	w.Write(k.body.Bytes()) // the caller went away
}
