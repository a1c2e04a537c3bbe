package ddb_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/localstack/ddb"
)

const benchItems = 1000

// benchServer has a table of items of 1 KB: 14 attributes, a version and a key.
func benchServer(b *testing.B, dir string) *ddb.Server {
	b.Helper()
	server, err := ddb.New(ddb.Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Close() })
	mustAnswer(b, server, "CreateTable", `{"TableName":"bench","BillingMode":"PAY_PER_REQUEST",
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}]}`)
	var attributes strings.Builder
	for i := range 14 {
		fmt.Fprintf(&attributes, `,"attribute%02d":{"S":"%s"}`, i, repeated(55))
	}
	for i := range benchItems {
		mustAnswer(b, server, "PutItem", fmt.Sprintf(`{"TableName":"bench","Item":{"pk":{"S":"k%d"},"version":{"N":"1"}%s}}`, i, &attributes))
	}
	return server
}

func mustAnswer(b *testing.B, server *ddb.Server, action, body string) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+action)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		b.Errorf("%s: %s", action, w.Body)
	}
}

// BenchmarkUpdateItem measures a conditional update of a 1 KB item: the server alone, in memory and with its log, and over
// loopback through the SDK with 32 connections.
func BenchmarkUpdateItem(b *testing.B) {
	for name, dir := range map[string]string{"server": "", "server with log": b.TempDir()} {
		b.Run(name, func(b *testing.B) {
			server := benchServer(b, dir)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				mustAnswer(b, server, "UpdateItem", fmt.Sprintf(`{"TableName":"bench","Key":{"pk":{"S":"k%d"}},
					"UpdateExpression":"SET #v = #v + :one, attribute03 = :a","ConditionExpression":"attribute_exists(pk) AND #v >= :one",
					"ExpressionAttributeNames":{"#v":"version"},"ExpressionAttributeValues":{":one":{"N":"1"},":a":{"S":"%055d"}},"ReturnValues":"ALL_NEW"}`, i%benchItems, i))
			}
		})
	}
	b.Run("loopback with 32 connections", func(b *testing.B) {
		db := connect(serve(b, benchServer(b, "")))
		b.SetParallelism(16) // times GOMAXPROCS
		var next atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, err := db.UpdateItem(b.Context(), &dynamodb.UpdateItemInput{
					TableName: ptr("bench"), Key: item{"pk": str(fmt.Sprint("k", next.Add(1)%benchItems))},
					UpdateExpression: ptr("SET #v = #v + :one, attribute03 = :a"), ConditionExpression: ptr("attribute_exists(pk) AND #v >= :one"),
					ExpressionAttributeNames:  map[string]string{"#v": "version"},
					ExpressionAttributeValues: item{":one": num("1"), ":a": str(repeated(55))}, ReturnValues: types.ReturnValueAllNew,
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	})
}
