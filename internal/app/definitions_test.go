package app

import (
	"context"
	"errors"
	"testing"

	"pintu/internal/dataset"
)

// counted is a catalog that counts how often it is asked.
type counted struct {
	asked int
	err   error
}

func (c *counted) GetVersion(_ context.Context, _, name string, number int) (dataset.Version, error) {
	c.asked++
	return dataset.Version{Name: name, Number: number, Definition: new(dataset.Definition)}, c.err
}

func TestDefinitionsAreReadOnce(t *testing.T) {
	c := &counted{}
	d := newDefinitions(c)
	first, err := d.Definition(t.Context(), "acme", "orders", 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Definition(t.Context(), "acme", "orders", 1)
	if err != nil || again != first || c.asked != 1 {
		t.Errorf("asked %d times: %v", c.asked, err)
	}
}

func TestDefinitionsOfOthersAreNotMixedUp(t *testing.T) {
	c := &counted{}
	d := newDefinitions(c)
	seen := map[*dataset.Definition]bool{}
	for _, k := range []versionKey{{"acme", "orders", 1}, {"acme", "orders", 2}, {"other", "orders", 1}, {"acme", "parts", 1}} {
		def, err := d.Definition(t.Context(), k.tenant, k.name, k.number)
		if err != nil {
			t.Fatal(err)
		}
		seen[def] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d definitions, want 4", len(seen))
	}
}

func TestDefinitionsAreBoundedAndForgetFailures(t *testing.T) {
	c := &counted{err: errors.New("throttled")}
	d := newDefinitions(c)
	if _, err := d.Definition(t.Context(), "acme", "orders", 1); err == nil {
		t.Error("the failure was swallowed")
	}
	c.err = nil
	for n := range 3 * maxKnown {
		if _, err := d.Definition(t.Context(), "acme", "orders", n); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.known) > maxKnown {
		t.Errorf("%d remembered, want at most %d", len(d.known), maxKnown)
	}
}
