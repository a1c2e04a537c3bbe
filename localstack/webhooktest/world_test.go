// Package webhooktest runs the delivery of webhooks as a whole: the real store on the embedded DynamoDB, the real
// sender, and receivers on loopback that misbehave. Time and the queue are the test's own.
package webhooktest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/netguard"
	"pintu/internal/webhook"
	"pintu/localstack/receiver"
	"pintu/localstack/storetest"
)

const tenant = "acme"

// world is one system. Its queue loses and doubles nothing unless a test does.
type world struct {
	store    *dynamostore.Store
	receiver *receiver.Server
	guard    *netguard.Guard
	master   webhook.Master

	mu    sync.Mutex
	now   time.Time
	queue []message // by time
}

type message struct {
	at   time.Time
	hint webhook.Hint
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{store: storetest.New(t), now: time.Now().UTC().Truncate(time.Second)}
	var err error
	if w.receiver, err = receiver.Start(10 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.receiver.Close)
	if w.guard, err = netguard.New(netguard.Config{AdmitLoopback: true}); err != nil {
		t.Fatal(err)
	}
	if w.master, err = webhook.ParseMaster(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))); err != nil {
		t.Fatal(err)
	}
	return w
}

// Now implements the clock: it stands still until a test moves it.
func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(to time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to.After(w.now) {
		w.now = to
	}
}

// SendDelivery implements webhook.Hints: SQS counts delays in whole seconds, up to 15 minutes.
func (w *world) SendDelivery(_ context.Context, h webhook.Hint, _ string, delay time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delay < 0 || delay > webhook.MaxQueueDelay {
		panic("SQS refuses a delay of " + delay.String())
	}
	whole := (delay + time.Second - 1).Truncate(time.Second)
	w.queue = append(w.queue, message{w.now.Add(whole), h})
	slices.SortStableFunc(w.queue, func(a, b message) int { return a.at.Compare(b.at) })
	return nil
}

// CallbackPolicy implements webhook.Policies.
func (w *world) CallbackPolicy(context.Context, string) (netguard.Policy, error) {
	return netguard.Policy{Code: netguard.CallbackURLNotAllowed}, nil
}

// take gives the next message, if one is there by now.
func (w *world) take() (webhook.Hint, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 || w.queue[0].at.After(w.now) {
		return webhook.Hint{}, false
	}
	h := w.queue[0].hint
	w.queue = w.queue[1:]
	return h, true
}

// nextMessage tells when the next message comes.
func (w *world) nextMessage() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return time.Time{}, false
	}
	return w.queue[0].at, true
}

var times = webhook.Times{
	Limits: netguard.Limits{Connect: 2 * time.Second, FirstByte: 300 * time.Millisecond, Total: time.Second},
	Answer: 200 * time.Millisecond,
}

// worker makes a worker, whose store a test may have made unreliable.
func (w *world) worker(store webhook.Store) *webhook.Deliverer {
	return webhook.NewDeliverer(webhook.DelivererConfig{Store: store, Sender: webhook.NewSender(w.guard, times, w.Now), Hints: w, Policies: w, Master: w.master,
		Now: w.Now, Jitter: func() float64 { return 0.5 }})
}

// begin writes a job's event as the end of the job would, and sends its message.
func (w *world) begin(t testing.TB, url string) webhook.Delivery {
	t.Helper()
	e, err := webhook.JobEvent(id.NewJob(w.Now()), "import", json.RawMessage(`{"status":"partial","metadata":{"a":"<&>é"}}`), w.Now())
	if err != nil {
		t.Fatal(err)
	}
	d := webhook.NewDelivery(tenant, url, "req_1", e)
	if err := w.request("").CreateDelivery(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := w.SendDelivery(t.Context(), d.Hint(), d.Destination(), 0); err != nil {
		t.Fatal(err)
	}
	return d
}

func (w *world) request(key string) webhook.Request {
	return w.store.WebhookRequest(access.Caller{Tenant: tenant, Client: "hooks"}, idempotency.Intent{Key: key, Fingerprint: "f"})
}

// sweep does what the schedule does each minute.
func (w *world) sweep(t testing.TB, d *webhook.Deliverer) {
	t.Helper()
	for shard := range w.store.DueShards() {
		due, err := w.store.DueDeliveries(t.Context(), shard, w.Now(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range due {
			if err := d.Wake(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (w *world) delivery(t testing.TB, d webhook.Delivery) webhook.Delivery {
	t.Helper()
	got, err := w.store.Delivery(t.Context(), tenant, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (w *world) attempts(t testing.TB, d webhook.Delivery) []webhook.Attempt {
	t.Helper()
	got, err := w.store.Attempts(t.Context(), tenant, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// run works on messages, and lets time pass with a sweep each minute, until every one of the deliveries has ended.
func (w *world) run(t testing.TB, worker *webhook.Deliverer, deliveries ...webhook.Delivery) {
	t.Helper()
	end := w.Now().Add(webhook.Budget + 2*time.Hour)
	for w.Now().Before(end) {
		for h, ok := w.take(); ok; h, ok = w.take() {
			if err := worker.Deliver(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.ContainsFunc(deliveries, func(d webhook.Delivery) bool { return w.delivery(t, d).State == webhook.Pending }) {
			return
		}
		w.pass(t, deliveries)
		w.sweep(t, worker)
	}
	t.Fatal("deliveries are still pending after three days")
}

// pass lets time pass to the next message or the next due time, whichever comes first.
func (w *world) pass(t testing.TB, deliveries []webhook.Delivery) {
	t.Helper()
	var at time.Time
	if next, ok := w.nextMessage(); ok {
		at = next
	}
	for _, d := range deliveries {
		if d = w.delivery(t, d); d.State == webhook.Pending && (at.IsZero() || d.DueAt.Before(at)) {
			at = d.DueAt
		}
	}
	w.advance(at)
}
