package e2e

import (
	"net/http"
	"strings"
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
	const races = 200
	s := start(t, 64, nil)
	content := pairs(3)
	outcomes := map[string]int{}
	type racing struct {
		jobID, dataset string
		answered       bool
	}
	var jobs []racing
	for i := range races {
		name := s.dataset("race-" + dashed(key()))
		jobID := s.begin(name, content)
		if i%3 != 0 { // let the job come some way first
			s.call("GET", "/v1/jobs/"+jobID+"?wait=1s", nil)
		}
		if i%3 == 2 {
			s.until(jobID, func(j object) bool { return j.text("status") != "queued" })
		}
		a := s.call("POST", "/v1/jobs/"+jobID+"/cancel", object{}, "Idempotency-Key", key())
		if a.status != http.StatusAccepted && a.status != http.StatusConflict {
			t.Fatalf("cancel: %d %v", a.status, a.body)
		}
		jobs = append(jobs, racing{jobID, name, a.status == http.StatusAccepted})
	}
	for _, r := range jobs {
		j := s.rescued(r.jobID)
		outcomes[j.text("status")]++
		if r.answered != (j.text("status") == "canceled") {
			t.Errorf("job %s: cancel answered %v, ended %s", r.jobID, r.answered, j.text("status"))
		}
		s.trueCounters(r.dataset, j)
	}
	t.Logf("%d races: %v", races, outcomes)
	s.audit()
}
