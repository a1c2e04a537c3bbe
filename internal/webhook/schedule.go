package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// steps are the waits after the first failed try, the second, and so on: seconds for a receiver that is being
// restarted, minutes for a deployment, hours for a night or a weekend. Together 64 h 42 min; with all jitter
// 71 h 11 min, so that the last try of an undisturbed schedule is within Budget.
var steps = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	1 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 14 * time.Hour, 14 * time.Hour, 14 * time.Hour,
}

const (
	// Budget is how long a round is tried, from its begin.
	Budget = 72 * time.Hour
	// maxHint bounds what a receiver may ask for with Retry-After.
	maxHint = 14 * time.Hour
	// jitterPart is how much a wait grows at most by chance. It never shrinks: a wait is a promise to the receiver.
	jitterPart = 0.1
)

// next tells when to try again after a failed try made at now, the tries-th of a round that began at begin. The
// wait is the step of the schedule or what the receiver asked for, whichever is longer: a shorter wish would use
// the tries up before an outage ends. ok is false when the round is over.
func next(tries int, begin, now time.Time, hint time.Duration, jitter float64) (at time.Time, ok bool) {
	end := begin.Add(Budget)
	if tries > len(steps) || !now.Before(end) {
		return time.Time{}, false
	}
	wait := max(steps[tries-1], min(hint, maxHint))
	at = now.Add(wait + time.Duration(jitter*jitterPart*float64(wait)))
	if at.After(end) {
		at = end // the last try is made when the time is up, not given away
	}
	return at, true
}

// retryAfter reads what a receiver asked for: seconds or a date, obeyed with 429 and 503 alone. What cannot be
// read, or lies in the past, is no wish.
func retryAfter(status int, value string, now time.Time) time.Duration {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0
	}
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxHint/time.Second))) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxHint)
}
