package e2e

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"pintu/localstack/faults"
)

// TestPoisonChunk has one row kill every worker that writes it: its message ends in the dead-letter queue,
// the job says so, and a redrive lets it end when the cause is gone.
func TestPoisonChunk(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(20)
	want := s.outcome("calm", s.wait(s.begin(s.dataset("calm"), content)))
	poison := s.stack.Faults().Add(faults.Rule{Caller: "ProcessFunction", Operation: "UpdateItem", Action: faults.KillBefore,
		Match: func(c faults.Call) bool {
			return strings.Contains(string(c.Body), "acme#poisoned#") && strings.Contains(string(c.Body), `"key12"`)
		}})
	jobID := s.begin(s.dataset("poisoned"), content)
	j := s.until(jobID, func(j object) bool { return j.at("stalled") != nil })
	if j.text("status") != "running" || j.text("stalled.queue") != "process" || j.text("stalled.expires_at") == "" {
		t.Errorf("job: %v", j)
	}
	s.quiet()
	dead := s.stack.SQS().Peek(s.queueName("ProcessDeadLetterQueue"))
	if len(dead) != 1 || !strings.Contains(dead[0].Body, jobID) {
		t.Fatalf("dead letters: %+v", dead)
	}
	poison.Remove()
	s.redrive("ProcessDeadLetterQueue")
	got := s.outcome("poisoned", s.wait(jobID))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-undisturbed +redriven):\n%s", diff)
	}
	if a := s.call("GET", "/v1/jobs/"+jobID, nil); a.body.at("stalled") != nil {
		t.Errorf("still stalled: %v", a.body)
	}
	s.audit()
}

// redrive moves a dead-letter queue back to its source, as an operator does.
func (s *system) redrive(deadLetters string) {
	s.t.Helper()
	for _, q := range s.stack.System().Queues {
		if q.LogicalID != deadLetters {
			continue
		}
		if _, err := sqs.NewFromConfig(s.stack.Client()).StartMessageMoveTask(s.t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(q.ARN)}); err != nil {
			s.t.Fatal(err)
		}
	}
}
