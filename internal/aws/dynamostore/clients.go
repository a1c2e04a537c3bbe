package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/access"
)

// clientItem is a client as it is stored.
type clientItem struct {
	Tenant    string         `dynamodbav:"tenant"`
	Name      string         `dynamodbav:"name"`
	Scopes    []access.Scope `dynamodbav:"scopes"`
	Limits    limitsItem     `dynamodbav:"limits"`
	Tokens    []string       `dynamodbav:"tokens"`
	CreatedAt int64          `dynamodbav:"created_at"` // ms, as every time here
	RevokedAt int64          `dynamodbav:"revoked_at,omitempty"`
	Rev       int64          `dynamodbav:"rev"`
}

type limitsItem struct {
	SubmitsPerMinute     int   `dynamodbav:"submits_per_minute"`
	ActiveJobs           int   `dynamodbav:"active_jobs"`
	UploadingJobs        int   `dynamodbav:"uploading_jobs"`
	MaxFileBytes         int64 `dynamodbav:"max_file_bytes"`
	MaxPageSize          int   `dynamodbav:"max_page_size"`
	JobTimeSeconds       int64 `dynamodbav:"job_time_seconds"`
	WaitSecondsPerMinute int   `dynamodbav:"wait_seconds_per_minute"`
}

// tokenItem is a token as it is stored; ttl lets the table forget one that has expired.
type tokenItem struct {
	ID        string         `dynamodbav:"id"`
	Hash      []byte         `dynamodbav:"hash"`
	Tenant    string         `dynamodbav:"tenant"`
	Client    string         `dynamodbav:"client"`
	Scopes    []access.Scope `dynamodbav:"scopes"`
	CreatedAt int64          `dynamodbav:"created_at"`
	ExpiresAt int64          `dynamodbav:"expires_at,omitempty"`
	LastUsed  int64          `dynamodbav:"last_used,omitempty"`
	TTL       int64          `dynamodbav:"ttl,omitempty"` // s
}

// FindToken implements access.Store.
func (s *Store) FindToken(ctx context.Context, tokenID string) (t access.Token, found bool, err error) {
	it, err := s.get(ctx, "read token", tokenKey(tokenID))
	if err != nil || it == nil {
		return t, false, err
	}
	var stored tokenItem
	if err := unmarshal(it, &stored); err != nil {
		return t, false, fmt.Errorf("read token: %w", err)
	}
	t = access.Token{
		ID: stored.ID, Tenant: stored.Tenant, Client: stored.Client, Scopes: stored.Scopes,
		CreatedAt: fromMillis(stored.CreatedAt), ExpiresAt: fromMillis(stored.ExpiresAt), LastUsedAt: fromMillis(stored.LastUsed),
	}
	copy(t.Hash[:], stored.Hash)
	return t, true, nil
}

// FindClient implements access.Store.
func (s *Store) FindClient(ctx context.Context, tenant, name string) (c access.Client, found bool, err error) {
	it, err := s.get(ctx, "read client", clientKey(tenant, name, skClient))
	if err != nil || it == nil {
		return c, false, err
	}
	var stored clientItem
	if err := unmarshal(it, &stored); err != nil {
		return c, false, fmt.Errorf("read client: %w", err)
	}
	return access.Client{
		Tenant: stored.Tenant, Name: stored.Name, Scopes: stored.Scopes, Limits: stored.Limits.limits(), Tokens: stored.Tokens,
		CreatedAt: fromMillis(stored.CreatedAt), RevokedAt: fromMillis(stored.RevokedAt), Rev: stored.Rev,
	}, true, nil
}

// SaveClient implements access.Store: one transaction, conditional on the client's rev.
func (s *Store) SaveClient(ctx context.Context, c access.Client, put []access.Token, drop []string) error {
	client, err := marshal(clientKey(c.Tenant, c.Name, skClient), clientItem{
		Tenant: c.Tenant, Name: c.Name, Scopes: c.Scopes, Limits: limitsOf(c.Limits), Tokens: c.Tokens,
		CreatedAt: millis(c.CreatedAt), RevokedAt: millis(c.RevokedAt), Rev: c.Rev + 1,
	})
	if err != nil {
		return err
	}
	t := transaction{op: "save client"}
	asSeen := expression.Name("rev").Equal(expression.Value(c.Rev))
	if c.Rev == 0 {
		asSeen = expression.AttributeNotExists(expression.Name(attrPK))
	}
	t.put(s.control, client, asSeen, access.ErrChanged)
	for _, token := range put {
		it, err := tokenPut(token)
		t.add(types.TransactWriteItem{Put: &types.Put{TableName: &s.control, Item: it}}, nil, err)
	}
	for _, id := range drop {
		t.add(types.TransactWriteItem{Delete: &types.Delete{TableName: &s.control, Key: tokenKey(id).item()}}, nil, nil)
	}
	return t.run(ctx, s)
}

func tokenPut(t access.Token) (item, error) {
	stored := tokenItem{
		ID: t.ID, Hash: t.Hash[:], Tenant: t.Tenant, Client: t.Client, Scopes: t.Scopes,
		CreatedAt: millis(t.CreatedAt), ExpiresAt: millis(t.ExpiresAt), LastUsed: millis(t.LastUsedAt),
	}
	if !t.ExpiresAt.IsZero() {
		stored.TTL = t.ExpiresAt.Unix() + 1
	}
	return marshal(tokenKey(t.ID), stored)
}

// TouchToken implements access.Store. A token that was dropped is not brought back.
func (s *Store) TouchToken(ctx context.Context, tokenID string, now, since time.Time) error {
	_, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.control,
		Key:                       tokenKey(tokenID).item(),
		UpdateExpression:          aws.String("SET last_used = :now"),
		ConditionExpression:       aws.String("attribute_exists(pk) AND (attribute_not_exists(last_used) OR last_used <= :since)"),
		ExpressionAttributeValues: item{":now": num(millis(now)), ":since": num(millis(since))},
	})
	if _, noted := refused(err); noted {
		return nil
	}
	if err != nil {
		return unavailable("note use of token", err)
	}
	return nil
}

func limitsOf(l access.Limits) limitsItem {
	return limitsItem{
		SubmitsPerMinute: l.SubmitsPerMinute, ActiveJobs: l.ActiveJobs, UploadingJobs: l.UploadingJobs, MaxFileBytes: l.MaxFileBytes,
		MaxPageSize: l.MaxPageSize, JobTimeSeconds: int64(l.JobTime / time.Second), WaitSecondsPerMinute: l.WaitSecondsPerMinute,
	}
}

func (l limitsItem) limits() access.Limits {
	return access.Limits{
		SubmitsPerMinute: l.SubmitsPerMinute, ActiveJobs: l.ActiveJobs, UploadingJobs: l.UploadingJobs, MaxFileBytes: l.MaxFileBytes,
		MaxPageSize: l.MaxPageSize, JobTime: time.Duration(l.JobTimeSeconds) * time.Second, WaitSecondsPerMinute: l.WaitSecondsPerMinute,
	}
}
