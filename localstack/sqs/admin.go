package sqs

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

type createQueueIn struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}

type queueURLOut struct{ QueueUrl string }

func (s *Server) createQueue(c call, in createQueueIn) (queueURLOut, error) {
	set, err := s.checkSettings(s.arn(in.QueueName), in.Attributes)
	if err != nil {
		return queueURLOut{}, err
	}
	if err := checkName(in.QueueName, set.fifo); err != nil {
		return queueURLOut{}, err
	}
	out := queueURLOut{s.queueURL(c, in.QueueName)}
	if q := s.queues[in.QueueName]; q != nil {
		return out, sameQueue(q, in.Attributes)
	}
	q := newQueue(in.QueueName, s.arn(in.QueueName))
	q.attrs, q.set, q.created, q.modified = in.Attributes, set, c.now, c.now
	maps.Copy(q.tags, in.Tags)
	s.queues[q.name] = q
	s.saveQueue(q)
	return out, nil
}

// sameQueue refuses to create a queue again with an attribute that differs; what is not given is not compared.
func sameQueue(q *queue, attrs map[string]string) error {
	have := withDefaults(q.attrs)
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		if have[name] != attrs[name] {
			return clientFault("QueueNameExists", "QueueAlreadyExists", "A queue already exists with the same name and a different value for attribute %s", name)
		}
	}
	return nil
}

// checkSettings parses attributes and checks the redrive policy against the dead-letter queue it names.
func (s *Server) checkSettings(arn string, attrs map[string]string) (settings, error) {
	set, err := parseSettings(attrs)
	if err != nil || set.redrive == nil {
		return set, err
	}
	value := attrs["RedrivePolicy"]
	if !strings.HasPrefix(set.redrive.Target, "arn:") {
		return set, badRedrive(value, "Invalid value for deadLetterTargetArn")
	}
	target := s.byARN(set.redrive.Target)
	switch {
	case target == nil:
		return set, badRedrive(value, "Dead letter target does not exist")
	case target.set.fifo != set.fifo:
		return set, badRedrive(value, "Dead-letter queue must be same type of queue as the source")
	case !target.set.permits(arn):
		return set, badRedrive(value, "The dead-letter queue's redrive allow policy does not permit this source")
	}
	return set, nil
}

type getQueueURLIn struct{ QueueName string }

func (s *Server) getQueueURL(c call, in getQueueURLIn) (queueURLOut, error) {
	if s.queues[in.QueueName] == nil {
		return queueURLOut{}, noQueue()
	}
	return queueURLOut{s.queueURL(c, in.QueueName)}, nil
}

type listQueuesIn struct {
	QueueNamePrefix, NextToken string
	MaxResults                 int
}

type listQueuesOut struct {
	QueueUrls []string `json:",omitempty"`
	NextToken string   `json:",omitempty"`
}

func (s *Server) listQueues(c call, in listQueuesIn) (listQueuesOut, error) {
	names := []string{}
	for name := range s.queues {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			names = append(names, name)
		}
	}
	urls, next, err := s.page(c, names, in.NextToken, in.MaxResults)
	return listQueuesOut{urls, next}, err
}

// page gives the URLs of at most max queues after the token, which is the last name of the page before. Without max
// there are a thousand and no token, as on AWS.
func (s *Server) page(c call, names []string, token string, max int) (urls []string, next string, err error) {
	if max < 0 || max > 1000 {
		return nil, "", outOfRange("MaxResults", max, 1, 1000)
	}
	slices.Sort(names)
	if i, found := slices.BinarySearch(names, token); found {
		names = names[i+1:]
	} else if token != "" {
		return nil, "", invalidParameter("Invalid or expired next token.")
	}
	limit := max
	if limit == 0 {
		limit = 1000
	}
	if len(names) > limit {
		names = names[:limit]
		if max > 0 {
			next = names[limit-1]
		}
	}
	for _, name := range names {
		urls = append(urls, s.queueURL(c, name))
	}
	return urls, next, nil
}

type queueIn struct{ QueueUrl string }

type empty struct{}

func (s *Server) deleteQueue(c call, in queueIn) (empty, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return empty{}, err
	}
	delete(s.queues, q.name)
	q.broadcast()
	s.dropQueue(q)
	return empty{}, nil
}

// purgeInterval is how long AWS refuses a second purge.
const purgeInterval = 60 * time.Second

func (s *Server) purgeQueue(c call, in queueIn) (empty, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return empty{}, err
	}
	if !q.purged.IsZero() && c.now.Sub(q.purged) < purgeInterval {
		return empty{}, clientFault("PurgeQueueInProgress", legacy+"PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
	}
	for _, m := range q.msgs {
		q.remove(m)
		s.dropMessage(q, m.ID)
	}
	q.purged = c.now
	s.saveQueue(q)
	return empty{}, nil
}

type getAttributesIn struct {
	QueueUrl       string
	AttributeNames []string
}

type getAttributesOut struct {
	Attributes map[string]string `json:",omitempty"`
}

func (s *Server) getQueueAttributes(c call, in getAttributesIn) (getAttributesOut, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return getAttributesOut{}, err
	}
	all := q.attributes()
	out := map[string]string{}
	for _, name := range in.AttributeNames {
		if name == "All" {
			return getAttributesOut{all}, nil
		}
		if v, ok := all[name]; ok {
			out[name] = v
		} else if err := checkAttribute(name, "0"); err != nil && err.(*fault).shape == "InvalidAttributeName" {
			return getAttributesOut{}, err
		}
	}
	return getAttributesOut{out}, nil
}

// attributes are all attributes of the queue: those set, the defaults, and the state.
func (q *queue) attributes() map[string]string {
	visible, inFlight, delayed := q.counts()
	all := withDefaults(q.attrs)
	all["QueueArn"] = q.arn
	all["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	all["LastModifiedTimestamp"] = strconv.FormatInt(q.modified.Unix(), 10)
	all["ApproximateNumberOfMessages"] = strconv.Itoa(visible)
	all["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(inFlight)
	all["ApproximateNumberOfMessagesDelayed"] = strconv.Itoa(delayed)
	return all
}

type setAttributesIn struct {
	QueueUrl   string
	Attributes map[string]string
}

func (s *Server) setQueueAttributes(c call, in setAttributesIn) (empty, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return empty{}, err
	}
	attrs := maps.Clone(q.attrs)
	if attrs == nil {
		attrs = map[string]string{}
	}
	for name, value := range in.Attributes {
		if name == "FifoQueue" {
			return empty{}, invalidAttribute(name)
		}
		if texts[name] && value == "" { // the way a policy is taken off
			delete(attrs, name)
			continue
		}
		attrs[name] = value
	}
	set, err := s.checkSettings(q.arn, attrs)
	if err != nil {
		return empty{}, err
	}
	q.attrs, q.set, q.modified = attrs, set, c.now
	q.expires = c.now // the retention may have changed: look at every message
	q.advance(c.now)
	s.saveQueue(q)
	return empty{}, nil
}

type deadLetterSourcesIn struct {
	QueueUrl, NextToken string
	MaxResults          int
}

type deadLetterSourcesOut struct {
	QueueUrls []string `json:"queueUrls"` // AWS writes this one with a small letter
	NextToken string   `json:",omitempty"`
}

func (s *Server) listDeadLetterSources(c call, in deadLetterSourcesIn) (deadLetterSourcesOut, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return deadLetterSourcesOut{}, err
	}
	urls, next, err := s.page(c, s.sourcesOf(q), in.NextToken, in.MaxResults)
	if urls == nil {
		urls = []string{}
	}
	return deadLetterSourcesOut{urls, next}, err
}

// sourcesOf names the queues whose dead letters go to q.
func (s *Server) sourcesOf(q *queue) []string {
	var names []string
	for _, other := range s.queues {
		if p := other.set.redrive; p != nil && p.Target == q.arn {
			names = append(names, other.name)
		}
	}
	return names
}

type tagIn struct {
	QueueUrl string
	Tags     map[string]string
	TagKeys  []string
}

func (s *Server) tagQueue(c call, in tagIn) (empty, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return empty{}, err
	}
	maps.Copy(q.tags, in.Tags)
	s.saveQueue(q)
	return empty{}, nil
}

func (s *Server) untagQueue(c call, in tagIn) (empty, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return empty{}, err
	}
	for _, key := range in.TagKeys {
		delete(q.tags, key)
	}
	s.saveQueue(q)
	return empty{}, nil
}

type tagsOut struct {
	Tags map[string]string `json:",omitempty"`
}

func (s *Server) listQueueTags(c call, in queueIn) (tagsOut, error) {
	q, err := s.queue(c, in.QueueUrl)
	if err != nil {
		return tagsOut{}, err
	}
	return tagsOut{maps.Clone(q.tags)}, nil
}
