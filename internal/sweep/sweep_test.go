package sweep

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/importer"
	"pintu/internal/job"
	"pintu/internal/rowio"
)

// now is when every sweep of these tests runs.
var now = time.Date(2026, 7, 27, 10, 15, 30, 0, time.UTC)

// system is what sweep sees and does. How sweep and the real store get along is tested with the store.
type system struct {
	jobs   map[id.Job]job.Job
	due    []Due // of the first shard
	chunks []importer.Chunk
	busy   bool
	fails  map[id.Job]error // of reading a job
	dueErr error
	saved  error

	sent  []job.Hint
	looks []int
	waits []time.Duration
	marks []job.Stalled
	stops []fault.Code
	gone  []job.Warning // of chunks that were abandoned
}

func (s *system) DueShards() int { return 2 }

func (s *system) Due(_ context.Context, shard int, _ time.Time, _ int) ([]Due, error) {
	if shard > 0 {
		return nil, s.dueErr
	}
	return s.due, nil
}

func (s *system) Job(_ context.Context, _ string, jobID id.Job) (job.Job, error) {
	if err := s.fails[jobID]; err != nil {
		return job.Job{}, err
	}
	j, ok := s.jobs[jobID]
	if !ok {
		return j, fault.New(fault.JobNotFound, "there is no such job")
	}
	return j, nil
}

func (s *system) Chunks(_ context.Context, _ string, _ id.Job, from int) ([]importer.Chunk, error) {
	return s.chunks[min(from, len(s.chunks)):], nil
}

func (s *system) OldestStalled(context.Context, job.Job) (*job.Stalled, error) { return nil, nil }

func (s *system) SaveLook(_ context.Context, _ job.Job, looks int, _ string, due time.Time) error {
	s.looks, s.waits = append(s.looks, looks), append(s.waits, due.Sub(now))
	return s.saved
}

func (s *system) RequestStop(_ context.Context, _ job.Job, why job.Failure) error {
	s.stops = append(s.stops, why.Code)
	return nil
}

func (s *system) MarkStalled(_ context.Context, _ job.Job, mark job.Stalled) error {
	s.marks = append(s.marks, mark)
	return nil
}

func (s *system) AbandonChunk(_ context.Context, _ job.Job, _ importer.Chunk, w job.Warning) error {
	s.gone = append(s.gone, w)
	return nil
}

func (s *system) CompleteUpload(_ context.Context, _ access.Caller, _ idempotency.Intent, j job.Job) (job.Job, error) {
	return j, fault.New(fault.UploadNotFound, "nothing was uploaded yet")
}

func (s *system) End(_ context.Context, e job.Ending) (job.Job, error) {
	s.stops = append(s.stops, e.Error.Code)
	return e.Job, nil
}

func (s *system) Send(_ context.Context, hints ...job.Hint) error {
	s.sent = append(s.sent, hints...)
	return nil
}

func (s *system) Idle(context.Context, job.HintKind) (bool, error) { return !s.busy, nil }

func (s *system) sweep(t *testing.T) (Report, error) {
	t.Helper()
	return New(s, s, s, s, func() time.Time { return now }).Run(t.Context())
}

func (s *system) sentKinds() string {
	var kinds []string
	for _, h := range s.sent {
		kinds = append(kinds, string(h.Kind))
	}
	return strings.Join(kinds, " ")
}

// running is a job with two chunks, the first done, that has not moved since a number of looks.
func running(looks int) *system {
	j := job.Job{Tenant: "acme", ID: "job_1", Status: job.Running, DueAt: now, Looks: looks - 1, Plan: job.Plan{ChunksPlanned: 2, ChunksDone: 1, Closed: true}}
	j.LookMark = progressMark(j)
	return &system{jobs: map[id.Job]job.Job{"job_1": j}, due: []Due{{"acme", "job_1"}}, chunks: []importer.Chunk{{Index: 0, Done: true}, {Index: 1}}}
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		looks  int
		change func(s *system, j *job.Job)
		sent   string
		saved  int // looks; -1: nothing was saved
		marks  int
	}{
		"moved since the last look":                       {3, func(_ *system, j *job.Job) { j.Progress.RowsAccepted++ }, "plan", 0, 0},
		"stood still once":                                {1, nil, "process plan", 1, 0},
		"stood still while messages wait":                 {1, func(s *system, _ *job.Job) { s.busy = true }, "plan", 0, 0},
		"stood still three times":                         {3, nil, "process plan", 3, 1},
		"stood still while messages wait, the third time": {3, func(s *system, _ *job.Job) { s.busy = true }, "plan", 2, 0},
		"stood still four times":                          {4, nil, "process plan", 4, 0},
		"stalled":                                         {2, func(s *system, _ *job.Job) { s.chunks[1].Stalled = &job.Stalled{} }, "plan", 2, 0},
		"stalled since its messages were lost": {4, func(s *system, _ *job.Job) {
			s.chunks[1].Stalled = &job.Stalled{Silent: true, ExpiresAt: now.Add(time.Hour)}
		}, "process plan", 4, 0},
		"stalled and to be stopped": {2, func(s *system, j *job.Job) {
			s.chunks[1].Stalled = &job.Stalled{}
			j.Stop = &job.Failure{}
			j.LookMark = progressMark(*j)
		}, "process plan", 2, 0},
		"waits for a slot":               {1, func(_ *system, j *job.Job) { j.Status, j.Slot = job.Queued, job.NoSlot }, "", 0, 0},
		"queued":                         {1, func(_ *system, j *job.Job) { j.Status = job.Queued; j.LookMark = progressMark(*j) }, "plan", 1, 0},
		"over: the index is behind":      {1, func(_ *system, j *job.Job) { j.Status = job.Succeeded }, "", -1, 0},
		"not due: the index is behind":   {1, func(_ *system, j *job.Job) { j.DueAt = now.Add(time.Second) }, "", -1, 0},
		"waits for its upload":           {1, func(_ *system, j *job.Job) { j.Status = job.Uploading; j.Input.WindowEndsAt = now.Add(time.Hour) }, "", 0, 0},
		"somebody else looked meanwhile": {0, func(s *system, _ *job.Job) { s.saved = job.ErrMoved }, "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(c.looks)
			if j := s.jobs["job_1"]; c.change != nil {
				c.change(s, &j)
				s.jobs["job_1"] = j
			}
			if _, err := s.sweep(t); err != nil {
				t.Fatal(err)
			}
			if got := s.sentKinds(); got != c.sent {
				t.Errorf("sent %q, want %q", got, c.sent)
			}
			if c.saved < 0 != (len(s.looks) == 0) || len(s.looks) > 0 && s.looks[0] != c.saved {
				t.Errorf("saved looks %v, want %d", s.looks, c.saved)
			}
			if len(s.marks) != c.marks {
				t.Errorf("marked %+v, want %d marks", s.marks, c.marks)
			}
		})
	}
}

// A chunk that nobody gets through, also to stop it, is tried three times; then it waits for a redrive as long
// as there is a message to redrive, and is given up with the rows that may have been applied.
func TestChunkThatCannotBeStopped(t *testing.T) {
	for name, c := range map[string]struct {
		looks   int
		expires time.Duration
		sent    string
		gone    []job.Warning
	}{
		"tried a third time":     {3, -time.Hour, "process plan", nil},
		"may still be redriven":  {4, time.Hour, "plan", nil},
		"its message is gone":    {4, -time.Hour, "plan", []job.Warning{{Code: fault.RowsInDoubt, Details: map[string]any{"chunk": 1, "first_row": int64(13), "last_row": int64(17)}}}},
		"gone for a day already": {30, -24 * time.Hour, "plan", []job.Warning{{Code: fault.RowsInDoubt, Details: map[string]any{"chunk": 1, "first_row": int64(13), "last_row": int64(17)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(c.looks)
			j := s.jobs["job_1"]
			j.Stop, j.StalledCount, j.Plan.BatchRows = &job.Failure{}, 1, 5
			j.LookMark = progressMark(j)
			s.jobs["job_1"] = j
			s.chunks[1] = importer.Chunk{Index: 1, Started: true, Start: rowio.Position{Row: 11}, At: rowio.Position{Row: 13}, Rows: 90, Stalled: &job.Stalled{ExpiresAt: now.Add(c.expires)}}
			if _, err := s.sweep(t); err != nil {
				t.Fatal(err)
			}
			if got := s.sentKinds(); got != c.sent {
				t.Errorf("sent %q, want %q", got, c.sent)
			}
			if diff := cmp.Diff(c.gone, s.gone, cmpopts.IgnoreFields(job.Warning{}, "Message")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNextLook(t *testing.T) {
	var got []string
	for _, looks := range []int{0, 1, 2, 3, 4, 100} {
		got = append(got, nextLook(looks).String())
	}
	if diff := cmp.Diff([]string{"5m0s", "10m0s", "20m0s", "40m0s", "1h0m0s", "1h0m0s"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(j *job.Job)
		want   []fault.Code
	}{
		"in time":              {func(j *job.Job) { j.TimeLimit, j.StartedAt = time.Hour, now.Add(-time.Hour) }, nil},
		"past its time":        {func(j *job.Job) { j.TimeLimit, j.StartedAt = time.Hour, now.Add(-time.Hour-1) }, []fault.Code{fault.JobTimeLimit}},
		"no limit":             {func(j *job.Job) { j.StartedAt = now.Add(-1000 * time.Hour) }, nil},
		"stopping already":     {func(j *job.Job) { j.TimeLimit, j.StartedAt, j.Stop = 1, now.Add(-time.Hour), &job.Failure{} }, nil},
		"canceled already":     {func(j *job.Job) { j.TimeLimit, j.StartedAt, j.CancelRequestedAt = 1, now.Add(-time.Hour), now }, nil},
		"upload window open":   {func(j *job.Job) { j.Status, j.Input.WindowEndsAt = job.Uploading, now.Add(1) }, nil},
		"upload window closed": {func(j *job.Job) { j.Status, j.Input.WindowEndsAt = job.Uploading, now.Add(-job.DefaultURLLife) }, []fault.Code{fault.UploadExpired}},
		// Reported: a submit replayed in the last minute gave a URL of 15 minutes for a job that failed in one.
		"last URL still good": {func(j *job.Job) { j.Status, j.Input.WindowEndsAt = job.Uploading, now.Add(1-job.DefaultURLLife) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(0)
			j := s.jobs["job_1"]
			c.change(&j)
			s.jobs["job_1"] = j
			if _, err := s.sweep(t); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.stops); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A job that cannot be looked at keeps nobody waiting, nor does a shard that cannot be read; both are told.
func TestOneFailureDoesNotStopTheOthers(t *testing.T) {
	s := running(0)
	s.due = []Due{{"acme", "job_0"}, {"acme", "job_gone"}, {"acme", "job_1"}}
	s.fails = map[id.Job]error{"job_0": errors.New("away")}
	s.dueErr = errors.New("shard away")
	report, err := s.sweep(t)
	if err == nil || !strings.Contains(err.Error(), "look at job job_0: away") || !strings.Contains(err.Error(), "shard away") {
		t.Errorf("error %v", err)
	}
	if report != (Report{Looked: 3, Failed: 1}) || s.sentKinds() != "plan" {
		t.Errorf("report %+v, sent %q", report, s.sentKinds())
	}
}
