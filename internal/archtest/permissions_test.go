package archtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"pintu/internal/fault"
)

// statement is one permission of a role.
type statement struct {
	line      int
	actions   []string
	resources []string // tag and value: "!GetAtt Bucket.Arn"
}

func (tpl template) statements(t *testing.T, role string) (out []statement) {
	t.Helper()
	for _, policy := range tpl.property(role, "Policies").Content {
		for _, s := range get(policy, "PolicyDocument", "Statement").Content {
			if value(s, "Effect") != "Allow" {
				t.Errorf("line %d: %s has a statement that is no Allow", s.Line, role)
			}
			if get(s, "NotAction") != nil || get(s, "NotResource") != nil {
				t.Errorf("line %d: %s allows everything but something", s.Line, role)
			}
			st := statement{line: s.Line, resources: list(get(s, "Resource"))}
			for _, a := range list(get(s, "Action")) {
				st.actions = append(st.actions, strings.TrimPrefix(a, "!!str "))
			}
			out = append(out, st)
		}
	}
	return out
}

func TestEachFunctionHasARoleOfItsOwn(t *testing.T) {
	tpl := readTemplate(t)
	functions := tpl.of(functionType)
	for _, id := range functions {
		if role := value(tpl.property(id, "Role")); role != id+"Role.Arn" {
			t.Errorf("%s runs as %q, want %sRole: a role of SAM's own may receive from every queue", id, role, id)
		}
		if get(tpl.resources[id], "Properties", "Policies") != nil {
			t.Errorf("%s has policies beside its role", id)
		}
	}
	if roles := tpl.of("AWS::IAM::Role"); len(roles) != len(functions) {
		t.Errorf("%d roles for %d functions", len(roles), len(functions))
	}
}

func TestPermissionsNameActionsAndResources(t *testing.T) {
	tpl := readTemplate(t)
	for _, role := range tpl.of("AWS::IAM::Role") {
		if tpl.property(role, "ManagedPolicyArns") != nil {
			t.Errorf("%s takes managed policies: they allow for all resources", role)
		}
		for _, s := range tpl.statements(t, role) {
			if len(s.actions) == 0 || len(s.resources) == 0 {
				t.Errorf("line %d: %s allows nothing or on nothing", s.line, role)
			}
			for _, a := range s.actions {
				if strings.Contains(a, "*") || !strings.Contains(a, ":") {
					t.Errorf("line %d: %s may do %s", s.line, role, a)
				}
			}
			for _, r := range s.resources {
				if !slices.Contains(knownResources, r) {
					t.Errorf("line %d: %s may do so on %q, which is on no list", s.line, role, r)
				}
			}
		}
	}
}

// knownResources are all that a policy may name. Objects of the bucket are the one wildcard: their keys are
// made at run time.
var knownResources = []string{
	"!GetAtt ControlTable.Arn", "!Sub ${ControlTable.Arn}/index/due", "!Sub ${ControlTable.Arn}/index/jobs",
	"!GetAtt RecordsTable.Arn", "!GetAtt Bucket.Arn", "!Sub ${Bucket.Arn}/*",
	"!GetAtt PlanQueue.Arn", "!GetAtt ProcessQueue.Arn", "!GetAtt LogGroup.Arn",
}

// companions are permissions whose absence shows on real AWS alone.
var companions = []struct{ with, on, need, needOn, reason string }{
	{"s3:GetObject", "", "s3:GetObjectVersion", "!Sub ${Bucket.Arn}/*", "reads by VersionId need it"},
	{"s3:GetObject", "", "s3:ListBucket", "!GetAtt Bucket.Arn", "else a missing object is 403, not 404"},
	{"dynamodb:PutItem", "!GetAtt ControlTable.Arn", "dynamodb:ConditionCheckItem", "!GetAtt ControlTable.Arn", "condition checks in transactions need it"},
	{"sqs:ReceiveMessage", "", "sqs:DeleteMessage", "", "Lambda polls with the function's role"},
	{"sqs:ReceiveMessage", "", "sqs:GetQueueAttributes", "", "Lambda polls with the function's role"},
	{"sqs:ReceiveMessage", "", "sqs:ChangeMessageVisibility", "", "failures come back by exponential visibility"},
}

func TestPermissionsThatOnlyAWSAsksForAreThere(t *testing.T) {
	tpl := readTemplate(t)
	for _, role := range tpl.of("AWS::IAM::Role") {
		all := tpl.statements(t, role)
		for _, c := range companions {
			if allows(all, c.with, c.on) && !allows(all, c.need, c.needOn) {
				t.Errorf("%s has %s and lacks %s on %q: %s", role, c.with, c.need, c.needOn, c.reason)
			}
		}
	}
}

func allows(all []statement, action, resource string) bool {
	return slices.ContainsFunc(all, func(s statement) bool {
		return slices.Contains(s.actions, action) && (resource == "" || slices.Contains(s.resources, resource))
	})
}

// gatewayError is the shape of every error of the API, the gateway's own included.
type gatewayError struct {
	Error struct {
		Code      string         `json:"code"`
		Message   string         `json:"message"`
		Retryable *bool          `json:"retryable"`
		Details   map[string]any `json:"details"`
		RequestID string         `json:"request_id"`
	} `json:"error"`
}

func TestGatewayAnswersInTheContractsShape(t *testing.T) {
	responses := children(readTemplate(t).property("Api", "GatewayResponses"))
	for _, kind := range []string{"DEFAULT_4XX", "DEFAULT_5XX", "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT", "MISSING_AUTHENTICATION_TOKEN", "THROTTLED", "REQUEST_TOO_LARGE"} {
		if responses[kind] == nil {
			t.Errorf("%s is not answered in our shape", kind)
		}
	}
	for kind, r := range responses {
		checkGatewayAnswer(t, kind, r)
	}
}

func checkGatewayAnswer(t *testing.T, kind string, r *yaml.Node) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(value(r, "ResponseTemplates", "application/json")))
	d.DisallowUnknownFields()
	var e gatewayError
	if err := d.Decode(&e); err != nil {
		t.Errorf("%s: %v", kind, err)
		return
	}
	if e.Error.Code == "" || e.Error.Message == "" || e.Error.Retryable == nil || e.Error.Details == nil || e.Error.RequestID != "$context.requestId" {
		t.Errorf("%s: a field of the shape is missing", kind)
		return
	}
	// UPSTREAM_GATEWAY is the gateway's own code; all others are ours and mean the same here.
	want := e.Error.Code == "UPSTREAM_GATEWAY" || fault.Code(e.Error.Code).Retryable()
	if *e.Error.Retryable != want {
		t.Errorf("%s: %s says retryable %v", kind, e.Error.Code, *e.Error.Retryable)
	}
	if want && value(r, "ResponseParameters", "Headers", "Retry-After") == "" {
		t.Errorf("%s can be retried and does not say when", kind)
	}
}
