// Package backoff says how long to wait before the next try. It is pure: the random part is passed
// in, nothing here waits.
package backoff

import "time"

// Exponential doubles base with every attempt (the first is 1) up to max, and takes the part of it
// between one half and the whole that jitter in [0,1) names, so that many who failed together do not
// come back together.
func Exponential(attempt int, base, max time.Duration, jitter float64) time.Duration {
	d := base
	for i := 1; i < attempt && d < max; i++ {
		d *= 2
	}
	d = min(d, max)
	return d/2 + time.Duration(jitter*float64(d/2))
}
