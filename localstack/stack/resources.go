package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"pintu/localstack/template"
)

// createResources makes what the template declares and the kept state does not have yet.
func (s *Stack) createResources(ctx context.Context) error {
	tables := dynamodb.NewFromConfig(client(s.aws, inProcess{s.ddb}))
	for _, t := range s.system.Tables {
		if err := createTable(ctx, tables, t); err != nil {
			return fmt.Errorf("create table %s: %w", t.Name, err)
		}
	}
	queues := awssqs.NewFromConfig(client(s.aws, inProcess{s.sqs}))
	if err := createQueues(ctx, queues, s.system.Queues); err != nil {
		return err
	}
	objects := s3.NewFromConfig(client(s.s3URL, nil), func(o *s3.Options) { o.UsePathStyle = true })
	for _, b := range s.system.Buckets {
		if err := createBucket(ctx, objects, b); err != nil {
			return fmt.Errorf("create bucket %s: %w", b.Name, err)
		}
	}
	return nil
}

func createTable(ctx context.Context, c *dynamodb.Client, t template.Table) error {
	in := &dynamodb.CreateTableInput{TableName: &t.Name, BillingMode: ddbtypes.BillingModePayPerRequest, KeySchema: schema(t.Key)}
	for _, name := range slices.Sorted(maps.Keys(t.Attributes)) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, ddbtypes.AttributeDefinition{
			AttributeName: aws.String(name), AttributeType: ddbtypes.ScalarAttributeType(t.Attributes[name])})
	}
	for _, i := range t.Indexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, ddbtypes.GlobalSecondaryIndex{IndexName: aws.String(i.Name), KeySchema: schema(i.Key),
			Projection: &ddbtypes.Projection{ProjectionType: ddbtypes.ProjectionType(i.Projection), NonKeyAttributes: i.NonKey}})
	}
	_, err := c.CreateTable(ctx, in)
	if exists := (*ddbtypes.ResourceInUseException)(nil); errors.As(err, &exists) {
		return sameTable(ctx, c, t)
	}
	if err != nil || t.TTL == "" {
		return err
	}
	_, err = c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: &t.Name,
		TimeToLiveSpecification: &ddbtypes.TimeToLiveSpecification{AttributeName: &t.TTL, Enabled: aws.Bool(true)}})
	return err
}

func schema(k template.Key) []ddbtypes.KeySchemaElement {
	out := []ddbtypes.KeySchemaElement{{AttributeName: aws.String(k.Hash), KeyType: ddbtypes.KeyTypeHash}}
	if k.Range != "" {
		out = append(out, ddbtypes.KeySchemaElement{AttributeName: aws.String(k.Range), KeyType: ddbtypes.KeyTypeRange})
	}
	return out
}

// sameTable refuses kept state that was made for other keys or indexes: the product would fail in odd ways on it.
func sameTable(ctx context.Context, c *dynamodb.Client, t template.Table) error {
	out, err := c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
	if err != nil {
		return err
	}
	kept := map[string]string{}
	for _, a := range out.Table.AttributeDefinitions {
		kept[aws.ToString(a.AttributeName)] = string(a.AttributeType)
	}
	if !maps.Equal(kept, t.Attributes) || len(out.Table.GlobalSecondaryIndexes) != len(t.Indexes) {
		return errors.New("the kept table has other keys or indexes than the template; remove the data directory")
	}
	return nil
}

// createQueues makes all queues first and sets their attributes then: redrive policies name other queues.
func createQueues(ctx context.Context, c *awssqs.Client, queues []template.Queue) error {
	for _, q := range queues {
		if _, err := c.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: &q.Name}); err != nil {
			return fmt.Errorf("create queue %s: %w", q.Name, err)
		}
	}
	for _, q := range queues {
		if len(q.Attributes) == 0 {
			continue
		}
		if _, err := c.SetQueueAttributes(ctx, &awssqs.SetQueueAttributesInput{QueueUrl: &q.URL, Attributes: q.Attributes}); err != nil {
			return fmt.Errorf("set attributes of queue %s: %w", q.Name, err)
		}
	}
	return nil
}

// createBucket makes a bucket with its versioning and CORS. Its lifecycle is left to AWS: nothing expires here.
func createBucket(ctx context.Context, c *s3.Client, b template.Bucket) error {
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &b.Name})
	if owned := (*s3types.BucketAlreadyOwnedByYou)(nil); err != nil && !errors.As(err, &owned) {
		return err
	}
	if b.Versioned {
		_, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: &b.Name,
			VersioningConfiguration: &s3types.VersioningConfiguration{Status: s3types.BucketVersioningStatusEnabled}})
		if err != nil {
			return fmt.Errorf("enable versions: %w", err)
		}
	}
	if len(b.CORS) == 0 {
		return nil
	}
	cors := &s3types.CORSConfiguration{}
	for _, r := range b.CORS {
		cors.CORSRules = append(cors.CORSRules, s3types.CORSRule{AllowedMethods: r.Methods, AllowedOrigins: r.Origins, AllowedHeaders: r.Headers,
			ExposeHeaders: r.Exposed, MaxAgeSeconds: aws.Int32(int32(r.MaxAgeSeconds))})
	}
	if _, err := c.PutBucketCors(ctx, &s3.PutBucketCorsInput{Bucket: &b.Name, CORSConfiguration: cors}); err != nil {
		return fmt.Errorf("set cors: %w", err)
	}
	return nil
}
