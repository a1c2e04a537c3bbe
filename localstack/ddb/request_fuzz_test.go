package ddb

import (
	"errors"
	"slices"
	"testing"
)

// Whatever a client sends, the answer is a result or an error of the client's, never a crash or an internal error.
func FuzzRequests(f *testing.F) {
	actions := sortedKeys(operations)
	for action, body := range map[string]string{
		"CreateTable":             `{"TableName":"abc","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"N"}]}`,
		"DescribeTable":           `{"TableName":"t-1"}`,
		"ListTables":              `{"Limit":1,"ExclusiveStartTableName":"a"}`,
		"UpdateTable":             `{"TableName":"t-1","GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"idx","KeySchema":[{"AttributeName":"v","KeyType":"HASH"}],"Projection":{"ProjectionType":"ALL"}}},{"Delete":{"IndexName":"gsi"}}],"AttributeDefinitions":[{"AttributeName":"v","AttributeType":"N"}]}`,
		"UpdateTimeToLive":        `{"TableName":"t-1","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}`,
		"UpdateContinuousBackups": `{"TableName":"t-1","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`,
		"GetItem":                 `{"TableName":"t-1","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"ProjectionExpression":"a.b[1], #c","ExpressionAttributeNames":{"#c":"d"},"ReturnConsumedCapacity":"INDEXES"}`,
		"PutItem":                 `{"TableName":"t-1","Item":{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"B":"AAE="},"m":{"M":{"l":{"L":[{"NULL":true},{"SS":["x"]}]}}}},"ReturnValues":"ALL_OLD"}`,
		"UpdateItem":              `{"TableName":"t-1","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"UpdateExpression":"SET m.l[0] = :v ADD n :v","ConditionExpression":"attribute_exists(pk)","ExpressionAttributeValues":{":v":{"N":"1e5"}},"ReturnValues":"UPDATED_NEW"}`,
		"DeleteItem":              `{"TableName":"t-1","Key":{"pk":{"S":"b"},"sk":{"N":"2"}},"ReturnConsumedCapacity":"TOTAL"}`,
		"Query":                   `{"TableName":"t-1","IndexName":"gsi","KeyConditionExpression":"g = :g","FilterExpression":"size(m) > :n","ExpressionAttributeValues":{":g":{"B":"AAE="},":n":{"N":"0"}},"ExclusiveStartKey":{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"B":"AAE="}},"Limit":1}`,
		"Scan":                    `{"TableName":"t-1","Segment":0,"TotalSegments":2,"Select":"COUNT"}`,
		"BatchGetItem":            `{"RequestItems":{"t-1":{"Keys":[{"pk":{"S":"a"},"sk":{"N":"1"}}]}}}`,
		"BatchWriteItem":          `{"RequestItems":{"t-1":[{"PutRequest":{"Item":{"pk":{"S":"z"},"sk":{"N":"1"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"y"},"sk":{"N":"1"}}}}]}}`,
		"TransactWriteItems":      `{"ClientRequestToken":"x","TransactItems":[{"Put":{"TableName":"t-1","Item":{"pk":{"S":"z"},"sk":{"N":"1"}}}},{"ConditionCheck":{"TableName":"t-1","Key":{"pk":{"S":"a"},"sk":{"N":"1"}},"ConditionExpression":"a = b"}}]}`,
		"TransactGetItems":        `{"TransactItems":[{"Get":{"TableName":"t-1","Key":{"pk":{"S":"a"},"sk":{"N":"1"}}}}]}`,
		"ExecuteStatement":        `{"Statement":"SELECT * FROM \"t-1\".\"gsi\" WHERE n > 1.5 AND \"m\".l[0] = ? AND NOT begins_with(pk, 'a''b')","Parameters":[{"NULL":true}]}`,
	} {
		i, _ := slices.BinarySearch(actions, action)
		f.Add(uint8(i), body)
	}
	f.Fuzz(func(t *testing.T, i uint8, body string) {
		action := actions[int(i)%len(actions)]
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		prepare := []struct{ action, body string }{
			{"CreateTable", `{"TableName":"t-1","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
				"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"},{"AttributeName":"g","AttributeType":"B"}],
				"GlobalSecondaryIndexes":[{"IndexName":"gsi","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]}`},
			{"PutItem", `{"TableName":"t-1","Item":{"pk":{"S":"a"},"sk":{"N":"1"},"g":{"B":"AAE="},"m":{"M":{"l":{"L":[{"N":"5"}]}}}}}`},
		}
		for _, p := range prepare {
			if _, err := operations[p.action](s, []byte(p.body)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // what a request leaves behind must not break the next
			_, err := operations[action](s, []byte(body))
			var api *apiError
			if err != nil && !errors.As(err, &api) {
				t.Errorf("%s %s: %v", action, body, err)
			}
		}
		for _, table := range s.tables {
			if !table.mu.TryLock() {
				t.Errorf("%s %s left table %s locked", action, body, table.name)
			}
		}
	})
}
