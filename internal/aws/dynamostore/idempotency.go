package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/access"
	"pintu/internal/idempotency"
)

// Attributes of an idempotency record.
const (
	attrFingerprint = "fingerprint"
	attrOutcome     = "outcome"
	attrRef         = "ref"
	attrExpiresAt   = "expires_at" // ms; what the code goes by
)

// idemPut is the part of a transaction that remembers an intent together with what it made. It fails,
// giving the record that is in the way, while an earlier record of the key has not expired.
func (s *Store) idemPut(caller access.Caller, in idempotency.Intent, outcome idempotency.Outcome, ref string, now time.Time) types.TransactWriteItem {
	expires := now.Add(idempotency.Window)
	it := idemKey(caller.Tenant, caller.Client, in.Key).item()
	it[attrFingerprint] = str(in.Fingerprint)
	it[attrOutcome] = str(string(outcome))
	it[attrRef] = str(ref)
	it[attrExpiresAt] = num(millis(expires))
	it[attrTTL] = num(expires.Unix() + 1)
	cond := "attribute_not_exists(" + attrPK + ") OR " + attrExpiresAt + " < :now"
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           &s.control,
		Item:                                it,
		ConditionExpression:                 &cond,
		ExpressionAttributeValues:           item{":now": num(millis(now))},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// FindIntent gives what was remembered under the intent's key, nil when there is nothing or it has
// expired. The read is strongly consistent. Whoever uses the record must call its Match first. An intent
// without a key is never remembered.
func (s *Store) FindIntent(ctx context.Context, caller access.Caller, in idempotency.Intent, now time.Time) (*idempotency.Record, error) {
	if in.Key == "" {
		return nil, nil
	}
	it, err := s.get(ctx, "read idempotency record", idemKey(caller.Tenant, caller.Client, in.Key))
	if err != nil {
		return nil, err
	}
	return idemRecord(it, now), nil
}

// idemRecord decodes a record, be it read or given back by a failed condition of idemPut. It is nil when
// the item is empty or has expired, by the same comparison as idemPut's condition.
func idemRecord(it item, now time.Time) *idempotency.Record {
	if len(it) == 0 || intOf(it, attrExpiresAt) < millis(now) {
		return nil
	}
	return &idempotency.Record{
		Fingerprint: textOf(it, attrFingerprint),
		Outcome:     idempotency.Outcome(textOf(it, attrOutcome)),
		Ref:         textOf(it, attrRef),
		ExpiresAt:   fromMillis(intOf(it, attrExpiresAt)),
	}
}
