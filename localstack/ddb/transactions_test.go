package ddb_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/oklog/ulid/v2"
)

func (f *fixture) transact(items ...types.TransactWriteItem) error {
	_, err := f.db.TransactWriteItems(f.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items})
	return err
}

func (f *fixture) txPut(it item, condition string) types.TransactWriteItem {
	put := &types.Put{TableName: &f.table, Item: it}
	if condition != "" {
		put.ConditionExpression = &condition
		put.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return types.TransactWriteItem{Put: put}
}

func (f *fixture) txUpdate(p, s, expression string, values item) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{TableName: &f.table, Key: keyOf(p, s), UpdateExpression: &expression, ExpressionAttributeValues: values}}
}

// cancelled gives the reasons' codes joined by commas.
func cancelled(t *testing.T, err error) (string, []types.CancellationReason) {
	t.Helper()
	var tce *types.TransactionCanceledException
	if !errors.As(err, &tce) {
		t.Fatalf("got %v, want a cancelled transaction", err)
	}
	var codes []string
	for _, r := range tce.CancellationReasons {
		codes = append(codes, *r.Code)
	}
	return strings.Join(codes, ","), tce.CancellationReasons
}

func TestTransactionOfAllKinds(t *testing.T) {
	f := newFixture(t)
	for _, s := range []string{"upd", "del", "chk"} {
		f.put(withKey("t", s, item{"n": num("1")}))
	}
	err := f.transact(
		f.txPut(withKey("t", "put", item{"n": num("1")}), "attribute_not_exists(pk)"),
		f.txUpdate("t", "upd", "SET n = n + :one", item{":one": num("1")}),
		types.TransactWriteItem{Delete: &types.Delete{TableName: &f.table, Key: keyOf("t", "del")}},
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: &f.table, Key: keyOf("t", "chk"),
			ConditionExpression: ptr("n = :one"), ExpressionAttributeValues: item{":one": num("1")}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "put", f.get("t", "put"), withKey("t", "put", item{"n": num("1")}))
	same(t, "updated", f.get("t", "upd"), withKey("t", "upd", item{"n": num("2")}))
	same(t, "deleted", f.get("t", "del"), item(nil))
	same(t, "checked", f.get("t", "chk"), withKey("t", "chk", item{"n": num("1")}))
}

func TestTransactionCancelled(t *testing.T) {
	f := newFixture(t)
	f.put(withKey("t", "there", item{"n": num("1"), "s": str("text")}))
	tests := []struct {
		name    string
		items   []types.TransactWriteItem
		codes   string
		at      int
		message string
		old     item
	}{
		{"condition with old item", []types.TransactWriteItem{f.txPut(keyOf("t", "there"), "attribute_not_exists(pk)"), f.txPut(keyOf("t", "new"), "")},
			"ConditionalCheckFailed,None", 0, "The conditional request failed", withKey("t", "there", item{"n": num("1"), "s": str("text")})},
		{"condition on a missing item", []types.TransactWriteItem{f.txPut(keyOf("t", "new"), ""), f.txPut(keyOf("t", "no"), "attribute_exists(pk)")},
			"None,ConditionalCheckFailed", 1, "The conditional request failed", nil},
		{"operand of the wrong type", []types.TransactWriteItem{f.txPut(keyOf("t", "new"), ""), f.txUpdate("t", "there", "SET s = s + :n", item{":n": num("1")})},
			"None,ValidationError", 1, "An operand in the update expression has an incorrect data type", nil},
		{"missing attribute", []types.TransactWriteItem{f.txUpdate("t", "there", "SET a = b", nil), f.txPut(keyOf("t", "new"), "")},
			"ValidationError,None", 0, "The provided expression refers to an attribute that does not exist in the item", nil},
		{"two reasons", []types.TransactWriteItem{f.txPut(keyOf("t", "there"), "attribute_not_exists(pk)"), f.txPut(keyOf("t", "new"), ""), f.txUpdate("t", "there2", "SET a.b = :n", item{":n": num("1")})},
			"ConditionalCheckFailed,None,ValidationError", 2, "The document path provided in the update expression is invalid for update", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := f.transact(tt.items...)
			codes, reasons := cancelled(t, err)
			if codes != tt.codes {
				t.Fatalf("reasons %s, want %s", codes, tt.codes)
			}
			if want := "specific reasons [" + strings.ReplaceAll(tt.codes, ",", ", ") + "]"; !strings.Contains(err.Error(), want) {
				t.Errorf("message %q lacks %q", err, want)
			}
			if got := reasons[tt.at].Message; got == nil || *got != tt.message {
				t.Errorf("message %v, want %q", got, tt.message)
			}
			if tt.old != nil {
				same(t, "old item", reasons[tt.at].Item, tt.old)
			}
			same(t, "other item", f.get("t", "new"), item(nil))
		})
	}
}

func TestTransactionRefused(t *testing.T) {
	f := newFixture(t)
	invalid(t, f.transact(f.txPut(keyOf("t", "a"), ""), f.txUpdate("t", "a", "SET n = :n", item{":n": num("1")})),
		"Transaction request cannot include multiple operations on one item")
	var many []types.TransactWriteItem
	for i := range 101 {
		many = append(many, f.txPut(keyOf("many", fmt.Sprint(i)), ""))
	}
	invalid(t, f.transact(many...), "Member must have length less than or equal to 100")
	if err := f.transact(many[:100]...); err != nil {
		t.Errorf("100 items: %v", err)
	}
	var large []types.TransactWriteItem
	for i := range 11 {
		large = append(large, f.txPut(withKey("large", fmt.Sprint(i), item{"b": str(repeated(390 << 10))}), ""))
	}
	if got := code(f.transact(large...)); got != "ValidationException" {
		t.Errorf("more than 4 MB: %q, want ValidationException", got)
	}
	invalid(t, f.transact(f.txUpdate("t", "a", "SET n = :missing", nil)), "attribute value: :missing")
	_, err := f.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: many[:1], ClientRequestToken: ptr(repeated(37))})
	invalid(t, err, "Member must have length less than or equal to 36")
}

func TestClientRequestToken(t *testing.T) {
	f := newFixture(t)
	token := ulid.Make().String()
	send := func(items ...types.TransactWriteItem) (*dynamodb.TransactWriteItemsOutput, error) {
		return f.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: items, ClientRequestToken: &token, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
	}
	add := f.txUpdate("t", "n", "ADD n :one SET a = :one, b = :two", item{":one": num("1"), ":two": num("2")})
	first, err := send(add)
	if err != nil {
		t.Fatal(err)
	}
	again, err := send(add)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "item after two calls with one token", f.get("t", "n"), withKey("t", "n", item{"n": num("1"), "a": num("1"), "b": num("2")}))
	if first.ConsumedCapacity[0].WriteCapacityUnits == nil || again.ConsumedCapacity[0].ReadCapacityUnits == nil {
		t.Errorf("first call consumed %+v, second %+v; want writes, then reads", first.ConsumedCapacity[0], again.ConsumedCapacity[0])
	}
	_, err = send(f.txPut(keyOf("t", "other"), ""))
	refused(t, err, "IdempotentParameterMismatchException", "")
}

func TestTokenOfFailedTransactionIsFree(t *testing.T) {
	f := newFixture(t)
	send := func() error {
		_, err := f.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ClientRequestToken: ptr("token-" + f.table[6:30]),
			TransactItems: []types.TransactWriteItem{{Update: &types.Update{TableName: &f.table, Key: keyOf("t", "n"),
				UpdateExpression: ptr("ADD n :one"), ConditionExpression: ptr("attribute_exists(pk)"), ExpressionAttributeValues: item{":one": num("1")}}}}})
		return err
	}
	if codes, _ := cancelled(t, send()); codes != "ConditionalCheckFailed" {
		t.Fatalf("reasons %s", codes)
	}
	f.put(keyOf("t", "n"))
	if err := send(); err != nil {
		t.Fatal(err)
	}
	same(t, "item", f.get("t", "n"), withKey("t", "n", item{"n": num("1")}))
}

func TestTransactGetItems(t *testing.T) {
	f := newFixture(t)
	f.put(withKey("t", "1", item{"n": num("1"), "m": str("x")}))
	get := func(s, projection string) types.TransactGetItem {
		g := &types.Get{TableName: &f.table, Key: keyOf("t", s)}
		if projection != "" {
			g.ProjectionExpression = &projection
		}
		return types.TransactGetItem{Get: g}
	}
	out, err := f.db.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get("none", ""), get("1", "n")}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "missing", out.Responses[0].Item, item(nil))
	same(t, "projected", out.Responses[1].Item, item{"n": num("1")})
	_, err = f.db.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{get("1", ""), get("1", "n")}})
	invalid(t, err, "Transaction request cannot include multiple operations on one item")
}

// Two accounts, many transfers at once, some against the grain: no unit is lost and no sum seen in a transactional read is
// off. Real DynamoDB may refuse some as conflicts, which changes nothing.
func TestTransfersKeepTheSum(t *testing.T) {
	f := newFixture(t)
	f.put(withKey("acct", "a", item{"n": num("100")}))
	f.put(withKey("acct", "b", item{"n": num("100")}))
	var moved atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			amount := "1"
			if i%3 == 0 {
				amount = "-1"
			}
			err := f.transact(f.txUpdate("acct", "a", "SET n = n - :v", item{":v": num(amount)}), f.txUpdate("acct", "b", "SET n = n + :v", item{":v": num(amount)}))
			switch {
			case err == nil && amount == "1":
				moved.Add(1)
			case err == nil:
				moved.Add(-1)
			}
			f.checkSum()
		})
	}
	wg.Wait()
	same(t, "a", f.get("acct", "a")["n"], num(fmt.Sprint(100-moved.Load())))
	same(t, "b", f.get("acct", "b")["n"], num(fmt.Sprint(100+moved.Load())))
}

func (f *fixture) checkSum() {
	out, err := f.db.TransactGetItems(f.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: &f.table, Key: keyOf("acct", "a")}}, {Get: &types.Get{TableName: &f.table, Key: keyOf("acct", "b")}}}})
	if err != nil {
		if code(err) != "TransactionCanceledException" {
			f.Errorf("read together: %v", err)
		}
		return
	}
	sum := 0
	for _, r := range out.Responses {
		var n int
		fmt.Sscan(r.Item["n"].(*types.AttributeValueMemberN).Value, &n)
		sum += n
	}
	if sum != 200 {
		f.Errorf("sum is %d, want 200", sum)
	}
}

func TestContention(t *testing.T) {
	f := newFixture(t)
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			_, err := f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: withKey("race", "1", item{"who": num(fmt.Sprint(i))}),
				ConditionExpression: ptr("attribute_not_exists(pk)")})
			if err == nil {
				won.Add(1)
			} else if code(err) != "ConditionalCheckFailedException" {
				t.Error(err)
			}
			if _, err := f.update("count", "1", "ADD n :one", nil, item{":one": num("1")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d conditional puts won, want 1", won.Load())
	}
	same(t, "counter", f.get("count", "1")["n"], num("100"))
}
