// Package sqs is an Amazon SQS that lives inside one Go process: the real SDK talks to it over AWS JSON 1.0, its
// clock can be moved, and its state can be kept in a directory.
//
// It holds what a product can observe of queues on AWS: visibility, delays, long polling, receive counts, redrive
// policies, move tasks, retention, batches with partial failure, the limits and the error codes. Where AWS leaves a
// choice open it takes the one that is hardest on the caller and never changes: a handle that is not a message's
// latest deletes nothing, a message goes to its dead-letter queue on the receive after the last permitted one.
//
// It refuses to be more: no signature is checked, there are no policies, permissions, encryption, quotas or
// cross-account queues, and the counts called approximate are exact.
package sqs

import (
	"fmt"
	"sync"
	"time"
)

// Config says where a Server keeps its state, what time it is, and how its queues are named.
type Config struct {
	// Dir keeps the journal; empty means memory only. The directory is created when it is missing, and must not be
	// shared by two servers.
	Dir string
	// Now is the clock of every decision; nil means time.Now. After the clock was moved by hand, call Wake.
	Now func() time.Time
	// BaseURL is the prefix of queue URLs, such as http://127.0.0.1:4566; empty means the Host of each request.
	BaseURL string
	// Region and Account appear in ARNs and URLs; they default to us-east-1 and 000000000000.
	Region, Account string
}

// Server is an http.Handler that speaks SQS. It is safe for concurrent use.
type Server struct {
	cfg  Config
	done chan struct{} // closed by Close: long polls end

	mu      sync.Mutex
	queues  map[string]*queue
	tasks   []*moveTask // oldest first
	journal *journal    // nil when memory only
	timer   *time.Timer
	armed   time.Time // what timer waits for, by cfg.Now
	failed  error     // the first journal failure: memory and disk differ, nothing is answered after it
	closed  bool
}

// New starts a server, reading back what Config.Dir holds.
func New(cfg Config) (*Server, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	if cfg.Account == "" {
		cfg.Account = "000000000000"
	}
	s := &Server{cfg: cfg, done: make(chan struct{}), queues: map[string]*queue{}}
	if cfg.Dir != "" {
		if err := s.openJournal(); err != nil {
			return nil, fmt.Errorf("open sqs state: %w", err)
		}
	}
	s.Wake()
	return s, nil
}

// Wake looks at everything the clock decides: delays and visibility that have ended, messages past their retention,
// move tasks, long polls. It must be called after the clock was moved by hand.
func (s *Server) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		q.broadcast()
	}
	s.armed = time.Time{} // the timer was set by the clock as it was
	s.tick()
}

// Close ends every long poll and closes the journal. Calls that come later are answered with 503.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.journal == nil {
		return nil
	}
	return s.journal.close()
}

// now is the clock in the resolution of SQS timestamps.
func (s *Server) now() time.Time { return s.cfg.Now().Truncate(time.Millisecond) }

// tick brings every queue and move task to the present, and sets the timer for the next change. The caller holds mu.
func (s *Server) tick() {
	if s.closed {
		return
	}
	now := s.now()
	for _, q := range s.queues {
		q.advance(now)
	}
	for _, t := range s.tasks {
		s.stepTask(t, now)
	}
	s.commit(now)
}

// commit writes what the call changed to the journal and sets the timer. It ends everything that changes state. The
// caller holds mu.
func (s *Server) commit(now time.Time) {
	if s.journal != nil && s.failed == nil {
		s.failed = s.journal.flush()
	}
	s.arm(now)
}

// minTimer bounds how often a clock that stands still just before an event is asked again.
const minTimer = 5 * time.Millisecond

func (s *Server) arm(now time.Time) {
	next := s.nextEvent()
	if next.IsZero() || (s.timer != nil && next.Equal(s.armed)) {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.armed = next
	s.timer = time.AfterFunc(max(next.Sub(now), minTimer), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.armed = time.Time{}
		s.tick()
	})
}

// nextEvent is the earliest time at which a message becomes visible or a move task moves one; zero when there is none.
func (s *Server) nextEvent() time.Time {
	var next time.Time
	add := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, q := range s.queues {
		add(q.nextVisible())
	}
	for _, t := range s.tasks {
		add(t.nextStep())
	}
	return next
}

func (s *Server) arn(name string) string {
	return "arn:aws:sqs:" + s.cfg.Region + ":" + s.cfg.Account + ":" + name
}

// byARN finds a queue, or nil.
func (s *Server) byARN(arn string) *queue {
	for _, q := range s.queues {
		if s.arn(q.name) == arn {
			return q
		}
	}
	return nil
}
