package webhooktest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pintu/internal/access"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/netguard"
	"pintu/internal/webhook"
	"pintu/localstack/receiver"
)

// nowhere drops messages: what they would bring, the test does not wait for.
type nowhere struct{}

func (nowhere) SendDelivery(context.Context, webhook.Hint, string, time.Duration) error { return nil }

// patient never gives a receiver up within a test.
var patient = webhook.Times{Limits: netguard.Limits{Connect: time.Minute, FirstByte: time.Minute, Total: time.Minute}, Answer: time.Second}

// fill writes events of a tenant for a URL. Tenants part destinations, so one receiver stands for many.
func (w *world) fill(t testing.TB, owner, url string, events int) (hints []webhook.Hint) {
	t.Helper()
	for range events {
		e, err := webhook.JobEvent(id.NewJob(w.Now()), "import", json.RawMessage("null"), w.Now())
		if err != nil {
			t.Fatal(err)
		}
		d := webhook.NewDelivery(owner, url, "", e)
		if err := w.store.WebhookRequest(access.Caller{Tenant: owner}, idempotency.Intent{}).CreateDelivery(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		hints = append(hints, d.Hint())
	}
	return hints
}

// Of 100 receivers 10 never answer, and their many events come first. With 16 workers the other 90 get theirs
// while the ten still hang: each of those holds up one worker, however many events it has waiting.
func TestReceiversThatHangHoldUpOneWorkerEach(t *testing.T) {
	const healthy, hanging, workers = 90, 10, 16
	w := newWorld(t)
	var hints []webhook.Hint
	for i := range hanging {
		hints = append(hints, w.fill(t, fmt.Sprintf("hang%d", i), w.receiver.URL(receiver.Hang, fmt.Sprint(i)), 20)...)
	}
	for i := range healthy {
		hints = append(hints, w.fill(t, fmt.Sprintf("ok%d", i), w.receiver.URL(receiver.NoContent, fmt.Sprint(i)), 1)...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d := webhook.NewDeliverer(webhook.DelivererConfig{Store: w.store, Sender: webhook.NewSender(w.guard, patient, w.Now), Hints: nowhere{}, Policies: w, Master: w.master,
		Now: w.Now, Jitter: func() float64 { return 0 }})
	queue := make(chan webhook.Hint)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for h := range queue {
				if err := d.Deliver(ctx, h); err != nil && ctx.Err() == nil {
					t.Errorf("deliver: %v", err)
				}
			}
		})
	}
	for _, h := range hints {
		queue <- h // with every worker held up, this would wait for ever
	}
	for i := range healthy {
		url := w.receiver.URL(receiver.NoContent, fmt.Sprint(i))
		for deadline := time.After(30 * time.Second); len(w.receiver.Received(url)) == 0; {
			select {
			case <-deadline:
				t.Fatalf("receiver %d got nothing", i)
			case <-time.After(time.Millisecond):
			}
		}
	}
	for i := range hanging {
		if n := w.receiver.AtOnce(w.receiver.URL(receiver.Hang, fmt.Sprint(i))); n != 1 {
			t.Errorf("receiver %d held up %d workers", i, n)
		}
	}
	cancel()
	close(queue)
	wg.Wait()
}

func TestBusyReceiversGetMoreAtOnceWhenTheyAnswer(t *testing.T) {
	w := newWorld(t)
	url := w.receiver.URL(receiver.NoContent, "busy")
	hints := w.fill(t, tenant, url, 20)
	for _, h := range hints {
		if err := w.worker(w.store).Deliver(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	known, err := w.store.Destination(t.Context(), w.destination(t, hints[0]))
	if err != nil || known.Good < 8 || len(known.InFlight) > 0 {
		t.Errorf("%+v %v", known, err)
	}
}

func (w *world) destination(t testing.TB, h webhook.Hint) string {
	t.Helper()
	d, err := w.store.Delivery(t.Context(), h.Tenant, h.DeliveryID)
	if err != nil {
		t.Fatal(err)
	}
	return d.Destination()
}

// BenchmarkDeliver measures one worker against a receiver on loopback: read, claim, sign, send, record.
func BenchmarkDeliver(b *testing.B) {
	w := newWorld(b)
	url := w.receiver.URL(receiver.NoContent, "bench")
	hints := w.fill(b, tenant, url, 2000)
	worker := w.worker(w.store)
	var sent atomic.Int64
	for b.Loop() {
		h := hints[int(sent.Add(1)-1)%len(hints)]
		if err := worker.Deliver(b.Context(), h); err != nil {
			b.Fatal(err)
		}
		if sent.Load()%int64(len(hints)) == 0 {
			b.StopTimer()
			hints = w.fill(b, tenant, url, 2000)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}
