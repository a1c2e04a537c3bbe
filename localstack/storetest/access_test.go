package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/access"
	"pintu/internal/fault"
)

// clock is a time that tests move by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 7, 27, 10, 15, 30, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newAccess(t *testing.T) (*access.Service, *clock) {
	c := newClock()
	return access.New(access.Config{Store: New(t), Now: c.now}), c
}

func create(t *testing.T, s *access.Service, limits access.Limits) (token string) {
	t.Helper()
	token, err := s.CreateClient(t.Context(), "acme", "loader", []access.Scope{access.JobsSubmit, access.JobsRead}, limits, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func authenticate(t *testing.T, s *access.Service, token string) access.Caller {
	t.Helper()
	caller, err := s.Authenticate(t.Context(), token)
	if err != nil {
		t.Fatalf("Authenticate: %v", err)
	}
	return caller
}

func TestAuthenticate(t *testing.T) {
	s, _ := newAccess(t)
	token := create(t, s, access.Limits{ActiveJobs: 7})
	limits := access.DefaultLimits()
	limits.ActiveJobs = 7
	want := access.Caller{Tenant: "acme", Client: "loader", TokenID: access.TokenID(token),
		Scopes: []access.Scope{access.JobsSubmit, access.JobsRead}, Limits: limits}
	if diff := cmp.Diff(want, authenticate(t, s, token)); diff != "" {
		t.Error(diff)
	}
}

// Every refusal is the same answer, so that nothing can be learned from it.
func TestAuthenticateRefuses(t *testing.T) {
	s, c := newAccess(t)
	good := create(t, s, access.Limits{})
	expired, err := s.AddToken(t.Context(), "acme", "loader", c.now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := s.AddToken(t.Context(), "acme", "loader", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeToken(t.Context(), "acme", "loader", access.TokenID(revoked)); err != nil {
		t.Fatal(err)
	}
	c.move(time.Hour)
	last := good[len(good)-1:]
	tests := map[string]string{
		"no token":     "",
		"no form":      "pintu_x",
		"unknown id":   "pintu_" + strings.Repeat("a", 16) + good[22:],
		"wrong secret": good[:len(good)-1] + strings.Trim("ab", last)[:1],
		"expired":      expired,
		"revoked":      revoked,
	}
	want := "UNAUTHORIZED: send a valid token: Authorization: Bearer pintu_…"
	for name, token := range tests {
		t.Run(name, func(t *testing.T) {
			caller, err := s.Authenticate(t.Context(), token)
			if !fault.Is(err, fault.Unauthorized) || err.Error() != want {
				t.Errorf("Authenticate(%q) = %+v, %v", token, caller, err)
			}
		})
	}
	authenticate(t, s, good)
}

func TestRotation(t *testing.T) {
	s, c := newAccess(t)
	first := create(t, s, access.Limits{})
	second, err := s.RotateToken(t.Context(), "acme", "loader", 24*time.Hour, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c.move(23 * time.Hour)
	authenticate(t, s, first)
	authenticate(t, s, second)
	third, err := s.RotateToken(t.Context(), "acme", "loader", 24*time.Hour, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c.move(2 * time.Hour)
	if _, err := s.Authenticate(t.Context(), first); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the first token outlives its overlap: %v", err)
	}
	authenticate(t, s, second)
	authenticate(t, s, third)
}

func TestRevokeEndsEveryTokenAtOnce(t *testing.T) {
	s, _ := newAccess(t)
	tokens := []string{create(t, s, access.Limits{}), create(t, s, access.Limits{})}
	for range 2 { // the second time changes nothing
		if err := s.Revoke(t.Context(), "acme", "loader"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AddToken(t.Context(), "acme", "loader", time.Time{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("AddToken on a revoked client: %v", err)
	}
	if holds, err := s.Holds(t.Context(), "acme", "loader", access.JobsSubmit); holds || err != nil {
		t.Errorf("Holds = %v, %v on a revoked client", holds, err)
	}
	fresh := create(t, s, access.Limits{})
	authenticate(t, s, fresh)
	for _, token := range tokens {
		if _, err := s.Authenticate(t.Context(), token); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("a revoked token works again after the client was made again: %v", err)
		}
	}
}

func TestCreateAgainNarrowsEarlierTokens(t *testing.T) {
	s, _ := newAccess(t)
	wide := create(t, s, access.Limits{})
	if _, err := s.CreateClient(t.Context(), "acme", "loader", []access.Scope{access.JobsRead}, access.Limits{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if caller := authenticate(t, s, wide); caller.Can(access.JobsSubmit) || !caller.Can(access.JobsRead) {
		t.Errorf("scopes %v", caller.Scopes)
	}
	for scope, want := range map[access.Scope]bool{access.JobsSubmit: false, access.JobsRead: true} {
		if holds, err := s.Holds(t.Context(), "acme", "loader", scope); holds != want || err != nil {
			t.Errorf("Holds(%s) = %v, %v", scope, holds, err)
		}
	}
}

func TestClientsAreRefused(t *testing.T) {
	s, c := newAccess(t)
	tests := []struct {
		name           string
		tenant, client string
		scopes         []access.Scope
		limits         access.Limits
		expires        time.Time
	}{
		{name: "no tenant", client: "loader"},
		{name: "separator", tenant: "acme", client: "a#b"},
		{name: "upper case", tenant: "Acme", client: "loader"},
		{name: "dash first", tenant: "acme", client: "-loader"},
		{name: "64 characters", tenant: strings.Repeat("a", 64), client: "loader"},
		{name: "unknown scope", tenant: "acme", client: "loader", scopes: []access.Scope{"jobs:*"}},
		{name: "negative limit", tenant: "acme", client: "loader", limits: access.Limits{ActiveJobs: -1}},
		{name: "expiry in the past", tenant: "acme", client: "loader", expires: c.now()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			token, err := s.CreateClient(t.Context(), tt.tenant, tt.client, tt.scopes, tt.limits, tt.expires)
			if !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("CreateClient = %q, %v", token, err)
			}
		})
	}
}

func TestTokensOfOneClientAreBounded(t *testing.T) {
	s, c := newAccess(t)
	create(t, s, access.Limits{})
	for range 19 {
		if _, err := s.AddToken(t.Context(), "acme", "loader", c.now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AddToken(t.Context(), "acme", "loader", time.Time{}); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("the 21st token: %v", err)
	}
	c.move(time.Hour)
	if _, err := s.AddToken(t.Context(), "acme", "loader", time.Time{}); err != nil {
		t.Errorf("expired tokens still count: %v", err)
	}
}

func TestTokensAddedAtOnceAllWork(t *testing.T) {
	store := New(t)
	s := access.New(access.Config{Store: store, Now: newClock().now})
	create(t, s, access.Limits{})
	tokens, errs := make([]string, 8), make([]error, 8)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() { tokens[i], errs[i] = s.AddToken(t.Context(), "acme", "loader", time.Time{}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		authenticate(t, s, token)
	}
	if c := readClient(t, store); len(c.Tokens) != 1+len(tokens) {
		t.Errorf("the client knows %d of its %d tokens", len(c.Tokens), 1+len(tokens))
	}
	if err := s.Revoke(t.Context(), "acme", "loader"); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if _, err := s.Authenticate(t.Context(), token); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("a token escaped the revocation: %v", err)
		}
	}
}

func TestUseOfATokenIsNotedHourly(t *testing.T) {
	store, _, _ := Start(t)
	c := newClock()
	s := access.New(access.Config{Store: store, Now: c.now})
	token := create(t, s, access.Limits{})
	start := c.now()
	used := func() time.Duration {
		t.Helper()
		authenticate(t, s, token)
		kept, _, err := store.FindToken(t.Context(), access.TokenID(token))
		if err != nil {
			t.Fatal(err)
		}
		return kept.LastUsedAt.Sub(start)
	}
	steps := []struct{ move, want time.Duration }{
		{0, 0}, {59 * time.Minute, 0}, {time.Minute, time.Hour}, {time.Minute, time.Hour}, {3 * time.Hour, 4*time.Hour + time.Minute},
	}
	for _, step := range steps {
		c.move(step.move)
		if got := used(); got != step.want {
			t.Errorf("after %v last use is %v after the start, want %v", step.move, got, step.want)
		}
	}
}

func TestTouchDoesNotBringATokenBack(t *testing.T) {
	store := New(t)
	now := newClock().now()
	if err := store.TouchToken(t.Context(), "gone", now, now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if token, found, err := store.FindToken(t.Context(), "gone"); found || err != nil {
		t.Errorf("FindToken = %+v, %v, %v", token, found, err)
	}
}
