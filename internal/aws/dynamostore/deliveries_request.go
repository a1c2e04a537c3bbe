package dynamostore

import (
	"context"
	"strconv"

	"pintu/internal/access"
	"pintu/internal/idempotency"
	"pintu/internal/webhook"
)

// WebhookRequest ties what an API request makes of deliveries and secrets to the intent that asked for it.
func (s *Store) WebhookRequest(caller access.Caller, in idempotency.Intent) webhook.Request {
	return webhookRequest{s, caller, in}
}

type webhookRequest struct {
	store  *Store
	caller access.Caller
	intent idempotency.Intent
}

func (r webhookRequest) Made(ctx context.Context) (string, error) {
	found, err := r.store.FindIntent(ctx, r.caller, r.intent, r.store.now())
	if err != nil || found == nil {
		return "", err
	}
	return found.Ref, found.Match(r.intent)
}

// remember adds the intent's record. A request without a key is not remembered.
func (r webhookRequest) remember(t *transaction, outcome idempotency.Outcome, ref string) {
	if r.intent.Key != "" {
		t.add(r.store.idemPut(r.caller, r.intent, outcome, ref, r.store.now()), webhook.ErrIntentTaken, nil)
	}
}

func (r webhookRequest) CreateDelivery(ctx context.Context, d webhook.Delivery) error {
	tx := transaction{op: "create delivery"}
	tx.delivery(r.store, d, webhook.ErrMoved)
	r.remember(&tx, idempotency.Created, string(d.ID))
	return tx.run(ctx, r.store)
}

// SaveRedelivery leaves a delivery that is being tried as it is: a write would be in the way of its record.
func (r webhookRequest) SaveRedelivery(ctx context.Context, d webhook.Delivery) (webhook.Delivery, error) {
	tx := transaction{op: "redeliver"}
	if d.ClaimedAt.IsZero() {
		d = tx.saveDelivery(r.store, d)
	} else {
		tx.check(r.store.control, deliveryKey(d.Tenant, d.ID), versionIs(d.Version), webhook.ErrMoved)
	}
	r.remember(&tx, idempotency.Changed, string(d.ID))
	return d, tx.run(ctx, r.store)
}

func (r webhookRequest) SaveSecrets(ctx context.Context, tenant string, secrets webhook.Secrets) error {
	read := secrets.Version
	secrets.Version++
	it, err := marshal(secretsKey(tenant), secrets)
	if err != nil {
		return err
	}
	tx := transaction{op: "save webhook secrets"}
	tx.put(r.store.control, it, versionIs(read), webhook.ErrMoved)
	newest := secrets.Generations[len(secrets.Generations)-1].Number
	r.remember(&tx, idempotency.Created, strconv.Itoa(newest))
	return tx.run(ctx, r.store)
}
