package webhooktest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pintu/internal/webhook"
)

// moody is a receiver that answers each request with what the test draws, and keeps what arrived.
type moody struct {
	mu      sync.Mutex
	answer  int // HTTP status; 0 breaks the connection off
	arrived map[string][]string
}

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := r.Header.Get("X-Webhook-Id")
	m.arrived[id] = append(m.arrived[id], string(body))
	if m.answer == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(m.answer)
}

func (m *moody) set(answer int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = answer
}

// Whatever the receiver answers, whichever messages are lost or doubled, wherever workers die: every delivery
// ends within its time; delivered means arrived; all arrivals are one event; every arrival is a try on record;
// and in between, what has not ended is due.
func TestRandomHistories(t *testing.T) {
	w := newWorld(t)
	m := &moody{arrived: map[string][]string{}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	rapid.Check(t, func(rt *rapid.T) {
		w.mu.Lock()
		w.queue = nil
		w.mu.Unlock()
		var all []webhook.Delivery
		for range rapid.IntRange(1, 2).Draw(rt, "events") {
			all = append(all, w.begin(t, server.URL+"/hook"))
		}
		end := w.Now().Add(webhook.Budget + 3*time.Hour)
		for w.pending(t, all) {
			if w.Now().After(end) {
				rt.Fatal("it does not end")
			}
			h, ok := w.take()
			if !ok {
				w.checkDue(t, rt, all)
				w.pass(t, all)
				w.sweep(t, w.worker(w.store))
				continue
			}
			if rapid.IntRange(0, 4).Draw(rt, "lost") == 0 {
				continue
			}
			m.set(rapid.SampledFrom([]int{200, 500, 500, 500, 404, 410, 503, 0, 0, 0}).Draw(rt, "answer"))
			for range rapid.IntRange(1, 2).Draw(rt, "copies") {
				w.step(t, rt, h)
			}
		}
		for _, d := range all {
			w.checkEnd(t, rt, m, d)
		}
	})
}

// step has a worker take a message; now and then it dies at one of its writes.
func (w *world) step(t *testing.T, rt *rapid.T, h webhook.Hint) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var store webhook.Store = w.store
	if rapid.IntRange(0, 3).Draw(rt, "dies") == 0 {
		store = &dying{Store: w.store, at: rapid.IntRange(1, 4).Draw(rt, "at"), after: rapid.Bool().Draw(rt, "made"), cut: cancel}
	}
	if err := w.worker(store).Deliver(ctx, h); err != nil && !errors.Is(err, errDied) && ctx.Err() == nil {
		rt.Fatal(err)
	}
}

func (w *world) pending(t *testing.T, all []webhook.Delivery) bool {
	for _, d := range all {
		if w.delivery(t, d).State == webhook.Pending {
			return true
		}
	}
	return false
}

func (w *world) checkDue(t *testing.T, rt *rapid.T, all []webhook.Delivery) {
	for _, d := range all {
		if d = w.delivery(t, d); (d.State == webhook.Pending) == d.DueAt.IsZero() {
			rt.Fatalf("%s is %s and due at %v", d.ID, d.State, d.DueAt)
		}
	}
}

func (w *world) checkEnd(t *testing.T, rt *rapid.T, m *moody, d webhook.Delivery) {
	d = w.delivery(t, d)
	attempts := w.attempts(t, d)
	m.mu.Lock()
	defer m.mu.Unlock()
	arrived := m.arrived[string(d.EventID)]
	for _, body := range arrived {
		if body != string(d.Body) {
			rt.Fatalf("%s arrived as %s", d.EventID, body)
		}
	}
	if d.State == webhook.Delivered && len(arrived) == 0 || len(attempts) != d.Attempts || len(attempts) < len(arrived) || len(attempts) > 13 || !d.DueAt.IsZero() {
		rt.Fatalf("%s after %d tries of which %d arrived, %d on record", d.State, d.Attempts, len(arrived), len(attempts))
	}
	ends := map[webhook.State]func(webhook.Attempt) bool{
		webhook.Delivered: func(a webhook.Attempt) bool { return a.Status == 200 },
		webhook.Gone:      func(a webhook.Attempt) bool { return a.Status == 410 },
		webhook.Exhausted: func(a webhook.Attempt) bool { return a.Status != 200 && a.Status != 410 },
	}
	if last := attempts[len(attempts)-1]; !ends[d.State](last) || strings.Contains(string(last.Failure), "blocked") {
		rt.Fatalf("%s after %+v", d.State, last)
	}
}
