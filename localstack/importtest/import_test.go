package importtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

func TestCleanImport(t *testing.T) {
	w := newWorld(t)
	body := pairs(40, func(i int) string { return fmt.Sprint("key", i) })
	jobID := w.submit(body)
	w.drain(jobID)
	w.check(t, naive(nil, body), jobID)
}

func TestDuplicatesAndBadRows(t *testing.T) {
	w := newWorld(t)
	first := pairs(10, func(i int) string { return fmt.Sprint("key", i%7) })
	jobID := w.submit(first)
	w.drain(jobID)
	want := naive(nil, first)
	w.check(t, want, jobID)
	second := file("key1,1", "key1,2", "key2,-5", "key3,x", "key4,400", "key5,5", "new,1", "key4,400")
	jobID = w.submit(second)
	w.drain(jobID)
	w.check(t, naive(want.Records, second), jobID)
}

// TestKilledAtEveryCall kills the first worker that reaches its n-th call of the store, for every n, both
// before the call and after it, and lets the others finish.
func TestKilledAtEveryCall(t *testing.T) {
	body := file("a,1", "b,2", "a,3", "c,-1", "d,4", "e,5", "b,9", "f,6", "x,y", "g,7", "h,8", "a,1", "i,9", "j,10")
	want := naive(nil, body)
	for name, after := range map[string]bool{"before the call": false, "after it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, reached := 1, true; reached && !t.Failed(); n++ {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					jobID := w.submit(body)
					reached = w.killOnce(n, after, jobID)
					w.drain(jobID)
					w.check(t, want, jobID)
					if t.Failed() {
						t.Logf("killed at call %d", n)
					}
				})
			}
		})
	}
}

// killOnce works off messages in an order that makes later chunks first, with one worker that dies at its
// n-th call. It tells whether the worker came so far.
func (w *world) killOnce(n int, after bool, _ id.Job) bool {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	kill := &killer{at: n, after: after, cancel: cancel}
	im := w.worker(kill)
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for {
		h, ok := w.take(r)
		if !ok || ctx.Err() != nil {
			return kill.dead
		}
		_ = w.handle(ctx, im, h) // a killed worker's message came back
		if kill.dead {
			return true
		}
	}
}

// TestTwoImportsOfOneDataset: a worker of the first import dies with rows written that it did not count,
// the second import runs to its end, then the first one's message comes back.
func TestTwoImportsOfOneDataset(t *testing.T) {
	for n, reached := 1, true; reached && !t.Failed(); n++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			one := w.submit(file("a,1", "b,2", "c,3", "d,4", "e,5"))
			if reached = w.killOnce(n, true, one); !reached {
				return
			}
			held := w.queue
			w.queue = nil
			two := w.submit(file("a,10", "b,20", "c,30", "f,60"))
			if got := w.drain(two); got.Status != job.Succeeded {
				t.Fatalf("second import ended %s", got.Status)
			}
			w.queue = append(w.queue, held...)
			if got := w.drain(one); got.Status != job.Succeeded || got.Result.Counters.Accepted() != 5 {
				t.Fatalf("first import ended %s with %+v", got.Status, got.Result.Counters)
			}
			for key, want := range map[string]string{"a": "10", "b": "20", "c": "30", "d": "4", "e": "5", "f": "60"} {
				if got := w.records()[key].V; got != want {
					t.Errorf("killed at call %d: %s = %s, want %s", n, key, got, want)
				}
			}
			w.audit(t)
		})
	}
}

// TestCancelAtEveryCall asks to cancel after a worker died at its n-th call: the counters must be those of
// the records that are there.
func TestCancelAtEveryCall(t *testing.T) {
	body := file("a,1", "b,2", "a,3", "c,-1", "d,4", "e,5", "b,9", "f,6", "x,y", "g,7", "h,8", "a,1", "i,9", "j,10")
	for n, reached := 1, true; reached && !t.Failed(); n++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			jobID := w.submit(body)
			reached = w.killOnce(n, n%2 == 0, jobID)
			_, err := w.jobs.Cancel(t.Context(), w.caller, idempotency.Intent{}, jobID)
			j := w.drain(jobID)
			if fault.Is(err, fault.InvalidJobState) { // it had ended
				w.check(t, naive(nil, body), jobID)
				return
			}
			if err != nil || j.Status != job.Canceled {
				t.Fatalf("call %d: cancel answered %v, job ended %s", n, err, j.Status)
			}
			got := w.state(jobID)
			if int64(len(got.Records)) != got.Counters.Accepted() || int64(len(got.Rejected)) != got.Counters.Rejected {
				t.Fatalf("call %d: %d records and %d rejected rows, counted %+v", n, len(got.Records), len(got.Rejected), got.Counters)
			}
			w.audit(t)
		})
	}
}
