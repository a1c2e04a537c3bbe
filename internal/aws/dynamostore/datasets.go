package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"pintu/internal/access"
	"pintu/internal/dataset"
	"pintu/internal/idempotency"
)

var _ dataset.CatalogStore = (*Store)(nil)

// headItem is the newest version of a dataset, by number and hash.
type headItem struct {
	Number int    `dynamodbav:"newest"`
	Hash   string `dynamodbav:"canonical_sha256"` // hex
}

// versionItem is one version. The definition is its canonical JSON.
type versionItem struct {
	Number     int    `dynamodbav:"number"`
	CreatedAt  int64  `dynamodbav:"created_at"` // ms
	CreatedBy  string `dynamodbav:"created_by"` // client
	Definition string `dynamodbav:"definition"`
}

// DatasetHead implements dataset.CatalogStore.
func (s *Store) DatasetHead(ctx context.Context, tenant, name string) (dataset.Head, error) {
	it, err := s.get(ctx, "read dataset", datasetKey(tenant, name, skHead))
	if err != nil || it == nil {
		return dataset.Head{}, err
	}
	var head headItem
	err = unmarshal(it, &head)
	return dataset.Head(head), err
}

// DatasetVersion implements dataset.CatalogStore.
func (s *Store) DatasetVersion(ctx context.Context, tenant, name string, number int) (*dataset.Version, error) {
	it, err := s.get(ctx, "read dataset version", datasetKey(tenant, name, versionSK(number)))
	if err != nil || it == nil {
		return nil, err
	}
	var stored versionItem
	if err := unmarshal(it, &stored); err != nil {
		return nil, fmt.Errorf("read dataset version: %w", err)
	}
	def, err := dataset.Parse([]byte(stored.Definition))
	if err != nil {
		return nil, fmt.Errorf("read dataset version: stored definition: %v", err) // %v: not the caller's fault
	}
	return &dataset.Version{Name: name, Number: stored.Number, CreatedAt: fromMillis(stored.CreatedAt), Definition: def}, nil
}

// AddVersion implements dataset.CatalogStore: one transaction.
func (s *Store) AddVersion(ctx context.Context, caller access.Caller, in idempotency.Intent, seen dataset.Head, v dataset.Version, hash string) error {
	head, err := marshal(datasetKey(caller.Tenant, v.Name, skHead), headItem{Number: v.Number, Hash: hash})
	if err != nil {
		return err
	}
	version, err := marshal(datasetKey(caller.Tenant, v.Name, versionSK(v.Number)), versionItem{
		Number: v.Number, CreatedAt: millis(v.CreatedAt), CreatedBy: caller.Client, Definition: string(v.Definition.Canonical()),
	})
	if err != nil {
		return err
	}
	t := transaction{op: "add dataset version"}
	t.catalogIntent(s, caller, in, idempotency.NewVersion, v.Ref(), v.CreatedAt)
	t.put(s.control, head, headIs(seen), dataset.ErrHeadMoved)
	t.put(s.control, version, expression.AttributeNotExists(expression.Name(attrPK)), dataset.ErrHeadMoved)
	return t.run(ctx, s)
}

// RememberUnchanged implements dataset.CatalogStore: one transaction.
func (s *Store) RememberUnchanged(ctx context.Context, caller access.Caller, in idempotency.Intent, seen dataset.Head, v dataset.Version, now time.Time) error {
	t := transaction{op: "remember unchanged dataset"}
	t.catalogIntent(s, caller, in, idempotency.Unchanged, v.Ref(), now)
	t.check(s.control, datasetKey(caller.Tenant, v.Name, skHead), headIs(seen), dataset.ErrHeadMoved)
	return t.run(ctx, s)
}

// catalogIntent adds the idempotency record of a request that brought a key. It stands first: an intent
// in the way may be this request's own, written by a try whose reply was lost.
func (t *transaction) catalogIntent(s *Store, caller access.Caller, in idempotency.Intent, outcome idempotency.Outcome, ref string, now time.Time) {
	if in.Key != "" {
		t.add(s.idemPut(caller, in, outcome, ref, now), dataset.ErrIntentTaken, nil)
	}
}

// headIs is the condition that the head is still the one that was seen.
func headIs(seen dataset.Head) expression.ConditionBuilder {
	if seen.Number == 0 {
		return expression.AttributeNotExists(expression.Name(attrPK))
	}
	return expression.Name("newest").Equal(expression.Value(seen.Number)).
		And(expression.Name("canonical_sha256").Equal(expression.Value(seen.Hash)))
}
