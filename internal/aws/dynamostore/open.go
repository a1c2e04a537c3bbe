package dynamostore

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Target is where an operator's command finds the tables. What is empty comes from where the AWS
// SDK looks: environment, profile, instance role.
type Target struct {
	ControlTable string
	RecordsTable string // empty for commands that have nothing to do with records
	Endpoint     string // of DynamoDB; empty on AWS
	Region       string
	AccessKeyID  string
	SecretKey    string
}

// Open makes a store for the tables of a target. Nothing is asked until the store is used.
func Open(ctx context.Context, t Target) (*Store, error) {
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
	return New(Config{AWS: cfg, ControlTable: t.ControlTable, RecordsTable: t.RecordsTable}), nil
}
