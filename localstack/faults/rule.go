package faults

import (
	"math/rand/v2"
	"strings"
	"sync"
)

// Rule says which calls go wrong, and how. Empty fields match everything.
type Rule struct {
	Service   string
	Operation string
	Caller    string          // "ProcessFunction" matches every process of it, "ProcessFunction-3" one
	Match     func(Call) bool // further condition, on the body for instance; called under no lock

	// N fires at the n-th matching call only (1 is the first), Times at the first so many; both zero: at every one.
	N, Times int
	// Probability, when not zero, fires at random with this chance, drawn from a generator seeded with Seed.
	Probability float64
	Seed        uint64

	Action Action
	Error  Error // what Fail answers
}

// Action is what happens to a call a rule fires at.
type Action int

const (
	// Fail answers Rule.Error; the call is not executed.
	Fail Action = iota
	// Reset closes the connection; the call is not executed.
	Reset
	// LoseReply executes the call, then closes the connection instead of answering.
	LoseReply
	// HoldBefore waits for Active.Release, then executes and answers.
	HoldBefore
	// HoldAfter executes, waits for Active.Release, then answers.
	HoldAfter
	// Duplicate executes the call twice and gives the second answer, as a retry below the caller does.
	Duplicate
	// KillBefore kills the calling function's process; the call is not executed.
	KillBefore
	// KillAfter executes the call, then kills the calling function's process.
	KillAfter
)

// Error is an answer of AWS that asks for another try, or a fault of the service.
type Error string

const (
	Throttling          Error = "ThrottlingException"                    // 400; for S3 see SlowDown
	Throughput          Error = "ProvisionedThroughputExceededException" // 400, DynamoDB
	TransactionConflict Error = "TransactionConflictException"           // 400, a plain write met a transaction
	TransactionCanceled Error = "TransactionCanceledException"           // 400, with reason TransactionConflict for the first item
	InternalServerError Error = "InternalServerError"                    // 500
	SlowDown            Error = "SlowDown"                               // 503, S3
)

// Active is a rule in force.
type Active struct {
	rule     Rule
	injector *Injector
	reached  chan struct{}
	gate     chan struct{}
	release  sync.Once

	mu   sync.Mutex
	rand *rand.Rand
	seen int // matching calls
	hits int // calls the rule fired at
}

// Hits is how many calls the rule fired at.
func (a *Active) Hits() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hits
}

// Seen is how many calls matched, whether it fired or not.
func (a *Active) Seen() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

// Reached is closed when the rule fires for the first time. For a Hold action the call waits from then on.
func (a *Active) Reached() <-chan struct{} { return a.reached }

// Release lets every held call go on, now and later.
func (a *Active) Release() { a.release.Do(func() { close(a.gate) }) }

// Remove ends the rule and releases what it holds.
func (a *Active) Remove() {
	a.injector.remove(a)
	a.Release()
}

// fires counts a call and tells whether the rule acts on it.
func (a *Active) fires(c Call) bool {
	if !a.matches(c) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen++
	r := a.rule
	if (r.N > 0 && a.seen != r.N) || (r.Times > 0 && a.hits >= r.Times) {
		return false
	}
	if r.Probability > 0 && a.rand.Float64() >= r.Probability {
		return false
	}
	if a.hits++; a.hits == 1 {
		close(a.reached)
	}
	return true
}

func (a *Active) matches(c Call) bool {
	r := a.rule
	return (r.Service == "" || r.Service == c.Service) && (r.Operation == "" || r.Operation == c.Operation) &&
		called(r.Caller, c.Caller) && (r.Match == nil || r.Match(c))
}

// called tells whether a caller is the function, or the process, that a rule names.
func called(want, caller string) bool {
	return want == "" || caller == want || strings.HasPrefix(caller, want+"-")
}
