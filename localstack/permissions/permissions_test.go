package permissions_test

import (
	"strings"
	"testing"

	"pintu/localstack/faults"
	"pintu/localstack/permissions"
	"pintu/localstack/template"
)

const templatePath = "../../template.yaml"

func roles(t *testing.T) *permissions.Roles {
	t.Helper()
	system, err := template.Load(templatePath, template.Options{StackName: "s", Region: "r", Account: "1", Endpoint: "http://aws"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := permissions.Read(templatePath, system)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(t *testing.T) map[string]string {
	t.Helper()
	system, err := template.Load(templatePath, template.Options{StackName: "s", Region: "r", Account: "1", Endpoint: "http://aws"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"Bucket": system.Buckets[0].Name}
	for _, table := range system.Tables {
		out[table.LogicalID] = table.Name
	}
	for _, queue := range system.Queues {
		out[queue.LogicalID] = queue.URL
	}
	return out
}

func TestCheck(t *testing.T) {
	n := names(t)
	table := func(id, more string) []byte { return []byte(`{"TableName":"` + n[id] + `"` + more + `}`) }
	for name, c := range map[string]struct {
		call faults.Call
		want string // part of the error; empty: allowed
	}{
		"allowed":                        {faults.Call{Service: faults.DynamoDB, Operation: "GetItem", Caller: "ApiFunction-1", Body: table("ControlTable", "")}, ""},
		"nobody's call is not looked at": {faults.Call{Service: faults.DynamoDB, Operation: "DeleteTable", Body: table("ControlTable", "")}, ""},
		"an index needs its own name":    {faults.Call{Service: faults.DynamoDB, Operation: "Query", Caller: "ApiFunction-1", Body: table("ControlTable", `,"IndexName":"jobs"`)}, ""},
		"another index": {faults.Call{Service: faults.DynamoDB, Operation: "Query", Caller: "ApiFunction-1", Body: table("ControlTable", `,"IndexName":"due"`)},
			"ApiFunction may not dynamodb:Query on ControlTable/index/due"},
		"another table": {faults.Call{Service: faults.DynamoDB, Operation: "UpdateItem", Caller: "SweepFunction-2", Body: table("RecordsTable", "")},
			"SweepFunction may not dynamodb:UpdateItem on RecordsTable"},
		"parts of a transaction": {faults.Call{Service: faults.DynamoDB, Operation: "TransactWriteItems", Caller: "ProcessFunction-1",
			Body: []byte(`{"TransactItems":[{"Update":{"TableName":"` + n["ControlTable"] + `"}},{"Delete":{"TableName":"` + n["ControlTable"] + `"}}]}`)},
			"ProcessFunction may not dynamodb:DeleteItem on ControlTable"},
		"batch of messages": {faults.Call{Service: faults.SQS, Operation: "SendMessageBatch", Caller: "SweepFunction-1", Body: []byte(`{"QueueUrl":"` + n["PlanQueue"] + `"}`)}, ""},
		"another queue": {faults.Call{Service: faults.SQS, Operation: "ChangeMessageVisibility", Caller: "PlanFunction-1", Body: []byte(`{"QueueUrl":"` + n["ProcessQueue"] + `"}`)},
			"PlanFunction may not sqs:ChangeMessageVisibility on ProcessQueue"},
		"object": {faults.Call{Service: faults.S3, Operation: "HeadObject", Caller: "SweepFunction-1", Path: "/" + n["Bucket"] + "/uploads/x"}, ""},
		"writing an object": {faults.Call{Service: faults.S3, Operation: "PutObject", Caller: "SweepFunction-1", Path: "/" + n["Bucket"] + "/uploads/x"},
			"SweepFunction may not s3:PutObject on Bucket/*"},
		"unknown operation": {faults.Call{Service: faults.S3, Operation: "DeleteObject", Caller: "ApiFunction-1", Path: "/" + n["Bucket"] + "/x"}, "not known"},
		"unknown function":  {faults.Call{Service: faults.DynamoDB, Operation: "GetItem", Caller: "Other-1", Body: table("ControlTable", "")}, "Other may not"},
	} {
		t.Run(name, func(t *testing.T) {
			err := roles(t).Check(c.call)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
