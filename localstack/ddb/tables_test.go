package ddb_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (f *fixture) describe() *types.TableDescription {
	f.Helper()
	out, err := f.db.DescribeTable(f.Context(), &dynamodb.DescribeTableInput{TableName: &f.table})
	if err != nil {
		f.Fatal(err)
	}
	return out.Table
}

func TestDescribeTable(t *testing.T) {
	f := newFixture(t, indexOn("gsi", types.ProjectionTypeInclude, "n"))
	d := f.describe()
	if d.TableStatus != types.TableStatusActive || *d.TableName != f.table || d.TableArn == nil || d.TableId == nil || d.CreationDateTime == nil {
		t.Errorf("table %+v", d)
	}
	if d.BillingModeSummary.BillingMode != types.BillingModePayPerRequest || len(d.KeySchema) != 2 || len(d.AttributeDefinitions) != 4 {
		t.Errorf("table %+v", d)
	}
	ix := d.GlobalSecondaryIndexes[0]
	if *ix.IndexName != "gsi" || ix.IndexStatus != types.IndexStatusActive || ix.Projection.NonKeyAttributes[0] != "n" || ix.Backfilling != nil {
		t.Errorf("index %+v", ix)
	}
	_, err := f.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: ptr("no-such-table")})
	refused(t, err, "ResourceNotFoundException", "Requested resource not found: Table: no-such-table not found")
	byARN, err := f.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: d.TableArn, Key: keyOf("a", "b")})
	if err != nil || byARN.Item != nil {
		t.Errorf("by ARN: %v, %v", byARN, err)
	}
}

func TestCreateTableRefused(t *testing.T) {
	db := client(t)
	hash := func(name string) []types.KeySchemaElement {
		return []types.KeySchemaElement{{AttributeName: &name, KeyType: types.KeyTypeHash}}
	}
	attribute := func(names ...string) (defs []types.AttributeDefinition) {
		for _, name := range names {
			defs = append(defs, types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS})
		}
		return defs
	}
	index := func(p types.Projection) []types.GlobalSecondaryIndex {
		return []types.GlobalSecondaryIndex{{IndexName: ptr("gsi"), KeySchema: hash("pk"), Projection: &p}}
	}
	for name, in := range map[string]dynamodb.CreateTableInput{
		"bad name":            {TableName: ptr("x!y"), KeySchema: hash("pk"), AttributeDefinitions: attribute("pk")},
		"undefined attribute": {TableName: ptr("xyz"), KeySchema: hash("pk"), AttributeDefinitions: attribute("zz")},
		"unused attribute":    {TableName: ptr("xyz"), KeySchema: hash("pk"), AttributeDefinitions: attribute("pk", "zz")},
		"range key only":      {TableName: ptr("xyz"), KeySchema: []types.KeySchemaElement{{AttributeName: ptr("pk"), KeyType: types.KeyTypeRange}}, AttributeDefinitions: attribute("pk")},
		"INCLUDE of nothing":  {TableName: ptr("xyz"), KeySchema: hash("pk"), AttributeDefinitions: attribute("pk"), GlobalSecondaryIndexes: index(types.Projection{ProjectionType: types.ProjectionTypeInclude})},
		"no throughput":       {TableName: ptr("xyz"), KeySchema: hash("pk"), AttributeDefinitions: attribute("pk"), BillingMode: types.BillingModeProvisioned},
	} {
		if in.BillingMode == "" {
			in.BillingMode = types.BillingModePayPerRequest
		}
		t.Run(name, func(t *testing.T) {
			_, err := db.CreateTable(t.Context(), &in)
			invalid(t, err, "")
		})
	}
}

func TestTableTwiceAndGone(t *testing.T) {
	f := newFixture(t)
	_, err := f.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{TableName: &f.table, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: ptr("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: ptr("pk"), AttributeType: types.ScalarAttributeTypeS}}})
	refused(t, err, "ResourceInUseException", "Table already exists: "+f.table)
	protect := func(on bool) {
		if _, err := f.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &f.table, DeletionProtectionEnabled: &on}); err != nil {
			t.Fatal(err)
		}
		f.await()
	}
	protect(true)
	_, err = f.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &f.table})
	invalid(t, err, "protected against deletion")
	protect(false)
	if _, err := f.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &f.table}); err != nil {
		t.Fatal(err)
	}
	waiter := dynamodb.NewTableNotExistsWaiter(f.db)
	if err := waiter.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &f.table}, 300e9); err != nil {
		t.Fatal(err)
	}
	_, err = f.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: keyOf("a", "b")})
	refused(t, err, "ResourceNotFoundException", "")
}

func TestListTables(t *testing.T) {
	f := newFixture(t)
	seen := 0
	pages := dynamodb.NewListTablesPaginator(f.db, &dynamodb.ListTablesInput{Limit: ptr(int32(1))})
	for pages.HasMorePages() {
		out, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range out.TableNames {
			if name == f.table {
				seen++
			}
		}
	}
	if seen != 1 {
		t.Errorf("table listed %d times", seen)
	}
}

func TestAddAndRemoveIndex(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		f.put(withKey("i", fmt.Sprint(i), item{"late": str("L")}))
	}
	f.put(withKey("i", "wrong type", item{"late": num("1")}))
	change := func(attributes []types.AttributeDefinition, u types.GlobalSecondaryIndexUpdate) error {
		_, err := f.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &f.table, AttributeDefinitions: attributes, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{u}})
		return err
	}
	err := change([]types.AttributeDefinition{{AttributeName: ptr("late"), AttributeType: types.ScalarAttributeTypeS}},
		types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{IndexName: ptr("added"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			KeySchema: []types.KeySchemaElement{{AttributeName: ptr("late"), KeyType: types.KeyTypeHash}}}})
	if err != nil {
		t.Fatal(err)
	}
	f.await()
	out := f.query(dynamodb.QueryInput{IndexName: ptr("added"), KeyConditionExpression: ptr("late = :l"), ExpressionAttributeValues: item{":l": str("L")}})
	if out.Count != 3 {
		t.Errorf("%d items in the new index, want 3", out.Count)
	}
	if err := change(nil, types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: ptr("added")}}); err != nil {
		t.Fatal(err)
	}
	f.await()
	if d := f.describe(); len(d.GlobalSecondaryIndexes) != 0 || len(d.AttributeDefinitions) != 2 {
		t.Errorf("after removal: %+v", d)
	}
	refused(t, change(nil, types.GlobalSecondaryIndexUpdate{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: ptr("added")}}), "ResourceNotFoundException", "")
}

func TestTableSettings(t *testing.T) {
	f := newFixture(t)
	ttl := func(on bool, attribute string) error {
		_, err := f.db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &f.table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: &on, AttributeName: &attribute}})
		return err
	}
	if err := ttl(true, "expires"); err != nil {
		t.Fatal(err)
	}
	d, err := f.db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &f.table})
	if err != nil || *d.TimeToLiveDescription.AttributeName != "expires" {
		t.Errorf("TTL %+v, %v", d, err)
	}
	invalid(t, ttl(true, "expires"), "")

	on, err := f.db.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{TableName: &f.table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: ptr(true)}})
	if err != nil || on.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		t.Errorf("backups %+v, %v", on, err)
	}
	if _, err := f.db.DescribeContinuousBackups(t.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: &f.table}); err != nil {
		t.Error(err)
	}
	if _, err := f.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &f.table,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: ptr(true), StreamViewType: types.StreamViewTypeNewAndOldImages}}); err != nil {
		t.Fatal(err)
	}
	if f.describe().LatestStreamArn == nil {
		t.Error("no stream ARN")
	}
}

func TestBatches(t *testing.T) {
	f := newFixture(t)
	put := func(s string) types.WriteRequest {
		return types.WriteRequest{PutRequest: &types.PutRequest{Item: withKey("b", s, item{"n": num("1")})}}
	}
	write := func(requests ...types.WriteRequest) error {
		_, err := f.db.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{f.table: requests}})
		return err
	}
	var many []types.WriteRequest
	var keys []item
	for i := range 26 {
		many = append(many, put(fmt.Sprintf("%03d", i)))
	}
	for i := range 101 {
		keys = append(keys, keyOf("b", fmt.Sprintf("%03d", i)))
	}
	invalid(t, write(many...), "Member must have length less than or equal to 25")
	invalid(t, write(put("1"), put("1")), "Provided list of item keys contains duplicates")
	if err := write(many[:25]...); err != nil {
		t.Fatal(err)
	}
	if err := write(types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: keyOf("b", "000")}}, put("xyz")); err != nil {
		t.Fatal(err)
	}
	read := func(keys ...item) (*dynamodb.BatchGetItemOutput, error) {
		return f.db.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{f.table: {Keys: keys, ProjectionExpression: ptr("sk")}}})
	}
	out, err := read(keys[:100]...)
	if err != nil || len(out.Responses[f.table]) != 24 || len(out.Responses[f.table][0]) != 1 {
		t.Errorf("%d items, %v; want 24 of one attribute", len(out.Responses[f.table]), err)
	}
	_, err = read(keys...)
	invalid(t, err, "Too many items requested for the BatchGetItem call")
	_, err = read(keys[0], keys[0])
	invalid(t, err, "Provided list of item keys contains duplicates")
}
