package webhook

import (
	"maps"
	"time"

	"pintu/internal/backoff"
)

// Destination is what is known of one receiver: how many tries are being made, and how many it may hold up. One
// that is not known to be well gets one at a time, and one more for every good answer; a failure takes that back.
// After several failures in a row nothing is sent for a while, then one try shows whether it is well again. So a
// receiver that hangs holds up one worker, and one that has just begun to, a few.
type Destination struct {
	Failures  int                      // in a row
	Good      int                      // answers since the last failure, counted up to maxInFlight
	OpenUntil time.Time                // nothing is sent before, when Failures is at the limit
	InFlight  map[DeliveryID]time.Time // tries being made, until when each is given up
	Version   int64                    // the store's: every write raises it, and refuses to be made over another
}

const (
	// maxInFlight is how many tries one receiver may hold up at a time when it is well.
	maxInFlight = 8
	// maxFailures in a row open the breaker.
	maxFailures = 5
	// openBase and openMax bound how long it stays open; it doubles with every failed probe.
	openBase = 30 * time.Second
	openMax  = 10 * time.Minute
	// crowded is how long a delivery waits for its turn when the destination is busy.
	crowded = 2 * time.Second
	// spread parts those that wait for the same breaker.
	spread = 30 * time.Second
)

// Admit asks for one try. When it is refused, until says when to ask again. The last try of a round does not
// wait for an open breaker, only for its turn.
func (d Destination) Admit(delivery DeliveryID, now time.Time, last bool, jitter float64) (_ Destination, until time.Time, ok bool) {
	d.InFlight = maps.Clone(d.InFlight)
	maps.DeleteFunc(d.InFlight, func(_ DeliveryID, end time.Time) bool { return !now.Before(end) })
	if d.Failures >= maxFailures && !last && now.Before(d.OpenUntil) {
		return d, d.OpenUntil.Add(time.Duration(jitter * float64(spread))), false
	}
	limit := min(1+d.Good, maxInFlight)
	if _, mine := d.InFlight[delivery]; !mine && len(d.InFlight) >= limit {
		return d, now.Add(crowded + time.Duration(jitter*float64(crowded))), false
	}
	if d.InFlight == nil {
		d.InFlight = map[DeliveryID]time.Time{}
	}
	d.InFlight[delivery] = now.Add(ClaimLife)
	return d, time.Time{}, true
}

// Settle takes note of how an admitted try went.
func (d Destination) Settle(delivery DeliveryID, a Attempt, now time.Time, jitter float64) Destination {
	d.InFlight = maps.Clone(d.InFlight)
	delete(d.InFlight, delivery)
	switch {
	case a.alive():
		d.Failures, d.Good, d.OpenUntil = 0, min(d.Good+1, maxInFlight), time.Time{}
	case a.sick():
		d.Failures, d.Good = d.Failures+1, 0
		if d.Failures >= maxFailures {
			d.OpenUntil = now.Add(backoff.Exponential(d.Failures-maxFailures+1, openBase, openMax, jitter))
		}
	}
	return d
}
