package dynamostore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

// get reads one item of the control table, strongly consistent. It is nil when there is none.
func (s *Store) get(ctx context.Context, op string, k key) (item, error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.control, Key: k.item(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, unavailable(op, err)
	}
	return out.Item, nil
}

// marshal turns a struct into attributes of k, named by its dynamodbav tags.
func marshal(k key, v any) (item, error) {
	it, err := attributevalue.MarshalMap(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.pk, err)
	}
	it[attrPK], it[attrSK] = str(k.pk), str(k.sk)
	return it, nil
}

func unmarshal(it item, v any) error {
	if err := attributevalue.UnmarshalMap(it, v); err != nil {
		return fmt.Errorf("decode item: %w", err)
	}
	return nil
}

func textOf(it item, name string) string {
	if v, ok := it[name].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

// intOf gives a number attribute, or 0 when it is absent.
func intOf(it item, name string) int64 {
	v, ok := it[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func binOf(it item, name string) []byte {
	if v, ok := it[name].(*types.AttributeValueMemberB); ok {
		return v.Value
	}
	return nil
}

// millis and fromMillis store times as Unix milliseconds; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
