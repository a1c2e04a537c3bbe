package app

import (
	"context"
	"sync"

	"pintu/internal/dataset"
)

// catalog reads dataset versions.
type catalog interface {
	GetVersion(ctx context.Context, tenant, name string, number int) (dataset.Version, error)
}

// definitions remembers compiled definitions: a worker gets chunk after chunk of the same version, and
// versions never change.
type definitions struct {
	catalog catalog
	mu      sync.Mutex
	known   map[versionKey]*dataset.Definition
}

type versionKey struct {
	tenant, name string
	number       int
}

// maxKnown bounds what one process remembers.
const maxKnown = 16

func newDefinitions(c catalog) *definitions {
	return &definitions{catalog: c, known: map[versionKey]*dataset.Definition{}}
}

// Definition gives the definition of one version.
func (d *definitions) Definition(ctx context.Context, tenant, name string, version int) (*dataset.Definition, error) {
	k := versionKey{tenant, name, version}
	if def := d.remembered(k); def != nil {
		return def, nil
	}
	v, err := d.catalog.GetVersion(ctx, tenant, name, version)
	if err != nil {
		return nil, err
	}
	d.remember(k, v.Definition)
	return v.Definition, nil
}

func (d *definitions) remembered(k versionKey) *dataset.Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[k]
}

func (d *definitions) remember(k versionKey, def *dataset.Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[k] = def
}
