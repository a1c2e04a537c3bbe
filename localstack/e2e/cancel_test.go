package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pintu/localstack/faults"
)

func dashed(s string) string { return strings.ReplaceAll(s, " ", "-") }

// doubleEverything redelivers every message that a function is told of, once. The returned function ends
// that and tells how many there were.
func (s *system) doubleEverything() func() int {
	stop, done := make(chan struct{}), make(chan int)
	names := []string{s.queueName("PlanQueue"), s.queueName("ProcessQueue")}
	go func() {
		seen := map[string]bool{}
		for {
			select {
			case <-stop:
				done <- len(seen)
				return
			default:
			}
			for _, name := range names {
				for _, m := range s.stack.SQS().Peek(name) {
					if m.InFlight && !seen[m.ID] && s.stack.SQS().Redeliver(name, m.ID) {
						seen[m.ID] = true
					}
				}
			}
		}
	}()
	return func() int { close(stop); return <-done }
}

// TestCancelInTheMiddle holds a worker at a checkpoint, cancels, and lets it go on.
func TestCancelInTheMiddle(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(400)
	jobID := s.submitHeld(content)
	held := s.stack.Faults().Add(faults.Rule{Caller: "ProcessFunction", Operation: "UpdateItem", N: 60, Action: faults.HoldBefore})
	s.complete(jobID)
	<-held.Reached()
	a := s.call("POST", "/v1/jobs/"+jobID+"/cancel", object{}, "Idempotency-Key", key())
	if a.status != http.StatusAccepted || a.body.at("cancel_requested_at") == nil {
		t.Fatalf("cancel: %d %v", a.status, a.body)
	}
	held.Release()
	j := s.rescued(jobID)
	if j.text("status") != "canceled" || j.text("canceled_by") != "client" {
		t.Fatalf("job: %v", j)
	}
	s.trueCounters("pairs", j)
	if j.number("result.rows_unprocessed") == 0 && j.at("result.rows_total") != nil {
		t.Error("the whole file was processed: the cancel came too late for this test to show anything")
	}
	s.audit()
}

// submitHeld submits and uploads without completing.
func (s *system) submitHeld(content []byte) string {
	s.t.Helper()
	a := s.submit(s.dataset("pairs"), content)
	if status, body := s.upload(a, content); status != http.StatusOK {
		s.t.Fatalf("upload: %d %s", status, body)
	}
	return a.body.text("job_id")
}

func (s *system) complete(jobID string) {
	s.t.Helper()
	if a := s.call("POST", "/v1/import-jobs/"+jobID+"/complete", object{}); a.status != http.StatusAccepted {
		s.t.Fatalf("complete: %d %v", a.status, a.body)
	}
}

// trueCounters compares a job's counters with what is stored.
func (s *system) trueCounters(dataset string, j object) {
	s.t.Helper()
	o := s.outcome(dataset, j)
	if int64(len(o.Records)) != j.number("result.rows_accepted") || int64(len(o.Rejected)) != j.number("result.rows_rejected") {
		s.t.Errorf("%d records and %d rejected rows, the job says %v", len(o.Records), len(o.Rejected), o.Counters)
	}
}

// TestCancelAgainstCompletion sends a cancel while a small job ends, many times over. Whoever wins, there
// is one terminal state, it is the one that was answered, and its counters are true.
func TestCancelAgainstCompletion(t *testing.T) {
	const races, atOnce = 200, 8
	s := start(t, 64, nil)
	content := pairs(3)
	var ended [4]atomic.Int64
	var all sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		all.Go(func() {
			for i := range next {
				ended[s.race(t, i, content)].Add(1)
			}
		})
	}
	for i := range races {
		next <- i
	}
	close(next)
	all.Wait()
	t.Logf("%d races: %d ended canceled, %d succeeded", races, ended[1].Load(), ended[2].Load())
	if ended[1].Load()+ended[2].Load() != races || ended[1].Load() == 0 || ended[2].Load() == 0 {
		t.Error("not every race had a clear end, or all had the same")
	}
	s.audit()
}

// race runs one job and cancels it at one of several moments. It gives 1 for canceled, 2 for succeeded, 0 for
// anything that should not be.
func (s *system) race(t *testing.T, i int, content []byte) int {
	dataset := s.dataset("race-" + fmt.Sprint(i))
	jobID := s.begin(dataset, content)
	s.eventually(func() bool {
		if i%4 == 0 {
			return true // at once
		}
		j := s.call("GET", "/v1/jobs/"+jobID, nil).body
		if i%4 == 1 {
			return j.text("status") != "queued" // taken by a worker
		}
		return j.text("progress.stage") == "finalizing" || terminal(j.text("status"))
	})
	a := s.call("POST", "/v1/jobs/"+jobID+"/cancel", object{}, "Idempotency-Key", key())
	j := s.wait(jobID)
	status := j.text("status")
	if answered := a.status == http.StatusAccepted; answered != (status == "canceled") || !answered && a.body.text("error.code") != "INVALID_JOB_STATE" {
		t.Errorf("job %s: cancel answered %d %s, it ended %s", jobID, a.status, a.body.text("error.code"), status)
		return 0
	}
	s.trueCounters(dataset, j)
	return map[string]int{"canceled": 1, "succeeded": 2}[status]
}
