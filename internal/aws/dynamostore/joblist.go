package dynamostore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/job"
)

// maxListPages bounds how many index pages one answer looks through for jobs that pass the filter; the
// answer then ends early, with a cursor.
const maxListPages = 10

// ListJobs gives jobs of a tenant, newest first. The index names them, the items are read themselves, so
// a state shown here is one that was stored.
func (s *Store) ListJobs(ctx context.Context, tenant string, f job.Filter) (job.Page, error) {
	var page job.Page
	var at jobPosition
	if err := decodeCursor(f.Cursor, &at); err != nil {
		return page, err
	}
	if f.Cursor != "" && !at.valid() {
		return page, badCursor()
	}
	after := before
	if !f.CreatedAfter.IsZero() {
		after = fmt.Sprintf("%015d#~", f.CreatedAfter.UnixMilli())
	}
	for range maxListPages {
		if at.At != "" && at.At <= after {
			return page, nil // nothing is between; DynamoDB refuses to start outside of what is asked for
		}
		keys, err := s.jobKeys(ctx, tenant, at, after)
		if err != nil || len(keys) == 0 {
			return page, err
		}
		jobs, err := s.readJobs(ctx, keys)
		if err != nil {
			return page, err
		}
		for _, k := range keys {
			at.At = textOf(k, attrJobsAt)
			if j, found := jobs[textOf(k, attrPK)]; found && f.Passes(j) {
				page.Jobs = append(page.Jobs, j)
			}
			if len(page.Jobs) == f.Limit {
				page.NextCursor, err = encodeCursor(at)
				return page, err
			}
		}
	}
	var err error
	page.NextCursor, err = encodeCursor(at)
	return page, err
}

// jobPosition is the sort key of the last job that was looked at.
type jobPosition struct {
	At string `json:"at"`
}

// valid tells whether jobsAt could have made the position. What it could not have made may be more than
// DynamoDB takes as a key.
func (p jobPosition) valid() bool {
	digits, jobText, _ := strings.Cut(p.At, "#")
	_, ok := id.ParseJob(jobText)
	ms, err := strconv.ParseInt(digits, 10, 64)
	return ok && err == nil && fmt.Sprintf("%015d", ms) == digits
}

// startKey is where a query of the index goes on behind the position.
func (p jobPosition) startKey(tenant string) item {
	if p.At == "" {
		return nil
	}
	_, jobText, _ := strings.Cut(p.At, "#")
	k := jobKey(tenant, id.Job(jobText)).item()
	k[attrJobsOf], k[attrJobsAt] = str(tenant), str(p.At)
	return k
}

// listChunk is how many jobs are read at once: the most that BatchGetItem takes.
const listChunk = 100

// before stands before every sort key of the index.
const before = " "

func (s *Store) jobKeys(ctx context.Context, tenant string, at jobPosition, after string) ([]item, error) {
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.control, IndexName: aws.String(indexJobs), ScanIndexForward: aws.Bool(false), Limit: aws.Int32(listChunk),
		KeyConditionExpression:    aws.String("jobs_of = :t AND jobs_at > :after"),
		ExpressionAttributeValues: item{":t": str(tenant), ":after": str(after)}, ExclusiveStartKey: at.startKey(tenant),
	})
	if err != nil {
		return nil, unavailable("list jobs", err)
	}
	return out.Items, nil
}

// readJobs reads the items of the keys of an index, strongly consistent, by partition key.
func (s *Store) readJobs(ctx context.Context, keys []item) (map[string]job.Job, error) {
	jobs := make(map[string]job.Job, len(keys))
	ask := make([]item, len(keys))
	for i, k := range keys {
		ask[i] = item{attrPK: k[attrPK], attrSK: k[attrSK]}
	}
	for try := 0; len(ask) > 0; try++ {
		if try == maxAttempts {
			return nil, unavailable("read jobs", fmt.Errorf("%d keys left unprocessed", len(ask)))
		}
		out, err := s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			s.control: {Keys: ask, ConsistentRead: aws.Bool(true)}}})
		if err != nil {
			return nil, unavailable("read jobs", err)
		}
		for _, it := range out.Responses[s.control] {
			j, err := jobOf(it)
			if err != nil {
				return nil, err
			}
			jobs[textOf(it, attrPK)] = j
		}
		ask = out.UnprocessedKeys[s.control].Keys
	}
	return jobs, nil
}

// ResolveVersion checks that a dataset version exists; 0 means the newest.
func (s *Store) ResolveVersion(ctx context.Context, tenant, name string, version int) (int, error) {
	head, err := s.DatasetHead(ctx, tenant, name)
	switch {
	case err != nil:
		return 0, err
	case head.Number == 0:
		return 0, fault.New(fault.DatasetNotFound, "there is no dataset of that name; PUT /v1/datasets/{name} makes it")
	case version == 0:
		return head.Number, nil
	case version > head.Number || version < 0:
		return 0, fault.New(fault.VersionNotFound, "the dataset has no such version; its newest is %d", head.Number)
	}
	return version, nil
}
