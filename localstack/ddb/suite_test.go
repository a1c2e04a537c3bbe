package ddb_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/oklog/ulid/v2"

	"pintu/localstack/ddb"
)

// The conformance suite talks to DynamoDB through the real SDK and expects what AWS documents. It runs against the embedded
// server, or against any endpoint named in PINTU_DDB_ENDPOINT.

type (
	av   = types.AttributeValue
	item = map[string]av
)

func str(v string) av        { return &types.AttributeValueMemberS{Value: v} }
func num(v string) av        { return &types.AttributeValueMemberN{Value: v} }
func bin(v ...byte) av       { return &types.AttributeValueMemberB{Value: append([]byte{}, v...)} }
func boolean(v bool) av      { return &types.AttributeValueMemberBOOL{Value: v} }
func null() av               { return &types.AttributeValueMemberNULL{Value: true} }
func listOf(v ...av) av      { return &types.AttributeValueMemberL{Value: append([]av{}, v...)} }
func mapOf(v item) av        { return &types.AttributeValueMemberM{Value: v} }
func strSet(v ...string) av  { return &types.AttributeValueMemberSS{Value: v} }
func numSet(v ...string) av  { return &types.AttributeValueMemberNS{Value: v} }
func binSet(v ...[]byte) av  { return &types.AttributeValueMemberBS{Value: v} }
func keyOf(p, s string) item { return item{"pk": str(p), "sk": str(s)} }
func repeated(n int) string  { return strings.Repeat("x", n) }
func ptr[T any](v T) *T      { return &v }
func withKey(p, s string, more item) item {
	it := keyOf(p, s)
	for name, v := range more {
		it[name] = v
	}
	return it
}

// equalValues ignores the order of set members and the SDK's unexported fields.
var equalValues = cmp.Options{
	cmpopts.IgnoreUnexported(
		types.AttributeValueMemberS{}, types.AttributeValueMemberN{}, types.AttributeValueMemberB{}, types.AttributeValueMemberBOOL{},
		types.AttributeValueMemberNULL{}, types.AttributeValueMemberL{}, types.AttributeValueMemberM{}, types.AttributeValueMemberSS{},
		types.AttributeValueMemberNS{}, types.AttributeValueMemberBS{},
	),
	cmp.Transformer("SS", func(v types.AttributeValueMemberSS) map[string]bool { return memberSet(v.Value) }),
	cmp.Transformer("NS", func(v types.AttributeValueMemberNS) map[string]bool { return memberSet(v.Value) }),
	cmpopts.EquateEmpty(),
}

func memberSet(members []string) map[string]bool {
	set := map[string]bool{}
	for _, m := range members {
		set[m] = true
	}
	return set
}

// fixture is a table of its own for one test.
type fixture struct {
	*testing.T
	db    *dynamodb.Client
	table string
}

// newFixture makes a table with keys pk and sk, and the indexes given.
func newFixture(t *testing.T, indexes ...types.GlobalSecondaryIndex) *fixture {
	t.Helper()
	f := &fixture{T: t, db: client(t), table: "suite-" + ulid.Make().String()}
	f.create(indexes)
	f.Cleanup(func() {
		if _, err := f.db.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &f.table}); err != nil && code(err) != "ResourceNotFoundException" {
			f.Errorf("delete table: %v", err)
		}
	})
	return f
}

func client(t testing.TB) *dynamodb.Client {
	t.Helper()
	endpoint := os.Getenv("PINTU_DDB_ENDPOINT")
	if endpoint == "" {
		server, err := ddb.New(ddb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		endpoint = serve(t, server)
	}
	return connect(endpoint)
}

func serve(t testing.TB, server *ddb.Server) string {
	t.Helper()
	h := httptest.NewServer(server)
	t.Cleanup(h.Close)
	return h.URL
}

func connect(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		HTTPClient:  &http.Client{Transport: wholeBodies{&http.Transport{MaxIdleConnsPerHost: 64}}},
	})
}

// wholeBodies hides the SDK's WriteTo on request bodies. It answers EOF once the SDK has closed the body, which net/http
// takes for a failed write and hangs up, when a reply overtakes the end of its request: on loopback it does.
type wholeBodies struct{ next http.RoundTripper }

func (w wholeBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return w.next.RoundTrip(r)
}

// indexOn is a global secondary index on gpk (text) and gsk (number).
func indexOn(name string, projection types.ProjectionType, include ...string) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{
		IndexName: &name,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: ptr("gpk"), KeyType: types.KeyTypeHash}, {AttributeName: ptr("gsk"), KeyType: types.KeyTypeRange},
		},
		Projection:     &types.Projection{ProjectionType: projection, NonKeyAttributes: include},
		WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: ptr(int64(12000)), WriteUnitsPerSecond: ptr(int64(4000))},
	}
}

func (f *fixture) create(indexes []types.GlobalSecondaryIndex) {
	f.Helper()
	in := &dynamodb.CreateTableInput{
		TableName: &f.table, BillingMode: types.BillingModePayPerRequest, GlobalSecondaryIndexes: indexes,
		KeySchema: []types.KeySchemaElement{
			{AttributeName: ptr("pk"), KeyType: types.KeyTypeHash}, {AttributeName: ptr("sk"), KeyType: types.KeyTypeRange},
		},
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: ptr("pk"), AttributeType: types.ScalarAttributeTypeS}, {AttributeName: ptr("sk"), AttributeType: types.ScalarAttributeTypeS},
		},
		WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: ptr(int64(12000)), WriteUnitsPerSecond: ptr(int64(4000))},
		Tags:           []types.Tag{{Key: ptr("suite"), Value: ptr("ddb")}},
	}
	if len(indexes) > 0 {
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: ptr("gpk"), AttributeType: types.ScalarAttributeTypeS},
			types.AttributeDefinition{AttributeName: ptr("gsk"), AttributeType: types.ScalarAttributeTypeN})
	}
	if _, err := f.db.CreateTable(context.Background(), in); err != nil {
		f.Fatalf("create table: %v", err)
	}
	f.await()
}

// await waits until a real service has made the table or index active.
func (f *fixture) await() {
	f.Helper()
	waiter := dynamodb.NewTableExistsWaiter(f.db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = time.Second })
	if err := waiter.Wait(context.Background(), &dynamodb.DescribeTableInput{TableName: &f.table}, 5*time.Minute); err != nil {
		f.Fatalf("wait for table: %v", err)
	}
}

func (f *fixture) put(it item) {
	f.Helper()
	if _, err := f.db.PutItem(f.Context(), &dynamodb.PutItemInput{TableName: &f.table, Item: it}); err != nil {
		f.Fatalf("put: %v", err)
	}
}

func (f *fixture) get(p, s string) item {
	f.Helper()
	out, err := f.db.GetItem(f.Context(), &dynamodb.GetItemInput{TableName: &f.table, Key: keyOf(p, s), ConsistentRead: ptr(true)})
	if err != nil {
		f.Fatalf("get: %v", err)
	}
	return out.Item
}

// update runs an update expression on the item and asks for ALL_NEW.
func (f *fixture) update(p, s, expression string, names map[string]string, values item) (item, error) {
	out, err := f.db.UpdateItem(f.Context(), &dynamodb.UpdateItemInput{
		TableName: &f.table, Key: keyOf(p, s), UpdateExpression: &expression,
		ExpressionAttributeNames: names, ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// holds tells whether a condition is true of the item.
func (f *fixture) holds(p, s, condition string, names map[string]string, values item) (bool, error) {
	_, err := f.db.TransactWriteItems(f.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
		ConditionCheck: &types.ConditionCheck{TableName: &f.table, Key: keyOf(p, s), ConditionExpression: &condition,
			ExpressionAttributeNames: names, ExpressionAttributeValues: values}}}})
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && *cancelled.CancellationReasons[0].Code == "ConditionalCheckFailed" {
		return false, nil
	}
	return err == nil, err
}

// code is the service's name for an error, "" for none.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return "not from the service: " + err.Error()
	}
	return ""
}

// refused checks that err has the code and a message that contains part.
func refused(t testing.TB, err error, wantCode, part string) {
	t.Helper()
	if code(err) != wantCode || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v\nwant %s with %q", err, wantCode, part)
	}
}

func invalid(t testing.TB, err error, part string) {
	t.Helper()
	refused(t, err, "ValidationException", part)
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, equalValues); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
