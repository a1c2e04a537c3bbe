package storetest

import (
	"net/http"
	"testing"
	"time"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/idempotency"
	"pintu/localstack/faults"
)

// Whatever happens to one call on the wire, each request is done once and says so.
func TestOneCallGoesWrong(t *testing.T) {
	rules := map[string]faults.Rule{
		"throttled":             {Action: faults.Fail, Error: faults.Throttling},
		"throughput":            {Action: faults.Fail, Error: faults.Throughput},
		"conflict":              {Action: faults.Fail, Error: faults.TransactionConflict},
		"canceled by conflict":  {Action: faults.Fail, Error: faults.TransactionCanceled, Operation: "TransactWriteItems"},
		"internal error":        {Action: faults.Fail, Error: faults.InternalServerError},
		"connection broken":     {Action: faults.Reset},
		"reply lost":            {Action: faults.LoseReply},
		"executed twice":        {Action: faults.Duplicate},
		"write: reply lost":     {Action: faults.LoseReply, Operation: "TransactWriteItems"},
		"write: executed twice": {Action: faults.Duplicate, Operation: "TransactWriteItems"},
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var injector *faults.Injector
			store, _, _ := StartBehind(t, func(next http.Handler) http.Handler {
				injector = faults.New(next, func(string) bool { return false })
				return injector
			})
			clock := newClock()
			s := access.New(access.Config{Store: store, Now: clock.now})
			c := dataset.NewCatalog(dataset.CatalogConfig{Store: store, Now: clock.now})
			rule.Times = 1
			wrong := func() *faults.Active { return injector.Add(rule) }

			a := wrong()
			token := create(t, s, access.Limits{})
			fired(t, a)
			a = wrong()
			rotated, err := s.RotateToken(t.Context(), "acme", "loader", time.Hour, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			fired(t, a)
			a = wrong()
			in := idempotency.Intent{Key: "k", Fingerprint: "f"}
			p := put(t, c, in, orders(t, 1))
			if p.Version.Number != 1 || p.Outcome != idempotency.NewVersion {
				t.Errorf("put came to version %d, %s", p.Version.Number, p.Outcome)
			}
			fired(t, a)
			check(t, put(t, c, in, orders(t, 1)), 1, idempotency.NewVersion, true)
			authenticate(t, s, token)
			caller := authenticate(t, s, rotated)
			if rule.Operation == "" {
				a = wrong()
				if _, err := s.TakeSubmit(t.Context(), caller); err != nil {
					t.Fatal(err)
				}
				fired(t, a)
			}
			if kept := readClient(t, store); len(kept.Tokens) != 2 {
				t.Errorf("the client has tokens %v", kept.Tokens)
			}
		})
	}
}

func fired(t *testing.T, a *faults.Active) {
	t.Helper()
	if a.Hits() != 1 {
		t.Fatalf("the fault came %d times", a.Hits())
	}
}
