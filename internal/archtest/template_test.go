package archtest

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"pintu/internal/app"
)

// template is template.yaml with its tags kept: intrinsics are read where a rule needs them.
type template struct {
	text      string
	root      *yaml.Node
	resources map[string]*yaml.Node
}

func readTemplate(t *testing.T) template {
	t.Helper()
	text, err := os.ReadFile(root + "/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		t.Fatal(err)
	}
	top := &doc
	if doc.Kind == yaml.DocumentNode {
		top = doc.Content[0]
	}
	return template{string(text), top, children(get(top, "Resources"))}
}

// get walks down mappings and sequences (by index); it gives nil where there is nothing.
func get(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil {
			return nil
		}
		if i, err := strconv.Atoi(key); err == nil && n.Kind == yaml.SequenceNode {
			if i >= len(n.Content) {
				return nil
			}
			n = n.Content[i]
			continue
		}
		n = children(n)[key]
	}
	return n
}

func value(n *yaml.Node, path ...string) string {
	if n = get(n, path...); n == nil {
		return ""
	}
	return n.Value
}

func number(t *testing.T, n *yaml.Node, path ...string) int {
	t.Helper()
	i, err := strconv.Atoi(value(n, path...))
	if err != nil {
		t.Errorf("line %d: %v is no number: %v", n.Line, path, err)
	}
	return i
}

func children(n *yaml.Node) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = n.Content[i+1]
		}
	}
	return out
}

// list gives the values of a sequence, or the one value that stands for it.
func list(n *yaml.Node) []string {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return []string{n.Tag + " " + n.Value}
	}
	var out []string
	for _, c := range n.Content {
		out = append(out, c.Tag+" "+c.Value)
	}
	return out
}

// of gives the resources of one type, by logical id in order.
func (tpl template) of(kind string) []string {
	var ids []string
	for id, r := range tpl.resources {
		if value(r, "Type") == kind {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (tpl template) property(id string, path ...string) *yaml.Node {
	return get(tpl.resources[id], append([]string{"Properties"}, path...)...)
}

const functionType = "AWS::Serverless::Function"

func TestEveryFunctionHasAFolderAndAResource(t *testing.T) {
	folders, err := os.ReadDir(root + "/functions")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range folders {
		if f.IsDir() {
			want = append(want, strings.ToUpper(f.Name()[:1])+f.Name()[1:]+"Function")
		}
	}
	if diff := cmp.Diff(want, readTemplate(t).of(functionType)); diff != "" {
		t.Errorf("folders (-) and resources (+) differ:\n%s", diff)
	}
}

func TestMakefileBuildsEveryFunction(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range readTemplate(t).of(functionType) {
		line := id + " := " + strings.ToLower(strings.TrimSuffix(id, "Function")) + "\n"
		if !strings.Contains(string(makefile), line) {
			t.Errorf("the Makefile lacks %q", line)
		}
	}
}

// allowedTypes are what AWS, LocalStack's community edition and the embedded stack all run.
var allowedTypes = []string{"AWS::DynamoDB::Table", "AWS::IAM::Role", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::Serverless::Api", functionType}

// generatedNames are properties that would make two stacks in one account collide.
var generatedNames = []string{"TableName", "QueueName", "BucketName", "FunctionName", "RoleName", "LogGroupName", "Name"}

func TestResourcesAreOfKnownTypesAndUnnamed(t *testing.T) {
	for id, r := range readTemplate(t).resources {
		if kind := value(r, "Type"); !slices.Contains(allowedTypes, kind) {
			t.Errorf("%s: type %s is not on the list of what every target runs", id, kind)
		}
		for _, name := range generatedNames {
			if get(r, "Properties", name) != nil {
				t.Errorf("%s sets %s; names are generated", id, name)
			}
		}
	}
}

func TestDataOutlivesTheStack(t *testing.T) {
	tpl := readTemplate(t)
	for _, id := range append(tpl.of("AWS::DynamoDB::Table"), tpl.of("AWS::S3::Bucket")...) {
		if value(tpl.resources[id], "DeletionPolicy") != "Retain" || value(tpl.resources[id], "UpdateReplacePolicy") != "Retain" {
			t.Errorf("%s would be deleted with the stack", id)
		}
	}
	for _, id := range tpl.of("AWS::DynamoDB::Table") {
		if value(tpl.property(id, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")) != "true" {
			t.Errorf("%s has no point-in-time recovery", id)
		}
	}
}

const (
	apiTimeout          = 29             // API Gateway waits no longer
	visibilityTimes     = 6              // AWS's advice: a message must not come back while its function may still run
	deadLetterRetention = 14 * 24 * 3600 // worker and sweep reckon with it
)

func TestQueuesBringMessagesBackAndKeepDeadLetters(t *testing.T) {
	tpl := readTemplate(t)
	for _, id := range tpl.of(functionType) {
		for name, event := range children(tpl.property(id, "Events")) {
			if value(event, "Type") == "SQS" {
				checkSource(t, tpl, id, name, get(event, "Properties"))
			}
		}
	}
}

func checkSource(t *testing.T, tpl template, function, name string, source *yaml.Node) {
	t.Helper()
	where := function + " " + name
	if !slices.Equal(list(get(source, "FunctionResponseTypes")), []string{"!!str ReportBatchItemFailures"}) {
		t.Errorf("%s: without ReportBatchItemFailures one failure brings the whole batch back", where)
	}
	if get(source, "ScalingConfig", "MaximumConcurrency") == nil {
		t.Errorf("%s: without MaximumConcurrency it can take the account's whole concurrency", where)
	}
	queue := strings.TrimSuffix(value(source, "Queue"), ".Arn")
	timeout, visibility := number(t, tpl.property(function), "Timeout"), number(t, tpl.property(queue), "VisibilityTimeout")
	if visibility < visibilityTimes*timeout {
		t.Errorf("%s: visibility %d s is less than %d times the time-out of %d s", where, visibility, visibilityTimes, timeout)
	}
	if n := number(t, tpl.property(queue), "RedrivePolicy", "maxReceiveCount"); n != app.MaxReceives {
		t.Errorf("%s: maxReceiveCount %d, the code reckons with %d", queue, n, app.MaxReceives)
	}
	dead := strings.TrimSuffix(value(tpl.property(queue), "RedrivePolicy", "deadLetterTargetArn"), ".Arn")
	if tpl.resources[dead] == nil {
		t.Fatalf("%s has no dead-letter queue", queue)
	}
	kept := number(t, tpl.property(dead), "MessageRetentionPeriod")
	if kept != deadLetterRetention || kept <= number(t, tpl.property(queue), "MessageRetentionPeriod") {
		t.Errorf("%s keeps messages %d s, want %d and more than its source", dead, kept, deadLetterRetention)
	}
}

func TestAPIFunctionsAnswerBeforeTheGatewayGivesUp(t *testing.T) {
	tpl := readTemplate(t)
	for _, id := range tpl.of(functionType) {
		for _, event := range children(tpl.property(id, "Events")) {
			if value(event, "Type") == "Api" && number(t, tpl.property(id), "Timeout") > apiTimeout {
				t.Errorf("%s runs longer than the gateway waits (%d s)", id, apiTimeout)
			}
		}
	}
}

func TestEnvironmentIsWhatTheCodeReads(t *testing.T) {
	tpl := readTemplate(t)
	var set []string
	for name := range children(get(tpl.root, "Globals", "Function", "Environment", "Variables")) {
		set = append(set, name)
	}
	for _, id := range tpl.of(functionType) {
		for name := range children(tpl.property(id, "Environment", "Variables")) {
			t.Errorf("%s sets %s alone; variables are global, so that Config is the same everywhere", id, name)
		}
	}
	want := app.Variables()
	slices.Sort(set)
	slices.Sort(want)
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("read by the code (-), set by the template (+):\n%s", diff)
	}
}

// The body of the API repeats what the functions' events say; here is why it cannot drift.
func TestAPIBodyHasThePathsOfTheEvents(t *testing.T) {
	tpl := readTemplate(t)
	events, body := map[string]string{}, map[string]string{}
	for _, id := range tpl.of(functionType) {
		for _, e := range children(tpl.property(id, "Events")) {
			if value(e, "Type") == "Api" {
				events[value(e, "Properties", "Method")+" "+value(e, "Properties", "Path")] = id
			}
		}
	}
	for path, methods := range children(tpl.property("Api", "DefinitionBody", "paths")) {
		for method, operation := range children(methods) {
			uri := value(operation, "x-amazon-apigateway-integration", "uri")
			_, rest, _ := strings.Cut(uri, "functions/${")
			function, _, _ := strings.Cut(rest, ".Arn}")
			method = strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(method, "x-amazon-apigateway-"), "-method"))
			body[method+" "+path] = function
		}
	}
	if diff := cmp.Diff(events, body); diff != "" {
		t.Errorf("events (-) and body (+) differ:\n%s", diff)
	}
	if len(events) == 0 {
		t.Error("no path found")
	}
}

var literals = map[string]*regexp.Regexp{
	"an account":    regexp.MustCompile(`\b\d{12}\b`),
	"a region":      regexp.MustCompile(`\b(af|ap|ca|cn|eu|il|me|mx|sa|us)(-gov)?-(north|south|east|west|central)(east|west)?-\d\b`),
	"a partition":   regexp.MustCompile(`arn:aws[:-]`),
	"a host of AWS": regexp.MustCompile(`amazonaws\.com`),
}

// principal is the one name of that form which is the same in every partition.
const principal = "Principal: { Service: lambda.amazonaws.com }"

func TestTemplateFitsEveryAccountAndRegion(t *testing.T) {
	for i, line := range strings.Split(readTemplate(t).text, "\n") {
		for _, what := range slices.Sorted(maps.Keys(literals)) {
			if literals[what].MatchString(strings.ReplaceAll(line, principal, "")) {
				t.Errorf("template.yaml:%d names %s", i+1, what)
			}
		}
	}
}
