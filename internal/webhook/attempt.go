package webhook

import (
	"net/http"
	"time"
)

// Failure says why a try got no answer, in words that tell the owner of a receiver where to look and nobody
// anything about our network.
type Failure string

const (
	Unreachable Failure = "unreachable" // name without address, no route, connection refused
	TimedOut    Failure = "timeout"     // no connection, or no answer, in time
	BadTLS      Failure = "tls"         // certificate or handshake
	Broken      Failure = "broken"      // the connection ended, or what came was no HTTP
	NotAllowed  Failure = "blocked"     // refused by the rules for URLs; Reason says which
	Interrupted Failure = "interrupted" // our own process died; whether the event arrived is unknown
)

// Attempt is one try as it is on record.
type Attempt struct {
	Number     int // of the delivery, from 1, over all its rounds
	At         time.Time
	Duration   time.Duration
	Status     int           // HTTP status; 0 when there was no answer
	Failure    Failure       // empty when there was an answer
	Reason     string        // of a refusal, as in details.reason
	RetryAfter time.Duration // what the receiver asked for; 0 when nothing, or nothing that is obeyed
	Answer     []byte        // first bytes of the answer as they came
}

// maxAnswer is how much of an answer is read and kept, in bytes.
const maxAnswer = 1 << 10

// outcome is what a try means for its delivery.
type outcome int

const (
	again outcome = iota
	delivered
	gone
	blocked
)

// outcome decides from how a try went. An answer of 2xx means received, not processed; 410 means that the URL is
// no longer wanted; redirects are not followed, so a 3xx has delivered nothing.
func (a Attempt) outcome() outcome {
	switch {
	case a.Status >= 200 && a.Status <= 299:
		return delivered
	case a.Status == http.StatusGone:
		return gone
	case a.Failure == NotAllowed:
		return blocked
	}
	return again
}

// sick tells whether a try shows that the receiver cannot take events at all just now, and alive whether it
// shows that it can. A refusal or a death of our own shows neither.
func (a Attempt) sick() bool {
	switch a.Failure {
	case Unreachable, TimedOut, BadTLS, Broken:
		return true
	}
	return a.Status >= 500 || a.Status == http.StatusTooManyRequests
}

func (a Attempt) alive() bool { return a.Status != 0 && !a.sick() }
