package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/idempotency"
)

// Catalog keeps the versions of each tenant's datasets. A version never changes once it is there.
type Catalog struct {
	store CatalogStore
	now   func() time.Time
}

// CatalogConfig of a Catalog.
type CatalogConfig struct {
	Store CatalogStore
	Now   func() time.Time
}

// NewCatalog makes a Catalog.
func NewCatalog(c CatalogConfig) *Catalog { return &Catalog{store: c.Store, now: c.Now} }

// Version is one version of a dataset as it is kept. Numbers count from 1 without gaps.
type Version struct {
	Name       string
	Number     int
	CreatedAt  time.Time
	Definition *Definition
}

// Head says what the newest version of a dataset is; the zero Head that there is none.
type Head struct {
	Number int
	Hash   string // hex SHA-256 of the canonical definition
}

// Put is the answer to a PUT.
type Put struct {
	Version  Version
	Outcome  idempotency.Outcome // NewVersion or Unchanged
	Replayed bool                // the idempotency key was seen before: Version is the one it came to
}

// What a store answers when a condition was not met.
var (
	ErrHeadMoved   = errors.New("the dataset has another newest version by now")
	ErrIntentTaken = errors.New("the idempotency key was taken by another request")
)

// CatalogStore keeps versions. All reads are strongly consistent.
type CatalogStore interface {
	FindIntent(ctx context.Context, caller access.Caller, in idempotency.Intent, now time.Time) (*idempotency.Record, error)
	DatasetHead(ctx context.Context, tenant, name string) (Head, error)
	// DatasetVersion gives nil when there is no such version.
	DatasetVersion(ctx context.Context, tenant, name string, number int) (*Version, error)
	// AddVersion writes version, head and, when in has a key, the intent together, while the head is
	// still seen. Fails with ErrHeadMoved, ErrIntentTaken.
	AddVersion(ctx context.Context, caller access.Caller, in idempotency.Intent, seen Head, v Version, hash string) error
	// RememberUnchanged writes the intent while the head is still seen. Fails like AddVersion.
	RememberUnchanged(ctx context.Context, caller access.Caller, in idempotency.Intent, seen Head, v Version, now time.Time) error
}

// maxPuts bounds how often a PUT starts over. Each time it does, another PUT of the dataset, or with the
// same key, has come through.
const maxPuts = 100

// Put makes def the newest version of the caller's dataset, unless it is that already. A definition with
// another primary key is INVALID_SCHEMA, a bad name INVALID_REQUEST. Two puts at the same instant come
// out as if one had come after the other.
func (c *Catalog) Put(ctx context.Context, caller access.Caller, in idempotency.Intent, name string, def *Definition) (Put, error) {
	if !ValidName(name) {
		return Put{}, fault.New(fault.InvalidRequest, "the dataset name must be 1 to 64 of a-z, 0-9, '-' and '_', the first a letter or digit").
			With("fields", []Problem{{"name", "bad form"}})
	}
	sum := sha256.Sum256(def.Canonical())
	hash := hex.EncodeToString(sum[:])
	for range maxPuts {
		done, err := c.replay(ctx, caller, in)
		if done != nil || err != nil {
			return deref(done), err
		}
		put, err := c.putOnce(ctx, caller, in, name, def, hash)
		if !errors.Is(err, ErrHeadMoved) && !errors.Is(err, ErrIntentTaken) {
			return put, err
		}
	}
	return Put{}, fault.New(fault.DependencyUnavailable, "the dataset is being changed by many others; try again").After(time.Second)
}

func deref(p *Put) Put {
	if p == nil {
		return Put{}
	}
	return *p
}

// replay answers a key that was seen before. It is nil when there is no key or it is new.
func (c *Catalog) replay(ctx context.Context, caller access.Caller, in idempotency.Intent) (*Put, error) {
	rec, err := c.store.FindIntent(ctx, caller, in, c.now())
	if rec == nil || err != nil {
		return nil, err
	}
	if err := rec.Match(in); err != nil {
		return nil, err
	}
	name, number, err := parseRef(rec.Ref)
	if err != nil {
		return nil, err
	}
	v, err := c.GetVersion(ctx, caller.Tenant, name, number)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return &Put{Version: v, Outcome: rec.Outcome, Replayed: true}, nil
}

func (c *Catalog) putOnce(ctx context.Context, caller access.Caller, in idempotency.Intent, name string, def *Definition, hash string) (Put, error) {
	head, err := c.store.DatasetHead(ctx, caller.Tenant, name)
	if err != nil {
		return Put{}, err
	}
	if head.Number > 0 {
		newest, err := c.GetVersion(ctx, caller.Tenant, name, head.Number)
		if err != nil {
			return Put{}, err
		}
		if head.Hash == hash {
			return c.unchanged(ctx, caller, in, head, newest)
		}
		if err := def.CheckSuccessor(newest.Definition); err != nil {
			return Put{}, err
		}
	}
	v := Version{Name: name, Number: head.Number + 1, CreatedAt: c.now().UTC().Truncate(time.Millisecond), Definition: def}
	if err := c.store.AddVersion(ctx, caller, in, head, v, hash); err != nil {
		return Put{}, err
	}
	return Put{Version: v, Outcome: idempotency.NewVersion}, nil
}

func (c *Catalog) unchanged(ctx context.Context, caller access.Caller, in idempotency.Intent, head Head, newest Version) (Put, error) {
	if in.Key != "" {
		if err := c.store.RememberUnchanged(ctx, caller, in, head, newest, c.now()); err != nil {
			return Put{}, err
		}
	}
	return Put{Version: newest, Outcome: idempotency.Unchanged}, nil
}

// Get gives the newest version, or DATASET_NOT_FOUND.
func (c *Catalog) Get(ctx context.Context, tenant, name string) (Version, error) {
	number, err := c.ResolveVersion(ctx, tenant, name, 0)
	if err != nil {
		return Version{}, err
	}
	return c.GetVersion(ctx, tenant, name, number)
}

// GetVersion gives one version, or DATASET_NOT_FOUND, or VERSION_NOT_FOUND.
func (c *Catalog) GetVersion(ctx context.Context, tenant, name string, number int) (Version, error) {
	if !ValidName(name) {
		return Version{}, notFound(name)
	}
	v, err := c.store.DatasetVersion(ctx, tenant, name, number)
	if err != nil {
		return Version{}, err
	}
	if v != nil {
		return *v, nil
	}
	if _, err := c.ResolveVersion(ctx, tenant, name, 0); err != nil {
		return Version{}, err
	}
	return Version{}, versionNotFound(name, number)
}

// ResolveVersion checks that a version exists and gives its number; 0 means the newest. It fails with
// DATASET_NOT_FOUND or VERSION_NOT_FOUND.
func (c *Catalog) ResolveVersion(ctx context.Context, tenant, name string, number int) (int, error) {
	if !ValidName(name) {
		return 0, notFound(name)
	}
	head, err := c.store.DatasetHead(ctx, tenant, name)
	switch {
	case err != nil:
		return 0, err
	case head.Number == 0:
		return 0, notFound(name)
	case number == 0:
		return head.Number, nil
	case number < 0 || number > head.Number: // numbers have no gaps
		return 0, versionNotFound(name, number)
	}
	return number, nil
}

func notFound(name string) error {
	return fault.New(fault.DatasetNotFound, "there is no dataset %q; make it with PUT /v1/datasets/{name}", clip(name))
}

func versionNotFound(name string, number int) error {
	return fault.New(fault.VersionNotFound, "dataset %s has no version %d", name, number)
}

// Ref names a version in an idempotency record: name@number.
func (v Version) Ref() string { return v.Name + "@" + strconv.Itoa(v.Number) }

func parseRef(ref string) (name string, number int, err error) {
	name, digits, _ := strings.Cut(ref, "@")
	if number, err = strconv.Atoi(digits); err != nil {
		return "", 0, fmt.Errorf("idempotency record names no dataset version: %w", err)
	}
	return name, number, nil
}
