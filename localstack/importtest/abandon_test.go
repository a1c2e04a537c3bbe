package importtest

import (
	"testing"
	"testing/synctest"
	"time"

	"pintu/internal/fault"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// Reported: a job with a chunk that kills every worker never ended once the chunk was begun, for to stop it means
// to get through one more batch. It kept its slot and its place among the client's jobs, and a message of it went
// to the dead-letter queue every hour. A cancel changed nothing about that.
func TestJobWhoseChunkCannotBeStoppedEnds(t *testing.T) {
	for name, c := range map[string]struct {
		cancel bool
		limit  time.Duration
		status job.Status
		code   fault.Code
	}{
		"message expired":        {status: job.Failed, code: fault.DeadLetterExpired},
		"past its time":          {limit: 24 * time.Hour, status: job.Failed, code: fault.JobTimeLimit},
		"canceled by its client": {cancel: true, status: job.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.caller.Limits.JobTime = c.limit
				jobID, chunk := planned(w)
				w.files.breaks = errKilled
				for receive := 1; receive <= 3; receive++ {
					if w.receive(untouched(w), chunk, receive) == nil {
						t.Fatalf("receive %d was acknowledged", receive)
					}
				}
				if c.cancel {
					if _, err := w.jobs.Cancel(t.Context(), w.caller, idempotency.Intent{}, jobID); err != nil {
						t.Fatal(err)
					}
				}
				tries := 0
				for range 15 * 4 {
					for _, h := range w.sweeps(6*time.Hour, 6*time.Hour, nil) {
						if h.Kind == job.HintProcess {
							tries++
							if w.receive(untouched(w), h, 3) == nil {
								t.Fatal("the chunk got through")
							}
						} else {
							w.files.breaks = nil // the report can be written
							if err := w.receive(untouched(w), h, 1); err != nil {
								t.Fatal(err)
							}
							w.files.breaks = errKilled
						}
					}
					if w.job(jobID).Status.Terminal() {
						break
					}
				}
				j := w.job(jobID)
				w.wantEnd(j, c.status, c.code)
				if tries > 3 {
					t.Errorf("the chunk was tried %d times more", tries)
				}
				if len(j.Warnings) != 1 || j.Warnings[0].Code != fault.RowsInDoubt {
					t.Errorf("warnings %+v", j.Warnings)
				}
			})
		})
	}
}
