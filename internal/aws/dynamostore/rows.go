package dynamostore

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/id"
	"pintu/internal/importer"
	"pintu/internal/quarantine"
)

var _ importer.Quarantine = (*Store)(nil)

// PutRow keeps a rejected row unless it is there already: a replay of its batch must not undo what was
// changed about it since.
func (s *Store) PutRow(ctx context.Context, tenant string, jobID id.Job, row quarantine.Row) error {
	_, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.control, Item: rowItem(tenant, jobID, row),
		ConditionExpression: aws.String("attribute_not_exists(pk)")})
	var there *types.ConditionalCheckFailedException
	if err == nil || errors.As(err, &there) {
		return nil
	}
	return unavailable("quarantine row", err)
}

// ChunkRows reads a page of one chunk's quarantined rows in row order, strongly consistent.
func (s *Store) ChunkRows(ctx context.Context, tenant string, jobID id.Job, chunk int, after int64) ([]quarantine.Row, error) {
	k := rowsKey(tenant, jobID, chunk, after)
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.control, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk AND sk > :after"),
		ExpressionAttributeValues: item{":pk": str(k.pk), ":after": str(k.sk)},
	})
	if err != nil {
		return nil, unavailable("read quarantined rows", err)
	}
	rows := make([]quarantine.Row, len(out.Items))
	for i, it := range out.Items {
		rows[i] = rowFrom(it)
	}
	return rows, nil
}
