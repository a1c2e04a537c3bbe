package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/access"
)

// Counts of a client's minute, and of its jobs that are not terminal.
const (
	attrSubmits   = "submits"
	attrWaited    = "waited" // s
	attrActive    = "active"
	attrUploading = "uploading"
)

// minuteKept is how long the counts of a minute stay after it, for clocks that differ.
const minuteKept = 10 * time.Minute

// CountSubmit implements access.Meter.
func (s *Store) CountSubmit(ctx context.Context, tenant, client string, limit int, now time.Time) (n int, ok bool, err error) {
	return s.countUp(ctx, "count submit", clientKey(tenant, client, minuteSK(now)), attrSubmits, 1, limit, now)
}

// CountWait implements access.Meter.
func (s *Store) CountWait(ctx context.Context, tenant, client string, seconds, limit int, now time.Time) (n int, ok bool, err error) {
	return s.countUp(ctx, "count waiting", clientKey(tenant, client, minuteSK(now)), attrWaited, seconds, limit, now)
}

// countUp adds to a count of one minute unless that would pass the limit: one conditional write. A reply
// that gets lost may count twice, against the client and for one minute at most.
func (s *Store) countUp(ctx context.Context, op string, k key, attr string, add, limit int, now time.Time) (n int, ok bool, err error) {
	if add > limit {
		return 0, false, nil
	}
	out, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                &s.control,
		Key:                      k.item(),
		UpdateExpression:         aws.String("ADD #n :add SET #ttl = :ttl"),
		ConditionExpression:      aws.String("attribute_not_exists(#n) OR #n <= :room"),
		ExpressionAttributeNames: map[string]string{"#n": attr, "#ttl": attrTTL},
		ExpressionAttributeValues: item{
			":add": num(int64(add)), ":room": num(int64(limit - add)), ":ttl": num(now.Add(minuteKept).Unix()),
		},
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, full := refused(err); full {
		return int(intOf(old, attr)), false, nil
	}
	if err != nil {
		return 0, false, unavailable(op, err)
	}
	return int(intOf(out.Attributes, attr)), true, nil
}

// ReadUse implements access.Meter.
func (s *Store) ReadUse(ctx context.Context, tenant, client string, now time.Time) (access.Use, error) {
	minute, err := s.get(ctx, "read counts of the minute", clientKey(tenant, client, minuteSK(now)))
	if err != nil {
		return access.Use{}, err
	}
	active, err := s.get(ctx, "read active jobs", clientKey(tenant, client, skActive))
	if err != nil {
		return access.Use{}, err
	}
	return access.Use{
		SubmitsThisMinute:     int(intOf(minute, attrSubmits)),
		WaitSecondsThisMinute: int(intOf(minute, attrWaited)),
		ActiveJobs:            int(intOf(active, attrActive)),
		UploadingJobs:         int(intOf(active, attrUploading)),
	}, nil
}
