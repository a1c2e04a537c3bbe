package sqs

import (
	"slices"
	"time"
)

// The states of a move task.
const (
	running   = "RUNNING"
	completed = "COMPLETED"
	cancelled = "CANCELLED"
	stopped   = "FAILED"
)

// moveTask moves the messages that were deliverable in a dead-letter queue when it started.
type moveTask struct {
	Handle      string    `json:"handle"`
	Source      string    `json:"source"`
	Destination string    `json:"destination,omitempty"` // empty: each message to the queue it came from
	Rate        int       `json:"rate,omitempty"`        // messages per second; 0: all at once
	Started     time.Time `json:"started"`
	ToMove      int       `json:"toMove"`
	Moved       int       `json:"moved"`
	Status      string    `json:"status"`
	Reason      string    `json:"reason,omitempty"`
}

type startMoveIn struct {
	SourceArn, DestinationArn    string
	MaxNumberOfMessagesPerSecond *int
}

type taskHandle struct{ TaskHandle string }

func (s *Server) startMoveTask(c call, in startMoveIn) (taskHandle, error) {
	if err := s.checkMove(in); err != nil {
		return taskHandle{}, err
	}
	source := s.byARN(in.SourceArn)
	source.advance(c.now)
	visible, _, _ := source.counts()
	t := &moveTask{
		Handle: newID(), Source: in.SourceArn, Destination: in.DestinationArn,
		Started: c.now, ToMove: visible, Status: running,
	}
	if in.MaxNumberOfMessagesPerSecond != nil {
		t.Rate = *in.MaxNumberOfMessagesPerSecond
	}
	s.tasks = append(s.tasks, t)
	s.saveTask(t)
	s.stepTask(t, c.now)
	return taskHandle{t.Handle}, nil
}

func (s *Server) checkMove(in startMoveIn) error {
	if n := in.MaxNumberOfMessagesPerSecond; n != nil && (*n < 1 || *n > 500) {
		return outOfRange("MaxNumberOfMessagesPerSecond", *n, 1, 500)
	}
	source := s.byARN(in.SourceArn)
	if source == nil {
		return noResource("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	if len(s.sourcesOf(source)) == 0 {
		return invalidParameter("Source queue must be configured as a Dead Letter Queue.")
	}
	if in.DestinationArn == in.SourceArn {
		return invalidParameter("Source queue arn and destination queue arn cannot be the same.")
	}
	if in.DestinationArn != "" {
		to := s.byARN(in.DestinationArn)
		if to == nil {
			return noResource("The resource that you specified for the DestinationArn parameter doesn't exist.")
		}
		if to.set.fifo != source.set.fifo {
			return invalidParameter("Source queue and destination queue must be of the same type.")
		}
	}
	if slices.ContainsFunc(s.tasks, func(t *moveTask) bool { return t.Source == in.SourceArn && t.Status == running }) {
		return invalidParameter("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	return nil
}

// nextStep is when the task moves its next message; zero when it is over.
func (t *moveTask) nextStep() time.Time {
	if t.Status != running {
		return time.Time{}
	}
	if t.Rate == 0 {
		return t.Started
	}
	return t.Started.Add(time.Duration(t.Moved+1) * time.Second / time.Duration(t.Rate))
}

// stepTask moves what the rate permits by now, and ends the task when all is moved, the source has nothing left to
// give, or a message has nowhere to go.
func (s *Server) stepTask(t *moveTask, now time.Time) {
	if t.Status != running {
		return
	}
	moved := t.Moved
	for t.Status == running && t.Moved < t.ToMove && !t.nextStep().After(now) {
		s.moveOne(t, now)
	}
	if t.Status == running && t.Moved >= t.ToMove {
		t.Status = completed
	}
	if t.Moved != moved || t.Status != running {
		s.saveTask(t)
	}
}

func (s *Server) moveOne(t *moveTask, now time.Time) {
	from := s.byARN(t.Source)
	if from == nil {
		t.Status, t.Reason = stopped, legacy+"NonExistentQueue"
		return
	}
	in := from.next(nil, nil)
	if in == nil {
		t.Status = completed
		return
	}
	m := in.msg
	arn := t.Destination
	if arn == "" {
		arn = m.Source
	}
	to := s.byARN(arn)
	switch {
	case arn == "":
		t.Status, t.Reason = stopped, "CouldNotDetermineMessageSource"
	case to == nil:
		t.Status, t.Reason = stopped, legacy+"NonExistentQueue"
	default:
		s.resend(m, from, to, now)
		t.Moved++
	}
}

// resend makes a new message of a dead letter: new id, sent now, never received, its retention counted anew.
func (s *Server) resend(m *message, from, to *queue, now time.Time) {
	from.remove(m)
	fresh := &message{
		ID: newID(), Body: m.Body, Group: m.Group, Dedup: m.Dedup, Trace: m.Trace, Attrs: m.Attrs,
		Sent: now, Instances: []*instance{{Visible: now.Add(to.set.delay)}},
	}
	to.add(fresh, now)
	s.saveMessage(to, fresh)
	s.dropMessage(from, m.ID)
}

type listMovesIn struct {
	SourceArn  string
	MaxResults *int
}

type moveResult struct {
	TaskHandle                        string `json:",omitempty"` // only while the task can be cancelled
	Status, SourceArn                 string
	DestinationArn, FailureReason     string `json:",omitempty"`
	MaxNumberOfMessagesPerSecond      int    `json:",omitempty"`
	ApproximateNumberOfMessagesMoved  int
	ApproximateNumberOfMessagesToMove int
	StartedTimestamp                  int64 // milliseconds since 1970
}

type listMovesOut struct{ Results []moveResult }

func (s *Server) listMoveTasks(c call, in listMovesIn) (listMovesOut, error) {
	limit := 1
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	if limit < 1 || limit > 10 {
		return listMovesOut{}, outOfRange("MaxResults", limit, 1, 10)
	}
	if s.byARN(in.SourceArn) == nil {
		return listMovesOut{}, noResource("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	out := listMovesOut{Results: []moveResult{}}
	for _, t := range slices.Backward(s.tasks) {
		if t.Source == in.SourceArn && len(out.Results) < limit {
			s.stepTask(t, c.now)
			out.Results = append(out.Results, t.result())
		}
	}
	return out, nil
}

func (t *moveTask) result() moveResult {
	r := moveResult{
		Status: t.Status, SourceArn: t.Source, DestinationArn: t.Destination, FailureReason: t.Reason,
		MaxNumberOfMessagesPerSecond:     t.Rate,
		ApproximateNumberOfMessagesMoved: t.Moved, ApproximateNumberOfMessagesToMove: t.ToMove,
		StartedTimestamp: t.Started.UnixMilli(),
	}
	if t.Status == running {
		r.TaskHandle = t.Handle
	}
	return r
}

type cancelMoveOut struct{ ApproximateNumberOfMessagesMoved int }

func (s *Server) cancelMoveTask(c call, in taskHandle) (cancelMoveOut, error) {
	i := slices.IndexFunc(s.tasks, func(t *moveTask) bool { return t.Handle == in.TaskHandle })
	if i < 0 {
		return cancelMoveOut{}, noResource("Task does not exist.")
	}
	t := s.tasks[i]
	s.stepTask(t, c.now)
	if t.Status != running {
		return cancelMoveOut{}, invalidParameter("Only active tasks can be cancelled.")
	}
	t.Status = cancelled
	s.saveTask(t)
	return cancelMoveOut{t.Moved}, nil
}
