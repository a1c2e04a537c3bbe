package dynamostore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/importer"
	"pintu/internal/record"
)

// What readers need of a stored record; imports keep their own attributes beside it.
const (
	recordValues  = "d" // map of field name to S, N, BOOL or NULL
	recordVersion = "v"
	recordUpdated = "u" // ms
	recordJob     = "j"
	recordRow     = "n"
)

// maxKeyBytes is DynamoDB's limit on a sort key.
const maxKeyBytes = 1024

// recordCursor is the last record of a page; without a key, the start of its shard.
type recordCursor struct {
	Shard int    `json:"s"`
	Key   string `json:"k"`
}

func (c recordCursor) valid(tenant, dataset string) bool {
	if c.Shard < 0 || c.Shard >= record.Shards || len(c.Key) > maxKeyBytes {
		return false
	}
	return c.Key == "" || recordKey(tenant, dataset, c.Key).pk == recordPK(tenant, dataset, c.Shard)
}

// ListRecords gives the records of a dataset after cursor: shard by shard, by key inside a shard, as
// they are when read. A page ends at limit records, or before its JSON, escaped once more as a string,
// passes maxBytes. A cursor that no page ended with is INVALID_REQUEST.
func (s *Store) ListRecords(ctx context.Context, tenant, dataset, cursor string, limit, maxBytes int) (record.Page, error) {
	var at recordCursor
	if err := decodeCursor(cursor, &at); err != nil {
		return record.Page{}, err
	}
	if !at.valid(tenant, dataset) {
		return record.Page{}, badCursor()
	}
	var page record.Page
	room := newPageRoom(limit, maxBytes)
	for ; at.Shard < record.Shards; at = (recordCursor{Shard: at.Shard + 1}) {
		ended, err := s.listShard(ctx, tenant, dataset, &at, &room, &page)
		if err != nil {
			return record.Page{}, err
		}
		if !ended {
			page.NextCursor, err = encodeCursor(at)
			return page, err
		}
	}
	return page, nil
}

// listShard adds records of at's shard to the page and moves at along. ended is false when the page was
// full first.
func (s *Store) listShard(ctx context.Context, tenant, dataset string, at *recordCursor, room *pageRoom, page *record.Page) (ended bool, err error) {
	query := dynamodb.QueryInput{
		TableName:                 &s.records,
		KeyConditionExpression:    aws.String("pk = :pk"),
		ExpressionAttributeValues: item{":pk": str(recordPK(tenant, dataset, at.Shard))},
		ConsistentRead:            aws.Bool(true),
	}
	if at.Key != "" {
		query.ExclusiveStartKey = recordKey(tenant, dataset, at.Key).item()
	}
	for {
		if room.full() {
			return false, nil
		}
		query.Limit = aws.Int32(int32(room.entries + 1)) // one more shows whether the shard goes on
		out, err := s.db.Query(ctx, &query)
		if err != nil {
			return false, unavailable("list records", err)
		}
		for _, it := range out.Items {
			r, err := recordFrom(it)
			if err != nil {
				return false, err
			}
			fits, err := room.take(r)
			if err != nil {
				return false, fmt.Errorf("size of record: %w", err)
			}
			if !fits {
				return false, nil
			}
			page.Records = append(page.Records, r)
			at.Key = r.Key
		}
		if out.LastEvaluatedKey == nil {
			return true, nil
		}
		query.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// GetRecord gives one record. found is false when there is none with this key.
func (s *Store) GetRecord(ctx context.Context, tenant, dataset, keyText string) (r record.Record, found bool, err error) {
	if keyText == "" || len(keyText) > maxKeyBytes {
		return r, false, nil
	}
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.records, Key: recordKey(tenant, dataset, keyText).item(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return r, false, unavailable("read record", err)
	}
	if out.Item == nil {
		return r, false, nil
	}
	r, err = recordFrom(out.Item)
	return r, err == nil, err
}

// Entry gives what one slot of a record's register says, strongly consistent; nil when there is none.
func (s *Store) Entry(ctx context.Context, tenant, dataset, keyText string, slot int) (*importer.Entry, error) {
	r, err := s.judge(ctx, importer.Write{Tenant: tenant, Dataset: dataset, Key: keyText, Slot: slot})
	return r.Own, err
}

// recordFrom decodes a stored record; its values are sorted by field name.
func recordFrom(it item) (record.Record, error) {
	r := record.Record{
		Key:       textOf(it, attrSK),
		Version:   intOf(it, recordVersion),
		UpdatedAt: fromMillis(intOf(it, recordUpdated)),
		Source:    record.Source{JobID: textOf(it, recordJob), RowNumber: intOf(it, recordRow)},
	}
	values, ok := it[recordValues].(*types.AttributeValueMemberM)
	if !ok {
		return r, fmt.Errorf("read record: no values")
	}
	for _, field := range slices.Sorted(maps.Keys(values.Value)) {
		v, err := valueFrom(field, values.Value[field])
		if err != nil {
			return r, err
		}
		r.Values = append(r.Values, v)
	}
	return r, nil
}

func valueFrom(field string, attr types.AttributeValue) (record.Value, error) {
	switch a := attr.(type) {
	case *types.AttributeValueMemberS:
		return record.Value{Field: field, Kind: record.String, Text: a.Value}, nil
	case *types.AttributeValueMemberN:
		return record.Value{Field: field, Kind: record.Number, Text: a.Value}, nil
	case *types.AttributeValueMemberBOOL:
		return record.Value{Field: field, Kind: record.Bool, Text: fmt.Sprint(a.Value)}, nil
	case *types.AttributeValueMemberNULL:
		return record.Value{Field: field, Kind: record.Null}, nil
	default:
		return record.Value{}, fmt.Errorf("read record: field has a value of type %T", attr)
	}
}
