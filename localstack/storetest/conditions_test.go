package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/idempotency"
)

// The tests here lose races on purpose: each writes on what was read before somebody else's write.

func readClient(t *testing.T, store *dynamostore.Store) access.Client {
	t.Helper()
	c, found, err := store.FindClient(t.Context(), "acme", "loader")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	return c
}

func TestSaveClientRefusesWhatWasReadBefore(t *testing.T) {
	store := New(t)
	s := access.New(access.Config{Store: store, Now: newClock().now})
	create(t, s, access.Limits{})
	stale := readClient(t, store)
	added, err := s.AddToken(t.Context(), "acme", "loader", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	lost := access.Token{ID: "lost", Tenant: "acme", Client: "loader"}
	if err := store.SaveClient(t.Context(), stale, []access.Token{lost}, stale.Tokens); !errors.Is(err, access.ErrChanged) {
		t.Errorf("saved over a change: %v", err)
	}
	if err := store.SaveClient(t.Context(), access.Client{Tenant: "acme", Name: "loader"}, nil, nil); !errors.Is(err, access.ErrChanged) {
		t.Errorf("made a client that is there: %v", err)
	}
	if _, found, err := store.FindToken(t.Context(), "lost"); found || err != nil {
		t.Errorf("half of the save came through: %v", err)
	}
	if now := readClient(t, store); len(now.Tokens) != 2 || !slices.Contains(now.Tokens, access.TokenID(added)) {
		t.Errorf("tokens %v", now.Tokens)
	}
}

// Dropping the tokens ends them; the mark on the client ends also one that was left behind.
func TestARevokedClientHasNoGoodToken(t *testing.T) {
	store := New(t)
	s := access.New(access.Config{Store: store, Now: newClock().now})
	token := create(t, s, access.Limits{})
	c := readClient(t, store)
	c.RevokedAt = newClock().now()
	if err := store.SaveClient(t.Context(), c, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(t.Context(), token); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("Authenticate: %v", err)
	}
}

func TestCatalogRefusesWhatWasReadBefore(t *testing.T) {
	store := New(t)
	clock := newClock()
	c := dataset.NewCatalog(dataset.CatalogConfig{Store: store, Now: clock.now})
	put(t, c, idempotency.Intent{}, orders(t, 1))
	stale, err := store.DatasetHead(t.Context(), "acme", "orders")
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.GetVersion(t.Context(), "acme", "orders", 1)
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, idempotency.Intent{}, orders(t, 2))
	in := idempotency.Intent{Key: "k", Fingerprint: "f"}
	other := dataset.Version{Name: "orders", Number: 3, CreatedAt: clock.now(), Definition: orders(t, 3)}
	for name, seen := range map[string]dataset.Head{
		"an older head":            stale,
		"none":                     {},
		"another hash, newest one": {Number: 2, Hash: stale.Hash},
	} {
		if err := store.AddVersion(t.Context(), loader, in, seen, other, "hash"); !errors.Is(err, dataset.ErrHeadMoved) {
			t.Errorf("added a version on %s: %v", name, err)
		}
		if err := store.RememberUnchanged(t.Context(), loader, in, seen, first, clock.now()); !errors.Is(err, dataset.ErrHeadMoved) {
			t.Errorf("called unchanged on %s: %v", name, err)
		}
	}
	if rec, err := store.FindIntent(t.Context(), loader, in, clock.now()); rec != nil || err != nil {
		t.Errorf("remembered %+v, %v", rec, err)
	}
	if n, err := c.ResolveVersion(t.Context(), "acme", "orders", 0); n != 2 || err != nil {
		t.Errorf("newest is %d, %v", n, err)
	}
}

func TestCatalogRefusesAnIntentThatIsTaken(t *testing.T) {
	store := New(t)
	clock := newClock()
	c := dataset.NewCatalog(dataset.CatalogConfig{Store: store, Now: clock.now})
	in := idempotency.Intent{Key: "k", Fingerprint: "f"}
	p := put(t, c, in, orders(t, 1))
	head, err := store.DatasetHead(t.Context(), "acme", "orders")
	if err != nil {
		t.Fatal(err)
	}
	next := dataset.Version{Name: "orders", Number: 2, CreatedAt: clock.now(), Definition: orders(t, 2)}
	if err := store.AddVersion(t.Context(), loader, in, head, next, "hash"); !errors.Is(err, dataset.ErrIntentTaken) {
		t.Errorf("AddVersion: %v", err)
	}
	if err := store.RememberUnchanged(t.Context(), loader, in, head, p.Version, clock.now()); !errors.Is(err, dataset.ErrIntentTaken) {
		t.Errorf("RememberUnchanged: %v", err)
	}
}
