package sqs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// maxMessage is the limit of a message and of a batch: 1 MiB, attributes included.
const maxMessage = 1 << 20

// dedupWindow is how long a FIFO queue remembers a deduplication id.
const dedupWindow = 5 * time.Minute

// sentOnce is the answer a FIFO queue repeats to a duplicate until the window ends.
type sentOnce struct {
	id    string
	seq   uint64
	until time.Time
}

// content is what SendMessage and an entry of SendMessageBatch have in common.
type content struct {
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]attribute
	MessageSystemAttributes map[string]attribute
	MessageDeduplicationId  string
	MessageGroupId          string
}

// receipt is what they answer.
type receipt struct {
	MessageId                    string
	MD5OfMessageBody             string
	MD5OfMessageAttributes       string `json:",omitempty"`
	MD5OfMessageSystemAttributes string `json:",omitempty"`
	SequenceNumber               string `json:",omitempty"`
}

type sendIn struct {
	QueueUrl string
	content
}

func (s *Server) sendMessage(c call, in sendIn) (receipt, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return receipt{}, err
	}
	return s.send(c, q, in.content)
}

type sendEntry struct {
	Id string
	content
}

type sendBatchIn struct {
	QueueUrl string
	Entries  []sendEntry
}

type sendResult struct {
	Id string
	receipt
}

func (s *Server) sendMessageBatch(c call, in sendBatchIn) (batchOut[sendResult], error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return batchOut[sendResult]{}, err
	}
	total := 0
	for _, e := range in.Entries {
		total += e.size()
	}
	if total > maxMessage {
		return batchOut[sendResult]{}, clientFault("BatchRequestTooLong", legacy+"BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessage, total)
	}
	return batch(in.Entries, func(e sendEntry) string { return e.Id }, func(e sendEntry) (sendResult, error) {
		r, err := s.send(c, q, e.content)
		return sendResult{e.Id, r}, err
	})
}

func (s *Server) send(c call, q *queue, in content) (receipt, error) {
	if err := in.check(q); err != nil {
		return receipt{}, err
	}
	key := q.dedupKey(in)
	if once, ok := q.dedup[key]; ok && once.until.After(c.now) {
		return in.receipt(once.id, once.seq), nil
	}
	delay := q.set.delay
	if in.DelaySeconds != nil {
		delay = time.Duration(*in.DelaySeconds) * time.Second
	}
	m := &message{
		ID: newID(), Body: in.MessageBody, Group: in.MessageGroupId, Dedup: in.dedupID(q), Attrs: in.MessageAttributes,
		Trace: in.MessageSystemAttributes["AWSTraceHeader"].StringValue,
		Sent:  c.now, Instances: []*instance{{Visible: c.now.Add(delay)}},
	}
	q.add(m, c.now)
	s.saveMessage(q, m)
	if !q.set.fifo {
		return in.receipt(m.ID, 0), nil
	}
	q.dedup[key] = sentOnce{m.ID, m.Seq, c.now.Add(dedupWindow)}
	return in.receipt(m.ID, m.Seq), nil
}

func (in content) receipt(id string, seq uint64) receipt {
	r := receipt{
		MessageId: id, MD5OfMessageBody: md5Hex([]byte(in.MessageBody)),
		MD5OfMessageAttributes:       md5OfAttributes(in.MessageAttributes),
		MD5OfMessageSystemAttributes: md5OfAttributes(in.MessageSystemAttributes),
	}
	if seq > 0 {
		r.SequenceNumber = sequenceNumber(seq)
	}
	return r
}

// sequenceNumber has the 20 digits AWS writes.
func sequenceNumber(seq uint64) string { return fmt.Sprintf("1885%016d", seq) }

func (in content) dedupID(q *queue) string {
	if in.MessageDeduplicationId == "" && q.set.fifo {
		sum := sha256.Sum256([]byte(in.MessageBody))
		return hex.EncodeToString(sum[:])
	}
	return in.MessageDeduplicationId
}

// dedupKey is what duplicates on a FIFO queue share.
func (q *queue) dedupKey(in content) string {
	if q.set.dedupPerGroup {
		return in.dedupID(q) + " " + in.MessageGroupId // neither may contain a space
	}
	return in.dedupID(q)
}

func (in content) size() int {
	n := len(in.MessageBody)
	for name, a := range in.MessageAttributes {
		n += len(name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue)
	}
	return n
}

func (in content) check(q *queue) error {
	if in.MessageBody == "" {
		return missing("MessageBody")
	}
	if n := in.size(); n > q.set.maxSize {
		return invalidParameter("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", q.set.maxSize)
	}
	if !allowedText(in.MessageBody) {
		return clientFault("InvalidMessageContents", "InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if err := checkAttributes(in.MessageAttributes); err != nil {
		return err
	}
	for name := range in.MessageSystemAttributes {
		if name != "AWSTraceHeader" {
			return invalidParameter("Message system attribute name '%s' is invalid.", name)
		}
	}
	if err := checkToken("MessageGroupId", in.MessageGroupId); err != nil {
		return err
	}
	if err := checkToken("MessageDeduplicationId", in.MessageDeduplicationId); err != nil {
		return err
	}
	return in.checkKind(q)
}

// checkKind refuses what a FIFO queue needs and has not, and what only the other kind of queue takes.
func (in content) checkKind(q *queue) error {
	d := in.DelaySeconds
	switch {
	case d != nil && (*d < 0 || *d > 900):
		return invalidParameter("Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.", *d)
	case !q.set.fifo && in.MessageDeduplicationId != "":
		return invalidParameter("Value %s for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is not valid for this queue type.", in.MessageDeduplicationId)
	case !q.set.fifo:
		return nil
	case d != nil && *d > 0:
		return invalidParameter("Value %d for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.", *d)
	case in.MessageGroupId == "":
		return missing("MessageGroupId")
	case in.MessageDeduplicationId == "" && !q.set.contentDedup:
		return invalidParameter("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}

// checkToken holds a group or deduplication id against the rule: up to 128 printable ASCII characters but the space.
func checkToken(name, value string) error {
	bad := len(value) > 128
	for i := 0; i < len(value); i++ {
		bad = bad || value[i] <= ' ' || value[i] > '~'
	}
	if bad {
		return invalidParameter("Value %s for parameter %s is invalid. Reason: %s can only include alphanumeric and punctuation characters. 1 to 128 in length.", value, name, name)
	}
	return nil
}
