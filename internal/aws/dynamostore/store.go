// Package dynamostore keeps jobs, chunks, quarantined rows, clients, datasets and records in DynamoDB.
// Every state change here is one conditional write or one transaction; it refuses to check first and
// write later. keys.go holds every key shape; there is one file per aggregate.
package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/oklog/ulid/v2"

	"pintu/internal/fault"
)

// Store is the adapter over both tables.
type Store struct {
	db      *dynamodb.Client
	control string
	records string
	now     func() time.Time
}

// Config names the tables. Now is for expiry and epochs; nil means time.Now.
type Config struct {
	AWS          aws.Config
	ControlTable string
	RecordsTable string
	Now          func() time.Time
}

// maxAttempts of one call. With the standard backoff (up to 20 s) the caller's context ends first
// when a table stays throttled.
const maxAttempts = 10

// New makes a store whose client repeats what DynamoDB asks to be repeated, conflicts of transactions
// included: the SDK's own list leaves those out.
func New(c Config) *Store {
	db := dynamodb.NewFromConfig(c.AWS, func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts = maxAttempts
			so.MaxBackoff = 2 * time.Second
			so.RateLimiter = ratelimit.None // a quota of retries would end a long throttling with an error
			so.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(conflicting)}, so.Retryables...)
		})
	})
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Store{db: db, control: c.ControlTable, records: c.RecordsTable, now: c.Now}
}

// conflicting says yes to errors that mean "another transaction was at this item": as an exception of
// a plain write, or as the only kind of reason a transaction was canceled for. A failed condition beside
// it is an answer, not a reason to repeat.
func conflicting(err error) aws.Ternary {
	var conflict *types.TransactionConflictException
	if errors.As(err, &conflict) {
		return aws.TrueTernary
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return aws.UnknownTernary
	}
	transient := false
	for _, r := range canceled.CancellationReasons {
		switch aws.ToString(r.Code) {
		case "ConditionalCheckFailed", "ValidationError", "ItemCollectionSizeLimitExceeded":
			return aws.FalseTernary
		case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			transient = true
		}
	}
	return aws.BoolTernary(transient)
}

// refused tells whether a single write was refused by its condition, and gives the item as it was.
func refused(err error) (old map[string]types.AttributeValue, ok bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

// unavailable marks an error of the store itself as transient for whoever asked. A request that DynamoDB
// finds invalid will be so again: it is a fault of ours, and no reason to try once more.
func unavailable(op string, err error) error {
	if errors.Is(err, context.Canceled) || invalid(err) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fault.Wrap(err, fault.DependencyUnavailable, "the store did not answer (%s); try again", op).After(time.Second)
}

// invalid tells that DynamoDB refused a call, or a write of a transaction, for what it says.
func invalid(err error) bool {
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool { return aws.ToString(r.Code) == "ValidationError" })
	}
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException"
}

// token makes a ClientRequestToken.
func token() string { return ulid.Make().String() }

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

func bin(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }
