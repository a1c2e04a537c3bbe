package template

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var options = Options{StackName: "door", Region: "us-east-1", Account: "000000000000", Endpoint: "http://127.0.0.1:4566"}

func TestTheProductsTemplate(t *testing.T) {
	o := options
	o.Parameters = map[string]string{"StageName": "dev", "ProcessConcurrency": "4", "S3PathStyle": "true"}
	s, err := Load("../../template.yaml", o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range s.Functions {
		names = append(names, f.LogicalID)
		for _, key := range []string{"PINTU_CONTROL_TABLE", "PINTU_BUCKET", "PINTU_PROCESS_QUEUE_URL", "PINTU_STAGE"} {
			if f.Env[key] == "" {
				t.Errorf("%s has no %s", f.LogicalID, key)
			}
		}
	}
	if len(names) < 5 || s.API.Stage != "dev" || len(s.Tables) != 2 || len(s.Buckets) != 1 {
		t.Errorf("functions %v, stage %q, %d tables, %d buckets", names, s.API.Stage, len(s.Tables), len(s.Buckets))
	}
	if got := s.API.Responses["REQUEST_TOO_LARGE"]; got.Status != 413 || !strings.Contains(got.Template, "PAYLOAD_TOO_LARGE") {
		t.Errorf("REQUEST_TOO_LARGE = %+v", got)
	}
}

func TestParse(t *testing.T) {
	s, err := Load("testdata/small.yaml", options)
	if err != nil {
		t.Fatal(err)
	}
	want := &System{
		Functions: []Function{{
			LogicalID: "Work", Name: "door-Work", ARN: "arn:aws:lambda:us-east-1:000000000000:function:door-Work",
			Timeout: 12 * time.Second, MemoryMB: 512, LogFormat: "JSON",
			Env: map[string]string{"TABLE": "door-Things", "QUEUE": "http://127.0.0.1:4566/000000000000/door-Jobs", "LIMIT": "7",
				"WHERE": "us-east-1/door-files/${literal}", "JOINED": "a-door-b", "PICKED": "second", "BIG": "no"},
			Routes:    []Route{{Method: "GET", Path: "/v1/things/{id}"}, {Method: "ANY", Path: "/{proxy+}"}},
			Sources:   []Source{{Name: "Jobs", Queue: "door-Jobs", QueueARN: "arn:aws:sqs:us-east-1:000000000000:door-Jobs", BatchSize: 5, Window: 2 * time.Second, ReportFailures: true, MaxConcurrency: 7}},
			Schedules: []Schedule{{Name: "Tick", Every: 5 * time.Minute}},
		}},
		Queues: []Queue{
			{LogicalID: "Jobs", Name: "door-Jobs", URL: "http://127.0.0.1:4566/000000000000/door-Jobs", ARN: "arn:aws:sqs:us-east-1:000000000000:door-Jobs",
				Attributes: map[string]string{"VisibilityTimeout": "72", "RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":10}`}},
			{LogicalID: "Dead", Name: "dead", URL: "http://127.0.0.1:4566/000000000000/dead", ARN: "arn:aws:sqs:us-east-1:000000000000:dead",
				Attributes: map[string]string{"MessageRetentionPeriod": "1209600"}},
		},
		Tables: []Table{{LogicalID: "Things", Name: "door-Things", ARN: "arn:aws:dynamodb:us-east-1:000000000000:table/door-Things",
			Attributes: map[string]string{"pk": "S", "due": "N"}, Key: Key{Hash: "pk"},
			Indexes: []Index{{Name: "due", Key: Key{Hash: "pk", Range: "due"}, Projection: "KEYS_ONLY"}}, TTL: "ttl"}},
		Buckets: []Bucket{{LogicalID: "Files", Name: "door-files", ARN: "arn:aws:s3:::door-files", Versioned: true,
			CORS:      []CORSRule{{Methods: []string{"GET"}, Origins: []string{"*"}, MaxAgeSeconds: 30}},
			Lifecycle: []LifecycleRule{{ID: "abort", Enabled: true, AbortMultipartDays: 1}}}},
		API: API{LogicalID: "Api", Stage: "v", BinaryTypes: []string{"image/png"},
			Responses: map[string]GatewayResponse{"DEFAULT_4XX": {Status: 400, Template: `{"id":"$context.requestId"}`, Headers: map[string]string{"Retry-After": "1"}}}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("system (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotKnownIsRefusedWithItsLine(t *testing.T) {
	const function = "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      Runtime: provided.al2023\n      Handler: bootstrap\n"
	for _, c := range []struct{ name, text, want string }{
		{"section", "Hooks: {}", "line 1: section Hooks"},
		{"resource type", "Resources:\n  A:\n    Type: AWS::SNS::Topic", "line 3: resource type AWS::SNS::Topic"},
		{"property", "Resources:\n  Q:\n    Type: AWS::SQS::Queue\n    Properties:\n      FifoQueue: true", "FifoQueue"},
		{"nested property", "Resources:\n  B:\n    Type: AWS::S3::Bucket\n    Properties:\n      VersioningConfiguration: {MFADelete: Enabled}", "MFADelete"},
		{"intrinsic", function + "      MemorySize: !FindInMap [A, B, C]", "line 7: intrinsic Fn::FindInMap"},
		{"event type", function + "      Events:\n        E:\n          Type: SNS\n          Properties: {}", "line 9: event type SNS"},
		{"event property", function + "      Events:\n        E:\n          Type: SQS\n          Properties: {Queue: q, FilterCriteria: {}}", "FilterCriteria"},
		{"unknown name", function + "      MemorySize: !Ref Nobody", "line 7: Ref Nobody"},
		{"unknown name in Sub", function + "      MemorySize: !Sub '${Nobody.Arn}'", "line 7: Fn::GetAtt Nobody.Arn"},
		{"attribute", "Resources:\n  B:\n    Type: AWS::S3::Bucket\n    Properties:\n      BucketName: !GetAtt C.DomainName\n  C:\n    Type: AWS::S3::Bucket", "line 5: Fn::GetAtt C.DomainName"},
		{"cron", function + "      Events:\n        E:\n          Type: Schedule\n          Properties: {Schedule: cron(0 0 * * ? *)}", "cron"},
		{"rate plural", function + "      Events:\n        E:\n          Type: Schedule\n          Properties: {Schedule: rate(1 minutes)}", "singular"},
		{"runtime", "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties: {Runtime: python3.13, Handler: a.b}", "python3.13"},
		{"parameter", "Parameters:\n  P: {Type: String}", "line 2: parameter P has no default"},
		{"parameter value", "Parameters:\n  P: {Type: String, Default: a, AllowedValues: [b]}", "none of b"},
		{"path without an integration", "Resources:\n  A:\n    Type: AWS::Serverless::Api\n    Properties:\n      DefinitionBody:\n        paths: {/a: {get: {}}}", "line 6: get has no"},
		{"event without a path", function + "      Events: {E: {Type: Api, Properties: {Path: /b, Method: get}}}\n  A:\n    Type: AWS::Serverless::Api\n    Properties:\n      DefinitionBody:\n        paths: {/a: {get: {x-amazon-apigateway-integration: {type: aws_proxy, httpMethod: POST, uri: !Sub 'x:lambda:path/2015-03-31/functions/${F.Arn}/invocations'}}}}", "line 2: F has an event for GET /b"},
		{"path without an event", function + "  A:\n    Type: AWS::Serverless::Api\n    Properties:\n      DefinitionBody:\n        paths: {/a: {get: {x-amazon-apigateway-integration: {type: aws_proxy, httpMethod: POST, uri: !Sub 'x:lambda:path/2015-03-31/functions/${F.Arn}/invocations'}}}}", "line 11: GET /a of DefinitionBody"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.text), options)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("error = %v, want the line and %q", err, c.want)
			}
		})
	}
	if _, err := Parse([]byte("Parameters:\n  P: {Default: a}"), Options{Parameters: map[string]string{"Q": "1"}}); err == nil || !strings.Contains(err.Error(), "no parameter Q") {
		t.Errorf("unknown override: %v", err)
	}
}
