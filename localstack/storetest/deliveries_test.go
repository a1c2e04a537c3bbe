package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/webhook"
)

var (
	webhookNoon   = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	webhookCaller = access.Caller{Tenant: "acme", Client: "hooks"}
)

func newDelivery(t *testing.T, at time.Time) webhook.Delivery {
	t.Helper()
	e, err := webhook.JobEvent(id.NewJob(at), "import", []byte(`{"status":"partial","n":"<&>"}`), at)
	if err != nil {
		t.Fatal(err)
	}
	return webhook.NewDelivery("acme", "https://hooks.example.com/a?key=1", "req_1", e)
}

func createDelivery(t *testing.T, store interface {
	WebhookRequest(access.Caller, idempotency.Intent) webhook.Request
}, d webhook.Delivery) {
	t.Helper()
	if err := store.WebhookRequest(webhookCaller, idempotency.Intent{}).CreateDelivery(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func TestDeliveryIsReadAsItWasWritten(t *testing.T) {
	store := New(t)
	d := newDelivery(t, webhookNoon)
	createDelivery(t, store, d)
	got, err := store.Delivery(t.Context(), "acme", d.ID)
	if diff := cmp.Diff(d, got); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	for tenant, deliveryID := range map[string]webhook.DeliveryID{"other": d.ID, "acme": newDelivery(t, webhookNoon).ID} {
		if _, err := store.Delivery(t.Context(), tenant, deliveryID); !fault.Is(err, webhook.DeliveryNotFound) {
			t.Errorf("%s %s: %v", tenant, deliveryID, err)
		}
	}
	if err := store.WebhookRequest(webhookCaller, idempotency.Intent{}).CreateDelivery(t.Context(), d); !errors.Is(err, webhook.ErrMoved) {
		t.Errorf("made twice: %v", err)
	}
}

func TestAttemptAndDeliveryAreWrittenTogether(t *testing.T) {
	store := New(t)
	d := newDelivery(t, webhookNoon)
	createDelivery(t, store, d)
	claimed, err := d.Claim(webhookNoon)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := store.SaveDelivery(t.Context(), claimed, nil)
	if err != nil || saved.Version != 1 {
		t.Fatalf("version %d, %v", saved.Version, err)
	}
	if _, err := store.SaveDelivery(t.Context(), claimed, nil); !errors.Is(err, webhook.ErrMoved) {
		t.Errorf("two processes hold one claim: %v", err)
	}
	a := webhook.Attempt{Number: 1, At: webhookNoon, Duration: time.Second, Status: 503, RetryAfter: time.Minute, Answer: []byte{0, 255, 'x'}}
	after, err := store.SaveDelivery(t.Context(), saved.Record(a, webhookNoon, 0), &a)
	if err != nil {
		t.Fatal(err)
	}
	late := webhook.Attempt{Number: 1, At: webhookNoon, Failure: webhook.Interrupted}
	if _, err := store.SaveDelivery(t.Context(), saved.Record(late, webhookNoon, 0), &late); !errors.Is(err, webhook.ErrMoved) {
		t.Errorf("a try was put on record twice: %v", err)
	}
	got, err := store.Delivery(t.Context(), "acme", d.ID)
	if diff := cmp.Diff(after, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	attempts, err := store.Attempts(t.Context(), "acme", d.ID)
	if diff := cmp.Diff([]webhook.Attempt{a}, attempts); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if others, err := store.Attempts(t.Context(), "other", d.ID); err != nil || len(others) > 0 {
		t.Errorf("another tenant sees %v, %v", others, err)
	}
}

// due gives every delivery that the due index names by a moment, over all shards.
func due(t *testing.T, store interface {
	webhook.Lists
	DueShards() int
}, now time.Time) (all []webhook.Due) {
	t.Helper()
	for shard := range store.DueShards() {
		found, err := store.DueDeliveries(t.Context(), shard, now, 100)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// A delivery that has not ended is due some time; one that has is not, and an exhausted one is listed.
func TestDueIndexHoldsWhatHasNotEnded(t *testing.T) {
	store := New(t)
	for _, c := range []struct {
		a         *webhook.Attempt
		due       bool
		exhausted bool
		state     webhook.State
	}{
		{nil, true, false, webhook.Pending},
		{&webhook.Attempt{Number: 1, Status: 500}, true, false, webhook.Pending},
		{&webhook.Attempt{Number: 1, Status: 200}, false, false, webhook.Delivered},
		{&webhook.Attempt{Number: 1, Status: 410}, false, false, webhook.Gone},
		{&webhook.Attempt{Number: 1, Failure: webhook.NotAllowed}, false, false, webhook.Blocked},
		{&webhook.Attempt{Number: 1, Status: 500}, false, true, webhook.Exhausted},
	} {
		d := newDelivery(t, webhookNoon)
		createDelivery(t, store, d)
		if c.a != nil {
			now := webhookNoon
			if c.exhausted {
				now = webhookNoon.Add(webhook.Budget)
			}
			claimed, err := d.Claim(now)
			if err != nil {
				t.Fatal(err)
			}
			c.a.At = now
			if d, err = store.SaveDelivery(t.Context(), claimed.Record(*c.a, now, 0), c.a); err != nil {
				t.Fatal(err)
			}
		}
		if d.State != c.state {
			t.Fatalf("%s, want %s", d.State, c.state)
		}
		me := webhook.Due{Tenant: "acme", DeliveryID: d.ID}
		if got := contains(due(t, store, webhookNoon.Add(1000*time.Hour)), me); got != c.due {
			t.Errorf("%s: due %v", c.state, got)
		}
		if c.due && contains(due(t, store, d.DueAt.Add(-time.Millisecond)), me) {
			t.Errorf("%s: due too early", c.state)
		}
		exhausted, err := store.ListExhausted(t.Context(), 10)
		if err != nil || contains(exhausted, me) != c.exhausted {
			t.Errorf("%s: exhausted are %v, %v", c.state, exhausted, err)
		}
		if c.exhausted {
			if d, err = store.WebhookRequest(webhookCaller, idempotency.Intent{}).SaveRedelivery(t.Context(), d.Redeliver(webhookNoon)); err != nil {
				t.Fatal(err)
			}
			exhausted, err := store.ListExhausted(t.Context(), 10)
			if err != nil || len(exhausted) > 0 || !contains(due(t, store, d.DueAt), me) {
				t.Errorf("redelivered: exhausted %v, %v", exhausted, err)
			}
		}
	}
}

func contains(all []webhook.Due, d webhook.Due) bool {
	for _, x := range all {
		if x == d {
			return true
		}
	}
	return false
}

func TestJobsAndDeliveriesDoNotCrowdEachOther(t *testing.T) {
	store := New(t)
	createDelivery(t, store, newDelivery(t, webhookNoon))
	for shard := range store.DueShards() {
		jobs, err := store.Due(t.Context(), shard, webhookNoon.Add(time.Hour), 1)
		if err != nil || len(jobs) > 0 {
			t.Errorf("jobs due: %v, %v", jobs, err)
		}
	}
}

func TestDestinationsAreConditionalOnWhatWasRead(t *testing.T) {
	store := New(t)
	const name = "acme https://hooks.example.com"
	fresh, err := store.Destination(t.Context(), name)
	if err != nil || fresh.Version != 0 {
		t.Fatalf("%+v %v", fresh, err)
	}
	d, _, _ := fresh.Admit("dlv_a", webhookNoon, false, 0)
	if d, err = store.SaveDestination(t.Context(), name, d); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SaveDestination(t.Context(), name, fresh); !errors.Is(err, webhook.ErrMoved) {
		t.Errorf("written over: %v", err)
	}
	got, err := store.Destination(t.Context(), name)
	if diff := cmp.Diff(d, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if other, err := store.Destination(t.Context(), "other https://hooks.example.com"); err != nil || other.Version != 0 {
		t.Errorf("another tenant's: %+v %v", other, err)
	}
}

func TestDeliveriesAreListedNewestFirst(t *testing.T) {
	store := New(t)
	var want []webhook.DeliveryID
	for n := range 7 {
		d := newDelivery(t, webhookNoon.Add(time.Duration(n)*time.Minute))
		createDelivery(t, store, d)
		if n%2 == 1 { // every other one ends
			claimed, err := d.Claim(d.NextAt)
			if err != nil {
				t.Fatal(err)
			}
			a := webhook.Attempt{Number: 1, At: d.NextAt, Status: 200}
			if _, err := store.SaveDelivery(t.Context(), claimed.Record(a, d.NextAt, 0), &a); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want = append([]webhook.DeliveryID{d.ID}, want...)
	}
	var got []webhook.DeliveryID
	for cursor, pages := "", 0; ; pages++ {
		page, err := store.ListDeliveries(t.Context(), "acme", webhook.Filter{State: webhook.Pending, Limit: 3, Cursor: cursor})
		if err != nil || pages > 5 {
			t.Fatalf("page %d: %v", pages, err)
		}
		for _, d := range page.Deliveries {
			got = append(got, d.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	all, err := store.ListDeliveries(t.Context(), "acme", webhook.Filter{Limit: 100})
	if err != nil || len(all.Deliveries) != 7 || all.NextCursor != "" {
		t.Errorf("%d in all, %v", len(all.Deliveries), err)
	}
	if others, err := store.ListDeliveries(t.Context(), "other", webhook.Filter{Limit: 100}); err != nil || len(others.Deliveries) > 0 {
		t.Errorf("another tenant sees %v, %v", others, err)
	}
	if _, err := store.ListDeliveries(t.Context(), "acme", webhook.Filter{Limit: 1, Cursor: "eyJhdCI6IngifQ"}); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("a strange cursor: %v", err)
	}
}

func TestIntentsNameWhatTheyMade(t *testing.T) {
	store := New(t)
	key := func(k string) webhook.Request {
		return store.WebhookRequest(webhookCaller, idempotency.Intent{Key: k, Fingerprint: "f"})
	}
	d := newDelivery(t, webhookNoon)
	if ref, err := key("a").Made(t.Context()); ref != "" || err != nil {
		t.Errorf("nothing made yet: %q %v", ref, err)
	}
	if err := key("a").CreateDelivery(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := key("a").CreateDelivery(t.Context(), newDelivery(t, webhookNoon)); !errors.Is(err, webhook.ErrIntentTaken) {
		t.Errorf("one key made two: %v", err)
	}
	secrets := webhook.Secrets{Generations: webhook.Generations{{Number: 1, CreatedAt: webhookNoon}}}
	if err := key("b").SaveSecrets(t.Context(), "acme", secrets); err != nil {
		t.Fatal(err)
	}
	if err := key("c").SaveSecrets(t.Context(), "acme", secrets); !errors.Is(err, webhook.ErrMoved) {
		t.Errorf("secrets were written over: %v", err)
	}
	read, err := store.Secrets(t.Context(), "acme")
	if diff := cmp.Diff(webhook.Secrets{Generations: secrets.Generations, Version: 1}, read); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	claimed, err := d.Claim(webhookNoon)
	if err != nil {
		t.Fatal(err)
	}
	if claimed, err = store.SaveDelivery(t.Context(), claimed, nil); err != nil {
		t.Fatal(err)
	}
	same, err := key("d").SaveRedelivery(t.Context(), claimed.Redeliver(webhookNoon))
	if diff := cmp.Diff(claimed, same); err != nil || diff != "" {
		t.Errorf("a delivery in hand was changed: %v %s", err, diff)
	}
	for k, want := range map[string]string{"a": string(d.ID), "b": "1", "c": "", "d": string(d.ID)} {
		if ref, err := key(k).Made(t.Context()); ref != want || err != nil {
			t.Errorf("key %s made %q, want %q (%v)", k, ref, want, err)
		}
	}
	if _, err := store.WebhookRequest(webhookCaller, idempotency.Intent{Key: "a", Fingerprint: "g"}).Made(t.Context()); !fault.Is(err, fault.KeyReused) {
		t.Errorf("another request with the key: %v", err)
	}
}
