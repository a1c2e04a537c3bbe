package sqs

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

type receiveIn struct {
	QueueUrl                    string
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
}

type received struct {
	MessageId, ReceiptHandle, Body, MD5OfBody string
	Attributes                                map[string]string    `json:",omitempty"`
	MessageAttributes                         map[string]attribute `json:",omitempty"`
	MD5OfMessageAttributes                    string               `json:",omitempty"`
}

type receiveOut struct {
	Messages []received `json:",omitempty"`
}

// receiveMessage takes messages, or waits for the first: until one is deliverable, the wait time is over by the
// server's clock or by the real one (which goes on when a test's clock stands still), or the caller is gone.
func (s *Server) receiveMessage(c call, in receiveIn) (receiveOut, error) {
	var out receiveOut
	var wait time.Duration
	var end time.Time
	var timeout <-chan time.Time
	for {
		var changed chan struct{}
		err := s.atOnce(c, func(c call) error {
			q, err := s.queue(c, in.QueueUrl)
			if err != nil {
				return err
			}
			if end.IsZero() {
				if wait, err = in.check(q); err != nil {
					return err
				}
				end = c.now.Add(wait)
			}
			out.Messages = s.take(c, q, in)
			changed = q.changed
			if !end.After(c.now) {
				wait = 0
			}
			return nil
		})
		if err != nil || len(out.Messages) > 0 || wait == 0 {
			return out, err
		}
		if timeout == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-changed:
		case <-timeout:
			return out, nil
		case <-s.done:
			return out, nil
		case <-c.Done():
			return out, nil
		}
	}
}

// check refuses numbers out of range, and gives the time to wait.
func (in receiveIn) check(q *queue) (time.Duration, error) {
	if n := in.MaxNumberOfMessages; n != nil && (*n < 1 || *n > 10) {
		return 0, outOfRange("MaxNumberOfMessages", *n, 1, 10)
	}
	if n := in.VisibilityTimeout; n != nil && (*n < 0 || *n > 43200) {
		return 0, outOfRange("VisibilityTimeout", *n, 0, 43200)
	}
	if in.WaitTimeSeconds == nil {
		return q.set.wait, nil
	}
	if n := *in.WaitTimeSeconds; n < 0 || n > 20 {
		return 0, outOfRange("WaitTimeSeconds", n, 0, 20)
	}
	return time.Duration(*in.WaitTimeSeconds) * time.Second, nil
}

// take delivers what it can and sends to the dead-letter queue what was received too often. A caller that has gone
// takes nothing.
func (s *Server) take(c call, q *queue, in receiveIn) []received {
	if c.Err() != nil {
		return nil
	}
	n, hide := 1, q.set.visibility
	if in.MaxNumberOfMessages != nil {
		n = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		hide = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	limit, target := s.deadLetters(q)
	got, dead := q.take(c.now, n, hide, limit)
	for _, m := range dead {
		s.bury(c.now, q, target, m)
	}
	var out []received
	for _, inst := range got {
		s.saveMessage(q, inst.msg)
		out = append(out, s.render(q, inst, in))
	}
	return out
}

// deadLetters gives the redrive policy's number and queue; 0 when there is none or its queue was deleted.
func (s *Server) deadLetters(q *queue) (limit int, target *queue) {
	if q.set.redrive == nil {
		return 0, nil
	}
	if target = s.byARN(q.set.redrive.Target); target == nil {
		return 0, nil
	}
	return int(q.set.redrive.Receives), target
}

// bury moves a message to a dead-letter queue. It stays the same message: id, receive count and, but on FIFO queues,
// the time it was sent, from which its retention counts.
func (s *Server) bury(now time.Time, from, to *queue, m *message) {
	m.Source, m.Seq = from.arn, 0
	m.Instances = []*instance{{Visible: now}}
	if to.set.fifo {
		m.Sent = now
	}
	to.add(m, now)
	s.saveMessage(to, m)
	s.dropMessage(from, m.ID) // last: a journal that ends between the two has the message twice, not never
}

func (s *Server) render(q *queue, inst *instance, in receiveIn) received {
	m := inst.msg
	attrs := pick(m.Attrs, in.MessageAttributeNames)
	return received{
		MessageId: m.ID, ReceiptHandle: makeHandle(q.name, inst), Body: m.Body, MD5OfBody: md5Hex([]byte(m.Body)),
		Attributes:        s.systemAttributes(m, slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames)),
		MessageAttributes: attrs, MD5OfMessageAttributes: md5OfAttributes(attrs),
	}
}

// systemAttributes are those of the wanted ones that the message has; times are milliseconds since 1970.
func (s *Server) systemAttributes(m *message, wanted []string) map[string]string {
	all := map[string]string{
		"SenderId":                         s.cfg.Account,
		"SentTimestamp":                    strconv.FormatInt(m.Sent.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.Receives),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.First.UnixMilli(), 10),
		"MessageGroupId":                   m.Group,
		"MessageDeduplicationId":           m.Dedup,
		"AWSTraceHeader":                   m.Trace,
		"DeadLetterQueueSourceArn":         m.Source,
	}
	if m.Dedup != "" {
		all["SequenceNumber"] = sequenceNumber(m.Seq)
	}
	keep := slices.Contains(wanted, "All")
	maps.DeleteFunc(all, func(name, value string) bool {
		return value == "" || !keep && !slices.Contains(wanted, name)
	})
	return all
}
