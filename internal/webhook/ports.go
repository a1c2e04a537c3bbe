package webhook

import (
	"context"
	"errors"
	"time"

	"pintu/internal/fault"
	"pintu/internal/netguard"
)

// DeliveryNotFound is the code of a delivery that is not there, or is another tenant's.
const DeliveryNotFound fault.Code = "DELIVERY_NOT_FOUND"

// What a store answers when a condition was not met.
var (
	ErrMoved       = errors.New("it is no longer as it was read")
	ErrIntentTaken = errors.New("the idempotency key was taken by another request")
)

// Store keeps deliveries, and what is known of destinations and secrets. Reads are strongly consistent. Every
// save is conditional on the Version that was read, fails with ErrMoved, and gives the value as it is then.
type Store interface {
	// Delivery fails with DELIVERY_NOT_FOUND.
	Delivery(ctx context.Context, tenant string, deliveryID DeliveryID) (Delivery, error)
	// SaveDelivery writes a delivery and, when there is one, the attempt that it was decided from, together.
	SaveDelivery(ctx context.Context, d Delivery, a *Attempt) (Delivery, error)
	// Destination gives the zero value for one that nothing is known of.
	Destination(ctx context.Context, name string) (Destination, error)
	SaveDestination(ctx context.Context, name string, d Destination) (Destination, error)
	Secrets(ctx context.Context, tenant string) (Secrets, error)
}

// Secrets are the stored generations of a tenant.
type Secrets struct {
	Generations Generations
	Version     int64 // as with deliveries
}

// Request is one API request: it keeps what it makes together with the intent that asked for it, so that asking
// twice makes one. What it writes fails with ErrIntentTaken when another request took its key meanwhile.
type Request interface {
	// Made gives what an earlier request with this intent made, a delivery id or a generation, or "". It fails
	// with IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD.
	Made(ctx context.Context) (ref string, _ error)
	CreateDelivery(ctx context.Context, d Delivery) error
	// SaveRedelivery is conditional as SaveDelivery is.
	SaveRedelivery(ctx context.Context, d Delivery) (Delivery, error)
	// SaveSecrets is conditional as SaveDelivery is. What it makes is the newest generation.
	SaveSecrets(ctx context.Context, tenant string, s Secrets) error
}

// Lists reads for people.
type Lists interface {
	// Attempts gives what is on record of a delivery, oldest first.
	Attempts(ctx context.Context, tenant string, deliveryID DeliveryID) ([]Attempt, error)
	// ListDeliveries gives deliveries of a tenant, newest first.
	ListDeliveries(ctx context.Context, tenant string, f Filter) (Page, error)
	// ListExhausted names exhausted deliveries of all tenants, those that ended first before the others.
	ListExhausted(ctx context.Context, limit int) ([]Due, error)
	// DueDeliveries names deliveries of a shard of the due index whose time has come.
	DueDeliveries(ctx context.Context, shard int, now time.Time, limit int) ([]Due, error)
}

// Filter selects deliveries of a list.
type Filter struct {
	State  State // empty: every state
	Cursor string
	Limit  int
}

// Page is a part of a list. NextCursor is empty at the end.
type Page struct {
	Deliveries []Delivery
	NextCursor string
}

// Due names a delivery.
type Due struct {
	Tenant     string
	DeliveryID DeliveryID
}

// Hint is the message of the webhook queue: it carries ids, the store is the truth.
type Hint struct {
	Tenant     string     `json:"tenant"`
	DeliveryID DeliveryID `json:"delivery_id"`
	RequestID  string     `json:"request_id"`
}

// Hints sends hints. Messages of one group take turns with those of others; group is a destination.
type Hints interface {
	SendDelivery(ctx context.Context, h Hint, group string, delay time.Duration) error
}

// Policies gives what a tenant's callbacks are held to.
type Policies interface {
	CallbackPolicy(ctx context.Context, tenant string) (netguard.Policy, error)
}
