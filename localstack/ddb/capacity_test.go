package ddb_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"pintu/localstack/ddb"
)

// sized is an item of exactly n bytes with key (c, s); it is in the index when indexed.
func sized(s string, n int, indexed bool) item {
	it := withKey("c", s, nil)
	n -= len("pk" + "c" + "sk" + "b" + s)
	if indexed {
		it["gpk"], it["gsk"] = str("G"), num("1")
		n -= len("gpk"+"G"+"gsk") + 2
	}
	it["b"] = str(repeated(n))
	return it
}

// spent shows table and index units as text, which is easy to compare.
func spent(c *types.ConsumedCapacity) string {
	if c == nil {
		return "nothing"
	}
	s := fmt.Sprint("total ", *c.CapacityUnits)
	if c.Table != nil {
		s += fmt.Sprint(" table ", *c.Table.CapacityUnits)
	}
	if gsi, ok := c.GlobalSecondaryIndexes["gsi"]; ok {
		s += fmt.Sprint(" gsi ", *gsi.CapacityUnits)
	}
	return s
}

func TestCapacityOfWrites(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeKeysOnly))
	put := func(it item) (*types.ConsumedCapacity, error) {
		out, err := f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: it, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
		if err != nil {
			return nil, err
		}
		return out.ConsumedCapacity, nil
	}
	update := func(expression string, values item) func() (*types.ConsumedCapacity, error) {
		return func() (*types.ConsumedCapacity, error) {
			out, err := f.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &f.table, Key: keyOf("c", "1"), UpdateExpression: &expression,
				ExpressionAttributeValues: values, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes})
			if err != nil {
				return nil, err
			}
			return out.ConsumedCapacity, nil
		}
	}
	steps := []struct {
		name string
		do   func() (*types.ConsumedCapacity, error)
		want string
	}{
		{"new item of 1 KB", func() (*types.ConsumedCapacity, error) { return put(sized("1", 1024, false)) }, "total 1 table 1"},
		{"one byte more", func() (*types.ConsumedCapacity, error) { return put(sized("1", 1025, false)) }, "total 2 table 2"},
		{"smaller than what it replaces", func() (*types.ConsumedCapacity, error) { return put(sized("1", 100, false)) }, "total 2 table 2"},
		{"into the index", update("SET gpk = :g, gsk = :n", item{":g": str("G"), ":n": num("1")}), "total 2 table 1 gsi 1"},
		{"not touching the index", update("SET x = :n", item{":n": num("1")}), "total 1 table 1"},
		{"moving in the index", update("SET gsk = :n", item{":n": num("2")}), "total 3 table 1 gsi 2"},
		{"out of the index", update("REMOVE gsk", nil), "total 2 table 1 gsi 1"},
		{"growing to 3 KB", update("SET y = :y", item{":y": str(repeated(2500))}), "total 3 table 3"},
		{"shrinking", update("REMOVE y", nil), "total 3 table 3"},
		{"delete", func() (*types.ConsumedCapacity, error) {
			out, err := f.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: keyOf("c", "1"), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
			if err != nil {
				return nil, err
			}
			return out.ConsumedCapacity, nil
		}, "total 1"},
		{"unasked", func() (*types.ConsumedCapacity, error) {
			out, err := f.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: keyOf("c", "1")})
			if err != nil {
				return nil, err
			}
			return out.ConsumedCapacity, nil
		}, "nothing"},
	}
	for _, step := range steps {
		got, err := step.do()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if spent(got) != step.want {
			t.Errorf("%s: %s, want %s", step.name, spent(got), step.want)
		}
	}
}

func TestCapacityOfReads(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeAll))
	f.put(sized("1", 4096, true))
	f.put(sized("2", 4097, true))
	get := func(s string, consistent bool) *types.ConsumedCapacity {
		out, err := f.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &f.table, Key: keyOf("c", s), ConsistentRead: &consistent,
			ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes, ProjectionExpression: ptr("pk")})
		if err != nil {
			t.Fatal(err)
		}
		return out.ConsumedCapacity
	}
	query := func(index *string, condition string, value av, consistent bool) *types.ConsumedCapacity {
		return f.query(dynamodb.QueryInput{IndexName: index, KeyConditionExpression: &condition, ExpressionAttributeValues: item{":v": value},
			ConsistentRead: &consistent, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes, Select: types.SelectCount}).ConsumedCapacity
	}
	batch := func() *types.ConsumedCapacity {
		out, err := f.db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
			RequestItems: map[string]types.KeysAndAttributes{f.table: {Keys: []item{keyOf("c", "1"), keyOf("c", "2"), keyOf("c", "none")}}}})
		if err != nil {
			t.Fatal(err)
		}
		return &out.ConsumedCapacity[0]
	}
	for _, tt := range []struct {
		name string
		got  *types.ConsumedCapacity
		want string
	}{
		{"4 KB, consistent", get("1", true), "total 1 table 1"},
		{"4 KB, eventual", get("1", false), "total 0.5 table 0.5"},
		{"a byte more, consistent", get("2", true), "total 2 table 2"},
		{"a byte more, eventual", get("2", false), "total 1 table 1"},
		{"missing, eventual", get("none", false), "total 0.5 table 0.5"},
		{"query sums before rounding", query(nil, "pk = :v", str("c"), true), "total 3 table 3"},
		{"query, eventual", query(nil, "pk = :v", str("c"), false), "total 1.5 table 1.5"},
		{"query of an index", query(ptr("gsi"), "gpk = :v", str("G"), false), "total 1.5 table 0 gsi 1.5"},
		{"query of nothing", query(nil, "pk = :v", str("none"), false), "total 0.5 table 0.5"},
		{"batch rounds each item", batch(), "total 2 table 2"},
	} {
		if spent(tt.got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, spent(tt.got), tt.want)
		}
	}
}

func TestCapacityOfTransactions(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeKeysOnly))
	out, err := f.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		TransactItems: []types.TransactWriteItem{f.txPut(sized("1", 1025, true), ""), f.txPut(sized("2", 10, false), "")}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := spent(&out.ConsumedCapacity[0]), "total 7 table 6 gsi 1"; got != want {
		t.Errorf("write: %s, want %s", got, want)
	}
	read, err := f.db.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		TransactItems: []types.TransactGetItem{{Get: &types.Get{TableName: &f.table, Key: keyOf("c", "1")}}, {Get: &types.Get{TableName: &f.table, Key: keyOf("c", "none")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := spent(&read.ConsumedCapacity[0]), "total 4"; got != want {
		t.Errorf("read: %s, want %s", got, want)
	}
}

// What fails is billed as well, which only the server itself can tell.
func TestConsumedCountsFailures(t *testing.T) {
	server, err := ddb.New(ddb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, db: connect(serve(t, server)), table: "billed"}
	f.create(nil)
	expect := func(what string, want ddb.Consumed) {
		t.Helper()
		got, err := server.Consumed("billed")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	f.put(sized("1", 3000, false))
	expect("put", ddb.Consumed{WriteUnits: 3})
	_, err = f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("c", "1"), ConditionExpression: ptr("attribute_not_exists(pk)")})
	refused(t, err, "ConditionalCheckFailedException", "")
	expect("failed put over an item of 3 KB", ddb.Consumed{WriteUnits: 6})
	if code(f.transact(f.txPut(keyOf("c", "1"), "attribute_not_exists(pk)"), f.txPut(keyOf("c", "2"), ""))) != "TransactionCanceledException" {
		t.Error("transaction went through")
	}
	expect("cancelled transaction", ddb.Consumed{WriteUnits: 10})
	f.get("c", "1")
	expect("read", ddb.Consumed{WriteUnits: 10, ReadUnits: 1})
}
