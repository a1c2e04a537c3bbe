package sqs

import (
	"container/heap"
	"container/list"
	"maps"
	"time"
)

// message is what a caller sent, and what is counted about it. Its instances are what receivers get.
type message struct {
	ID        string               `json:"id"`
	Body      string               `json:"body"`
	Group     string               `json:"group,omitempty"`
	Dedup     string               `json:"dedup,omitempty"`
	Trace     string               `json:"trace,omitempty"` // AWSTraceHeader
	Attrs     map[string]attribute `json:"attrs,omitempty"`
	Seq       uint64               `json:"seq"` // order of arrival in this queue
	Sent      time.Time            `json:"sent"`
	First     time.Time            `json:"first,omitzero"` // first receive
	Receives  int                  `json:"receives,omitempty"`
	Source    string               `json:"source,omitempty"` // ARN of the queue a dead letter came from
	Instances []*instance          `json:"instances"`
}

// instance is one deliverable copy of a message. A message has one; Redeliver adds others, which share everything but
// their visibility and their handle.
type instance struct {
	Visible  time.Time `json:"visible"`           // when it is, or became, deliverable
	Receive  int       `json:"receive,omitempty"` // the receive that made its latest handle; 0 before the first
	InFlight bool      `json:"flight,omitempty"`  // hidden by a receive, not by a delay

	msg     *message
	ready   *list.Element // its place among the deliverable ones, or nil
	waiting int           // its place in the waiting heap, or -1
}

// queue holds messages and decides which are delivered. It does no I/O, takes the time as an argument and is guarded
// by the server's lock.
type queue struct {
	name, arn         string
	attrs             map[string]string // set explicitly
	tags              map[string]string
	set               settings
	created, modified time.Time
	purged            time.Time

	seq     uint64
	msgs    map[string]*message
	ready   map[string]*list.List // group -> deliverable instances, oldest first
	waiting waitHeap              // hidden instances, the first to become visible on top
	flying  map[string]int        // group -> instances in flight
	expires time.Time             // no message passes its retention before; zero when there is none
	dedup   map[string]sentOnce   // FIFO
	changed chan struct{}         // closed when something may have become deliverable
}

func newQueue(name, arn string) *queue {
	return &queue{
		name: name, arn: arn, tags: map[string]string{},
		msgs: map[string]*message{}, ready: map[string]*list.List{}, flying: map[string]int{},
		dedup: map[string]sentOnce{}, changed: make(chan struct{}),
	}
}

// broadcast wakes every long poll of the queue.
func (q *queue) broadcast() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// add puts a message in; its instances are deliverable from their Visible on. A message without a number is numbered.
func (q *queue) add(m *message, now time.Time) {
	if m.Seq == 0 {
		m.Seq = q.seq + 1
	}
	q.seq = max(q.seq, m.Seq)
	q.msgs[m.ID] = m
	if end := m.Sent.Add(q.set.retention); q.expires.IsZero() || end.Before(q.expires) {
		q.expires = end
	}
	for _, in := range m.Instances {
		in.msg, in.waiting = m, -1
		q.place(in, now)
	}
}

// place files an instance as deliverable or waiting.
func (q *queue) place(in *instance, now time.Time) {
	if in.Visible.After(now) {
		if in.InFlight {
			q.flying[in.msg.Group]++
		}
		heap.Push(&q.waiting, in)
		return
	}
	in.InFlight = false
	l := q.ready[in.msg.Group]
	if l == nil {
		l = list.New()
		q.ready[in.msg.Group] = l
	}
	in.ready = q.insert(l, in)
	q.broadcast()
}

// insert appends, but a FIFO queue puts a message that comes back where it was sent.
func (q *queue) insert(l *list.List, in *instance) *list.Element {
	if q.set.fifo {
		for e := l.Front(); e != nil; e = e.Next() {
			if e.Value.(*instance).msg.Seq > in.msg.Seq {
				return l.InsertBefore(in, e)
			}
		}
	}
	return l.PushBack(in)
}

// unplace takes an instance out of where place filed it.
func (q *queue) unplace(in *instance) {
	group := in.msg.Group
	if in.ready != nil {
		l := q.ready[group]
		l.Remove(in.ready)
		in.ready = nil
		if l.Len() == 0 {
			delete(q.ready, group)
		}
		return
	}
	heap.Remove(&q.waiting, in.waiting)
	if in.InFlight {
		q.land(group)
	}
}

func (q *queue) land(group string) {
	if q.flying[group]--; q.flying[group] == 0 {
		delete(q.flying, group)
	}
}

func (q *queue) remove(m *message) {
	for _, in := range m.Instances {
		q.unplace(in)
	}
	delete(q.msgs, m.ID)
}

// advance makes deliverable what has waited long enough and drops what is past its retention, which counts from the
// send, also in a dead-letter queue.
func (q *queue) advance(now time.Time) {
	for len(q.waiting) > 0 && !q.waiting[0].Visible.After(now) {
		in := q.waiting[0]
		q.unplace(in)
		q.place(in, now)
	}
	if q.expires.IsZero() || q.expires.After(now) {
		return
	}
	q.expires = time.Time{}
	for _, m := range q.msgs {
		end := m.Sent.Add(q.set.retention)
		if !end.After(now) {
			q.remove(m)
		} else if q.expires.IsZero() || end.Before(q.expires) {
			q.expires = end
		}
	}
}

// nextVisible is when the next hidden instance becomes deliverable; zero when none is hidden.
func (q *queue) nextVisible() time.Time {
	if len(q.waiting) == 0 {
		return time.Time{}
	}
	return q.waiting[0].Visible
}

// take receives up to n instances of different messages and hides them. Messages that were received as often as the
// redrive policy permits are taken out and returned as dead; limit 0 means there is no policy.
func (q *queue) take(now time.Time, n int, hide time.Duration, limit int) (got []*instance, dead []*message) {
	blocked := map[string]int{}
	if q.set.fifo { // a group waits for its messages in flight, and gives several at once
		blocked = maps.Clone(q.flying)
	}
	taken := map[*message]bool{}
	for len(got) < n {
		in := q.next(blocked, taken)
		if in == nil {
			break
		}
		if limit > 0 && in.msg.Receives >= limit {
			q.remove(in.msg)
			dead = append(dead, in.msg)
			continue
		}
		q.receive(in, now, hide)
		taken[in.msg] = true
		got = append(got, in)
	}
	return got, dead
}

func (q *queue) receive(in *instance, now time.Time, hide time.Duration) {
	q.unplace(in)
	m := in.msg
	m.Receives++
	if m.First.IsZero() {
		m.First = now
	}
	in.Receive, in.InFlight, in.Visible = m.Receives, true, now.Add(hide)
	q.flying[m.Group]++
	heap.Push(&q.waiting, in)
}

// next chooses the instance to deliver: on a standard queue that of the group with the fewest in flight, so that a
// group with many yields to the others; messages without a group never yield. Among equals the oldest goes first.
func (q *queue) next(blocked map[string]int, taken map[*message]bool) *instance {
	var best *instance
	load := func(in *instance) int {
		if q.set.fifo || in.msg.Group == "" {
			return 0
		}
		return q.flying[in.msg.Group]
	}
	for group, l := range q.ready {
		if blocked[group] > 0 {
			continue
		}
		in := first(l, taken)
		if in == nil {
			continue
		}
		if best == nil || load(in) < load(best) || load(in) == load(best) && in.older(best) {
			best = in
		}
	}
	return best
}

// first is the oldest instance whose message was not taken yet, or nil.
func first(l *list.List, taken map[*message]bool) *instance {
	for e := l.Front(); e != nil; e = e.Next() {
		if in := e.Value.(*instance); !taken[in.msg] {
			return in
		}
	}
	return nil
}

func (in *instance) older(other *instance) bool {
	if !in.Visible.Equal(other.Visible) {
		return in.Visible.Before(other.Visible)
	}
	return in.msg.Seq < other.msg.Seq
}

// move changes when an instance becomes deliverable.
func (q *queue) move(in *instance, visible, now time.Time) {
	q.unplace(in)
	in.Visible = visible
	q.place(in, now)
}

// counts are the three numbers SQS calls approximate.
func (q *queue) counts() (visible, inFlight, delayed int) {
	for _, l := range q.ready {
		visible += l.Len()
	}
	for _, n := range q.flying {
		inFlight += n
	}
	return visible, inFlight, len(q.waiting) - inFlight
}

// waitHeap orders instances by the time they become visible.
type waitHeap []*instance

func (h waitHeap) Len() int { return len(h) }
func (h waitHeap) Less(i, j int) bool {
	if h[i].Visible.Equal(h[j].Visible) {
		return h[i].msg.Seq < h[j].msg.Seq
	}
	return h[i].Visible.Before(h[j].Visible)
}
func (h waitHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].waiting, h[j].waiting = i, j
}
func (h *waitHeap) Push(x any) {
	in := x.(*instance)
	in.waiting = len(*h)
	*h = append(*h, in)
}
func (h *waitHeap) Pop() any {
	old := *h
	in := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	in.waiting = -1
	return in
}
