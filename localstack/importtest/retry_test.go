package importtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

var intents atomic.Int64

// intent is a request with a key that no other has.
func intent() idempotency.Intent {
	return idempotency.Intent{Key: fmt.Sprint("key-", intents.Add(1)), Fingerprint: "x"}
}

func (w *world) nextAttempt(jobID id.Job) job.Job {
	w.t.Helper()
	got, err := w.jobs.Retry(w.t.Context(), w.caller, intent(), "req", jobID, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Job
}

// wroteBefore gives what was there before a job for each key whose record it wrote last.
func (w *world) wroteBefore(jobID id.Job, before map[string]stored) map[string]stored {
	w.t.Helper()
	ours := map[string]stored{}
	for cursor := ""; ; {
		page, err := w.store.ListRecords(w.t.Context(), w.caller.Tenant, "pairs", cursor, 1000, 4<<20)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Records {
			if r.Source.JobID == string(jobID) {
				ours[r.Key] = before[r.Key]
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return ours
		}
	}
}

// TestRetryByEveryRule cancels an import after a worker died somewhere, and runs the whole file again: rows
// that the first attempt applied are no conflict, all others meet what they would have met then.
func TestRetryByEveryRule(t *testing.T) {
	for i, r := range everyRule {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			for n := 8 + i%7; n < 110; n += 7 {
				w := newWorld(t)
				w.chunkBytes = 40
				before := w.grown()
				first := w.submitBy(r, awkward)
				w.killOnce(n, n%2 == 0, first)
				if w.job(first).Status.Terminal() {
					break
				}
				w.cancel(first)
				w.drain(first)
				between, ours := w.records(), w.wroteBefore(first, before)
				second := w.nextAttempt(first)
				w.drain(second.ID)
				w.check(t, naiveByRule(between, awkward, r, nil, ours), second.ID)
				if t.Failed() {
					t.Fatalf("killed at call %d", n)
				}
			}
		})
	}
}

// TestRandomRetry: one attempt after the other is canceled or fails, while everything goes wrong that can.
func TestRandomRetry(t *testing.T) { runSeeds(t, randomRetry) }

func randomRetry(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rng := rand.New(rand.NewPCG(seed, 6))
		s := newSchedule(w, rng)
		w.chunkBytes = []int64{8, 16, 24, 40, 64, 128, 1 << 20}[rng.IntN(7)]
		w.batchRows = 1 + rng.IntN(5)
		before := w.grown()
		r := everyRule[rng.IntN(len(everyRule))]
		u := newVersioned(w, rng, r)
		ours := map[string]stored{}
		for attempt := 1; ; attempt++ {
			u.cancelAt = []int{-1, rng.IntN(150)}[rng.IntN(2)]
			between := w.records()
			s.run([]*upload{u})
			w.checkByRule(t, u, r, between, ours)
			status := w.job(u.jobID).Status
			if t.Failed() || attempt == 4 || status != job.Canceled && status != job.Failed {
				break
			}
			for key, base := range w.wroteBefore(u.jobID, before) {
				if _, known := ours[key]; !known {
					ours[key] = base
				}
			}
			u.jobID = w.nextAttempt(u.jobID).ID
		}
		if t.Failed() || verbose {
			t.Logf("go test ./importtest -run TestRandomRetry -v -seed %d: %s %q\n%s", seed, r, u.body, strings.Join(s.trace, "\n"))
		}
	})
}

// ended makes an import that ended in a status.
func (w *world) ended(status job.Status, change ...func(*job.ImportSpec)) job.Job {
	w.t.Helper()
	set := func(s *job.ImportSpec) {
		s.DeduplicationKey, s.ReuseWindowSeconds = "key", job.DefaultReuseSeconds
		for _, f := range change {
			f(s)
		}
	}
	rows := map[job.Status]string{job.Succeeded: file("a,1"), job.Partial: file("a,1", "b,x"), job.Failed: file("a,x")}
	body := rows[status]
	if body == "" {
		body = file("a,1")
	}
	jobID := w.upload("pairs", []byte(body), set)
	if _, err := w.jobs.Complete(w.t.Context(), w.caller, idempotency.Intent{}, jobID); err != nil {
		w.t.Fatal(err)
	}
	if status == job.Canceled {
		w.cancel(jobID)
	}
	if j := w.drain(jobID); j.Status != status {
		w.t.Fatalf("job ended %s", j.Status)
	}
	return w.job(jobID)
}

func TestRetryTakesEverythingOver(t *testing.T) {
	w := newWorld(t)
	old := w.ended(job.Failed, func(s *job.ImportSpec) { s.Metadata, s.ForceReprocess = []byte(`{"a":1}`), true })
	next := w.nextAttempt(old.ID)
	want := old.Spec
	want.ForceReprocess = false
	if diff := cmp.Diff(want, next.Spec); diff != "" {
		t.Errorf("spec: %s", diff)
	}
	if next.Attempt != 2 || next.RetryOf != old.ID || next.Status != job.Queued || next.Input.VersionID != old.Input.VersionID || next.Epoch <= old.Epoch {
		t.Errorf("got %+v", next)
	}
	if diff := cmp.Diff([]int64{old.Epoch}, next.Work); diff != "" {
		t.Errorf("work: %s", diff)
	}
	named, err := w.store.Deduplicated(t.Context(), next)
	if err != nil || named != next.ID {
		t.Errorf("the deduplication key names %s: %v", named, err)
	}
	if again := w.nextAttempt(old.ID); again.ID != next.ID {
		t.Errorf("a second retry made %s", again.ID)
	}
	w.drain(next.ID)
	third := w.nextAttempt(next.ID)
	if diff := cmp.Diff([]int64{old.Epoch, w.job(next.ID).Epoch}, third.Work); third.Attempt != 3 || diff != "" {
		t.Errorf("third attempt %d: %s", third.Attempt, diff)
	}
	w.drain(third.ID)
	w.audit(t)
}

// TestOneSuccessor sends many retries at once, each with a key of its own.
func TestOneSuccessor(t *testing.T) {
	w := newWorld(t)
	old := w.ended(job.Canceled)
	var all sync.WaitGroup
	made := make([]id.Job, 20)
	for i := range made {
		in := intent()
		all.Go(func() {
			got, err := w.jobs.Retry(t.Context(), w.caller, in, "req", old.ID, nil)
			if err != nil {
				t.Error(err)
			}
			again, err := w.jobs.Retry(t.Context(), w.caller, in, "req", old.ID, nil)
			if err != nil || !again.Replayed || again.Job.ID != got.Job.ID {
				t.Errorf("the same key again gave %s, not %s: %v", again.Job.ID, got.Job.ID, err)
			}
			made[i] = got.Job.ID
		})
	}
	all.Wait()
	for _, jobID := range made {
		if jobID != made[0] {
			t.Fatalf("%s and %s", made[0], jobID)
		}
	}
	if got := w.job(old.ID).RetriedBy; got != made[0] {
		t.Errorf("the job names %s", got)
	}
	w.drain(made[0])
	w.audit(t)
}

// TestRetryDiesAtEveryCall: the client repeats its request, and there is one successor.
func TestRetryDiesAtEveryCall(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t)
			old := w.ended(job.Failed)
			ctx, cancel := context.WithCancel(t.Context())
			kill := &killer{next: direct{w.server}, at: n, after: after, cancel: cancel}
			in := intent()
			_, first := w.service(w.storeThrough(kill), w.files, w).Retry(ctx, w.caller, in, "req", old.ID, nil)
			cancel()
			got, err := w.jobs.Retry(t.Context(), w.caller, in, "req", old.ID, nil)
			if err != nil || got.Job.RetryOf != old.ID || w.job(old.ID).RetriedBy != got.Job.ID {
				t.Fatalf("killed at call %d (after it: %v): then %+v: %v", n, after, got.Job, err)
			}
			w.drain(got.Job.ID)
			w.audit(t)
			if first == nil {
				break
			}
		}
	}
}

func TestRetryIsRefused(t *testing.T) {
	for _, status := range []job.Status{job.Succeeded, job.Partial} {
		w := newWorld(t)
		old := w.ended(status)
		if _, err := w.jobs.Retry(t.Context(), w.caller, intent(), "req", old.ID, nil); !fault.Is(err, fault.InvalidJobState) {
			t.Errorf("%s: %v", status, err)
		}
	}
	w := newWorld(t)
	running := w.submit(file("a,1"))
	if _, err := w.jobs.Retry(t.Context(), w.caller, intent(), "req", running, nil); !fault.Is(err, fault.InvalidJobState) {
		t.Errorf("queued: %v", err)
	}
	w.drain(running)
	old := w.ended(job.Failed)
	none := 7
	if _, err := w.jobs.Retry(t.Context(), w.caller, intent(), "req", old.ID, &none); !fault.Is(err, fault.VersionNotFound) {
		t.Errorf("version 7: %v", err)
	}
	w.files.mu.Lock()
	delete(w.files.objects, old.Input.Key)
	w.files.mu.Unlock()
	if _, err := w.jobs.Retry(t.Context(), w.caller, intent(), "req", old.ID, nil); !fault.Is(err, fault.InvalidJobState) {
		t.Errorf("without its file: %v", err)
	}
	if got := w.job(old.ID).RetriedBy; got != "" {
		t.Errorf("a refused retry left %s", got)
	}
	w.audit(t)
}

// TestRetryOfAnUploadThatExpired starts with the upload.
func TestRetryOfAnUploadThatExpired(t *testing.T) {
	w := newWorld(t)
	body := file("a,1")
	jobID := w.upload("pairs", []byte(body), nil)
	w.files.mu.Lock()
	w.files.objects = map[string][]byte{}
	w.files.mu.Unlock()
	w.advance(25 * time.Hour)
	w.sweep()
	if j := w.job(jobID); j.Error == nil || j.Error.Code != fault.UploadExpired {
		t.Fatalf("job %+v", j)
	}
	got, err := w.jobs.Retry(t.Context(), w.caller, intent(), "req", jobID, nil)
	if err != nil || got.Job.Status != job.Uploading || got.Grant == nil || got.Job.Input.Key == w.job(jobID).Input.Key {
		t.Fatalf("got %+v: %v", got, err)
	}
	w.audit(t)
	w.files.put(got.Job.Input.Key, []byte(body))
	if _, err := w.jobs.Complete(t.Context(), w.caller, idempotency.Intent{}, got.Job.ID); err != nil {
		t.Fatal(err)
	}
	w.drain(got.Job.ID)
	w.check(t, naive(nil, body), got.Job.ID)
}

// TestRetryMeetsAnotherJobOfTheKey: while the parent lay failed, another submit made a job with its key.
func TestRetryMeetsAnotherJobOfTheKey(t *testing.T) {
	w := newWorld(t)
	old := w.ended(job.Failed)
	other := w.ended(job.Succeeded)
	in := intent()
	got, err := w.jobs.Retry(t.Context(), w.caller, in, "req", old.ID, nil)
	if err != nil || got.Job.ID != other.ID || got.Outcome != idempotency.Deduplicated {
		t.Errorf("got %s %s: %v", got.Job.ID, got.Outcome, err)
	}
	again, err := w.jobs.Retry(t.Context(), w.caller, in, "req", old.ID, nil)
	if err != nil || again.Job.ID != other.ID || !again.Replayed || again.Outcome != idempotency.Deduplicated {
		t.Errorf("again: %s %s: %v", again.Job.ID, again.Outcome, err)
	}
	w.audit(t)
}

// pairsAnew is another version of the dataset: values over 5 are refused, texts are not.
const pairsAnew = `{"schema":{"fields":[{"name":"k","type":"string"},{"name":"v","type":"integer","constraints":{"minimum":0,"maximum":5}}],"primaryKey":["k"]}}`

// TestReprocess runs a file again by another version: what others changed since is left alone and said.
func TestReprocess(t *testing.T) {
	w := newWorld(t)
	w.drain(w.submit(file("old,1")))
	first := w.submit(file("a,1", "b,-2", "c,9", "d,3", "old,2", "e,4"))
	w.drain(first)
	w.drain(w.submit(file("d,30", "e,4"))) // d changed since, e only found equal
	before := w.records()
	w.define("pairs", strings.Replace(pairsAnew, `"minimum":0,`, "", 1))
	got, err := w.jobs.Reprocess(t.Context(), w.caller, intent(), "req", first, 0)
	if err != nil {
		t.Fatal(err)
	}
	j := w.drain(got.Job.ID)
	if j.ReprocessOf != first || j.Attempt != 1 || j.RetryOf != "" || j.Spec.DatasetVersion != 2 {
		t.Errorf("job %+v", j)
	}
	s := w.state(j.ID)
	if diff := cmp.Diff(map[int64]fault.Code{3: fault.ConstraintViolated, 4: fault.KeyConflict}, s.Rejected); diff != "" {
		t.Errorf("rejected: %s", diff)
	}
	if c := s.Counters; c.Created != 1 || c.Unchanged != 3 || c.Updated != 0 {
		t.Errorf("counters %+v", c)
	}
	before["b"] = stored{V: "-2", Version: 1, Row: 2}
	before["e"] = stored{V: "4", Version: 1, Row: 6}
	if diff := cmp.Diff(before, s.Records); diff != "" {
		t.Errorf("records: %s", diff)
	}
	w.audit(t)
	if _, err := w.jobs.Reprocess(t.Context(), w.caller, intent(), "req", w.ended(job.Failed).ID, 0); !fault.Is(err, fault.InvalidJobState) {
		t.Errorf("of a failed job: %v", err)
	}
}
