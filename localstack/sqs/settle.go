package sqs

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// makeHandle names a receive: the queue, the message, and which of its receives it was.
func makeHandle(queue string, in *instance) string {
	return base64.URLEncoding.EncodeToString(fmt.Appendf(nil, "%s|%s|%d", queue, in.msg.ID, in.Receive))
}

// find gives the message a handle names and the instance it is the latest handle of. Both are nil when the message is
// gone, the instance also when it was received again since.
func (q *queue) find(handle string) (*message, *instance, error) {
	if handle == "" {
		return nil, nil, missing("ReceiptHandle")
	}
	raw, err := base64.URLEncoding.DecodeString(handle)
	parts := strings.Split(string(raw), "|")
	if err != nil || len(parts) != 3 || parts[0] != q.name {
		return nil, nil, invalidHandle(handle)
	}
	m := q.msgs[parts[1]]
	if m == nil {
		return nil, nil, nil
	}
	for _, in := range m.Instances {
		if makeHandle(q.name, in) == handle {
			return m, in, nil
		}
	}
	return m, nil, nil
}

type handleIn struct {
	QueueUrl, ReceiptHandle string
}

func (s *Server) deleteMessage(c call, in handleIn) (empty, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return empty{}, err
	}
	return empty{}, s.delete(q, in.ReceiptHandle)
}

// delete takes the message out when the handle is the latest of one of its instances, whether or not its visibility
// timeout has ended; with an older handle it succeeds and does nothing. A FIFO queue refuses a handle that has expired.
func (s *Server) delete(q *queue, handle string) error {
	m, in, err := q.find(handle)
	if err != nil || m == nil {
		return err
	}
	if q.set.fifo && (in == nil || !in.InFlight) {
		return invalidParameter("Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", handle)
	}
	if in == nil {
		return nil
	}
	q.remove(m)
	q.broadcast() // on a FIFO queue the rest of the group has become deliverable
	s.dropMessage(q, m.ID)
	return nil
}

type handleEntry struct {
	Id, ReceiptHandle string
	VisibilityTimeout *int
}

func (e handleEntry) id() string { return e.Id }

type handleBatchIn struct {
	QueueUrl string
	Entries  []handleEntry
}

type handleResult struct{ Id string }

func (s *Server) deleteMessageBatch(c call, in handleBatchIn) (batchOut[handleResult], error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return batchOut[handleResult]{}, err
	}
	return batch(in.Entries, handleEntry.id, func(e handleEntry) (handleResult, error) {
		return handleResult{e.Id}, s.delete(q, e.ReceiptHandle)
	})
}

type visibilityIn struct {
	QueueUrl, ReceiptHandle string
	VisibilityTimeout       *int
}

func (s *Server) changeVisibility(c call, in visibilityIn) (empty, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return empty{}, err
	}
	return empty{}, s.hide(c, q, in.ReceiptHandle, in.VisibilityTimeout)
}

func (s *Server) changeVisibilityBatch(c call, in handleBatchIn) (batchOut[handleResult], error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return batchOut[handleResult]{}, err
	}
	return batch(in.Entries, handleEntry.id, func(e handleEntry) (handleResult, error) {
		return handleResult{e.Id}, s.hide(c, q, e.ReceiptHandle, e.VisibilityTimeout)
	})
}

// maxHidden bounds a visibility timeout.
const maxHidden = 43200

// hide sets the visibility timeout of a message in flight, counted from now.
func (s *Server) hide(c call, q *queue, handle string, seconds *int) error {
	if seconds == nil {
		return missing("VisibilityTimeout")
	}
	if *seconds < 0 || *seconds > maxHidden {
		return outOfRange("VisibilityTimeout", *seconds, 0, maxHidden)
	}
	m, in, err := q.find(handle)
	if err != nil {
		return err
	}
	if in == nil {
		return invalidParameter("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", handle)
	}
	if !in.InFlight {
		return clientFault("MessageNotInflight", legacy+"MessageNotInflight", "The message referred to isn't in flight.")
	}
	q.move(in, c.now.Add(time.Duration(*seconds)*time.Second), c.now)
	s.saveMessage(q, m)
	return nil
}
