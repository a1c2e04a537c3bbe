package ddb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// fill makes n items in partition p, whose sort keys are 000, 001, ... and whose gsk is a third of that.
func (f *fixture) fill(p string, n int) {
	f.Helper()
	for first := 0; first < n; first += 25 {
		var writes []types.WriteRequest
		for i := first; i < min(n, first+25); i++ {
			it := withKey(p, fmt.Sprintf("%03d", i), item{"gpk": str("G"), "gsk": num(fmt.Sprint(i / 3)), "n": num(fmt.Sprint(i)), "extra": str("e")})
			writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
		}
		if _, err := f.db.BatchWriteItem(f.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{f.table: writes}}); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) query(in dynamodb.QueryInput) *dynamodb.QueryOutput {
	f.Helper()
	in.TableName = &f.table
	out, err := f.db.Query(f.Context(), &in)
	if err != nil {
		f.Fatal(err)
	}
	return out
}

func (f *fixture) queryError(in dynamodb.QueryInput) error {
	in.TableName = &f.table
	_, err := f.db.Query(f.Context(), &in)
	return err
}

// sortKeys are the items' sk.
func sortKeys(items []item) []string {
	keys := []string{}
	for _, it := range items {
		keys = append(keys, it["sk"].(*types.AttributeValueMemberS).Value)
	}
	return keys
}

func TestKeyConditions(t *testing.T) {
	f := newFixture(t)
	f.fill("q", 30)
	f.fill("other", 3)
	span := func(from, to int) (keys []string) {
		for i := from; i <= to; i++ {
			keys = append(keys, fmt.Sprintf("%03d", i))
		}
		return keys
	}
	tests := []struct {
		condition string
		a, b      string
		want      []string
	}{
		{"pk = :p", "", "", span(0, 29)},
		{"pk = :p AND sk = :a", "005", "", span(5, 5)},
		{"pk = :p AND sk = :a", "5", "", nil},
		{"pk = :p AND sk < :a", "005", "", span(0, 4)},
		{"pk = :p AND sk <= :a", "005", "", span(0, 5)},
		{"pk = :p AND sk > :a", "025", "", span(26, 29)},
		{"pk = :p AND sk >= :a", "025", "", span(25, 29)},
		{"pk = :p AND sk BETWEEN :a AND :b", "005", "009", span(5, 9)},
		{"pk = :p AND begins_with(sk, :a)", "01", "", span(10, 19)},
		{"(sk = :a) AND (pk = :p)", "007", "", span(7, 7)},
	}
	for _, tt := range tests {
		values := item{":p": str("q")}
		if tt.a != "" {
			values[":a"] = str(tt.a)
		}
		if tt.b != "" {
			values[":b"] = str(tt.b)
		}
		out := f.query(dynamodb.QueryInput{KeyConditionExpression: &tt.condition, ExpressionAttributeValues: values})
		same(t, tt.condition+" "+tt.a, sortKeys(out.Items), tt.want)
		out = f.query(dynamodb.QueryInput{KeyConditionExpression: &tt.condition, ExpressionAttributeValues: values, ScanIndexForward: ptr(false)})
		slices.Reverse(tt.want)
		same(t, tt.condition+" backwards", sortKeys(out.Items), tt.want)
	}
}

func TestQueriesRefused(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeKeysOnly))
	values := item{":p": str("q"), ":a": str("a")}
	tests := []struct {
		in      dynamodb.QueryInput
		message string
	}{
		{dynamodb.QueryInput{KeyConditionExpression: ptr("sk = :p")}, "Query condition missed key schema element: pk"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk > :p")}, "Query key condition not supported"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND n = :a")}, ""},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p OR sk = :a")}, "Invalid operator used in KeyConditionExpression: OR"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND contains(sk, :a)")}, "Invalid operator used in KeyConditionExpression: contains"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND sk <> :a")}, "Invalid operator used in KeyConditionExpression: <>"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p AND sk > :a AND sk < :a")}, "KeyConditionExpressions must only contain one condition per key"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :n"), ExpressionAttributeValues: item{":n": num("1")}}, "Condition parameter type does not match schema type"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :n"), ExpressionAttributeValues: item{":n": str("")}}, "cannot contain an empty string value"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), FilterExpression: ptr("sk = :a")}, "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk"},
		{dynamodb.QueryInput{IndexName: ptr("nope"), KeyConditionExpression: ptr("pk = :p")}, "The table does not have the specified index: nope"},
		{dynamodb.QueryInput{IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :p"), ConsistentRead: ptr(true)}, "Consistent reads are not supported on global secondary indexes"},
		{dynamodb.QueryInput{IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :p"), Select: types.SelectAllAttributes}, "Select type ALL_ATTRIBUTES is not supported"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExclusiveStartKey: item{"pk": str("q")}}, "The provided starting key is invalid"},
		{dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExclusiveStartKey: keyOf("x", "y")}, "The provided starting key is outside query boundaries"},
	}
	for _, tt := range tests {
		if tt.in.ExpressionAttributeValues == nil {
			tt.in.ExpressionAttributeValues = item{":p": values[":p"]}
			if expressionUses(tt.in, ":a") {
				tt.in.ExpressionAttributeValues = values
			}
		}
		err := f.queryError(tt.in)
		t.Run(*tt.in.KeyConditionExpression, func(t *testing.T) { invalid(t, err, tt.message) })
	}
}

func TestFilterOnKeyRefused(t *testing.T) {
	f := newFixture(t)
	for _, filter := range []string{
		"sk = :a", ":a = sk", "n = :a AND sk < :a", "n = :a OR NOT sk IN (:a)", "n IN (:a, sk)", "n BETWEEN :a AND sk", "attribute_exists(sk)",
		"begins_with(sk, :a)", "contains(n, sk) AND n = :a", "size(sk) > size(:a)", "attribute_type(sk, :a)",
	} {
		values := item{":p": str("q")}
		if strings.Contains(filter, ":a") {
			values[":a"] = str("S")
		}
		err := f.queryError(dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), FilterExpression: &filter, ExpressionAttributeValues: values})
		t.Run(filter, func(t *testing.T) {
			invalid(t, err, "Filter Expression can only contain non-primary key attributes: Primary key attribute: sk")
		})
	}
}

func TestSelect(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeInclude, "n"))
	f.fill("q", 1)
	for _, tt := range []struct {
		name, index, projection string
		choice                  types.Select
		attributes              int
		message                 string
	}{
		{"all of the table", "", "", types.SelectAllAttributes, 6, ""},
		{"all projected", "gsi", "", types.SelectAllProjectedAttributes, 5, ""},
		{"specific", "gsi", "n, sk", types.SelectSpecificAttributes, 2, ""},
		{"specific without saying which", "", "", types.SelectSpecificAttributes, 0, "Must specify the AttributesToGet or ProjectionExpression"},
		{"count with a projection", "", "n", types.SelectCount, 0, "Cannot specify the ProjectionExpression when choosing to get COUNT"},
		{"projected of the table", "", "", types.SelectAllProjectedAttributes, 0, "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
		{"all of an index that has not all", "gsi", "", types.SelectAllAttributes, 0, "Select type ALL_ATTRIBUTES is not supported for global secondary index gsi"},
		{"more than an index has", "gsi", "extra", "", 0, "gsi does not project [extra]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &dynamodb.QueryInput{TableName: &f.table, Select: tt.choice, KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: item{":p": str("q")}}
			if tt.index != "" {
				in.IndexName, in.KeyConditionExpression, in.ExpressionAttributeValues = &tt.index, ptr("gpk = :p"), item{":p": str("G")}
			}
			if tt.projection != "" {
				in.ProjectionExpression = &tt.projection
			}
			out, err := f.db.Query(t.Context(), in)
			if tt.message != "" {
				invalid(t, err, tt.message)
			} else if err != nil || len(out.Items) != 1 || len(out.Items[0]) != tt.attributes {
				t.Errorf("%v, %v; want one item of %d attributes", out, err, tt.attributes)
			}
		})
	}
}

func expressionUses(in dynamodb.QueryInput, placeholder string) bool {
	return strings.Contains(*in.KeyConditionExpression, placeholder) || in.FilterExpression != nil && strings.Contains(*in.FilterExpression, placeholder)
}

func TestPagination(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeKeysOnly))
	f.fill("q", 30)
	for _, tt := range []struct {
		name  string
		in    dynamodb.QueryInput
		keys  int
		pages int
	}{
		{"table", dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: item{":p": str("q")}}, 2, 5},
		{"index with ties", dynamodb.QueryInput{IndexName: ptr("gsi"), KeyConditionExpression: ptr("gpk = :p"), ExpressionAttributeValues: item{":p": str("G")}}, 4, 5},
	} {
		for _, forward := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s forward=%v", tt.name, forward), func(t *testing.T) {
				seen := map[string]int{}
				pages := 0
				for in := tt.in; ; pages++ {
					in.Limit, in.ScanIndexForward = ptr(int32(7)), &forward
					out := f.query(in)
					for _, k := range sortKeys(out.Items) {
						seen[k]++
					}
					if out.LastEvaluatedKey == nil {
						break
					}
					if len(out.LastEvaluatedKey) != tt.keys {
						t.Fatalf("last key %v, want %d attributes", out.LastEvaluatedKey, tt.keys)
					}
					in.ExclusiveStartKey = out.LastEvaluatedKey
				}
				if len(seen) != 30 || pages+1 != tt.pages {
					t.Errorf("%d items in %d pages, want 30 in %d", len(seen), pages+1, tt.pages)
				}
			})
		}
	}
	out := f.query(dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: item{":p": str("q")}, Limit: ptr(int32(30))})
	if out.LastEvaluatedKey == nil {
		t.Error("a page that Limit ended has no LastEvaluatedKey, though nothing was read past it")
	}
}

func TestPagingWhileDeleting(t *testing.T) {
	f := newFixture(t)
	f.fill("q", 10)
	in := dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: item{":p": str("q")}, Limit: ptr(int32(4))}
	first := f.query(in)
	if _, err := f.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: first.LastEvaluatedKey}); err != nil {
		t.Fatal(err)
	}
	in.ExclusiveStartKey = first.LastEvaluatedKey
	same(t, "second page", sortKeys(f.query(in).Items), []string{"004", "005", "006", "007"})
}

func TestFilterProjectionAndCount(t *testing.T) {
	f := newFixture(t)
	f.fill("q", 30)
	base := dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), FilterExpression: ptr("n >= :n"), ExpressionAttributeValues: item{":p": str("q"), ":n": num("20")}}
	filtered := base
	filtered.Limit = ptr(int32(25))
	if out := f.query(filtered); out.Count != 5 || out.ScannedCount != 25 || out.LastEvaluatedKey == nil {
		t.Errorf("count %d, scanned %d, last %v; want 5 of 25 and a last key", out.Count, out.ScannedCount, out.LastEvaluatedKey)
	}
	counted := base
	counted.Select = types.SelectCount
	if out := f.query(counted); out.Count != 10 || len(out.Items) != 0 {
		t.Errorf("count %d with %d items, want 10 with none", out.Count, len(out.Items))
	}
	projected := base
	projected.ProjectionExpression, projected.ExpressionAttributeNames = ptr("sk, #n"), map[string]string{"#n": "n"}
	same(t, "projected", f.query(projected).Items[0], item{"sk": str("020"), "n": num("20")})

	f.put(withKey("p", "1", item{"m": mapOf(item{"a": mapOf(item{"b": num("1"), "c": num("2")})}), "l": listOf(str("x"), str("y"), str("z"))}))
	out, err := f.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &f.table, Key: keyOf("p", "1"), ProjectionExpression: ptr("m.a.b, l[2], l[0], gone, l[9]")})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "nested projection", out.Item, item{"m": mapOf(item{"a": mapOf(item{"b": num("1")})}), "l": listOf(str("x"), str("z"))})
	_, err = f.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &f.table, Key: keyOf("p", "1"), ProjectionExpression: ptr("m, m.a")})
	invalid(t, err, "Two document paths overlap with each other")
}

func TestPageOfOneMegabyte(t *testing.T) {
	f := newFixture(t)
	for i := range 6 {
		f.put(withKey("big", fmt.Sprint(i), item{"b": str(repeated(300 << 10))}))
	}
	out := f.query(dynamodb.QueryInput{KeyConditionExpression: ptr("pk = :p"), ExpressionAttributeValues: item{":p": str("big")}})
	if len(out.Items) >= 6 || out.LastEvaluatedKey == nil {
		t.Errorf("%d items of 300 KB in one page, last key %v", len(out.Items), out.LastEvaluatedKey)
	}
}

func TestIndexes(t *testing.T) {
	f := newFixture(t, indexOn("keys", types.ProjectionTypeKeysOnly), indexOn("some", types.ProjectionTypeInclude, "n"), indexOn("all", types.ProjectionTypeAll))
	f.put(withKey("i", "1", item{"gpk": str("G"), "gsk": num("10"), "n": num("1"), "extra": str("e")}))
	f.put(withKey("i", "2", item{"gpk": str("G"), "gsk": num("9")}))
	f.put(withKey("i", "sparse", item{"gpk": str("G")}))
	read := func(index, condition string, values item) []item {
		values[":p"] = str("G")
		return f.query(dynamodb.QueryInput{IndexName: &index, KeyConditionExpression: &condition, ExpressionAttributeValues: values}).Items
	}
	second := withKey("i", "2", item{"gpk": str("G"), "gsk": num("9")})
	keysOnly := withKey("i", "1", item{"gpk": str("G"), "gsk": num("10")})
	with := func(it item, name string, v av) item { it = withKey("i", "1", it); it[name] = v; return it }
	same(t, "KEYS_ONLY, in numeric order", read("keys", "gpk = :p", item{}), []item{second, keysOnly})
	same(t, "INCLUDE", read("some", "gpk = :p AND gsk > :n", item{":n": num("9.5")}), []item{with(keysOnly, "n", num("1"))})
	same(t, "ALL", read("all", "gpk = :p AND gsk BETWEEN :a AND :b", item{":a": num("1e1"), ":b": num("11")}), []item{with(with(keysOnly, "n", num("1")), "extra", str("e"))})

	if _, err := f.update("i", "1", "SET gsk = :n REMOVE n", nil, item{":n": num("-3")}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.update("i", "2", "REMOVE gpk", nil, nil); err != nil {
		t.Fatal(err)
	}
	moved := withKey("i", "1", item{"gpk": str("G"), "gsk": num("-3")})
	for _, name := range []string{"keys", "some"} {
		same(t, name+" after updates", read(name, "gpk = :p", item{}), []item{moved})
	}
	if _, err := f.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: keyOf("i", "1")}); err != nil {
		t.Fatal(err)
	}
	same(t, "after delete", read("all", "gpk = :p", item{}), []item{})
}

func TestScan(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeKeysOnly))
	for p := range 20 {
		f.fill(fmt.Sprint("p", p), 2)
	}
	f.put(keyOf("q", "not in the index"))
	seen := map[string]bool{}
	for segment := range int32(3) {
		in := &dynamodb.ScanInput{TableName: &f.table, Segment: &segment, TotalSegments: ptr(int32(3)), Limit: ptr(int32(5))}
		for {
			out, err := f.db.Scan(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range out.Items {
				k := it["pk"].(*types.AttributeValueMemberS).Value + "/" + it["sk"].(*types.AttributeValueMemberS).Value
				if seen[k] {
					t.Errorf("%s scanned twice", k)
				}
				seen[k] = true
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				break
			}
		}
	}
	if len(seen) != 41 {
		t.Errorf("%d items in three segments, want 41", len(seen))
	}
	out, err := f.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &f.table, IndexName: ptr("gsi"), FilterExpression: ptr("gsk = :n AND sk = :s"),
		ExpressionAttributeValues: item{":n": num("0"), ":s": str("001")}})
	if err != nil || out.Count != 20 || out.ScannedCount != 40 {
		t.Errorf("index scan: %v, %v; want 20 of 40", out, err)
	}
	_, err = f.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &f.table, Segment: ptr(int32(3)), TotalSegments: ptr(int32(3))})
	invalid(t, err, "Segment: 3 is not less than TotalSegments: 3")
}

func TestSelectStatement(t *testing.T) {
	f := newFixture(t)
	f.fill("q", 5)
	out, err := f.db.ExecuteStatement(t.Context(), &dynamodb.ExecuteStatementInput{
		Statement: ptr(`SELECT * FROM "` + f.table + `" WHERE pk = 'q' AND "n" >= 1.5 AND sk <> ?`), Parameters: []av{str("003")}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "selected", sortKeys(out.Items), []string{"002", "004"})
	_, err = f.db.ExecuteStatement(t.Context(), &dynamodb.ExecuteStatementInput{Statement: ptr(`DELETE FROM "` + f.table + `" WHERE pk = 'q' AND`)})
	invalid(t, err, "")
}
