package events

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"pintu/localstack/clock"
	"pintu/localstack/lambda"
	"pintu/localstack/template"
)

// Schedule fires one rate expression for one function: once at the start, then by the clock.
type Schedule struct {
	Rule     template.Schedule
	Function string // logical id
	Region   string
	Account  string
	Clock    *clock.Clock
	Invoke   Invoke
	Log      io.Writer
}

// Run fires until ctx ends, then waits for the invocations under way. A clock that was moved over several times of
// firing fires once. A failed invocation is logged; the next time of firing is the next try.
func (s *Schedule) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for next := s.Clock.Now(); s.Clock.WaitUntil(next, ctx.Done()); {
		now := s.Clock.Now()
		running.Go(func() { s.report(s.Fire(ctx, now)) })
		for !next.After(now) {
			next = next.Add(s.Rule.Every)
		}
	}
}

// Fire invokes the function once with the event of a time.
func (s *Schedule) Fire(ctx context.Context, at time.Time) (lambda.Result, error) {
	payload := []byte(s.Rule.Input)
	if len(payload) == 0 {
		payload = s.event(at)
	}
	return s.Invoke(ctx, s.Function, payload)
}

func (s *Schedule) report(r lambda.Result, err error) {
	switch {
	case err != nil:
		fmt.Fprintf(s.Log, "schedule | %s of %s: %v\n", s.Rule.Name, s.Function, err)
	case r.Failed:
		fmt.Fprintf(s.Log, "schedule | %s of %s failed: %s\n", s.Rule.Name, s.Function, r.Payload)
	}
}

// event is EventBridge's event for a schedule.
func (s *Schedule) event(at time.Time) []byte {
	var b [16]byte
	rand.Read(b[:])
	out, err := json.Marshal(map[string]any{
		"version": "0", "id": fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]),
		"detail-type": "Scheduled Event", "source": "aws.events", "account": s.Account, "region": s.Region,
		"time":      at.UTC().Format(time.RFC3339),
		"resources": []string{"arn:aws:events:" + s.Region + ":" + s.Account + ":rule/" + s.Function + s.Rule.Name},
		"detail":    map[string]any{},
	})
	if err != nil {
		panic(err) // strings only
	}
	return out
}
