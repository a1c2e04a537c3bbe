package webhooktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/netguard"
	"pintu/internal/webhook"
	"pintu/localstack/receiver"
)

// What each receiver does to a delivery in the end, and how many tries that takes.
func TestEveryDeliveryEnds(t *testing.T) {
	for behaviour, want := range map[receiver.Behaviour]string{
		receiver.OK: "delivered after 1", receiver.NoContent: "delivered after 1", receiver.Trickle: "delivered after 1", receiver.Huge: "delivered after 1",
		receiver.Bomb: "delivered after 1", receiver.Gone: "gone after 1", receiver.Fail: "exhausted after 13", receiver.Redirect: "exhausted after 13",
		receiver.Refuse: "exhausted after 13", receiver.Reset: "exhausted after 13", receiver.BadTLS: "exhausted after 13", receiver.Busy: "exhausted after 13",
	} {
		t.Run(string(behaviour), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			began := w.Now()
			d := w.begin(t, w.receiver.URL(behaviour, "a"))
			w.run(t, w.worker(w.store), d)
			d, attempts := w.delivery(t, d), w.attempts(t, d)
			if got := fmt.Sprintf("%s after %d", d.State, len(attempts)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if took := w.Now().Sub(began); d.State == webhook.Exhausted && (took < 64*time.Hour || took > webhook.Budget) {
				t.Errorf("exhausted after %v", took)
			}
			for i, a := range attempts {
				if a.Number != i+1 || i > 0 && a.At.Before(attempts[i-1].At) {
					t.Errorf("attempt %d is %+v", i+1, a)
				}
			}
		})
	}
}

func TestExhaustedDeliveryIsListedAndSentAgain(t *testing.T) {
	w := newWorld(t)
	worker := w.worker(w.store)
	url := w.receiver.URL(receiver.Fail, "a")
	d := w.begin(t, url)
	w.run(t, worker, d)
	listed, err := w.store.ListExhausted(t.Context(), 10)
	if diff := cmp.Diff([]webhook.Due{{Tenant: tenant, DeliveryID: d.ID}}, listed); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	service := w.service()
	first, err := service.Redeliver(t.Context(), tenant, w.request("key"), d.ID)
	if err != nil || first.Replayed || first.Delivery.State != webhook.Pending {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := service.Redeliver(t.Context(), tenant, w.request("key"), d.ID)
	if err != nil || !again.Replayed || again.Delivery.ID != d.ID {
		t.Errorf("%+v %v", again, err)
	}
	w.run(t, worker, d)
	got := w.receiver.Received(url)
	if len(got) != 26 {
		t.Errorf("%d tries in two rounds", len(got))
	}
	for _, r := range got {
		if !bytes.Equal(r.Body, d.Body) || r.Header.Get("X-Webhook-Id") != string(d.EventID) {
			t.Errorf("sent %s", r.Body)
		}
	}
}

func (w *world) service() *webhook.Service {
	return webhook.NewService(webhook.ServiceConfig{Store: w.store, Guard: w.guard, Policies: w, Hints: w, Master: w.master, Now: w.Now})
}

func TestTestEventsAreSentOnceForEachKey(t *testing.T) {
	w := newWorld(t)
	url := w.receiver.URL(receiver.OK, "test")
	first, err := w.service().SendTest(t.Context(), tenant, w.request("key"), "req_9", url)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.service().SendTest(t.Context(), tenant, w.request("key"), "req_9", url)
	if err != nil || !again.Replayed || again.Delivery.ID != first.Delivery.ID {
		t.Errorf("%+v %v", again, err)
	}
	w.run(t, w.worker(w.store), first.Delivery)
	if got := w.receiver.Received(url); len(got) != 1 || got[0].Header.Get("X-Request-Id") != "req_9" {
		t.Errorf("received %v", got)
	}
	if _, err := w.service().SendTest(t.Context(), tenant, w.request("other"), "", "http://10.0.0.1/"); err == nil {
		t.Error("a private address was taken")
	}
}

func TestRotationIsRepeatedByItsKey(t *testing.T) {
	w := newWorld(t)
	rotate := func(key string) webhook.Rotated {
		t.Helper()
		r, err := w.service().Rotate(t.Context(), tenant, w.request(key))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, replay := rotate("a"), rotate("a")
	if !replay.Replayed || replay.Generation != first.Generation || replay.Secret.Reveal() != first.Secret.Reveal() {
		t.Errorf("a repeated rotation shows secret %d after %d", replay.Generation, first.Generation)
	}
	second := rotate("b")
	rotate("c")
	var tooMany *webhook.TooManySecrets
	if _, err := w.service().Rotate(t.Context(), tenant, w.request("d")); !errors.As(err, &tooMany) {
		t.Fatalf("a fourth secret: %v", err)
	}
	url := w.receiver.URL(receiver.OK, "rotated")
	w.run(t, w.worker(w.store), w.begin(t, url))
	got := w.receiver.Received(url)[0]
	for _, r := range []webhook.Rotated{first, second} {
		if err := webhook.Verify(got.Header, got.Body, w.Now(), r.Secret); err != nil {
			t.Errorf("secret %d: %v", r.Generation, err)
		}
	}
	w.advance(tooMany.Until)
	if r := rotate("d"); r.Generation != 4 {
		t.Errorf("secret %d after the first ended", r.Generation)
	}
}

// dying is a store whose process dies at one of its writes: the write is made or not, and nothing after it is.
type dying struct {
	webhook.Store
	at    int // which write; counted from 1
	after bool
	cut   context.CancelFunc
	n     int
}

var errDied = errors.New("the process died")

func (s *dying) dies() bool {
	s.n++
	return s.n == s.at
}

func (s *dying) SaveDelivery(ctx context.Context, d webhook.Delivery, a *webhook.Attempt) (webhook.Delivery, error) {
	if s.n >= s.at {
		return d, errDied
	}
	if !s.dies() {
		return s.Store.SaveDelivery(ctx, d, a)
	}
	s.cut()
	if s.after {
		s.Store.SaveDelivery(context.WithoutCancel(ctx), d, a)
	}
	return d, errDied
}

func (s *dying) SaveDestination(ctx context.Context, name string, d webhook.Destination) (webhook.Destination, error) {
	if s.n >= s.at {
		return d, errDied
	}
	if !s.dies() {
		return s.Store.SaveDestination(ctx, name, d)
	}
	s.cut()
	if s.after {
		s.Store.SaveDestination(context.WithoutCancel(ctx), name, d)
	}
	return d, errDied
}

// Wherever a worker dies, before or after any of its writes, the event arrives, as one event.
func TestDeathOfAWorkerLosesNoEvent(t *testing.T) {
	for at := 1; at <= 4; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, made %v", at, after), func(t *testing.T) {
				w := newWorld(t)
				url := w.receiver.URL(receiver.OK, "a")
				d := w.begin(t, url)
				ctx, cancel := context.WithCancel(t.Context())
				h, _ := w.take()
				if err := w.worker(&dying{Store: w.store, at: at, after: after, cut: cancel}).Deliver(ctx, h); err == nil {
					t.Fatal("nothing died")
				}
				// The message is lost with its worker.
				w.run(t, w.worker(w.store), d)
				if got := w.delivery(t, d); got.State != webhook.Delivered {
					t.Errorf("%s", got.State)
				}
				arrived := w.receiver.Received(url)
				if len(arrived) < 1 || len(arrived) > 2 {
					t.Errorf("arrived %d times", len(arrived))
				}
				for _, r := range arrived {
					if !bytes.Equal(r.Body, d.Body) || r.Header.Get("Webhook-Id") != string(d.EventID) {
						t.Errorf("arrived as %s", r.Body)
					}
				}
				attempts := w.attempts(t, d)
				if last := attempts[len(attempts)-1]; last.Status != 200 || len(attempts) == 2 && attempts[0].Failure != webhook.Interrupted || len(attempts) < len(arrived) {
					t.Errorf("%d arrived, on record are %+v", len(arrived), attempts)
				}
				if known, err := w.store.Destination(t.Context(), d.Destination()); err != nil || len(known.InFlight) > 1 || known.Failures > 0 {
					t.Errorf("%+v %v", known, err)
				}
			})
		}
	}
}

func TestDoubledMessagesMakeOneTry(t *testing.T) {
	w := newWorld(t)
	url := w.receiver.URL(receiver.OK, "a")
	d := w.begin(t, url)
	h, _ := w.take()
	errs := make(chan error)
	for range 10 {
		go func() { errs <- w.worker(w.store).Deliver(t.Context(), h) }()
	}
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	w.run(t, w.worker(w.store), d)
	if got := w.receiver.Received(url); len(got) != 1 {
		t.Errorf("arrived %d times", len(got))
	}
	if got := w.attempts(t, d); len(got) != 1 {
		t.Errorf("%d attempts", len(got))
	}
}

func TestMessageOfAnUnknownDeliveryIsDoneWith(t *testing.T) {
	w := newWorld(t)
	d := w.begin(t, w.receiver.URL(receiver.OK, "a"))
	h := d.Hint()
	h.Tenant = "other"
	if err := w.worker(w.store).Deliver(t.Context(), h); err != nil {
		t.Error(err)
	}
	if err := w.worker(w.store).Wake(t.Context(), webhook.Due{Tenant: "other", DeliveryID: d.ID}); err != nil {
		t.Error(err)
	}
}

func TestRefusedURLBlocksItsDelivery(t *testing.T) {
	w := newWorld(t)
	var err error
	if w.guard, err = netguard.New(netguard.Config{}); err != nil {
		t.Fatal(err)
	}
	d := w.begin(t, w.receiver.URL(receiver.OK, "a"))
	w.run(t, w.worker(w.store), d)
	if d = w.delivery(t, d); d.State != webhook.Blocked || d.Attempts != 1 {
		t.Errorf("%s after %d", d.State, d.Attempts)
	}
}

func TestDeliveryWithoutAPlaceComesBackByAMessage(t *testing.T) {
	w := newWorld(t)
	url := w.receiver.URL(receiver.OK, "crowded")
	holder, waiting := w.begin(t, url), w.begin(t, url)
	known, _, _ := webhook.Destination{}.Admit(holder.ID, w.Now(), false, 0)
	if _, err := w.store.SaveDestination(t.Context(), holder.Destination(), known); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.queue = nil
	w.mu.Unlock()
	if err := w.worker(w.store).Deliver(t.Context(), waiting.Hint()); err != nil {
		t.Fatal(err)
	}
	d := w.delivery(t, waiting)
	if d.Tries != 0 || !d.ClaimedAt.IsZero() || !d.NextAt.After(w.Now()) || d.NextAt.After(w.Now().Add(10*time.Second)) {
		t.Errorf("%+v", d)
	}
	if at, ok := w.nextMessage(); !ok || at.Before(d.NextAt) {
		t.Errorf("a message at %v (%v) for a try at %v", at, ok, d.NextAt)
	}
	if got := w.receiver.Received(url); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

// With many events for a receiver that is down, few tries are made while it is, and all arrive when it is up.
func TestBreakerSparesADeadReceiver(t *testing.T) {
	w := newWorld(t)
	worker := w.worker(w.store)
	const events = 40
	var all []webhook.Delivery
	for i := range events {
		all = append(all, w.begin(t, w.receiver.URL(receiver.Refuse, fmt.Sprint(i))))
	}
	for end := w.Now().Add(time.Hour); w.Now().Before(end); {
		for h, ok := w.take(); ok; h, ok = w.take() {
			if err := worker.Deliver(t.Context(), h); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(t, all)
		w.sweep(t, worker)
	}
	tries := 0
	for _, d := range all {
		d = w.delivery(t, d)
		tries += d.Tries
		if d.State != webhook.Pending || d.DueAt.IsZero() {
			t.Errorf("%+v", d)
		}
	}
	if tries < 10 || tries > 30 {
		t.Errorf("%d tries in an hour, without the breaker it were %d", tries, events*6)
	}
	t.Logf("%d tries of %d events in an hour", tries, events)
}
