package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/access"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// transaction gathers writes that happen together or not at all. Every write has a condition, and the
// error that its refusal means. When several are refused, the first given wins.
type transaction struct {
	op      string
	items   []types.TransactWriteItem
	refusal []error
	err     error // of building an expression
}

func (t *transaction) put(table string, it item, cond expression.ConditionBuilder, refusal error) {
	e, err := expression.NewBuilder().WithCondition(cond).Build()
	t.add(types.TransactWriteItem{Put: &types.Put{TableName: &table, Item: it, ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values()}}, refusal, err)
}

func (t *transaction) update(table string, k key, u expression.UpdateBuilder, cond expression.ConditionBuilder, refusal error) {
	e, err := expression.NewBuilder().WithUpdate(u).WithCondition(cond).Build()
	t.add(types.TransactWriteItem{Update: &types.Update{TableName: &table, Key: k.item(), UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values()}}, refusal, err)
}

func (t *transaction) updateRemoving(table string, k key, f fields, remove []string, cond expression.ConditionBuilder, refusal error) {
	u := setAll(f)
	for _, name := range remove {
		u = u.Remove(expression.Name(name))
	}
	t.update(table, k, u, cond, refusal)
}

func (t *transaction) check(table string, k key, cond expression.ConditionBuilder, refusal error) {
	e, err := expression.NewBuilder().WithCondition(cond).Build()
	t.add(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &table, Key: k.item(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values()}}, refusal, err)
}

func (t *transaction) remove(table string, k key, cond expression.ConditionBuilder, refusal error) {
	e, err := expression.NewBuilder().WithCondition(cond).Build()
	t.add(types.TransactWriteItem{Delete: &types.Delete{TableName: &table, Key: k.item(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values()}}, refusal, err)
}

// intent adds the idempotency record of a request that brought a key.
func (t *transaction) intent(s *Store, caller access.Caller, in idempotency.Intent, outcome idempotency.Outcome, j job.Job) {
	if in.Key == "" {
		return
	}
	t.add(s.idemPut(caller, in, outcome, string(j.ID), s.now()), job.ErrIntentTaken, nil)
}

func (t *transaction) add(it types.TransactWriteItem, refusal, err error) {
	if err != nil {
		t.err = errors.Join(t.err, err)
		return
	}
	t.items, t.refusal = append(t.items, it), append(t.refusal, refusal)
}

// run sends the transaction. The SDK repeats it with the same client token, so a lost reply is no
// second write.
func (t *transaction) run(ctx context.Context, s *Store) error {
	if t.err != nil {
		return fmt.Errorf("%s: %w", t.op, t.err)
	}
	_, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: t.items, ClientRequestToken: aws.String(token())})
	if err == nil {
		return nil
	}
	refused := refusedPositions(err)
	if len(refused) == 0 {
		return unavailable(t.op, err)
	}
	return t.refusal[slices.Min(refused)]
}

// refusedPositions gives the positions whose condition failed in a canceled transaction.
func refusedPositions(err error) []int {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return nil
	}
	var refused []int
	for i, r := range canceled.CancellationReasons {
		if aws.ToString(r.Code) == "ConditionalCheckFailed" {
			refused = append(refused, i)
		}
	}
	return refused
}

// fields are attributes to set, by path ("Plan.Closed").
type fields map[string]any

func setAll(f fields) expression.UpdateBuilder {
	var u expression.UpdateBuilder
	for name, v := range f {
		u = u.Set(expression.Name(name), expression.Value(v))
	}
	return u
}
