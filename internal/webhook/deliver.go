package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"pintu/internal/fault"
	"pintu/internal/logline"
	"pintu/internal/netguard"
)

// Deliverer works on the messages of the webhook queue. Whatever dies when: an event is sent at least once, a
// try is on record or shown as interrupted, and a delivery that has not ended is due.
type Deliverer struct {
	store    Store
	sender   *Sender
	hints    Hints
	policies Policies
	master   Master
	now      func() time.Time
	jitter   func() float64
}

// DelivererConfig is what a Deliverer needs; all of it.
type DelivererConfig struct {
	Store    Store
	Sender   *Sender
	Hints    Hints
	Policies Policies
	Master   Master
	Now      func() time.Time
	Jitter   func() float64 // in [0,1)
}

// NewDeliverer makes a Deliverer.
func NewDeliverer(c DelivererConfig) *Deliverer {
	return &Deliverer{store: c.Store, sender: c.Sender, hints: c.Hints, policies: c.Policies, master: c.Master, now: c.Now, jitter: c.Jitter}
}

// maxRaces is how often the state of a destination is read again when others changed it meanwhile.
const maxRaces = 8

// Deliver makes the next try of a delivery, if it is due and the destination takes it. nil means that the
// message is done with: the delivery has moved on, or its due time brings another message. An error leaves the
// message to the queue: it is a fault of ours, never of the receiver.
func (w *Deliverer) Deliver(ctx context.Context, h Hint) error {
	d, err := w.store.Delivery(ctx, h.Tenant, h.DeliveryID)
	if fault.Is(err, DeliveryNotFound) {
		return nil // past its retention, or lost by a restore
	}
	if err != nil {
		return err
	}
	logline.Add(ctx, slog.String("event_id", string(d.EventID)), slog.String("event_type", d.EventType))
	d, err = w.settleLost(ctx, d)
	if err == nil {
		err = w.try(ctx, d)
	}
	if errors.Is(err, ErrMoved) {
		return nil // somebody else moves it on
	}
	return err
}

// settleLost puts the try of a process that died on record.
func (w *Deliverer) settleLost(ctx context.Context, d Delivery) (Delivery, error) {
	d, lost, ok := d.Interrupt(w.now().UTC(), w.jitter())
	if !ok {
		return d, nil
	}
	return w.store.SaveDelivery(ctx, d, &lost)
}

// try claims the next try and makes it.
func (w *Deliverer) try(ctx context.Context, d Delivery) error {
	secrets, policy, err := w.means(ctx, d.Tenant)
	if err != nil {
		return err
	}
	now := w.now().UTC()
	claimed, err := d.Claim(now)
	if err != nil {
		logline.Add(ctx, slog.String("not_tried", err.Error()))
		return nil
	}
	until, admitted, err := w.admit(ctx, claimed, now)
	if err != nil {
		return err
	}
	if !admitted {
		logline.Add(ctx, slog.String("not_tried", "the destination takes none now"), slog.Time("next_at", until))
		return w.save(ctx, claimed.Defer(until, now), nil)
	}
	claimed, err = w.store.SaveDelivery(ctx, claimed, nil)
	if err != nil {
		return errors.Join(err, w.settle(ctx, d, Attempt{})) // the place was taken for nothing
	}
	return w.send(ctx, claimed, secrets, policy)
}

// means reads what a try needs beside its delivery.
func (w *Deliverer) means(ctx context.Context, tenant string) ([]Secret, netguard.Policy, error) {
	stored, err := w.store.Secrets(ctx, tenant)
	if err != nil {
		return nil, netguard.Policy{}, err
	}
	secrets, err := w.master.Secrets(tenant, stored.Generations, w.now())
	if err != nil {
		return nil, netguard.Policy{}, err
	}
	policy, err := w.policies.CallbackPolicy(ctx, tenant)
	return secrets, policy, err
}

func (w *Deliverer) send(ctx context.Context, d Delivery, secrets []Secret, p netguard.Policy) error {
	a, err := w.sender.Send(ctx, d, secrets, p)
	if err != nil {
		return err // the claim runs out, and the try is shown as interrupted
	}
	now := w.now().UTC()
	next := d.Record(a, now, w.jitter())
	logline.Add(ctx, slog.Int("attempt", a.Number), slog.Int("status", a.Status), slog.String("failure", string(a.Failure)), slog.String("reason", a.Reason),
		slog.Int64("took_ms", a.Duration.Milliseconds()), slog.String("state", string(next.State)))
	return errors.Join(w.save(ctx, next, &a), w.settle(ctx, d, a))
}

// save writes a delivery whose try is over, and calls for the next one.
func (w *Deliverer) save(ctx context.Context, d Delivery, a *Attempt) error {
	d, err := w.store.SaveDelivery(ctx, d, a)
	if err != nil {
		return err
	}
	return w.call(ctx, d)
}

// call sends the message for the next try, when a message can be delayed so long. When it is not sent, sweep
// sends it.
func (w *Deliverer) call(ctx context.Context, d Delivery) error {
	delay, ok := d.Delay(w.now())
	if !ok {
		return nil
	}
	return w.hints.SendDelivery(ctx, d.Hint(), d.Destination(), delay)
}

// admit takes a place at the destination. When it is so contended that it cannot be had, that is no place either.
func (w *Deliverer) admit(ctx context.Context, d Delivery, now time.Time) (until time.Time, ok bool, _ error) {
	name := d.Destination()
	for range maxRaces {
		known, err := w.store.Destination(ctx, name)
		if err != nil {
			return time.Time{}, false, err
		}
		taken, until, ok := known.Admit(d.ID, now, d.Last(now), w.jitter())
		if !ok {
			return until, false, nil
		}
		if _, err := w.store.SaveDestination(ctx, name, taken); !errors.Is(err, ErrMoved) {
			return time.Time{}, err == nil, err
		}
	}
	return now.Add(crowded), false, nil
}

// settle gives the place back. One that cannot be given back runs out by itself.
func (w *Deliverer) settle(ctx context.Context, d Delivery, a Attempt) error {
	name := d.Destination()
	for range maxRaces {
		known, err := w.store.Destination(ctx, name)
		if err != nil {
			return err
		}
		_, err = w.store.SaveDestination(ctx, name, known.Settle(d.ID, a, w.now().UTC(), w.jitter()))
		if !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("settle destination: %w after %d tries", errContended, maxRaces)
}

var errContended = errors.New("others changed it every time")

// Wake is what sweep does with a delivery whose time has come: the due time moves, and the message is sent again.
func (w *Deliverer) Wake(ctx context.Context, due Due) error {
	d, err := w.store.Delivery(ctx, due.Tenant, due.DeliveryID)
	if fault.Is(err, DeliveryNotFound) {
		return nil // the index is behind
	}
	if err != nil {
		return err
	}
	now := w.now().UTC()
	d, ok := d.Look(now)
	if !ok {
		return nil
	}
	d, err = w.store.SaveDelivery(ctx, d, nil)
	if errors.Is(err, ErrMoved) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.hints.SendDelivery(ctx, d.Hint(), d.Destination(), 0)
}
