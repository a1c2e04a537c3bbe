package importtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/importer"
	"pintu/internal/job"
)

func allOrNothing(s *job.ImportSpec) { s.Atomicity = job.AllOrNothing }

func dryRun(s *job.ImportSpec) { s.DryRun = true }

// good meets every rule without a row that any of them rejects, but for the duplicates.
var good = map[string]string{
	"update":       versioned("a,9,", "x,1,", "b,8,", "y,2,", "c,3,", "z,1,"),
	"skip":         versioned("a,9,", "x,1,", "b,8,", "y,2,", "c,3,", "z,1,"),
	"reject":       versioned("x,1,", "y,2,", "z,1,", "w,1,"),
	"if_unchanged": versioned("a,9,1", "x,1,", "b,8,2", "y,2,", "c,3,3"),
}

// whole is what an import of all or nothing comes to.
func whole(before map[string]stored, want state) state {
	if want.Counters.Rejected == 0 {
		return want
	}
	want.Status, want.Records = job.Failed, before
	want.Counters.Created, want.Counters.Updated, want.Counters.Unchanged = 0, 0, 0
	return want
}

// dry is what a dry run comes to: the same, and the records stay as they are.
func dry(before map[string]stored, want state) state {
	want.Records = before
	return want
}

func TestAllOrNothing(t *testing.T) {
	for _, r := range everyRule {
		for name, body := range map[string]string{"good": good[r.conflict], "awkward": awkward} {
			t.Run(r.String()+" "+name, func(t *testing.T) {
				w := newWorld(t)
				before := w.grown()
				jobID := w.submitBy(r, body, allOrNothing)
				w.drainPlan()
				w.shuffle(rand.New(rand.NewPCG(1, 5)))
				w.drain(jobID)
				w.check(t, whole(before, naiveByRule(before, body, r, nil, nil)), jobID)
				if committed := !w.job(jobID).CommittedAt.IsZero(); committed != (name == "good") {
					t.Errorf("committed: %v", committed)
				}
			})
		}
	}
}

func TestDryRun(t *testing.T) {
	for _, r := range everyRule {
		for _, change := range [][]func(*job.ImportSpec){{dryRun}, {dryRun, allOrNothing}} {
			t.Run(fmt.Sprint(r, len(change)), func(t *testing.T) {
				w := newWorld(t)
				before := w.grown()
				jobID := w.submitBy(r, awkward, change...)
				w.drainPlan()
				w.shuffle(rand.New(rand.NewPCG(1, 5)))
				w.drain(jobID)
				want := naiveByRule(before, awkward, r, nil, nil)
				if len(change) == 2 {
					want = whole(before, want)
				}
				w.check(t, dry(before, want), jobID)
			})
		}
	}
}

// TestAllOrNothingKilledAtEveryCall dies at every second call of a worker, at the commit and behind it too.
func TestAllOrNothingKilledAtEveryCall(t *testing.T) {
	body := versioned("a,9,", "x,1,", "b,8,", "x,2,", "c,3,", "z,1,")
	r := rule{"update", "last_wins"}
	committed := 0
	for n := 1; ; n += 2 {
		w := newWorld(t)
		w.batchRows = 2
		before := w.grown()
		jobID := w.submitBy(r, body, allOrNothing)
		reached := w.killOnce(n, n%4 == 1, jobID)
		if j := w.job(jobID); !j.CommittedAt.IsZero() && !j.Status.Terminal() {
			committed++
		}
		w.drain(jobID)
		w.check(t, naiveByRule(before, body, r, nil, nil), jobID)
		if t.Failed() {
			t.Fatalf("killed at call %d", n)
		}
		if !reached {
			t.Logf("%d calls, %d deaths behind the commit", n-1, committed)
			break
		}
	}
	if committed < 15 {
		t.Errorf("only %d deaths were behind the commit", committed)
	}
}

// TestNoCancelBehindTheCommit: after the commit point a cancel is refused and a time limit does not count.
func TestNoCancelBehindTheCommit(t *testing.T) {
	w := newWorld(t)
	before := w.grown()
	r := rule{"update", "reject"}
	jobID := w.submitBy(r, good["update"], allOrNothing)
	w.dieCommitted(jobID)
	_, err := w.jobs.Cancel(t.Context(), w.caller, idempotency.Intent{}, jobID)
	if !fault.Is(err, fault.InvalidJobState) {
		t.Errorf("cancel answered %v", err)
	}
	if err := w.store.RequestStop(t.Context(), w.job(jobID), job.Failure{Code: fault.JobTimeLimit}); !errors.Is(err, job.ErrMoved) {
		t.Errorf("a stop was answered %v", err)
	}
	w.mu.Lock()
	w.queue = nil // the message is lost: sweep alone brings the job to its end
	w.mu.Unlock()
	w.advance(48 * time.Hour)
	w.sweep()
	w.drain(jobID)
	w.check(t, naiveByRule(before, good["update"], r, nil, nil), jobID)
}

// TestCancelAheadOfTheCommit: between the last look at a job and its commit comes a cancel.
func TestCancelAheadOfTheCommit(t *testing.T) {
	w := newWorld(t)
	there := w.grown()
	jobID := w.submitBy(rule{"update", "reject"}, good["update"], allOrNothing)
	var answer error
	canceled := false
	store := w.storeThrough(before{direct{w.server}, func(op string) {
		if j := w.job(jobID); op == "UpdateItem" && j.Progress.Stage == job.Finalizing && !canceled {
			canceled = true
			_, answer = w.jobs.Cancel(t.Context(), w.caller, idempotency.Intent{}, jobID)
		}
	}})
	w.work(t.Context(), w.importer(store, w.files, w), jobID)
	w.drain(jobID)
	if j := w.job(jobID); !canceled || answer != nil || j.Status != job.Canceled || j.Result.Counters.Accepted() != 0 {
		t.Errorf("cancel answered %v, the job ended %s with %+v", answer, j.Status, j.Result)
	}
	if diff := cmp.Diff(there, w.records()); diff != "" {
		t.Errorf("records changed: %s", diff)
	}
	w.audit(t)
}

// TestCommitAheadOfTheCancel: between a cancel's look at the job and its write comes the commit.
func TestCommitAheadOfTheCancel(t *testing.T) {
	w := newWorld(t)
	w.grown()
	jobID := w.submitBy(rule{"update", "reject"}, good["update"], allOrNothing)
	w.drainPlan()
	store := w.storeThrough(before{direct{w.server}, func(op string) {
		if op == "TransactWriteItems" && w.job(jobID).CommittedAt.IsZero() {
			w.dieCommitted(jobID)
		}
	}})
	_, err := w.service(store, w.files, w).Cancel(t.Context(), w.caller, idempotency.Intent{}, jobID)
	if !fault.Is(err, fault.InvalidJobState) {
		t.Errorf("cancel answered %v", err)
	}
	if j := w.drain(jobID); j.Status != job.Succeeded {
		t.Errorf("job ended %s", j.Status)
	}
	w.audit(t)
}

// work has one importer work until nothing waits or the job ended.
func (w *world) work(ctx context.Context, im *importer.Importer, jobID id.Job) {
	rng := rand.New(rand.NewPCG(1, 2))
	for ctx.Err() == nil && !w.job(jobID).Status.Terminal() {
		h, ok := w.take(rng)
		if !ok {
			return
		}
		if err := w.handle(ctx, im, h); err != nil {
			return
		}
	}
}

// dieCommitted works on a job until its worker has committed it, and lets that one die there.
func (w *world) dieCommitted(jobID id.Job) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	store := w.storeThrough(before{direct{w.server}, func(string) {
		if !w.job(jobID).CommittedAt.IsZero() {
			cancel()
		}
	}})
	w.work(ctx, w.importer(store, w.files, w), jobID)
	if j := w.job(jobID); j.CommittedAt.IsZero() || j.Status.Terminal() {
		w.t.Fatalf("job is %s, committed at %v", j.Status, j.CommittedAt)
	}
}

// TestOneForAllWaitsItsTurn: a job that needs the whole dataset waits for those before it, and those behind
// it wait for it.
func TestOneForAllWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		submit := func(change ...func(*job.ImportSpec)) id.Job {
			defer time.Sleep(time.Second)
			return w.submitBy(rule{"update", "reject"}, versioned("a,1,"), change...)
		}
		var jobs [6]id.Job
		jobs[0], jobs[1] = submit(), submit()
		jobs[2] = submit(allOrNothing)
		jobs[3], jobs[4], jobs[5] = submit(), submit(allOrNothing), submit()
		step := func(want string) {
			t.Helper()
			if got := w.slots(jobs); got != want {
				t.Errorf("slots %q, want %q", got, want)
			}
			w.audit(t)
		}
		step("0 1 waiting waiting waiting waiting")
		w.cancel(jobs[1])
		step("0 canceled waiting waiting waiting waiting")
		w.drain(jobs[0])
		step("succeeded canceled 0 waiting waiting waiting")
		w.drain(jobs[2])
		step("succeeded canceled succeeded 0 waiting waiting")
		w.cancel(jobs[4]) // leaves the line, and those behind it need not wait any more
		step("succeeded canceled succeeded 0 canceled 1")
	})
}

// TestRandomStaging stages by random rules while everything goes wrong that can.
func TestRandomStaging(t *testing.T) { runSeeds(t, randomStaging) }

func randomStaging(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rng := rand.New(rand.NewPCG(seed, 4))
		s := newSchedule(w, rng)
		w.chunkBytes = []int64{8, 16, 24, 40, 64, 128, 1 << 20}[rng.IntN(7)]
		w.batchRows = 1 + rng.IntN(5)
		before := w.grown()
		r := everyRule[rng.IntN(len(everyRule))]
		change := [][]func(*job.ImportSpec){{allOrNothing}, {allOrNothing}, {dryRun}, {dryRun, allOrNothing}}[rng.IntN(4)]
		u := staging(w, rng, r, change)
		s.run([]*upload{u})
		w.checkStaging(t, u, r, before)
		if t.Failed() || verbose {
			t.Logf("go test ./importtest -run TestRandomStaging -v -seed %d: %s %q\n%s", seed, r, u.body, strings.Join(s.trace, "\n"))
		}
	})
}

// staging uploads a random file, or one that is good enough to be committed, which hardly one of the others is.
func staging(w *world, rng *rand.Rand, r rule, change []func(*job.ImportSpec)) *upload {
	if rng.IntN(2) == 0 {
		return newVersioned(w, rng, r, change...)
	}
	return uploadBy(w, rng, r, good[r.conflict], change...)
}

func (w *world) checkStaging(t *testing.T, u *upload, r rule, before map[string]stored) {
	t.Helper()
	j, got := w.job(u.jobID), w.state(u.jobID)
	want := naiveByRule(before, u.body, r, w.settledRows(u.jobID), nil)
	if want.Status = statusOf(j, want); j.Spec.Atomicity == job.AllOrNothing && want.Status != job.Succeeded {
		if want.Status == job.Partial {
			want.Status = job.Failed
		}
		want.Counters.Created, want.Counters.Updated, want.Counters.Unchanged, want.Records = 0, 0, 0, before
	}
	if j.Spec.DryRun {
		want.Records = before
	}
	if j.Result == nil { // it never began
		want.Counters = job.Counters{}
	}
	want.Report = got.Report
	if got.Total == -1 {
		want.Total = -1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job %s (-want +got):\n%s", u.jobID, diff)
	}
	w.verify(t, u.jobID)
	w.audit(t)
}
