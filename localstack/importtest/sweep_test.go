package importtest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/sweep"
)

// ticks lets time pass with a sweep each minute, and tells what they sent. done stops it.
func (w *world) ticks(d time.Duration, done func() bool) (sent []job.Hint) {
	w.t.Helper()
	return w.sweeps(time.Minute, d, done)
}

func (w *world) sweeps(every, d time.Duration, done func() bool) (sent []job.Hint) {
	w.t.Helper()
	for range d / every {
		time.Sleep(every)
		if _, err := sweep.New(w.store, w.jobs, w, w, w.now).Run(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		for _, m := range w.queue {
			sent = append(sent, m.hint)
		}
		w.queue = nil
		if done != nil && done() {
			break
		}
	}
	return sent
}

func count(hints []job.Hint, kind job.HintKind) (n int) {
	for _, h := range hints {
		if h.Kind == kind {
			n++
		}
	}
	return n
}

func (w *world) wantEnd(j job.Job, status job.Status, code fault.Code) {
	w.t.Helper()
	if j.Status != status || (j.Error == nil) != (code == "") || j.Error != nil && j.Error.Code != code {
		w.t.Errorf("job ended %s with %+v, want %s %s", j.Status, j.Error, status, code)
	}
	w.audit(w.t)
}

func TestSweepSendsLostPlanHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jobID := w.submit(file("a,1"))
		w.queue = nil
		if sent := w.ticks(4*time.Minute, nil); len(sent) > 0 {
			t.Errorf("sent %v before the job was due", sent)
		}
		if sent := w.ticks(time.Minute, nil); len(sent) != 1 || sent[0] != w.job(jobID).Hint() {
			t.Errorf("sent %v", sent)
		}
		w.wantEnd(w.drain(jobID), job.Succeeded, "")
	})
}

// Lost hints of chunks are sent again once the job stood still between two looks; the time between looks
// doubles as long as it does.
func TestSweepSendsLostChunkHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.chunkBytes = 16
		jobID := w.submit(file("a,1", "b,2", "c,3", "d,4", "e,5", "f,6"))
		w.drainPlan()
		chunks := len(w.queue)
		w.queue = nil
		if sent := w.ticks(9*time.Minute, nil); count(sent, job.HintProcess) > 0 {
			t.Errorf("sent %v after one look", sent)
		}
		if sent := w.ticks(time.Minute, nil); count(sent, job.HintProcess) != chunks || chunks < 2 {
			t.Errorf("sent %v for %d open chunks", sent, chunks)
		}
		if sent := w.ticks(9*time.Minute, nil); len(sent) > 0 {
			t.Errorf("sent %v before the doubled time was over", sent)
		}
		if sent := w.ticks(time.Minute, nil); count(sent, job.HintProcess) != chunks {
			t.Errorf("sent %v for %d open chunks", sent, chunks)
		}
		w.wantEnd(w.drain(jobID), job.Succeeded, "")
	})
}

// After the third time that nothing came of its messages a chunk is shown as stalled. Nothing of it lies in a
// dead-letter queue, so its hints are still sent; the first that arrives heals it.
func TestSweepMarksSilentChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jobID, _ := planned(w)
		w.ticks(3*time.Hour, func() bool { return w.job(jobID).StalledCount > 0 })
		mark, err := w.store.OldestStalled(t.Context(), w.job(jobID))
		if err != nil || mark == nil || mark.Chunk != 0 {
			t.Fatalf("mark %+v, %v", mark, err)
		}
		w.audit(t)
		if sent := w.ticks(3*time.Hour, nil); count(sent, job.HintProcess) == 0 {
			t.Errorf("sent %v for a silent chunk", sent)
		}
		if j := w.drain(jobID); j.Status != job.Succeeded || j.StalledCount != 0 {
			t.Errorf("job ended %s with %d stalled", j.Status, j.StalledCount)
		}
		w.audit(t)
	})
}

func TestSweepCompletesUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jobID := w.upload("pairs", []byte(file("a,1")), nil)
		if sent := w.ticks(59*time.Minute, nil); len(sent) > 0 {
			t.Errorf("sent %v while the client may still complete", sent)
		}
		if sent := w.ticks(time.Minute, nil); count(sent, job.HintPlan) != 1 {
			t.Errorf("sent %v", sent)
		}
		w.wantEnd(w.drain(jobID), job.Succeeded, "")
	})
}

func TestSweepEndsUploads(t *testing.T) {
	for name, c := range map[string]struct {
		object []byte // nil: nothing was uploaded
		after  time.Duration
		code   fault.Code
	}{
		"expired":  {nil, job.UploadWindow + job.DefaultURLLife, fault.UploadExpired},
		"mismatch": {[]byte("something else"), job.UploadWindow, fault.UploadMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				jobID := w.upload("pairs", []byte(file("a,1")), nil)
				delete(w.files.objects, w.job(jobID).Input.Key)
				if c.object != nil {
					w.files.put(w.job(jobID).Input.Key, c.object)
				}
				w.ticks(c.after-time.Minute, nil)
				if got := w.job(jobID).Status; got != job.Uploading {
					t.Errorf("ended %s before its time", got)
				}
				w.ticks(time.Minute, nil)
				w.wantEnd(w.job(jobID), job.Failed, c.code)
			})
		})
	}
}

// A job past its time stops where it stands. What was settled is counted.
func TestSweepEndsJobPastItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.caller.Limits.JobTime = 30 * time.Minute
		w.chunkBytes = 16
		jobID := w.submit(file("a,1", "b,2", "c,3", "d,4", "e,5", "f,6"))
		w.drainPlan()
		h := w.queue[0].hint
		w.queue = nil
		if err := w.receive(untouched(w), h, 1); err != nil {
			t.Fatal(err)
		}
		w.ticks(2*time.Hour, func() bool { return w.job(jobID).Stop != nil })
		j := w.drain(jobID)
		w.wantEnd(j, job.Failed, fault.JobTimeLimit)
		if r := j.Result; r.Counters.Accepted() == 0 || r.RowsUnprocessed == 0 {
			t.Errorf("accepted %d, unprocessed %d", r.Counters.Accepted(), r.RowsUnprocessed)
		}
	})
}

// A message that is gone from the dead-letter queue will not come back: sweep has its chunk stopped by the
// rules, and fails the job.
func TestSweepEndsStalledJob(t *testing.T) {
	for name, started := range map[string]bool{"started": true, "never started": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.caller.Limits.JobTime = 0
				jobID, chunk := planned(w)
				if started {
					w.files.breaks = errKilled
				}
				mark := job.Stalled{Queue: "process", Reason: "received 3 times without getting through", Since: w.now(), ExpiresAt: w.now().Add(14 * 24 * time.Hour)}
				if !started {
					if err := w.store.MarkStalled(t.Context(), w.job(jobID), mark); err != nil {
						t.Fatal(err)
					}
				} else if w.receive(untouched(w), chunk, 3) == nil {
					t.Fatal("the last receive was acknowledged")
				}
				w.files.breaks = nil
				if sent := w.sweeps(time.Hour, 13*24*time.Hour, nil); count(sent, job.HintProcess) > 0 || w.job(jobID).Stop != nil {
					t.Errorf("sent %v while the message may be redriven; stop %+v", sent, w.job(jobID).Stop)
				}
				w.sweeps(time.Hour, 2*24*time.Hour, func() bool { return w.job(jobID).Stop != nil })
				j := w.drain(jobID)
				w.wantEnd(j, job.Failed, fault.DeadLetterExpired)
				if accepted := j.Result.Counters.Accepted(); (accepted > 0) != started {
					t.Errorf("accepted %d rows", accepted)
				}
			})
		})
	}
}

// Two sweeps at once, and both at every due job: one wins each, the other sees that it did.
func TestTwoSweepsAtOnce(t *testing.T) {
	w := newWorld(t)
	var ids []id.Job
	for range 6 {
		ids = append(ids, w.submit(file("a,1")))
	}
	w.upload("pairs", []byte(file("a,1")), nil)
	w.queue = nil
	w.advance(2 * time.Hour)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := sweep.New(w.store, w.jobs, w, w, w.now).Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	w.audit(t)
	for _, jobID := range ids {
		w.drain(jobID)
	}
	w.audit(t)
}
