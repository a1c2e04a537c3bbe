package dynamostore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"pintu/internal/id"
	"pintu/internal/quarantine"
)

// attrRejected is the count of quarantined rows on a chunk's item: chunks without any are not read.
const attrRejected = "rejected"

// maxRowQueries bounds what one page reads when a filter lets little through: 1 MB of rows each.
const maxRowQueries = 16

// rowCursor is the last row that was looked at.
type rowCursor struct {
	Chunk int   `json:"c"`
	Row   int64 `json:"r"`
}

// rowList is one page being made.
type rowList struct {
	store   *Store
	tenant  string
	job     id.Job
	filter  quarantine.Filter
	at      rowCursor
	room    pageRoom
	queries int
	page    quarantine.Page
}

// ListRows gives the quarantined rows of a job after cursor, in row order, which is chunk order. A page
// ends at limit rows, or before its JSON, escaped once more as a string, passes maxBytes, or when it has
// read much and found little. A cursor that no page ended with is INVALID_REQUEST.
func (s *Store) ListRows(ctx context.Context, tenant string, job id.Job, f quarantine.Filter, cursor string, limit, maxBytes int) (quarantine.Page, error) {
	l := rowList{store: s, tenant: tenant, job: job, filter: f, room: newPageRoom(limit, maxBytes)}
	if err := decodeCursor(cursor, &l.at); err != nil {
		return quarantine.Page{}, err
	}
	if l.at.Chunk < 0 || l.at.Row < 0 {
		return quarantine.Page{}, badCursor()
	}
	ended, err := l.run(ctx)
	if err != nil {
		return quarantine.Page{}, err
	}
	if !ended {
		l.page.NextCursor, err = encodeCursor(l.at)
	}
	return l.page, err
}

// run goes through the chunks that have quarantined rows, from the cursor's on. ended is false when the
// page was full first.
func (l *rowList) run(ctx context.Context) (ended bool, err error) {
	query := dynamodb.QueryInput{
		TableName:              &l.store.control,
		KeyConditionExpression: aws.String("pk = :pk AND sk BETWEEN :first AND :last"),
		FilterExpression:       aws.String(attrRejected + " > :zero"),
		ExpressionAttributeValues: item{
			":pk": str(jobKey(l.tenant, l.job).pk), ":first": str(chunkKey(l.tenant, l.job, l.at.Chunk).sk),
			":last": str(prefixChunk + "~"), ":zero": num(0),
		},
		ConsistentRead: aws.Bool(true),
	}
	for {
		out, err := l.store.db.Query(ctx, &query)
		if err != nil {
			return false, unavailable("list chunks", err)
		}
		for _, it := range out.Items {
			chunk, err := strconv.Atoi(strings.TrimPrefix(textOf(it, attrSK), prefixChunk))
			if err != nil {
				return false, fmt.Errorf("list chunks: %w", err)
			}
			if chunk != l.at.Chunk {
				l.at = rowCursor{Chunk: chunk}
			}
			if ended, err := l.chunk(ctx); !ended || err != nil {
				return false, err
			}
		}
		if out.LastEvaluatedKey == nil {
			return true, nil
		}
		query.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// chunk adds the rows of one chunk after the cursor.
func (l *rowList) chunk(ctx context.Context) (ended bool, err error) {
	from := rowsKey(l.tenant, l.job, l.at.Chunk, l.at.Row)
	query := dynamodb.QueryInput{
		TableName:                 &l.store.control,
		KeyConditionExpression:    aws.String("pk = :pk AND sk > :row"),
		ExpressionAttributeValues: item{":pk": str(from.pk), ":row": str(from.sk)},
		ConsistentRead:            aws.Bool(true),
	}
	l.addFilter(&query)
	for {
		if l.room.full() || l.queries >= maxRowQueries {
			return false, nil
		}
		l.queries++
		if query.FilterExpression == nil { // a filter is applied after the limit
			query.Limit = aws.Int32(int32(l.room.entries + 1))
		}
		out, err := l.store.db.Query(ctx, &query)
		if err != nil {
			return false, unavailable("list rows", err)
		}
		if fit, err := l.add(out.Items); !fit || err != nil {
			return false, err
		}
		if out.LastEvaluatedKey == nil {
			return true, nil
		}
		query.ExclusiveStartKey = out.LastEvaluatedKey
		if l.at.Row, err = strconv.ParseInt(textOf(out.LastEvaluatedKey, attrSK), 10, 64); err != nil {
			return false, fmt.Errorf("list rows: %w", err)
		}
	}
}

func (l *rowList) add(items []item) (fit bool, err error) {
	for _, it := range items {
		row := rowFrom(it)
		fit, err := l.room.take(row)
		if !fit || err != nil {
			return false, err
		}
		l.page.Rows = append(l.page.Rows, row)
		l.at.Row = row.RowNumber
	}
	return true, nil
}

func (l *rowList) addFilter(query *dynamodb.QueryInput) {
	var terms []string
	for _, f := range []struct{ attr, value string }{
		{rowState, string(l.filter.State)}, {rowCode, string(l.filter.Code)}, {rowClass, string(l.filter.Class)},
		{rowRetry, string(l.filter.Retry)},
	} {
		if f.value != "" {
			terms = append(terms, f.attr+" = :"+f.attr)
			query.ExpressionAttributeValues[":"+f.attr] = str(f.value)
		}
	}
	if terms != nil {
		query.FilterExpression = aws.String(strings.Join(terms, " AND "))
	}
}
