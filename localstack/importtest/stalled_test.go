package importtest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/worker"
)

// receive hands a worker a message that was received so many times, three being the last.
func (w *world) receive(way before, h job.Hint, receives int) error {
	store := w.storeThrough(way)
	return worker.New(store, w.importer(store, w.files, w), w.now).Handle(w.t.Context(), worker.Message{
		Hint: h, ReceiveCount: receives, MaxReceives: 3, SentAt: w.now(), Queue: string(h.Kind)})
}

func untouched(w *world) before { return before{direct{w.server}, func(string) {}} }

// planned imports a file of one chunk up to where its only chunk waits to be processed.
func planned(w *world) (jobID id.Job, chunk job.Hint) {
	w.t.Helper()
	w.chunkBytes, w.batchRows = 1<<20, 100
	jobID = w.submit(file("a,1", "b,2"))
	w.drainPlan()
	if len(w.queue) != 1 || w.queue[0].hint.Kind != job.HintProcess {
		w.t.Fatalf("queue holds %v, want one chunk", w.queue)
	}
	chunk = w.queue[0].hint
	w.queue = nil
	return jobID, chunk
}

// drainPlan works off plan messages only.
func (w *world) drainPlan() {
	w.t.Helper()
	im := w.worker(nil)
	for len(w.queue) > 0 && w.queue[0].hint.Kind == job.HintPlan {
		h := w.queue[0].hint
		w.queue = w.queue[1:]
		if err := w.handle(w.t.Context(), im, h); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) stalledCount(jobID id.Job, want int) {
	w.t.Helper()
	if got := w.job(jobID).StalledCount; got != want {
		w.t.Errorf("stalled count %d, want %d", got, want)
	}
	w.audit(w.t)
}

// The last receive of a message leaves a mark that says until when it can be redriven; the redriven message
// gets through and takes the mark away.
func TestLastReceiveMarksAndRedriveClears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jobID, chunk := planned(w)
		w.files.breaks = errors.New("bucket is away")
		for receive := 1; receive <= 3; receive++ {
			if w.receive(untouched(w), chunk, receive) == nil {
				t.Fatalf("receive %d was acknowledged", receive)
			}
			w.stalledCount(jobID, receive/3)
		}
		mark, err := w.store.OldestStalled(t.Context(), w.job(jobID))
		if err != nil || mark == nil || mark.Chunk != 0 || mark.Queue != "process" || !mark.ExpiresAt.Equal(w.now().Add(14*24*time.Hour)) {
			t.Fatalf("mark %+v, %v", mark, err)
		}
		w.files.breaks = nil
		if err := w.receive(untouched(w), chunk, 1); err != nil {
			t.Fatal(err)
		}
		w.stalledCount(jobID, 0)
		if got := w.drain(jobID); got.Status != job.Succeeded || got.StalledCount != 0 {
			t.Errorf("job ended %s with %d stalled", got.Status, got.StalledCount)
		}
		w.audit(t)
	})
}

// A mark that comes or goes while the chunk's holder is about to end it must not make the count drift: the
// holder looks again instead.
func TestMarkChangesUnderTheHolder(t *testing.T) {
	mark := job.Stalled{Queue: "process", Reason: "received 3 times without getting through", Chunk: 0}
	for name, marked := range map[string]bool{"comes": false, "goes": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				jobID, chunk := planned(w)
				if marked {
					if err := w.store.MarkStalled(t.Context(), w.job(jobID), mark); err != nil {
						t.Fatal(err)
					}
				}
				done := false
				way := before{direct{w.server}, func(op string) {
					if done || op != "TransactWriteItems" { // the first is the chunk's end
						return
					}
					done = true
					var err error
					if marked {
						err = w.store.ClearStalled(t.Context(), w.job(jobID), 0)
					} else {
						err = w.store.MarkStalled(t.Context(), w.job(jobID), mark)
					}
					if err != nil {
						t.Fatal(err)
					}
				}}
				if err := w.receive(way, chunk, 1); !errors.Is(err, job.ErrMoved) {
					t.Errorf("the holder ended with %v", err)
				}
				w.audit(t)
				if err := w.receive(untouched(w), chunk, 2); err != nil {
					t.Error(err)
				}
				w.stalledCount(jobID, 0)
				w.drain(jobID)
				w.audit(t)
			})
		})
	}
}
