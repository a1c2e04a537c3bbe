// Package template reads a SAM template and says, in plain structs, what the embedded stack must build from it:
// functions with their triggers, queues, tables, buckets and the API. Everything the stack creates comes from here, so
// that nothing is declared twice.
//
// It knows the constructs this system uses and refuses the rest: a resource type, property, intrinsic or trigger it
// does not know is an error with its line, never silently left out. Properties that mean something on AWS only
// (policies, architectures, tags, tracing) are listed by name and skipped.
package template

import (
	"fmt"
	"os"
	"time"

	"go.yaml.in/yaml/v4"
)

// Options are what a deployment adds to a template.
type Options struct {
	// Parameters override the template's defaults. A name the template does not declare is an error.
	Parameters map[string]string
	// StackName prefixes generated resource names; Region and Account appear in ARNs.
	StackName, Region, Account string
	// Endpoint is the prefix of queue URLs, such as http://127.0.0.1:4566.
	Endpoint string
}

// System is everything a template declares that runs here, in the template's order.
type System struct {
	Functions []Function
	Queues    []Queue
	Tables    []Table
	Buckets   []Bucket
	API       API
}

// Function is an AWS::Serverless::Function.
type Function struct {
	LogicalID string
	Name      string
	ARN       string
	Timeout   time.Duration
	MemoryMB  int
	LogFormat string // Text or JSON
	Env       map[string]string
	Routes    []Route
	Sources   []Source
	Schedules []Schedule
}

// Route is an Api event: an upper-case method, or ANY, and a path such as /v1/jobs/{id} or /{proxy+}.
type Route struct {
	Method, Path string
}

// Source is an SQS event: which queue, and how batches are made of it.
type Source struct {
	Name           string // of the event within its function
	Queue          string // name of the queue
	QueueARN       string
	BatchSize      int
	Window         time.Duration
	ReportFailures bool // ReportBatchItemFailures
	MaxConcurrency int  // 0 when the template sets none
}

// Schedule is a Schedule event with a rate expression.
type Schedule struct {
	Name  string
	Every time.Duration
	Input string // constant JSON event; empty means EventBridge's own
}

// Queue is an AWS::SQS::Queue. Attributes are as CreateQueue takes them.
type Queue struct {
	LogicalID, Name, URL, ARN string
	Attributes                map[string]string
}

// Table is an AWS::DynamoDB::Table with on-demand capacity.
type Table struct {
	LogicalID, Name, ARN string
	Attributes           map[string]string // name -> S, N or B, of the key attributes
	Key                  Key
	Indexes              []Index
	TTL                  string // attribute; empty when there is none
}

// Key is a partition key and, when Range is not empty, a sort key.
type Key struct {
	Hash, Range string
}

// Index is a global secondary index.
type Index struct {
	Name       string
	Key        Key
	Projection string   // ALL, KEYS_ONLY or INCLUDE
	NonKey     []string // attributes of INCLUDE
}

// Bucket is an AWS::S3::Bucket.
type Bucket struct {
	LogicalID, Name, ARN string
	Versioned            bool
	CORS                 []CORSRule
	Lifecycle            []LifecycleRule
}

// CORSRule is one rule of a bucket's CORS configuration.
type CORSRule struct {
	Methods       []string `yaml:"AllowedMethods"`
	Origins       []string `yaml:"AllowedOrigins"`
	Headers       []string `yaml:"AllowedHeaders"`
	Exposed       []string `yaml:"ExposedHeaders"`
	MaxAgeSeconds int      `yaml:"MaxAge"`
	ID            string   `yaml:"Id"`
}

// LifecycleRule is one rule of a bucket's lifecycle. Zero days mean that the rule does not do it.
type LifecycleRule struct {
	ID, Prefix                 string
	Enabled                    bool
	ExpirationDays             int
	NoncurrentDays             int
	AbortMultipartDays         int
	ExpireDeleteMarkers        bool
	NoncurrentVersionsRetained int
}

// API is the AWS::Serverless::Api that routes belong to.
type API struct {
	LogicalID   string
	Stage       string
	BinaryTypes []string
	// Responses are gateway responses by type, such as DEFAULT_4XX or INTEGRATION_TIMEOUT.
	Responses map[string]GatewayResponse
}

// GatewayResponse is API Gateway's own answer when no function gives one.
type GatewayResponse struct {
	Status   int               // 0 keeps the type's own
	Template string            // body with $context variables; empty keeps AWS's own
	Headers  map[string]string // constant headers, without API Gateway's quotes
}

// Load reads the template at path.
func Load(path string, o Options) (*System, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	s, err := Parse(text, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Parse reads a template. Its errors begin with the line they are about.
func Parse(text []byte, o Options) (*System, error) {
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		return nil, fmt.Errorf("parse yaml: %w", err)
	}
	if len(doc.Content) == 1 && doc.Kind == yaml.DocumentNode {
		doc = *doc.Content[0]
	}
	if doc.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line 1: the template is not a mapping")
	}
	normalise(&doc)
	b, err := newBuilder(&doc, o)
	if err != nil {
		return nil, err
	}
	return b.build()
}
