package s3blob

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Target is where an operator's command finds the bucket. What is empty comes from where the AWS SDK looks:
// environment, profile, instance role.
type Target struct {
	Bucket      string
	Endpoint    string // of S3; empty on AWS
	Region      string
	AccessKeyID string
	SecretKey   string
	PathStyle   bool
}

// Open makes a Blob for the bucket of a target. Nothing is asked until it is used.
func Open(ctx context.Context, t Target) (*Blob, error) {
	var options []func(*config.LoadOptions) error
	if t.Region != "" {
		options = append(options, config.WithRegion(t.Region))
	}
	if t.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(t.AccessKeyID, t.SecretKey, "")))
	}
	if t.Endpoint != "" {
		options = append(options, config.WithBaseEndpoint(t.Endpoint))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	return New(Config{AWS: cfg, Bucket: t.Bucket, PathStyle: t.PathStyle}), nil
}
