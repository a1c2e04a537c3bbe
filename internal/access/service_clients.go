package access

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"time"

	"pintu/internal/fault"
)

// maxTokens that one client has at once.
const maxTokens = 20

// CreateClient makes the client, or gives an existing one (a revoked one too) these scopes and limits,
// and adds a token good until expiresAt (zero: for ever). The token's text is given here and never again.
// Limits that are zero become the default.
func (s *Service) CreateClient(ctx context.Context, tenant, client string, scopes []Scope, limits Limits, expiresAt time.Time) (token string, err error) {
	if err := checkScopes(scopes); err != nil {
		return "", err
	}
	limits, err = limits.withDefaults()
	if err != nil {
		return "", err
	}
	return s.addToken(ctx, tenant, client, expiresAt, func(c *Client, found bool) error {
		if !found {
			*c = Client{Tenant: tenant, Name: client, CreatedAt: s.now()}
		}
		c.Scopes, c.Limits, c.RevokedAt = scopes, limits, time.Time{}
		return nil
	})
}

// AddToken adds a token with the client's scopes to those it has. NOT_FOUND when there is no such client
// or it is revoked.
func (s *Service) AddToken(ctx context.Context, tenant, client string, expiresAt time.Time) (token string, err error) {
	return s.addToken(ctx, tenant, client, expiresAt, mustExist)
}

func mustExist(c *Client, found bool) error {
	if !found || !c.RevokedAt.IsZero() {
		return fault.New(fault.NotFound, "there is no such client, or it is revoked; create it first")
	}
	return nil
}

// addToken reads the client, lets prepare change it and saves it with one more token.
func (s *Service) addToken(ctx context.Context, tenant, client string, expiresAt time.Time, prepare func(*Client, bool) error) (string, error) {
	var text string
	err := s.change(ctx, tenant, client, func(c *Client, found bool) (put []Token, drop []string, err error) {
		if err := prepare(c, found); err != nil {
			return nil, nil, err
		}
		live, drop, err := s.liveTokens(ctx, *c)
		if err != nil {
			return nil, nil, err
		}
		var fresh Token
		text, fresh, err = s.freshToken(*c, live, expiresAt)
		c.Tokens = append(idsOf(live), fresh.ID)
		return []Token{fresh}, drop, err
	})
	return text, err
}

// RotateToken adds a token and lets the earlier ones end after overlap, unless they end sooner anyway. A
// second rotation within the overlap takes nothing away from it.
func (s *Service) RotateToken(ctx context.Context, tenant, client string, overlap time.Duration, expiresAt time.Time) (token string, err error) {
	var text string
	err = s.change(ctx, tenant, client, func(c *Client, found bool) (put []Token, drop []string, err error) {
		if err := mustExist(c, found); err != nil {
			return nil, nil, err
		}
		live, drop, err := s.liveTokens(ctx, *c)
		if err != nil {
			return nil, nil, err
		}
		var fresh Token
		text, fresh, err = s.freshToken(*c, live, expiresAt)
		c.Tokens = append(idsOf(live), fresh.ID)
		return append(ending(live, s.now().Add(overlap)), fresh), drop, err
	})
	return text, err
}

// ending gives those of the tokens that would outlive end, cut to it.
func ending(tokens []Token, end time.Time) []Token {
	var out []Token
	for _, t := range tokens {
		if t.ExpiresAt.IsZero() || t.ExpiresAt.After(end) {
			t.ExpiresAt = end
			out = append(out, t)
		}
	}
	return out
}

// Revoke ends a client with all its tokens, at once. Revoking twice is no error.
func (s *Service) Revoke(ctx context.Context, tenant, client string) error {
	return s.change(ctx, tenant, client, func(c *Client, found bool) (put []Token, drop []string, err error) {
		if !found {
			return nil, nil, fault.New(fault.NotFound, "there is no such client")
		}
		if c.RevokedAt.IsZero() {
			c.RevokedAt = s.now()
		}
		drop, c.Tokens = c.Tokens, nil
		return nil, drop, nil
	})
}

// RevokeToken ends one token of a client, at once.
func (s *Service) RevokeToken(ctx context.Context, tenant, client, tokenID string) error {
	return s.change(ctx, tenant, client, func(c *Client, found bool) (put []Token, drop []string, err error) {
		i := slices.Index(c.Tokens, tokenID)
		if !found || i < 0 {
			return nil, nil, fault.New(fault.NotFound, "the client has no such token")
		}
		c.Tokens = slices.Delete(c.Tokens, i, i+1)
		return nil, []string{tokenID}, nil
	})
}

// maxChanges bounds how often a change starts over because somebody else changed the same client.
const maxChanges = 10

// change reads the client, applies fn and saves what it came to, again from the start when the client
// changed meanwhile.
func (s *Service) change(ctx context.Context, tenant, client string, fn func(*Client, bool) (put []Token, drop []string, err error)) error {
	if err := checkNames(tenant, client); err != nil {
		return err
	}
	for range maxChanges {
		c, found, err := s.store.FindClient(ctx, tenant, client)
		if err != nil {
			return err
		}
		put, drop, err := fn(&c, found)
		if err != nil {
			return err
		}
		if err = s.store.SaveClient(ctx, c, put, drop); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fault.New(fault.DependencyUnavailable, "the client is being changed by others; try again").After(time.Second)
}

// freshToken makes a token of the client, which must have room for one more.
func (s *Service) freshToken(c Client, live []Token, expiresAt time.Time) (string, Token, error) {
	if err := checkExpiry(expiresAt, s.now()); err != nil {
		return "", Token{}, err
	}
	if len(live) >= maxTokens {
		return "", Token{}, fault.New(fault.InvalidRequest, "the client has %d tokens already; revoke one first", maxTokens)
	}
	text, t, err := newToken(s.random)
	t.Tenant, t.Client, t.Scopes, t.CreatedAt, t.ExpiresAt = c.Tenant, c.Name, c.Scopes, s.now(), expiresAt
	return text, t, err
}

// liveTokens reads the client's tokens; drop names those that have expired.
func (s *Service) liveTokens(ctx context.Context, c Client) (live []Token, drop []string, err error) {
	for _, id := range c.Tokens {
		t, found, err := s.store.FindToken(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if found && !t.Expired(s.now()) {
			live = append(live, t)
		} else {
			drop = append(drop, id)
		}
	}
	return live, drop, nil
}

func idsOf(tokens []Token) []string {
	ids := make([]string, 0, len(tokens)+1)
	for _, t := range tokens {
		ids = append(ids, t.ID)
	}
	return ids
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// checkNames keeps what goes into keys to a form that cannot hold a separator.
func checkNames(tenant, client string) error {
	if !nameForm.MatchString(tenant) || !nameForm.MatchString(client) {
		return fault.New(fault.InvalidRequest, "tenant and client must each be 1 to 63 of a-z, 0-9 and '-', the first not '-'")
	}
	return nil
}

func checkScopes(scopes []Scope) error {
	for _, scope := range scopes {
		if !slices.Contains(Scopes, scope) {
			return fault.New(fault.InvalidRequest, "there is no scope %q", scope)
		}
	}
	return nil
}

func checkExpiry(expiresAt, now time.Time) error {
	if !expiresAt.IsZero() && !expiresAt.After(now) {
		return fault.New(fault.InvalidRequest, "the expiry is in the past")
	}
	return nil
}
