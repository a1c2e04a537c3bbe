package app

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/aws/s3blob"
	"pintu/internal/aws/sqsqueue"
	"pintu/internal/dataset"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

// parts are the pieces that functions are made of. They connect to nothing until they are used.
type parts struct {
	aws      aws.Config
	now      func() time.Time
	store    *dynamostore.Store
	blob     *s3blob.Blob
	queues   *sqsqueue.Queues
	access   *access.Service
	datasets *dataset.Catalog
	rows     *quarantine.Service
	jobs     *job.Service
}

func newParts(ctx context.Context, c Config) (*parts, error) {
	sdk, err := awsConfig(ctx)
	if err != nil {
		return nil, err
	}
	p := &parts{aws: sdk, now: time.Now}
	p.store = dynamostore.New(dynamostore.Config{AWS: sdk, ControlTable: c.ControlTable, RecordsTable: c.RecordsTable, Now: p.now})
	p.blob = s3blob.New(s3blob.Config{AWS: sdk, Bucket: c.Bucket, PublicEndpoint: c.PublicS3Endpoint, PathStyle: c.S3PathStyle, URLLife: c.URLLife, Now: p.now})
	p.queues = sqsqueue.New(sqsqueue.Config{AWS: sdk, URLs: map[job.HintKind]string{job.HintPlan: c.PlanQueueURL, job.HintProcess: c.ProcessQueueURL}})
	p.access = access.New(access.Config{Store: p.store, Now: p.now})
	p.datasets = dataset.NewCatalog(dataset.CatalogConfig{Store: p.store, Now: p.now})
	p.rows = quarantine.New(p.store, p.blob, p.now)
	p.jobs = job.New(job.Config{Store: p.store, Blob: p.blob, Hints: p.queues, Datasets: p.datasets, Rows: p.rows, Rates: p.access, Now: p.now})
	return p, nil
}
