package e2e

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/localstack/faults"
)

// points where a worker is killed: each kind of write that plan, process and finishing do. A point is the
// n-th call of that operation by the function whose body has the mark.
var points = []struct {
	name, function, operation, mark string
	n                               int
}{
	{"plan: start", "PlanFunction", "UpdateItem", "StartedAt", 1},
	{"plan: pin layout", "PlanFunction", "UpdateItem", "Layout", 1},
	{"plan: add first chunk", "PlanFunction", "TransactWriteItems", "ChunksPlanned", 1},
	{"plan: hint of first chunk", "PlanFunction", "SendMessageBatch", "process", 1},
	{"plan: add later chunk", "PlanFunction", "TransactWriteItems", "ChunksPlanned", 4},
	{"plan: hint of later chunk", "PlanFunction", "SendMessageBatch", "process", 4},
	{"plan: close", "PlanFunction", "UpdateItem", "Complete", 1},
	{"process: claim", "ProcessFunction", "UpdateItem", "Started", 1},
	{"process: first row", "ProcessFunction", "UpdateItem", "if_not_exists", 1},
	{"process: later row", "ProcessFunction", "UpdateItem", "if_not_exists", 9},
	{"process: quarantine", "ProcessFunction", "PutItem", "rows#", 1},
	{"process: checkpoint", "ProcessFunction", "UpdateItem", "Trailing", 1},
	{"process: later checkpoint", "ProcessFunction", "UpdateItem", "Trailing", 3},
	{"process: mark a chunk to run again", "ProcessFunction", "UpdateItem", "Again", 1},
	{"process: take a key from a larger row", "ProcessFunction", "UpdateItem", ":old", 1},
	{"process: end of chunk", "ProcessFunction", "TransactWriteItems", "ChunksDone", 1},
	{"process: end of last chunk", "ProcessFunction", "TransactWriteItems", "ChunksDone", 6},
	{"process: hint to finish", "ProcessFunction", "SendMessageBatch", "plan", 1},
	{"finish: open a chunk for its second run", "PlanFunction", "TransactWriteItems", "Rerun", 1},
	{"finish: rejected.csv", "PlanFunction", "PutObject", "", 1},
	{"finish: report.json", "PlanFunction", "PutObject", "", 2},
	{"finish: terminal state", "PlanFunction", "TransactWriteItems", "FinishedAt", 1},
}

// byChance are points that are only reached when a later chunk was faster than an earlier one.
var byChance = map[string]bool{"process: mark a chunk to run again": true, "process: take a key from a larger row": true, "finish: open a chunk for its second run": true}

// TestKilledAtNamedPoints kills the function process at each point, before the call is executed and after
// it, and expects the same end as without.
func TestKilledAtNamedPoints(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(40)
	want := s.outcome("calm", s.wait(s.begin(s.dataset("calm"), content)))
	for i, p := range points {
		for _, action := range []faults.Action{faults.KillBefore, faults.KillAfter} {
			when := map[faults.Action]string{faults.KillBefore: "before", faults.KillAfter: "after"}[action]
			t.Run(p.name+" "+when, func(t *testing.T) {
				rule := s.stack.Faults().Add(faults.Rule{Caller: p.function, Operation: p.operation, N: p.n, Action: action,
					Match: func(c faults.Call) bool { return bytes.Contains(c.Body, []byte(p.mark)) }})
				defer rule.Remove()
				name := fmt.Sprintf("killed-%d-%s", i, when)
				jobID := s.begin(s.dataset(name), content)
				got := s.outcome(name, s.rescued(jobID))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-undisturbed +killed):\n%s", diff)
				}
				if rule.Hits() != 1 && !byChance[p.name] {
					t.Errorf("the point was reached %d times, want 1", rule.Hits())
				}
			})
		}
	}
	s.audit()
}

// rescued waits for a job whose hints may be lost: it is due, and sweep sends them again.
func (s *system) rescued(jobID string) object {
	s.t.Helper()
	for range 6 {
		s.quiet()
		if a := s.call("GET", "/v1/jobs/"+jobID, nil); terminal(a.body.text("status")) {
			return a.body
		}
		s.sweepNow()
	}
	return s.wait(jobID)
}

// TestEveryMessageTwice delivers every message a second time while the first delivery is under way.
func TestEveryMessageTwice(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(40)
	want := s.outcome("calm", s.wait(s.begin(s.dataset("calm"), content)))
	doubled := s.doubleEverything()
	got := s.outcome("doubled", s.rescued(s.begin(s.dataset("doubled"), content)))
	if n := doubled(); n < 5 {
		t.Errorf("only %d messages were doubled", n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-once +twice):\n%s", diff)
	}
	s.audit()
}

// TestStoreFaultsChangeNothing lets calls of all functions fail in the ways AWS lets them fail.
func TestStoreFaultsChangeNothing(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(40)
	want := s.outcome("calm", s.wait(s.begin(s.dataset("calm"), content)))
	kinds := map[string]faults.Rule{
		"conflict":    {Service: "dynamodb", Operation: "UpdateItem", Probability: 0.2, Action: faults.Fail, Error: faults.TransactionConflict},
		"canceled":    {Service: "dynamodb", Operation: "TransactWriteItems", Probability: 0.3, Action: faults.Fail, Error: faults.TransactionCanceled},
		"throttled":   {Service: "dynamodb", Probability: 0.1, Action: faults.Fail, Error: faults.Throughput},
		"lost reply":  {Service: "dynamodb", Probability: 0.05, Action: faults.LoseReply},
		"server":      {Service: "dynamodb", Probability: 0.05, Action: faults.Fail, Error: faults.InternalServerError},
		"queue lost":  {Service: "sqs", Operation: "SendMessageBatch", Probability: 0.3, Action: faults.LoseReply},
		"store slow":  {Service: "s3", Probability: 0.2, Action: faults.Fail, Error: faults.SlowDown},
		"store reset": {Service: "s3", Operation: "GetObject", Probability: 0.2, Action: faults.Reset},
	}
	for name, rule := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, function := range []string{"PlanFunction", "ProcessFunction"} {
				rule.Caller, rule.Seed = function, 7
				active := s.stack.Faults().Add(rule)
				defer active.Remove()
			}
			dataset := s.dataset("with-" + dashed(name))
			got := s.outcome(dataset, s.rescued(s.begin(dataset, content)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-undisturbed +%s):\n%s", name, diff)
			}
		})
	}
	s.audit()
}
