package dynamostore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/fault"
	"pintu/internal/webhook"
)

// Key shapes of webhooks, all in the control table:
//
//	delivery#TENANT#DLV     delivery        one event on its way to one URL, its body included
//	delivery#TENANT#DLV     attempt#NNNNNN  one try
//	destination#HASH        destination     breaker and places of one receiver, by tenant, scheme, host and port
//	webhooks#TENANT         secrets         generations of secrets
//
// Pending deliveries are in the due index under shards of their own, exhausted ones under one more, by the time
// they ended; all deliveries of a tenant are in the jobs index under "deliveries#TENANT".
const (
	skDelivery, prefixAttempt = "delivery", "attempt#"
	skDestination, skSecrets  = "destination", "secrets"
	deliveriesOf              = "deliveries#"
	dueDeliveries             = "delivery#"
	dueExhausted              = "exhausted"
	attrVersion               = "Version"
)

const (
	// keepDelivery is how long a delivery stays after it ended. Exhausted ones stay until somebody redelivers them.
	keepDelivery = 30 * 24 * time.Hour
	// keepAttempt is how long a try stays on record: longer than a round and what follows it.
	keepAttempt = 90 * 24 * time.Hour
	// keepDestination is how long a destination is remembered after it was last tried.
	keepDestination = 7 * 24 * time.Hour
)

var _ webhook.Store = (*Store)(nil)

func deliveryKey(tenant string, d webhook.DeliveryID) key {
	return key{"delivery#" + tenant + "#" + string(d), skDelivery}
}

func attemptKey(tenant string, d webhook.DeliveryID, number int) key {
	return key{deliveryKey(tenant, d).pk, fmt.Sprintf("%s%06d", prefixAttempt, number)}
}

func destinationKey(name string) key { return key{"destination#" + hashed(name), skDestination} }

func secretsKey(tenant string) key { return key{"webhooks#" + tenant, skSecrets} }

// parseDeliveryPK reads tenant and delivery out of the partition key of a delivery.
func parseDeliveryPK(pk string) (_ webhook.Due, ok bool) {
	rest, found := strings.CutPrefix(pk, "delivery#")
	tenant, text, cut := strings.Cut(rest, "#")
	d, valid := webhook.ParseDeliveryID(text)
	return webhook.Due{Tenant: tenant, DeliveryID: d}, found && cut && valid
}

// deliveryItem encodes a whole delivery, index attributes included.
func deliveryItem(d webhook.Delivery) (item, error) {
	k := deliveryKey(d.Tenant, d.ID)
	it, err := marshal(k, d)
	if err != nil {
		return nil, err
	}
	it[attrJobsOf], it[attrJobsAt] = str(deliveriesOf+d.Tenant), str(deliveryAt(d))
	switch d.State {
	case webhook.Pending:
		it[attrDueShard], it[attrDueAt] = str(dueDeliveries+dueShard(k.pk)), num(millis(d.DueAt))
	case webhook.Exhausted:
		it[attrDueShard], it[attrDueAt] = str(dueExhausted), num(millis(d.EndedAt))
	default:
		it[attrTTL] = num(d.EndedAt.Add(keepDelivery).Unix())
	}
	return it, nil
}

func deliveryAt(d webhook.Delivery) string {
	return fmt.Sprintf("%015d#%s", d.CreatedAt.UnixMilli(), d.ID)
}

func deliveryOf(it item) (webhook.Delivery, error) {
	var d webhook.Delivery
	if err := unmarshal(it, &d); err != nil {
		return webhook.Delivery{}, err
	}
	if d.State == webhook.Pending {
		d.DueAt = fromMillis(intOf(it, attrDueAt))
	}
	return d, nil
}

// Delivery implements webhook.Store.
func (s *Store) Delivery(ctx context.Context, tenant string, deliveryID webhook.DeliveryID) (webhook.Delivery, error) {
	it, err := s.get(ctx, "read delivery", deliveryKey(tenant, deliveryID))
	if err != nil {
		return webhook.Delivery{}, err
	}
	if it == nil {
		return webhook.Delivery{}, fault.New(webhook.DeliveryNotFound, "there is no such delivery")
	}
	return deliveryOf(it)
}

// delivery adds a new delivery to the transaction that its event belongs to: the end of a job, or the request of
// a test event. A job ends once, so a delivery that is there already means that it has.
func (t *transaction) delivery(s *Store, d webhook.Delivery, refusal error) {
	it, err := deliveryItem(d)
	if err != nil {
		t.add(types.TransactWriteItem{}, nil, err)
		return
	}
	t.put(s.control, it, notExists(), refusal)
}

// SaveDelivery implements webhook.Store. It is a transaction for one item too: those carry a token, so that a
// reply which was lost is not taken for somebody else's write.
func (s *Store) SaveDelivery(ctx context.Context, d webhook.Delivery, a *webhook.Attempt) (webhook.Delivery, error) {
	tx := transaction{op: "save delivery"}
	d = tx.saveDelivery(s, d)
	if a != nil {
		it, err := marshal(attemptKey(d.Tenant, d.ID, a.Number), *a)
		if err != nil {
			return d, err
		}
		it[attrTTL] = num(a.At.Add(keepAttempt).Unix())
		tx.put(s.control, it, notExists(), webhook.ErrMoved)
	}
	return d, tx.run(ctx, s)
}

// saveDelivery adds a delivery over the version that was read, and gives it as it will be.
func (t *transaction) saveDelivery(s *Store, d webhook.Delivery) webhook.Delivery {
	read := d.Version
	d.Version++
	it, err := deliveryItem(d)
	if err != nil {
		t.add(types.TransactWriteItem{}, nil, err)
		return d
	}
	t.put(s.control, it, versionIs(read), webhook.ErrMoved)
	return d
}

// versionIs is the condition that nothing was written since a read. What is not there has version 0.
func versionIs(read int64) expression.ConditionBuilder {
	c := expression.Name(attrVersion).Equal(expression.Value(read))
	if read == 0 {
		return c.Or(notExists())
	}
	return c
}

// Destination implements webhook.Store.
func (s *Store) Destination(ctx context.Context, name string) (d webhook.Destination, _ error) {
	it, err := s.get(ctx, "read destination", destinationKey(name))
	if err != nil || it == nil {
		return d, err
	}
	return d, unmarshal(it, &d)
}

// SaveDestination implements webhook.Store.
func (s *Store) SaveDestination(ctx context.Context, name string, d webhook.Destination) (webhook.Destination, error) {
	read := d.Version
	d.Version++
	it, err := marshal(destinationKey(name), d)
	if err != nil {
		return d, err
	}
	it[attrTTL] = num(s.now().Add(keepDestination).Unix())
	tx := transaction{op: "save destination"}
	tx.put(s.control, it, versionIs(read), webhook.ErrMoved)
	return d, tx.run(ctx, s)
}

// Secrets implements webhook.Store.
func (s *Store) Secrets(ctx context.Context, tenant string) (secrets webhook.Secrets, _ error) {
	it, err := s.get(ctx, "read webhook secrets", secretsKey(tenant))
	if err != nil || it == nil {
		return secrets, err
	}
	return secrets, unmarshal(it, &secrets)
}

// DueDeliveries implements webhook.Lists.
func (s *Store) DueDeliveries(ctx context.Context, shard int, now time.Time, limit int) ([]webhook.Due, error) {
	return s.dueDeliveries(ctx, fmt.Sprintf("%sdue#%d", dueDeliveries, shard), now, limit)
}

// ListExhausted implements webhook.Lists.
func (s *Store) ListExhausted(ctx context.Context, limit int) ([]webhook.Due, error) {
	return s.dueDeliveries(ctx, dueExhausted, endOfTime, limit)
}

// endOfTime is later than any time that is stored.
var endOfTime = time.UnixMilli(1 << 52)

func (s *Store) dueDeliveries(ctx context.Context, shard string, until time.Time, limit int) (due []webhook.Due, _ error) {
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.control, IndexName: aws.String(indexDue), Limit: aws.Int32(int32(limit)),
		KeyConditionExpression:    aws.String("due_shard = :s AND due_at <= :until"),
		ExpressionAttributeValues: item{":s": str(shard), ":until": num(millis(until))},
	})
	if err != nil {
		return nil, unavailable("read due deliveries", err)
	}
	for _, it := range out.Items {
		d, ok := parseDeliveryPK(textOf(it, attrPK))
		if !ok {
			return nil, fmt.Errorf("read due deliveries: %q names no delivery", textOf(it, attrPK))
		}
		due = append(due, d)
	}
	return due, nil
}
