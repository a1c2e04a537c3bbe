package archtest

import (
	"slices"
	"strings"
	"testing"
)

// levels orders the packages: each may import those of earlier levels, never its neighbours (but for the
// list below). A package in a folder of another one belongs to that one's level.
var levels = []struct {
	name     string
	packages []string
}{
	{"ground", []string{"internal/fault"}},
	{"leaf", []string{"internal/id", "internal/backoff", "internal/decimal", "internal/rowio", "internal/netguard", "internal/logline", "infra"}},
	{"domain", []string{"internal/access", "internal/idempotency", "internal/record", "internal/quarantine", "internal/dataset", "internal/compute", "internal/job", "internal/webhook"}},
	{"processor", []string{"internal/importer"}},
	{"engine", []string{"internal/httpapi", "internal/worker", "internal/sweep"}},
	{"adapter", []string{"internal/aws/dynamostore", "internal/aws/sqsqueue", "internal/aws/s3blob", "internal/aws/lambdaio"}},
	{"assembly", []string{"internal/app", "internal/client", "internal/cli", "internal/archtest"}},
	{"command", []string{"functions", "cmd"}},
}

// sideways lists what may be imported within a level, and why.
var sideways = map[string]string{
	"internal/dataset -> internal/access":         "versions are put by a caller, within its tenant",
	"internal/dataset -> internal/idempotency":    "the record of an intent is written with the version it made",
	"internal/compute -> internal/dataset":        "expressions are over the typed rows of a dataset",
	"internal/job -> internal/access":             "jobs are submitted by a caller, within its tenant and limits",
	"internal/job -> internal/idempotency":        "the record of an intent is written with the job it made",
	"internal/quarantine -> internal/access":      "rows are mended by a caller, within its tenant",
	"internal/quarantine -> internal/idempotency": "the record of an intent is written with the rows it changed",
	"internal/job -> internal/quarantine":         "a retry of rows keeps which rows it was asked for",
	"internal/cli -> internal/client":             "most commands go through the HTTP API",
}

// levelOf gives the level of a package and the package of the table it belongs to.
func levelOf(pkg string) (level int, owner string) {
	for i, l := range levels {
		for _, p := range l.packages {
			if pkg == p || strings.HasPrefix(pkg, p+"/") {
				return i, p
			}
		}
	}
	return -1, ""
}

func TestImportsGoUpOnly(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test || outside(f.pkg) {
			continue
		}
		level, owner := levelOf(f.pkg)
		if level < 0 {
			t.Errorf("%s: package %s is on no level; put it into the table", f.path, f.pkg)
			continue
		}
		for _, path := range f.imports() {
			pkg, ours := strings.CutPrefix(path, "pintu/")
			if !ours {
				continue
			}
			other, otherOwner := levelOf(pkg)
			edge := owner + " -> " + otherOwner
			used[edge] = true
			switch {
			case other < 0:
				t.Errorf("%s imports %s, which is on no level", f.path, pkg)
			case other > level:
				t.Errorf("%s (%s) imports %s (%s)", f.path, levels[level].name, pkg, levels[other].name)
			case other == level && owner != otherOwner && sideways[edge] == "":
				t.Errorf("%s imports its neighbour %s; give the reason in the table or go through a port", f.path, pkg)
			}
		}
	}
	for edge := range sideways {
		if !used[edge] {
			t.Errorf("%s is allowed and not used; take it from the table", edge)
		}
	}
}

// outside is what the levels do not order: the embedded stack and the tools are modules of their own.
func outside(pkg string) bool {
	return pkg == "localstack" || strings.HasPrefix(pkg, "localstack/") || strings.HasPrefix(pkg, "tools/")
}

// restricted lists imports that belong to few packages, and why.
var restricted = []struct {
	what    string
	matches func(path string) bool
	allowed []string
	tests   bool // holds for tests too
	reason  string
}{
	{"the AWS SDK", anyPrefix("github.com/aws/"), []string{"internal/aws", "internal/app", "functions", "localstack"}, true,
		"everything else speaks to ports, so that what the system means does not depend on where it runs"},
	{"the expression language", anyPrefix("cel.dev/"), []string{"internal/compute"}, true, "it is 13 MB: who needs it decides what a function weighs"},
	{"the embedded stack", anyPrefix("pintu/localstack"), []string{"localstack"}, true,
		"its dependencies must not reach the product's go.mod or a Lambda binary"},
	{"package log", exactly("log"), []string{"localstack"}, false, "there is one canonical line per unit of work, from logline"},
	{"text/template", exactly("text/template", "html/template"), nil, false,
		"it keeps every method of every type in the binary: 6 MB more"},
	{"package reflect", exactly("reflect"), nil, false, "calling methods by name keeps every method in the binary"},
	{"math/rand", exactly("math/rand"), nil, false, "math/rand/v2 needs no seed"},
	{"the OpenAPI validator", anyPrefix("github.com/getkin/"), []string{"internal/httpapi", "localstack", "infra"}, true, "it is for tests"},
	{"net/http", exactly("net/http"), []string{"internal/httpapi", "internal/aws/lambdaio", "internal/aws/s3blob", "internal/app", "internal/client", "internal/cli", "internal/netguard", "internal/webhook", "localstack"}, false,
		"HTTP is spoken at the edges"},
}

func anyPrefix(prefix string) func(string) bool {
	return func(path string) bool { return strings.HasPrefix(path, prefix) }
}

func exactly(paths ...string) func(string) bool {
	return func(path string) bool { return slices.Contains(paths, path) }
}

func within(pkg string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") })
}

func TestRestrictedImportsStayWhereTheyBelong(t *testing.T) {
	for _, f := range sources(t) {
		if strings.HasPrefix(f.pkg, "tools/") {
			continue
		}
		for _, path := range f.imports() {
			for _, r := range restricted {
				if r.matches(path) && (!f.test || r.tests) && !within(f.pkg, r.allowed) {
					t.Errorf("%s imports %s: %s belongs to %v (%s)", f.path, path, r.what, r.allowed, r.reason)
				}
			}
		}
	}
}

// restrictedUses lists names that belong to few packages, and why.
var restrictedUses = []struct {
	path, name string
	allowed    []string
	tests      bool
	reason     string
}{
	{"net/http", "Status", []string{"internal/httpapi", "internal/aws/lambdaio", "internal/aws/s3blob", "internal/client", "internal/webhook", "localstack"}, false,
		"status codes are chosen in httpapi; lambdaio answers what the handler cannot, client, s3blob and webhook read what they get"},
	{"os", "Getenv", []string{"internal/app", "internal/cli", "localstack", "cmd"}, false, "the environment is read once, into a checked Config"},
	{"os", "LookupEnv", []string{"internal/app", "internal/cli", "localstack", "cmd"}, false, "the environment is read once, into a checked Config"},
	{"os", "Exit", []string{"internal/app", "internal/cli", "cmd", "localstack/cmd", "localstack/lambda/testdata", "tools"}, false, "only mains end the process"},
	{"time", "Now", []string{"internal/app", "internal/cli", "internal/client", "internal/httpapi/contract", "localstack", "internal/aws/dynamostore", "internal/aws/s3blob", "internal/rowio/rowgen"}, false,
		"clocks are passed in"},
	{"time", "Sleep", nil, false, "nothing waits without a way to be told to stop"},
}

func TestRestrictedNamesStayWhereTheyBelong(t *testing.T) {
	for _, f := range sources(t) {
		for _, r := range restrictedUses {
			if f.test && !r.tests || within(f.pkg, r.allowed) {
				continue
			}
			for _, line := range f.uses(r.path, r.name) {
				t.Errorf("%s:%d uses %s.%s: it belongs to %v (%s)", f.path, line, r.path, r.name, r.allowed, r.reason)
			}
		}
	}
}

// sleepingTests poll a condition outside of this process, with a deadline; all others use testing/synctest,
// where sleeping takes no time, or a clock that is passed in.
var sleepingTests = map[string]string{
	"internal/cli/cli_test.go":           "waits for what a command that runs as a process asks of a server",
	"localstack/sqs/conformance_test.go": "the same suite runs against real SQS, where only waiting shows a time-out",
	"localstack/lambda/lambda_test.go":   "looks whether a child process has ended",
	"localstack/stack/stack_test.go":     "polls what function processes have done",
	"localstack/e2e/urls_test.go":        "polls what function processes have done, for the whole suite",
}

func TestNoTestSleepsToWait(t *testing.T) {
	for _, f := range sources(t) {
		if !f.test || sleepingTests[f.path] != "" || slices.Contains(f.imports(), "testing/synctest") {
			continue
		}
		for _, line := range f.uses("time", "Sleep") {
			t.Errorf("%s:%d sleeps: use testing/synctest, a clock that is passed in, or wait for what is meant", f.path, line)
		}
	}
}
