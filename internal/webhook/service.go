package webhook

import (
	"context"
	"errors"
	"strconv"
	"time"

	"pintu/internal/fault"
	"pintu/internal/netguard"
)

// Service is what clients can do with deliveries and secrets, beside reading them.
type Service struct {
	store    Store
	guard    *netguard.Guard
	policies Policies
	hints    Hints
	master   Master
	now      func() time.Time
}

// ServiceConfig is what a Service needs; all of it.
type ServiceConfig struct {
	Store    Store
	Guard    *netguard.Guard
	Policies Policies
	Hints    Hints
	Master   Master
	Now      func() time.Time
}

// NewService makes a Service.
func NewService(c ServiceConfig) *Service {
	return &Service{store: c.Store, guard: c.Guard, policies: c.Policies, hints: c.Hints, master: c.Master, now: c.Now}
}

// CheckURL holds a callback URL to the tenant's rules and gives it normalised, as it is stored. It fails with
// CALLBACK_URL_NOT_ALLOWED or DOMAIN_BLOCKED.
func (s *Service) CheckURL(ctx context.Context, tenant, rawURL string) (string, error) {
	policy, err := s.policies.CallbackPolicy(ctx, tenant)
	if err != nil {
		return "", err
	}
	u, err := s.guard.Check(ctx, rawURL, policy)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// Requested is the answer to a request about one delivery.
type Requested struct {
	Delivery Delivery
	Replayed bool // the key was seen before: Delivery is the first one, as it is now
}

// SendTest puts a test event on its way to a URL.
func (s *Service) SendTest(ctx context.Context, tenant string, req Request, requestID, rawURL string) (Requested, error) {
	return s.request(ctx, tenant, req, func() (Delivery, error) {
		u, err := s.CheckURL(ctx, tenant, rawURL)
		if err != nil {
			return Delivery{}, err
		}
		event, err := TestEvent(s.now().UTC())
		if err != nil {
			return Delivery{}, err
		}
		d := NewDelivery(tenant, u, requestID, event)
		return d, req.CreateDelivery(ctx, d)
	})
}

// Redeliver sends an event again, with the same event id and bytes.
func (s *Service) Redeliver(ctx context.Context, tenant string, req Request, deliveryID DeliveryID) (Requested, error) {
	return s.request(ctx, tenant, req, func() (Delivery, error) {
		d, err := s.store.Delivery(ctx, tenant, deliveryID)
		if err != nil {
			return Delivery{}, err
		}
		return req.SaveRedelivery(ctx, d.Redeliver(s.now().UTC()))
	})
}

// request does what an intent asks for once, and sends the message for it.
func (s *Service) request(ctx context.Context, tenant string, req Request, do func() (Delivery, error)) (Requested, error) {
	for range maxRaces {
		ref, err := req.Made(ctx)
		if err != nil {
			return Requested{}, err
		}
		if ref != "" {
			d, err := s.store.Delivery(ctx, tenant, DeliveryID(ref))
			return Requested{Delivery: d, Replayed: true}, err
		}
		d, err := do()
		if errors.Is(err, ErrIntentTaken) || errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return Requested{}, err
		}
		// It is due by what was written: when the message is not sent now, sweep sends it.
		return Requested{Delivery: d}, s.hints.SendDelivery(ctx, d.Hint(), d.Destination(), 0)
	}
	return Requested{}, contended()
}

func contended() error {
	return fault.New(fault.DependencyUnavailable, "too many requests for this at once; try again").After(time.Second)
}

// Rotated is a secret as it is shown: in the answer to the rotation that made it, and to its replays.
type Rotated struct {
	Generation int
	Secret     Secret
	Replayed   bool
}

// Rotate makes the next secret of the caller's tenant. The key of the request names the generation, so that a
// repeated request shows the same secret. It fails with *TooManySecrets.
func (s *Service) Rotate(ctx context.Context, tenant string, req Request) (Rotated, error) {
	for range maxRaces {
		ref, err := req.Made(ctx)
		if err != nil {
			return Rotated{}, err
		}
		if ref != "" {
			generation, err := strconv.Atoi(ref)
			if err != nil {
				return Rotated{}, err
			}
			secret, err := s.master.Secret(tenant, generation)
			return Rotated{Generation: generation, Secret: secret, Replayed: true}, err
		}
		stored, err := s.store.Secrets(ctx, tenant)
		if err != nil {
			return Rotated{}, err
		}
		if stored.Generations, err = stored.Generations.Rotate(s.now().UTC()); err != nil {
			return Rotated{}, err
		}
		err = req.SaveSecrets(ctx, tenant, stored)
		if errors.Is(err, ErrIntentTaken) || errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return Rotated{}, err
		}
		newest := stored.Generations[len(stored.Generations)-1].Number
		secret, err := s.master.Secret(tenant, newest)
		return Rotated{Generation: newest, Secret: secret}, err
	}
	return Rotated{}, contended()
}
