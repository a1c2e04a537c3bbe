// Package storetest starts an embedded DynamoDB with both tables of the system and gives the real store on
// top of it, reached through the real SDK. It refuses to stand in for the store: there is no other one.
package storetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/aws/dynamostore"
	"pintu/localstack/ddb"
)

// Names of the tables that New and Start make.
const (
	ControlTable = "control"
	RecordsTable = "records"
)

// New gives a store over empty tables that are gone when the test ends.
func New(t testing.TB) *dynamostore.Store {
	t.Helper()
	store, _, _ := Start(t)
	return store
}

// Start is New for tests that also look at the tables or make stores of their own, with another clock or
// another client.
func Start(t testing.TB) (*dynamostore.Store, *ddb.Server, aws.Config) {
	t.Helper()
	return StartBehind(t, func(next http.Handler) http.Handler { return next })
}

// StartBehind is Start with something of the test's in front of DynamoDB, such as a fault injector. It
// stands there before the tables are made.
func StartBehind(t testing.TB, front func(http.Handler) http.Handler) (*dynamostore.Store, *ddb.Server, aws.Config) {
	t.Helper()
	server, err := ddb.New(ddb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := httptest.NewServer(front(server))
	t.Cleanup(func() {
		endpoint.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("pintu", "pintu-local-secret", ""),
		BaseEndpoint: aws.String(endpoint.URL),
		HTTPClient:   endpoint.Client(),
	}
	if err := CreateTables(t.Context(), dynamodb.NewFromConfig(cfg)); err != nil {
		t.Fatal(err)
	}
	return dynamostore.New(dynamostore.Config{AWS: cfg, ControlTable: ControlTable, RecordsTable: RecordsTable}), server, cfg
}

// CreateTables makes both tables with the keys and indexes that template.yaml gives them.
func CreateTables(ctx context.Context, db *dynamodb.Client) error {
	control := dynamodb.CreateTableInput{
		TableName: aws.String(ControlTable),
		KeySchema: keys("pk", "sk"),
		AttributeDefinitions: []types.AttributeDefinition{
			attribute("pk", "S"), attribute("sk", "S"), attribute("due_shard", "S"), attribute("due_at", "N"),
			attribute("jobs_of", "S"), attribute("jobs_at", "S"),
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{keysOnly("due", "due_shard", "due_at"), keysOnly("jobs", "jobs_of", "jobs_at")},
		BillingMode:            types.BillingModePayPerRequest,
	}
	if _, err := db.CreateTable(ctx, &control); err != nil {
		return err
	}
	records := dynamodb.CreateTableInput{
		TableName:            aws.String(RecordsTable),
		KeySchema:            keys("pk", "sk"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "S")},
		BillingMode:          types.BillingModePayPerRequest,
	}
	if _, err := db.CreateTable(ctx, &records); err != nil {
		return err
	}
	_, err := db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(ControlTable),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	})
	return err
}

func keys(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}

func attribute(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
}

func keysOnly(name, hash, sort string) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{
		IndexName: &name, KeySchema: keys(hash, sort), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
	}
}
