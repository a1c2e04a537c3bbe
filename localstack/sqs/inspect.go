package sqs

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"time"
)

// Peek is a message as it lies in a queue.
type Peek struct {
	ID, Body, Group string
	// Attributes are the message attributes; the value of a binary one is base64.
	Attributes   map[string]string
	ReceiveCount int
	SentAt       time.Time
	// InFlight and Delayed say that no copy of the message is deliverable: because it was received, or not yet.
	InFlight, Delayed bool
}

// Peek lists the messages of a queue in the order they arrived there, without consuming them; nil when there is no
// such queue.
func (s *Server) Peek(queueName string) []Peek {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queueName]
	if q == nil {
		return nil
	}
	q.advance(s.now())
	out := []Peek{}
	for _, m := range slices.SortedFunc(maps.Values(q.msgs), bySeq) {
		out = append(out, m.peek())
	}
	return out
}

func bySeq(a, b *message) int { return cmp.Compare(a.Seq, b.Seq) }

func (m *message) peek() Peek {
	p := Peek{ID: m.ID, Body: m.Body, Group: m.Group, ReceiveCount: m.Receives, SentAt: m.Sent, Attributes: map[string]string{}}
	for name, a := range m.Attrs {
		p.Attributes[name] = a.StringValue
		if a.BinaryValue != nil {
			p.Attributes[name] = base64.StdEncoding.EncodeToString(a.BinaryValue)
		}
	}
	hidden := !slices.ContainsFunc(m.Instances, func(in *instance) bool { return in.ready != nil })
	flying := slices.ContainsFunc(m.Instances, func(in *instance) bool { return in.InFlight })
	p.InFlight, p.Delayed = hidden && flying, hidden && !flying
	return p
}

// Redeliver makes a second live copy of a message deliverable now, in flight or not, as when SQS delivers twice. The
// copies share id, send time and receive count; each has its own latest handle, and deleting with either deletes the
// message. One receive never returns both. It reports false when the queue has no such message.
func (s *Server) Redeliver(queueName, messageID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queueName]
	if q == nil || s.closed {
		return false
	}
	now := s.now()
	q.advance(now)
	m := q.msgs[messageID]
	if m == nil {
		return false
	}
	in := &instance{msg: m, waiting: -1, Visible: now}
	m.Instances = append(m.Instances, in)
	q.place(in, now)
	s.saveMessage(q, m)
	s.commit(now)
	return true
}
