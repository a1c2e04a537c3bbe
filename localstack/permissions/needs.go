package permissions

import (
	"encoding/json"
	"fmt"
	"strings"

	"pintu/localstack/faults"
)

// need is one action that a call takes, on one resource.
type need struct{ action, resource string }

// body is what tells the resources of a DynamoDB or SQS call.
type body struct {
	TableName, IndexName, QueueURL string
	RequestItems                   map[string]json.RawMessage
	TransactItems                  []map[string]struct{ TableName string }
}

// needs names everything a call must be allowed to do.
func (r *Roles) needs(c faults.Call) ([]need, error) {
	if c.Service == faults.S3 {
		return r.objectNeeds(c)
	}
	var b body
	if err := json.Unmarshal(c.Body, &b); err != nil {
		return nil, fmt.Errorf("body of %s: %w", c.Operation, err)
	}
	if c.Service == faults.SQS {
		queue, err := r.queue(b.QueueURL)
		return []need{{"sqs:" + strings.TrimSuffix(c.Operation, "Batch"), queue}}, err
	}
	return r.tableNeeds(c.Operation, b)
}

// itemActions are the actions behind the parts of a transaction.
var itemActions = map[string]string{
	"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem", "Get": "GetItem",
}

func (r *Roles) tableNeeds(operation string, b body) (out []need, err error) {
	add := func(operation, name, index string) {
		table, tableErr := r.table(name)
		if tableErr != nil {
			err = tableErr
		}
		if index != "" {
			table += "/index/" + index
		}
		out = append(out, need{"dynamodb:" + operation, table})
	}
	for _, item := range b.TransactItems {
		for part, of := range item {
			add(itemActions[part], of.TableName, "")
		}
	}
	for name := range b.RequestItems {
		add(operation, name, "")
	}
	if b.TableName != "" {
		add(operation, b.TableName, b.IndexName)
	}
	if len(out) == 0 {
		err = fmt.Errorf("what %s needs is not known", operation)
	}
	return out, err
}

// objectActions are the actions behind calls of the object store.
var objectActions = map[string]string{
	"GetObject": "s3:GetObject", "HeadObject": "s3:GetObject",
	"PutObject": "s3:PutObject", "CreateMultipartUpload": "s3:PutObject", "UploadPart": "s3:PutObject", "CompleteMultipartUpload": "s3:PutObject",
	"AbortMultipartUpload": "s3:AbortMultipartUpload",
}

// objectNeeds takes every read as one of a version too: which of both it is stands in the query, and who may do the one
// must be able to do the other here.
func (r *Roles) objectNeeds(c faults.Call) ([]need, error) {
	action := objectActions[c.Operation]
	if action == "" {
		return nil, fmt.Errorf("what %s needs is not known", c.Operation)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(c.Path, "/"), "/")
	for _, b := range r.system.Buckets {
		if b.Name == name {
			out := []need{{action, b.LogicalID + "/*"}}
			if action == "s3:GetObject" {
				out = append(out, need{"s3:GetObjectVersion", b.LogicalID + "/*"}, need{"s3:ListBucket", b.LogicalID})
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("bucket %q is not in the template", name)
}

func (r *Roles) table(name string) (string, error) {
	for _, t := range r.system.Tables {
		if t.Name == name {
			return t.LogicalID, nil
		}
	}
	return "", fmt.Errorf("table %q is not in the template", name)
}

func (r *Roles) queue(url string) (string, error) {
	for _, q := range r.system.Queues {
		if q.URL == url {
			return q.LogicalID, nil
		}
	}
	return "", fmt.Errorf("queue %q is not in the template", url)
}
