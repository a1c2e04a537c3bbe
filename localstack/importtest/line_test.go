package importtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// six queues six imports of one dataset, a second apart.
func six(w *world) (jobs [6]id.Job) {
	for i := range jobs {
		jobs[i] = w.submit(file(fmt.Sprintf("key,%d", i)))
		time.Sleep(time.Second)
	}
	return jobs
}

// slots tells which slot each job has, and which are over.
func (w *world) slots(jobs [6]id.Job) string {
	var out []string
	for _, jobID := range jobs {
		switch j := w.job(jobID); {
		case j.Status.Terminal():
			out = append(out, string(j.Status))
		case j.Slot == job.NoSlot:
			out = append(out, string(j.Progress.Stage))
		default:
			out = append(out, fmt.Sprint(j.Slot))
		}
	}
	return strings.Join(out, " ")
}

func (w *world) cancel(jobID id.Job) {
	w.t.Helper()
	if _, err := w.jobs.Cancel(w.t.Context(), w.caller, idempotency.Intent{}, jobID); err != nil {
		w.t.Fatal(err)
	}
}

// Four imports of a dataset run, the others wait in the order they came. Whoever ends hands its slot to the
// first in line.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jobs := six(w)
		step := func(want string) {
			t.Helper()
			if got := w.slots(jobs); got != want {
				t.Errorf("slots %q, want %q", got, want)
			}
			w.audit(t)
		}
		step("0 1 2 3 waiting waiting")
		w.cancel(jobs[2]) // queued with a slot: over at once, and the slot goes on
		step("0 1 canceled 3 2 waiting")
		w.drain(jobs[1])
		for _, jobID := range jobs {
			w.drain(jobID)
		}
		step("succeeded succeeded canceled succeeded succeeded succeeded")
		if got := w.records()["key"].V; got != "5" {
			t.Errorf("the last import wrote 5, the record holds %s", got)
		}
		var epochs []bool
		for i := range jobs[1:] {
			epochs = append(epochs, w.job(jobs[i+1]).Epoch > w.job(jobs[i]).Epoch)
		}
		if diff := cmp.Diff([]bool{true, true, true, true, true}, epochs); diff != "" {
			t.Errorf("epochs do not follow the line: %s", diff)
		}
	})
}

// A job that waits leaves the line when it is canceled, and is passed over.
func TestCancelWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jobs := six(w)
		w.cancel(jobs[4])
		if got := w.slots(jobs); got != "0 1 2 3 canceled waiting" {
			t.Errorf("slots %q", got)
		}
		w.audit(t)
		w.cancel(jobs[0])
		if got := w.slots(jobs); got != "canceled 1 2 3 canceled 0" {
			t.Errorf("slots %q", got)
		}
		w.audit(t)
	})
}

// An import that needs the dataset for itself waits until every slot is free, and nobody passes it in the
// line meanwhile.
func TestLineForAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var jobs [6]id.Job
		for i := range jobs {
			jobs[i] = w.upload("pairs", []byte(file("key,1")), func(s *job.ImportSpec) {
				if i == 2 || i == 3 {
					s.Atomicity = job.AllOrNothing
				}
			})
			if _, err := w.jobs.Complete(t.Context(), w.caller, idempotency.Intent{}, jobs[i]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for _, step := range []struct {
			cancel int // -1: nobody
			want   string
		}{
			{-1, "0 1 waiting waiting waiting waiting"},
			{0, "canceled 1 waiting waiting waiting waiting"},
			{1, "canceled canceled 0 waiting waiting waiting"},
			{4, "canceled canceled 0 waiting canceled waiting"},
			{2, "canceled canceled canceled 0 canceled waiting"},
			{3, "canceled canceled canceled canceled canceled 0"},
		} {
			if step.cancel >= 0 {
				w.cancel(jobs[step.cancel])
			}
			if got := w.slots(jobs); got != step.want {
				t.Errorf("slots %q, want %q", got, step.want)
			}
			w.audit(t)
		}
	})
}

// Between the look at a waiting job and its end, the job is given a slot: the cancel looks again and ends a
// job that has one.
func TestCancelWaitingJobThatGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jobs := six(w)
		calls := 0
		store := w.storeThrough(before{direct{w.server}, func(op string) {
			if calls++; op == "TransactWriteItems" && w.job(jobs[0]).Status == job.Queued {
				w.cancel(jobs[0])
			}
		}})
		if _, err := w.service(store, w.files, w).Cancel(t.Context(), w.caller, idempotency.Intent{}, jobs[4]); err != nil {
			t.Fatal(err)
		}
		if got := w.slots(jobs); got != "canceled 1 2 3 canceled 0" {
			t.Errorf("slots %q", got)
		}
		if calls > 20 {
			t.Errorf("the cancel made %d calls", calls)
		}
		w.audit(t)
	})
}

// before calls a function ahead of every call of the store.
type before struct {
	next http.RoundTripper
	do   func(operation string)
}

func (b before) RoundTrip(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	b.do(op)
	return b.next.RoundTrip(r)
}
