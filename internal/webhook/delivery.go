package webhook

import (
	"errors"
	"net/url"
	"time"

	"pintu/internal/id"
)

// State of a delivery. All but Pending are ends; a redelivery begins again from any of them.
type State string

const (
	Pending   State = "pending"
	Delivered State = "delivered" // answered with 2xx
	Exhausted State = "exhausted" // every try of the schedule failed
	Gone      State = "gone"      // answered with 410
	Blocked   State = "blocked"   // the URL was refused when it was dialled
)

// Delivery is one event on its way to one URL. A round is the tries from the event's birth, or from a redelivery,
// to an end.
type Delivery struct {
	Tenant    string
	ID        DeliveryID
	EventID   EventID
	EventType string
	JobID     id.Job // empty for a test event
	RequestID string // of the request that caused the event
	URL       string // normalised; may hold secrets of its owner: never in a log
	Body      []byte
	State     State
	CreatedAt time.Time // sent_at of the event
	RoundAt   time.Time // begin of the round
	Tries     int       // made in this round
	Attempts  int       // made in all rounds
	NextAt    time.Time // no try before; zero when ended
	ClaimedAt time.Time // of a try that is being made; zero when none is
	EndedAt   time.Time
	Version   int64     // grows by one with every claim
	DueAt     time.Time `dynamodbav:"-"` // when sweep must look; zero exactly when ended
}

const (
	// ClaimLife is how long a claim holds: well over the longest try, so that what is beyond it is dead.
	ClaimLife = time.Minute
	// MaxQueueDelay is the longest delay of a message in SQS. What is due later is left to the due index.
	MaxQueueDelay = 15 * time.Minute
	// queueGrace is how late a delayed message may be before sweep sends another.
	queueGrace = 2 * time.Minute
	// lookAgain is how long a message that sweep sent may wait in the queue before it sends another.
	lookAgain = 5 * time.Minute
)

// Answers of Claim that are no faults: there is nothing to do now.
var (
	ErrEnded   = errors.New("the delivery has ended")
	ErrNotYet  = errors.New("the next try is not due yet")
	ErrClaimed = errors.New("another process is trying")
)

// NewDelivery puts an event on its way to a URL that was checked and normalised. The id is that of the event
// with another prefix.
func NewDelivery(tenant, url, requestID string, e Event) Delivery {
	return Delivery{
		Tenant: tenant, ID: DeliveryID(deliveryPrefix + string(e.ID[len(eventPrefix):])), EventID: e.ID, EventType: e.Type, JobID: e.JobID,
		RequestID: requestID, URL: url, Body: e.Body, State: Pending, CreatedAt: e.SentAt,
	}.begin(e.SentAt)
}

func (d Delivery) begin(now time.Time) Delivery {
	d.State, d.RoundAt, d.Tries, d.EndedAt = Pending, now, 0, time.Time{}
	return d.wait(now, now)
}

// wait sets when the next try may be made, and when sweep must look: at that time when no message can be
// delayed so long, and else some time after the message should have come.
func (d Delivery) wait(until, now time.Time) Delivery {
	d.NextAt, d.DueAt, d.ClaimedAt = until, until, time.Time{}
	if _, ok := d.Delay(now); ok {
		d.DueAt = until.Add(queueGrace)
	}
	return d
}

// Delay tells how long a message for the next try is to be delayed. ok is false when there is to be none: the
// delivery has ended, or its time is so far away that sweep sends the message.
func (d Delivery) Delay(now time.Time) (delay time.Duration, ok bool) {
	delay = max(d.NextAt.Sub(now), 0)
	return delay, d.State == Pending && delay <= MaxQueueDelay
}

// Interrupt settles a claim that ran out: whoever held it is dead, and nobody knows whether the event arrived. It
// counts as a failed try, so that a delivery which kills its process ends too. lost is to be put on record with it.
func (d Delivery) Interrupt(now time.Time, jitter float64) (_ Delivery, lost Attempt, ok bool) {
	if d.ClaimedAt.IsZero() || now.Before(d.ClaimedAt.Add(ClaimLife)) {
		return d, Attempt{}, false
	}
	lost = Attempt{Number: d.Attempts + 1, At: d.ClaimedAt, Failure: Interrupted}
	return d.Record(lost, d.ClaimedAt, jitter), lost, true
}

// Claim takes the next try, or says why there is none to make.
func (d Delivery) Claim(now time.Time) (Delivery, error) {
	switch {
	case d.State != Pending:
		return d, ErrEnded
	case !d.ClaimedAt.IsZero():
		return d, ErrClaimed
	case now.Before(d.NextAt):
		return d, ErrNotYet
	}
	d.ClaimedAt, d.DueAt = now, now.Add(ClaimLife)
	return d, nil
}

// Last tells whether a try at a moment is the last of its round: it does not wait for a breaker.
func (d Delivery) Last(now time.Time) bool {
	return d.Tries >= len(steps) || !now.Before(d.RoundAt.Add(Budget))
}

// Defer gives a claim back without a try, because the destination takes none now. It never waits beyond the
// round: then the last try is made.
func (d Delivery) Defer(until, now time.Time) Delivery {
	if end := d.RoundAt.Add(Budget); until.After(end) && now.Before(end) {
		until = end
	}
	return d.wait(until, now)
}

// Record decides what a try means: an end, or when to try again. jitter in [0,1) is the random part.
func (d Delivery) Record(a Attempt, now time.Time, jitter float64) Delivery {
	d.Tries, d.Attempts = d.Tries+1, a.Number
	switch a.outcome() {
	case delivered:
		return d.end(Delivered, now)
	case gone:
		return d.end(Gone, now)
	case blocked:
		return d.end(Blocked, now)
	}
	at, ok := next(d.Tries, d.RoundAt, now, a.RetryAfter, jitter)
	if !ok {
		return d.end(Exhausted, now)
	}
	return d.wait(at, now)
}

func (d Delivery) end(s State, now time.Time) Delivery {
	d.State, d.EndedAt = s, now
	d.NextAt, d.DueAt, d.ClaimedAt = time.Time{}, time.Time{}, time.Time{}
	return d
}

// Redeliver begins a new round of the same event, whatever the last one came to. A pending delivery is tried at
// once instead, unless it is being tried.
func (d Delivery) Redeliver(now time.Time) Delivery {
	if d.State != Pending {
		return d.begin(now)
	}
	if d.ClaimedAt.IsZero() && now.Before(d.NextAt) {
		return d.wait(now, now)
	}
	return d
}

// Look moves the due time of a delivery that is due: a message for it is about to be sent, and another only when
// that one comes to nothing. ok is false when it is not due.
func (d Delivery) Look(now time.Time) (_ Delivery, ok bool) {
	if d.State != Pending || now.Before(d.DueAt) {
		return d, false
	}
	d.DueAt = now.Add(lookAgain)
	return d, true
}

// Hint is the message for the next try.
func (d Delivery) Hint() Hint {
	return Hint{Tenant: d.Tenant, DeliveryID: d.ID, RequestID: d.RequestID}
}

// Destination names whom a delivery depends on: the receiver's scheme, host and port, within the tenant. What
// one tenant's receiver does never holds up another tenant's deliveries.
func (d Delivery) Destination() string {
	u, err := url.Parse(d.URL)
	if err != nil { // it was parsed when it was checked
		return d.Tenant + " invalid"
	}
	return d.Tenant + " " + u.Scheme + "://" + u.Host
}
