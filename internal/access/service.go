package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"slices"
	"time"

	"pintu/internal/fault"
)

// Service authenticates callers, keeps clients and counts what they use. Every answer comes from a
// strongly consistent read.
type Service struct {
	store  Store
	now    func() time.Time
	random io.Reader
}

// Config of a Service.
type Config struct {
	Store  Store
	Now    func() time.Time
	Random io.Reader // nil: crypto/rand
}

// New makes a Service.
func New(c Config) *Service {
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return &Service{store: c.Store, now: c.Now, random: c.Random}
}

// Client is a caller as it is kept. A token can do what both the token and its client carry.
type Client struct {
	Tenant    string
	Name      string
	Scopes    []Scope
	Limits    Limits
	Tokens    []string // ids of tokens that were not dropped
	CreatedAt time.Time
	RevokedAt time.Time // zero: not revoked
	Rev       int64     // grows with every change; 0: not stored yet
}

// ErrChanged says that somebody else changed the client since it was read.
var ErrChanged = errors.New("client changed meanwhile")

// Store keeps clients and tokens.
type Store interface {
	// FindToken and FindClient read consistently. found is false when there is nothing.
	FindToken(ctx context.Context, tokenID string) (t Token, found bool, err error)
	FindClient(ctx context.Context, tenant, name string) (c Client, found bool, err error)
	// SaveClient writes the client, puts and drops tokens, all or nothing, when the stored client still
	// has rev c.Rev (0: does not exist); it is stored with c.Rev+1. Else ErrChanged.
	SaveClient(ctx context.Context, c Client, put []Token, drop []string) error
	// TouchToken notes the use of a token unless that was done after since.
	TouchToken(ctx context.Context, tokenID string, now, since time.Time) error
	Meter
}

// touchEvery bounds how often the use of a token is noted.
const touchEvery = time.Hour

// Authenticate gives the caller that a bearer token (the text after "Bearer " in Authorization) belongs
// to. Missing, unknown, expired and revoked tokens are one UNAUTHORIZED that does not say which; a wrong
// secret takes the same steps as an unknown id.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Caller, error) {
	id, secret, ok := parseToken(bearer)
	if !ok {
		return Caller{}, unauthorized()
	}
	token, found, err := s.store.FindToken(ctx, id)
	if err != nil {
		return Caller{}, err
	}
	sum := sha256.Sum256([]byte(secret))
	same := subtle.ConstantTimeCompare(sum[:], token.Hash[:]) == 1
	if now := s.now(); !same || !found || token.Expired(now) {
		return Caller{}, unauthorized()
	}
	client, found, err := s.store.FindClient(ctx, token.Tenant, token.Client)
	if err != nil {
		return Caller{}, err
	}
	if !found || !client.RevokedAt.IsZero() {
		return Caller{}, unauthorized()
	}
	if err := s.touch(ctx, token); err != nil {
		return Caller{}, err
	}
	return Caller{Tenant: client.Tenant, Client: client.Name, TokenID: id, Scopes: both(token.Scopes, client.Scopes), Limits: client.Limits}, nil
}

func unauthorized() error {
	return fault.New(fault.Unauthorized, "send a valid token: Authorization: Bearer pintu_…")
}

func (s *Service) touch(ctx context.Context, t Token) error {
	now := s.now()
	since := now.Add(-touchEvery)
	if t.LastUsedAt.After(since) {
		return nil
	}
	return s.store.TouchToken(ctx, t.ID, now, since)
}

func both(a, b []Scope) []Scope {
	var out []Scope
	for _, scope := range a {
		if slices.Contains(b, scope) {
			out = append(out, scope)
		}
	}
	return out
}

// Holds tells whether a client still exists, is not revoked and carries the scope. Work that was
// submitted earlier asks this before it starts.
func (s *Service) Holds(ctx context.Context, tenant, client string, scope Scope) (bool, error) {
	c, found, err := s.store.FindClient(ctx, tenant, client)
	if err != nil {
		return false, err
	}
	return found && c.RevokedAt.IsZero() && slices.Contains(c.Scopes, scope), nil
}
