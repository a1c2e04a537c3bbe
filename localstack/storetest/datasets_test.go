package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/idempotency"
)

var loader = access.Caller{Tenant: "acme", Client: "loader"}

func newCatalog(t *testing.T) (*dataset.Catalog, *clock) {
	c := newClock()
	return dataset.NewCatalog(dataset.CatalogConfig{Store: New(t), Now: c.now}), c
}

// orders is a definition whose meaning differs with n.
func orders(t *testing.T, n int) *dataset.Definition {
	t.Helper()
	return parse(t, fmt.Sprintf(`{"schema":{"fields":[{"name":"id","type":"string"},{"name":"qty","type":"integer","constraints":{"minimum":%d}}],"primaryKey":["id"]}}`, n))
}

func parse(t *testing.T, body string) *dataset.Definition {
	t.Helper()
	def, err := dataset.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func put(t *testing.T, c *dataset.Catalog, in idempotency.Intent, def *dataset.Definition) dataset.Put {
	t.Helper()
	p, err := c.Put(t.Context(), loader, in, "orders", def)
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return p
}

func check(t *testing.T, p dataset.Put, number int, outcome idempotency.Outcome, replayed bool) {
	t.Helper()
	if p.Version.Number != number || p.Outcome != outcome || p.Replayed != replayed {
		t.Errorf("version %d, %s, replayed %v; want %d, %s, %v", p.Version.Number, p.Outcome, p.Replayed, number, outcome, replayed)
	}
}

func TestPutMakesVersionsThatNeverChange(t *testing.T) {
	c, clock := newCatalog(t)
	first := clock.now()
	check(t, put(t, c, idempotency.Intent{}, orders(t, 1)), 1, idempotency.NewVersion, false)
	clock.move(time.Hour)
	check(t, put(t, c, idempotency.Intent{}, orders(t, 1)), 1, idempotency.Unchanged, false)
	check(t, put(t, c, idempotency.Intent{}, orders(t, 2)), 2, idempotency.NewVersion, false)
	check(t, put(t, c, idempotency.Intent{}, orders(t, 1)), 3, idempotency.NewVersion, false)

	v1, err := c.GetVersion(t.Context(), "acme", "orders", 1)
	if err != nil {
		t.Fatal(err)
	}
	if v1.Name != "orders" || v1.Number != 1 || !v1.CreatedAt.Equal(first) || string(v1.Definition.Canonical()) != string(orders(t, 1).Canonical()) {
		t.Errorf("version 1 is %+v %s", v1, v1.Definition.Canonical())
	}
	newest, err := c.Get(t.Context(), "acme", "orders")
	if err != nil || newest.Number != 3 || !newest.CreatedAt.Equal(first.Add(time.Hour)) {
		t.Errorf("newest is %+v, %v", newest, err)
	}
}

func TestPutWithAKey(t *testing.T) {
	c, clock := newCatalog(t)
	in := idempotency.Intent{Key: "k1", Fingerprint: "f1"}
	same := idempotency.Intent{Key: "k2", Fingerprint: "f2"}
	check(t, put(t, c, in, orders(t, 1)), 1, idempotency.NewVersion, false)
	check(t, put(t, c, same, orders(t, 1)), 1, idempotency.Unchanged, false)
	put(t, c, idempotency.Intent{}, orders(t, 2))

	check(t, put(t, c, in, orders(t, 1)), 1, idempotency.NewVersion, true)
	check(t, put(t, c, same, orders(t, 1)), 1, idempotency.Unchanged, true)
	_, err := c.Put(t.Context(), loader, idempotency.Intent{Key: "k1", Fingerprint: "f2"}, "orders", orders(t, 3))
	if !fault.Is(err, fault.KeyReused) {
		t.Errorf("the key with another payload: %v", err)
	}
	other := loader
	other.Client = "other"
	p, err := c.Put(t.Context(), other, in, "orders", orders(t, 2))
	if err != nil || p.Replayed {
		t.Errorf("another client's key: %+v, %v", p, err)
	}
	clock.move(idempotency.Window + time.Millisecond)
	check(t, put(t, c, in, orders(t, 1)), 3, idempotency.NewVersion, false)
}

func TestPutRefuses(t *testing.T) {
	c, _ := newCatalog(t)
	put(t, c, idempotency.Intent{}, orders(t, 1))
	otherKey := parse(t, `{"schema":{"fields":[{"name":"id","type":"string"},{"name":"qty","type":"integer"}],"primaryKey":["qty"]}}`)
	if _, err := c.Put(t.Context(), loader, idempotency.Intent{Key: "k", Fingerprint: "f"}, "orders", otherKey); !fault.Is(err, fault.InvalidSchema) {
		t.Errorf("another primary key: %v", err)
	}
	for _, name := range []string{"", "Orders", "a#b", "-a", "a/b"} {
		if _, err := c.Put(t.Context(), loader, idempotency.Intent{}, name, orders(t, 1)); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	check(t, put(t, c, idempotency.Intent{Key: "k", Fingerprint: "g"}, orders(t, 2)), 2, idempotency.NewVersion, false) // the refusal left the key free
}

func TestVersionsThatAreNotThere(t *testing.T) {
	c, _ := newCatalog(t)
	put(t, c, idempotency.Intent{}, orders(t, 1))
	tests := []struct {
		name         string
		tenant, data string
		number       int
		want         fault.Code
	}{
		{"no dataset", "acme", "invoices", 1, fault.DatasetNotFound},
		{"bad name", "acme", "a#b", 1, fault.DatasetNotFound},
		{"another tenant's", "other", "orders", 1, fault.DatasetNotFound},
		{"no version yet", "acme", "orders", 2, fault.VersionNotFound},
		{"negative", "acme", "orders", -1, fault.VersionNotFound},
		{"seven digits", "acme", "orders", 1_000_001, fault.VersionNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := c.GetVersion(t.Context(), tt.tenant, tt.data, tt.number); !fault.Is(err, tt.want) {
				t.Errorf("GetVersion: %v", err)
			}
			if _, err := c.ResolveVersion(t.Context(), tt.tenant, tt.data, tt.number); !fault.Is(err, tt.want) {
				t.Errorf("ResolveVersion: %v", err)
			}
		})
	}
	for _, number := range []int{0, 1} {
		if n, err := c.ResolveVersion(t.Context(), "acme", "orders", number); n != 1 || err != nil {
			t.Errorf("ResolveVersion(%d) = %d, %v", number, n, err)
		}
	}
	if _, err := c.Get(t.Context(), "acme", "invoices"); !fault.Is(err, fault.DatasetNotFound) {
		t.Errorf("Get: %v", err)
	}
}

// Puts at the same instant come out as if one had come after the other.
func TestPutsAtOnce(t *testing.T) {
	tests := []struct {
		name string
		key  func(i int) string
		def  func(i int) int
		want []int // version numbers that the puts came to, sorted
	}{
		{"different definitions", func(int) string { return "" }, func(i int) int { return i }, []int{1, 2, 3, 4, 5, 6, 7, 8}},
		{"one definition", func(int) string { return "" }, func(int) int { return 1 }, []int{1, 1, 1, 1, 1, 1, 1, 1}},
		{"one definition, keys", func(i int) string { return fmt.Sprint(i) }, func(int) int { return 1 }, []int{1, 1, 1, 1, 1, 1, 1, 1}},
		{"one request", func(int) string { return "k" }, func(int) int { return 1 }, []int{1, 1, 1, 1, 1, 1, 1, 1}},
		{"two definitions, keys", func(i int) string { return fmt.Sprint(i % 2) }, func(i int) int { return i % 2 }, []int{1, 1, 1, 1, 2, 2, 2, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := newCatalog(t)
			puts, errs := make([]dataset.Put, len(tt.want)), make([]error, len(tt.want))
			var wg sync.WaitGroup
			for i := range tt.want {
				def := orders(t, tt.def(i))
				in := idempotency.Intent{Key: tt.key(i), Fingerprint: fmt.Sprint(tt.def(i))}
				wg.Go(func() { puts[i], errs[i] = c.Put(t.Context(), loader, in, "orders", def) })
			}
			wg.Wait()
			var got []int
			made := map[int]int{}
			for i, p := range puts {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				got = append(got, p.Version.Number)
				if p.Outcome == idempotency.NewVersion && !p.Replayed {
					made[p.Version.Number]++
				}
				if string(p.Version.Definition.Canonical()) != string(orders(t, tt.def(i)).Canonical()) {
					t.Errorf("put %d came to another definition", i)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for number, n := range made {
				if n != 1 {
					t.Errorf("version %d was made %d times", number, n)
				}
			}
		})
	}
}

func TestFindIntent(t *testing.T) {
	store := New(t)
	clock := newClock()
	c := dataset.NewCatalog(dataset.CatalogConfig{Store: store, Now: clock.now})
	in := idempotency.Intent{Key: "k", Fingerprint: "f"}
	find := func() *idempotency.Record {
		t.Helper()
		rec, err := store.FindIntent(t.Context(), loader, in, clock.now())
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	if rec := find(); rec != nil {
		t.Errorf("found %+v before anything", rec)
	}
	put(t, c, in, orders(t, 1))
	want := &idempotency.Record{Fingerprint: "f", Outcome: idempotency.NewVersion, Ref: "orders@1", ExpiresAt: clock.now().Add(24 * time.Hour)}
	if diff := cmp.Diff(want, find()); diff != "" {
		t.Error(diff)
	}
	clock.move(24*time.Hour + time.Millisecond)
	if rec := find(); rec != nil {
		t.Errorf("found %+v after it expired", rec)
	}
}
