package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/job"
)

var now = time.Date(2026, 7, 27, 10, 15, 30, 0, time.UTC)

// system is the store and the processor of one job; it writes down what it is asked to do.
type system struct {
	job      job.Job
	missing  bool
	readErr  error
	markErr  error
	clearErr error
	workErr  error
	did      []string
	mark     job.Stalled
}

func (s *system) Job(context.Context, string, id.Job) (job.Job, error) {
	if s.missing {
		return job.Job{}, fault.New(fault.JobNotFound, "there is no such job")
	}
	j := s.job
	if j.Status == "" {
		j.Status = job.Running
	}
	return j, s.readErr
}

func (s *system) MarkStalled(_ context.Context, _ job.Job, mark job.Stalled) error {
	s.did, s.mark = append(s.did, "mark"), mark
	return s.markErr
}

func (s *system) ClearStalled(context.Context, job.Job, int) error {
	s.did = append(s.did, "clear")
	return s.clearErr
}

func (s *system) Advance(context.Context, job.Hint) error { return s.work("advance") }
func (s *system) Process(context.Context, job.Hint) error { return s.work("process") }

func (s *system) work(what string) error {
	s.did = append(s.did, what)
	if s.missing {
		return fault.New(fault.JobNotFound, "there is no such job")
	}
	return s.workErr
}

func TestHandle(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		kind    job.HintKind
		receive int // of ten
		system  system
		did     string
		fails   bool
	}{
		"plan":                                {job.HintPlan, 1, system{}, "advance", false},
		"chunk":                               {job.HintProcess, 9, system{}, "process", false},
		"work fails":                          {job.HintProcess, 9, system{workErr: away}, "process", true},
		"unknown kind":                        {"harvest", 1, system{}, "", true},
		"unknown job is acknowledged":         {job.HintProcess, 1, system{missing: true}, "process", false},
		"unknown job at the last receive":     {job.HintProcess, 10, system{missing: true}, "", false},
		"over at the last receive":            {job.HintProcess, 10, system{job: job.Job{Status: job.Canceled}}, "", false},
		"last receive marks before it works":  {job.HintProcess, 10, system{workErr: away}, "mark process", true},
		"later receives than the last":        {job.HintProcess, 11, system{workErr: away}, "mark process", true},
		"last receive gets through":           {job.HintProcess, 10, system{job: job.Job{Status: job.Running, StalledCount: 1}}, "mark process clear", false},
		"marked already":                      {job.HintProcess, 10, system{markErr: job.ErrMoved}, "mark process", false},
		"no work without its mark":            {job.HintProcess, 10, system{markErr: away}, "mark", true},
		"no work when the job cannot be read": {job.HintProcess, 10, system{readErr: away}, "", true},
		"redriven and through":                {job.HintProcess, 1, system{job: job.Job{Status: job.Running, StalledCount: 2}}, "process clear", false},
		"somebody else's mark":                {job.HintProcess, 1, system{job: job.Job{Status: job.Running, StalledCount: 1}, clearErr: job.ErrMoved}, "process clear", false},
		"mark cannot be cleared":              {job.HintProcess, 1, system{job: job.Job{Status: job.Running, StalledCount: 1}, clearErr: away}, "process clear", true},
		"over after the work":                 {job.HintPlan, 1, system{job: job.Job{Status: job.Succeeded, StalledCount: 1}}, "advance", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.system
			err := New(&s, &s, func() time.Time { return now }).Handle(t.Context(), Message{Hint: job.Hint{Kind: c.kind, Chunk: 3}, ReceiveCount: c.receive, MaxReceives: 10})
			if got := strings.Join(s.did, " "); got != c.did {
				t.Errorf("did %q, want %q", got, c.did)
			}
			if (err != nil) != c.fails {
				t.Errorf("answered %v", err)
			}
		})
	}
}

// The mark says until when the message can be redriven. The dead-letter queue counts from the first send.
func TestMark(t *testing.T) {
	s := &system{workErr: errors.New("away")}
	m := Message{Hint: job.Hint{Kind: job.HintProcess, Chunk: 3}, ReceiveCount: 10, MaxReceives: 10, SentAt: now.Add(-72 * time.Hour), Queue: "process"}
	if New(s, s, func() time.Time { return now }).Handle(t.Context(), m) == nil {
		t.Error("a failure was acknowledged")
	}
	want := job.Stalled{Since: now, Queue: "process", Reason: "received 10 times without getting through", Chunk: 3, ExpiresAt: now.Add(11 * 24 * time.Hour)}
	if diff := cmp.Diff(want, s.mark); diff != "" {
		t.Error(diff)
	}
}
