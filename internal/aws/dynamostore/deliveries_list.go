package dynamostore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/webhook"
)

var _ webhook.Lists = (*Store)(nil)

// Attempts implements webhook.Lists.
func (s *Store) Attempts(ctx context.Context, tenant string, deliveryID webhook.DeliveryID) (attempts []webhook.Attempt, _ error) {
	pages := dynamodb.NewQueryPaginator(s.db, &dynamodb.QueryInput{
		TableName: &s.control, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :attempt)"),
		ExpressionAttributeValues: item{":pk": str(deliveryKey(tenant, deliveryID).pk), ":attempt": str(prefixAttempt)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, unavailable("read attempts", err)
		}
		for _, it := range page.Items {
			var a webhook.Attempt
			if err := unmarshal(it, &a); err != nil {
				return nil, err
			}
			attempts = append(attempts, a)
		}
	}
	return attempts, nil
}

// deliveryPosition is the sort key of the last delivery that was looked at.
type deliveryPosition struct {
	At string `json:"at"`
}

// valid tells whether deliveryAt could have made the position.
func (p deliveryPosition) valid() bool {
	digits, text, _ := strings.Cut(p.At, "#")
	_, ok := webhook.ParseDeliveryID(text)
	ms, err := strconv.ParseInt(digits, 10, 64)
	return ok && err == nil && fmt.Sprintf("%015d", ms) == digits
}

// startKey is where a query of the index goes on behind the position.
func (p deliveryPosition) startKey(tenant string) item {
	if p.At == "" {
		return nil
	}
	_, text, _ := strings.Cut(p.At, "#")
	k := deliveryKey(tenant, webhook.DeliveryID(text)).item()
	k[attrJobsOf], k[attrJobsAt] = str(deliveriesOf+tenant), str(p.At)
	return k
}

// ListDeliveries implements webhook.Lists. The index names deliveries, the items are read themselves, so a state
// shown here is one that was stored. A page may end early, with a cursor.
func (s *Store) ListDeliveries(ctx context.Context, tenant string, f webhook.Filter) (page webhook.Page, err error) {
	var at deliveryPosition
	if err := decodeCursor(f.Cursor, &at); err != nil {
		return page, err
	}
	if f.Cursor != "" && !at.valid() {
		return page, badCursor()
	}
	for range maxListPages {
		keys, err := s.deliveryKeys(ctx, tenant, at)
		if err != nil || len(keys) == 0 {
			return page, err
		}
		found, err := s.readDeliveries(ctx, keys)
		if err != nil {
			return page, err
		}
		for _, k := range keys {
			at.At = textOf(k, attrJobsAt)
			if d, ok := found[textOf(k, attrPK)]; ok && (f.State == "" || f.State == d.State) {
				page.Deliveries = append(page.Deliveries, d)
			}
			if len(page.Deliveries) == f.Limit {
				page.NextCursor, err = encodeCursor(at)
				return page, err
			}
		}
	}
	page.NextCursor, err = encodeCursor(at)
	return page, err
}

// deliveriesAtOnce is how many deliveries are read at once: their bodies come with them, and an answer of
// BatchGetItem ends at 16 MB.
const deliveriesAtOnce = 50

func (s *Store) deliveryKeys(ctx context.Context, tenant string, at deliveryPosition) ([]item, error) {
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.control, IndexName: aws.String(indexJobs), ScanIndexForward: aws.Bool(false), Limit: aws.Int32(deliveriesAtOnce),
		KeyConditionExpression: aws.String("jobs_of = :of"), ExpressionAttributeValues: item{":of": str(deliveriesOf + tenant)},
		ExclusiveStartKey: at.startKey(tenant),
	})
	if err != nil {
		return nil, unavailable("list deliveries", err)
	}
	return out.Items, nil
}

// readDeliveries reads the items of the keys of an index, strongly consistent, by partition key.
func (s *Store) readDeliveries(ctx context.Context, keys []item) (map[string]webhook.Delivery, error) {
	found := make(map[string]webhook.Delivery, len(keys))
	ask := make([]item, len(keys))
	for i, k := range keys {
		ask[i] = item{attrPK: k[attrPK], attrSK: k[attrSK]}
	}
	for try := 0; len(ask) > 0; try++ {
		if try == maxAttempts {
			return nil, unavailable("read deliveries", fmt.Errorf("%d keys left unprocessed", len(ask)))
		}
		out, err := s.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
			s.control: {Keys: ask, ConsistentRead: aws.Bool(true)}}})
		if err != nil {
			return nil, unavailable("read deliveries", err)
		}
		for _, it := range out.Responses[s.control] {
			d, err := deliveryOf(it)
			if err != nil {
				return nil, err
			}
			found[textOf(it, attrPK)] = d
		}
		ask = out.UnprocessedKeys[s.control].Keys
	}
	return found, nil
}
