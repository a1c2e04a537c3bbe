package template

import (
	"encoding/json"
	"strconv"
)

func (b *builder) queue(r *resource) error {
	var p struct {
		VisibilityTimeout             *int           `yaml:"VisibilityTimeout"`
		MessageRetentionPeriod        *int           `yaml:"MessageRetentionPeriod"`
		ReceiveMessageWaitTimeSeconds *int           `yaml:"ReceiveMessageWaitTimeSeconds"`
		DelaySeconds                  *int           `yaml:"DelaySeconds"`
		MaximumMessageSize            *int           `yaml:"MaximumMessageSize"`
		RedrivePolicy                 map[string]any `yaml:"RedrivePolicy"`
		RedriveAllowPolicy            map[string]any `yaml:"RedriveAllowPolicy"`
	}
	if err := b.properties(r, &p, "QueueName", "Tags", "SqsManagedSseEnabled", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds"); err != nil {
		return err
	}
	name, err := b.name(r)
	if err != nil {
		return err
	}
	attributes := map[string]string{}
	for key, v := range map[string]*int{"VisibilityTimeout": p.VisibilityTimeout, "MessageRetentionPeriod": p.MessageRetentionPeriod,
		"ReceiveMessageWaitTimeSeconds": p.ReceiveMessageWaitTimeSeconds, "DelaySeconds": p.DelaySeconds, "MaximumMessageSize": p.MaximumMessageSize} {
		if v != nil {
			attributes[key] = strconv.Itoa(*v)
		}
	}
	for key, v := range map[string]map[string]any{"RedrivePolicy": p.RedrivePolicy, "RedriveAllowPolicy": p.RedriveAllowPolicy} {
		if v == nil {
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return at(r.node, "%s of %s: %v", key, r.logicalID, err)
		}
		attributes[key] = string(text)
	}
	url, err := b.refOf(r.node, r)
	b.system.Queues = append(b.system.Queues, Queue{LogicalID: r.logicalID, Name: name, URL: url, ARN: b.arn("sqs", name), Attributes: attributes})
	return err
}

type keySchema []struct {
	AttributeName string `yaml:"AttributeName"`
	KeyType       string `yaml:"KeyType"`
}

func (k keySchema) key() (out Key) {
	for _, e := range k {
		if e.KeyType == "HASH" {
			out.Hash = e.AttributeName
		} else {
			out.Range = e.AttributeName
		}
	}
	return out
}

func (b *builder) table(r *resource) error {
	var p struct {
		BillingMode          string `yaml:"BillingMode"`
		AttributeDefinitions []struct {
			AttributeName string `yaml:"AttributeName"`
			AttributeType string `yaml:"AttributeType"`
		} `yaml:"AttributeDefinitions"`
		KeySchema              keySchema `yaml:"KeySchema"`
		GlobalSecondaryIndexes []struct {
			IndexName  string    `yaml:"IndexName"`
			KeySchema  keySchema `yaml:"KeySchema"`
			Projection struct {
				ProjectionType   string   `yaml:"ProjectionType"`
				NonKeyAttributes []string `yaml:"NonKeyAttributes"`
			} `yaml:"Projection"`
		} `yaml:"GlobalSecondaryIndexes"`
		TimeToLiveSpecification struct {
			AttributeName string `yaml:"AttributeName"`
			Enabled       bool   `yaml:"Enabled"`
		} `yaml:"TimeToLiveSpecification"`
	}
	err := b.properties(r, &p, "TableName", "Tags", "PointInTimeRecoverySpecification", "DeletionProtectionEnabled", "WarmThroughput",
		"SSESpecification", "TableClass", "ContributorInsightsSpecification", "OnDemandThroughput")
	if err != nil {
		return err
	}
	if p.BillingMode != "PAY_PER_REQUEST" {
		return at(r.node, "%s: only BillingMode PAY_PER_REQUEST is supported by the embedded stack", r.logicalID)
	}
	name, err := b.name(r)
	if err != nil {
		return err
	}
	t := Table{LogicalID: r.logicalID, Name: name, ARN: b.arn("dynamodb", "table/"+name), Attributes: map[string]string{}, Key: p.KeySchema.key()}
	for _, a := range p.AttributeDefinitions {
		t.Attributes[a.AttributeName] = a.AttributeType
	}
	for _, i := range p.GlobalSecondaryIndexes {
		t.Indexes = append(t.Indexes, Index{Name: i.IndexName, Key: i.KeySchema.key(), Projection: i.Projection.ProjectionType, NonKey: i.Projection.NonKeyAttributes})
	}
	if p.TimeToLiveSpecification.Enabled {
		t.TTL = p.TimeToLiveSpecification.AttributeName
	}
	b.system.Tables = append(b.system.Tables, t)
	return nil
}

type lifecycleProperties struct {
	ID                             string `yaml:"Id"`
	Status                         string `yaml:"Status"`
	Prefix                         string `yaml:"Prefix"`
	ExpirationInDays               int    `yaml:"ExpirationInDays"`
	ExpiredObjectDeleteMarker      bool   `yaml:"ExpiredObjectDeleteMarker"`
	AbortIncompleteMultipartUpload struct {
		DaysAfterInitiation int `yaml:"DaysAfterInitiation"`
	} `yaml:"AbortIncompleteMultipartUpload"`
	NoncurrentVersionExpiration struct {
		NoncurrentDays          int `yaml:"NoncurrentDays"`
		NewerNoncurrentVersions int `yaml:"NewerNoncurrentVersions"`
	} `yaml:"NoncurrentVersionExpiration"`
}

func (p lifecycleProperties) rule() LifecycleRule {
	return LifecycleRule{ID: p.ID, Prefix: p.Prefix, Enabled: p.Status == "Enabled", ExpirationDays: p.ExpirationInDays,
		ExpireDeleteMarkers: p.ExpiredObjectDeleteMarker, AbortMultipartDays: p.AbortIncompleteMultipartUpload.DaysAfterInitiation,
		NoncurrentDays: p.NoncurrentVersionExpiration.NoncurrentDays, NoncurrentVersionsRetained: p.NoncurrentVersionExpiration.NewerNoncurrentVersions}
}

func (b *builder) bucket(r *resource) error {
	var p struct {
		VersioningConfiguration struct {
			Status string `yaml:"Status"`
		} `yaml:"VersioningConfiguration"`
		CorsConfiguration struct {
			CorsRules []CORSRule `yaml:"CorsRules"`
		} `yaml:"CorsConfiguration"`
		LifecycleConfiguration struct {
			Rules []lifecycleProperties `yaml:"Rules"`
		} `yaml:"LifecycleConfiguration"`
	}
	err := b.properties(r, &p, "BucketName", "Tags", "BucketEncryption", "PublicAccessBlockConfiguration", "OwnershipControls", "LoggingConfiguration")
	if err != nil {
		return err
	}
	name, err := b.name(r)
	if err != nil {
		return err
	}
	out := Bucket{LogicalID: r.logicalID, Name: name, ARN: "arn:aws:s3:::" + name,
		Versioned: p.VersioningConfiguration.Status == "Enabled", CORS: p.CorsConfiguration.CorsRules}
	for _, l := range p.LifecycleConfiguration.Rules {
		out.Lifecycle = append(out.Lifecycle, l.rule())
	}
	b.system.Buckets = append(b.system.Buckets, out)
	return nil
}
