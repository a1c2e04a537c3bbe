package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/cli"
	"pintu/localstack/faults"
)

// beginWith submits, uploads and completes a file with members of a submit changed.
func (s *system) beginWith(dataset string, content []byte, change object) string {
	s.t.Helper()
	body := spec(dataset, content)
	maps.Copy(body, change)
	a := s.call("POST", "/v1/import-jobs", body, "Idempotency-Key", key())
	if a.status != http.StatusAccepted {
		s.t.Fatalf("submit: %d %v", a.status, a.body)
	}
	if status, text := s.upload(a, content); status != http.StatusOK {
		s.t.Fatalf("upload: %d %s", status, text)
	}
	jobID := a.body.text("job_id")
	s.complete(jobID)
	return jobID
}

// counts are the counters of a job, zeros left out.
func counts(j object) map[string]int64 {
	out := map[string]int64{}
	for _, name := range []string{"created", "updated", "unchanged", "skipped", "rejected", "unprocessed"} {
		if n := j.number("result.rows_" + name); n != 0 {
			out[name] = n
		}
	}
	return out
}

// TestRules imports one file by each rule over records of other jobs.
func TestRules(t *testing.T) {
	s := start(t, 16, nil)
	content := []byte("k,v,was\na,1,1\nb,9,1\nnew,1,\nc,3,7\nb,8,1\nnew,2,\n")
	for _, c := range []struct {
		name    string
		change  object
		counts  map[string]int64
		records map[string]string
		codes   map[int64]string
	}{
		{"update", object{"on_conflict": "update"}, map[string]int64{"created": 1, "updated": 1, "unchanged": 2, "rejected": 2},
			map[string]string{"a": "1", "b": "9", "c": "3", "new": "1"}, map[int64]string{5: "DUPLICATE_KEY_IN_FILE", 6: "DUPLICATE_KEY_IN_FILE"}},
		{"last", object{"duplicates": "last_wins"}, map[string]int64{"created": 1, "updated": 1, "unchanged": 2, "skipped": 2},
			map[string]string{"a": "1", "b": "8", "c": "3", "new": "2"}, map[int64]string{}},
		{"skip", object{"on_conflict": "skip", "duplicates": "last_wins"}, map[string]int64{"created": 1, "skipped": 5},
			map[string]string{"a": "1", "b": "2", "c": "3", "new": "2"}, map[int64]string{}},
		{"reject", object{"on_conflict": "reject"}, map[string]int64{"created": 1, "rejected": 5},
			map[string]string{"a": "1", "b": "2", "c": "3", "new": "1"}, map[int64]string{1: "KEY_CONFLICT", 2: "KEY_CONFLICT", 4: "KEY_CONFLICT", 5: "KEY_CONFLICT", 6: "DUPLICATE_KEY_IN_FILE"}},
		{"unchanged", object{"on_conflict": "if_unchanged", "version_column": "was"}, map[string]int64{"created": 1, "updated": 1, "unchanged": 1, "rejected": 3},
			map[string]string{"a": "1", "b": "9", "c": "3", "new": "1"}, map[int64]string{4: "KEY_CONFLICT", 5: "DUPLICATE_KEY_IN_FILE", 6: "DUPLICATE_KEY_IN_FILE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dataset := s.dataset("rules-" + c.name)
			s.wait(s.begin(dataset, []byte("k,v\na,1\nb,2\nc,3\n")))
			j := s.rescued(s.beginWith(dataset, content, c.change))
			o := s.outcome(dataset, j)
			if diff := cmp.Diff(c.counts, counts(j)); diff != "" {
				t.Errorf("counters: %s", diff)
			}
			if diff := cmp.Diff(c.records, o.Records); diff != "" {
				t.Errorf("records: %s", diff)
			}
			if diff := cmp.Diff(c.codes, o.Rejected); diff != "" {
				t.Errorf("rejected: %s", diff)
			}
			s.verify(j)
		})
	}
	s.audit()
}

// TestARuleOfTheDataset holds for imports that say nothing else.
func TestARuleOfTheDataset(t *testing.T) {
	s := start(t, 1<<20, nil)
	definition := func(version int, rules object) {
		body := object{"schema": object{"primaryKey": []string{"k"}, "fields": []object{{"name": "k", "type": "string"}, {"name": "v", "type": "integer"}}}}
		maps.Copy(body, rules)
		if a := s.call("PUT", "/v1/datasets/pairs", body); a.body.number("version") != int64(version) {
			t.Fatalf("PUT dataset: %d %v", a.status, a.body)
		}
	}
	definition(1, object{"on_conflict": "skip", "duplicates": "last_wins"})
	s.wait(s.begin("pairs", []byte("k,v\na,1\na,2\n")))
	j := s.wait(s.begin("pairs", []byte("k,v\na,3\nb,1\n")))
	if diff := cmp.Diff(map[string]int64{"created": 1, "skipped": 1}, counts(j)); diff != "" {
		t.Errorf("skip: %s", diff)
	}
	j = s.wait(s.beginWith("pairs", []byte("k,v\na,3\n"), object{"on_conflict": "update"}))
	if diff := cmp.Diff(map[string]int64{"updated": 1}, counts(j)); diff != "" {
		t.Errorf("an import that says otherwise: %s", diff)
	}
	definition(2, object{"on_conflict": "if_unchanged"})
	if j = s.wait(s.begin("pairs", []byte("k,v\na,4\n"))); j.text("error.code") != "MISSING_COLUMNS" {
		t.Errorf("without version_column: %v", j)
	}
	s.audit()
}

// TestDryRun says what would be and leaves everything as it is.
func TestDryRun(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(40)
	dry := s.wait(s.beginWith(s.dataset("pairs"), content, object{"dry_run": true}))
	if o := s.outcome("pairs", dry); len(o.Records) != 0 {
		t.Errorf("%d records", len(o.Records))
	}
	real := s.wait(s.begin("pairs", content))
	if diff := cmp.Diff(counts(real), counts(dry)); diff != "" {
		t.Errorf("(-real +dry): %s", diff)
	}
	again := s.wait(s.beginWith("pairs", content, object{"dry_run": true}))
	if again.number("result.rows_unchanged") != real.number("result.rows_created") || again.text("error.code") != "" {
		t.Errorf("dry run over the records: %v", counts(again))
	}
	s.verify(dry)
	s.audit()
}

// wholePoints are the calls of an import of all or nothing that no other import makes.
var wholePoints = []struct {
	name, function, operation, mark string
	n                               int
}{
	{"look at a record", "ProcessFunction", "GetItem", "ProjectionExpression", 3},
	{"stage a row", "ProcessFunction", "UpdateItem", "STAGE#", 3},
	{"commit", "PlanFunction", "UpdateItem", "CommittedAt", 1},
	{"first page of staged rows", "PlanFunction", "Query", "STAGE#", 1},
	{"copy a row", "PlanFunction", "UpdateItem", "if_not_exists", 1},
	{"copy a later row", "PlanFunction", "UpdateItem", "if_not_exists", 20},
	{"keep how far it came", "PlanFunction", "UpdateItem", "Copied", 1},
	{"report", "PlanFunction", "PutObject", "", 1},
	{"terminal state", "PlanFunction", "TransactWriteItems", "FinishedAt", 1},
}

// TestAllOrNothing: one bad row and nothing is applied; none, and everything is, whatever dies, at the commit
// and behind it.
func TestAllOrNothing(t *testing.T) {
	s := start(t, 64, nil)
	bad := s.wait(s.beginWith(s.dataset("bad"), pairs(40), object{"atomicity": "all_or_nothing"}))
	if o := s.outcome("bad", bad); o.Status != "failed" || len(o.Records) != 0 || bad.text("error.code") != "TOO_MANY_REJECTED" || bad.number("result.rows_accepted") != 0 || len(o.Rejected) == 0 {
		t.Errorf("with bad rows: %v %v", o, bad)
	}
	s.verify(bad)
	content := good(40)
	want := s.outcome("calm", s.wait(s.begin(s.dataset("calm"), content)))
	for i, p := range wholePoints {
		for _, action := range []faults.Action{faults.KillBefore, faults.KillAfter} {
			when := map[faults.Action]string{faults.KillBefore: "before", faults.KillAfter: "after"}[action]
			t.Run(p.name+" "+when, func(t *testing.T) {
				rule := s.stack.Faults().Add(faults.Rule{Caller: p.function, Operation: p.operation, N: p.n, Action: action,
					Match: func(c faults.Call) bool { return bytes.Contains(c.Body, []byte(p.mark)) }})
				defer rule.Remove()
				name := fmt.Sprintf("whole-%d-%s", i, when)
				j := s.rescued(s.beginWith(s.dataset(name), content, object{"atomicity": "all_or_nothing"}))
				if diff := cmp.Diff(want, s.outcome(name, j)); diff != "" {
					t.Errorf("(-row by row +whole):\n%s", diff)
				}
				if rule.Hits() != 1 {
					t.Errorf("the point was reached %d times, want 1", rule.Hits())
				}
				s.verify(j)
			})
		}
	}
	s.audit()
}

// good makes a file of n rows that are all good.
func good(n int) []byte {
	var b bytes.Buffer
	b.WriteString("k,v\n")
	for i := range n {
		fmt.Fprintf(&b, "key%d,%d\n", i, i)
	}
	return b.Bytes()
}

// TestNoCancelBehindTheCommit holds a worker right behind the commit: a cancel is refused then.
func TestNoCancelBehindTheCommit(t *testing.T) {
	s := start(t, 64, nil)
	held := s.stack.Faults().Add(faults.Rule{Caller: "PlanFunction", Operation: "Query", Action: faults.HoldBefore,
		Match: func(c faults.Call) bool { return bytes.Contains(c.Body, []byte("STAGE#")) }})
	jobID := s.beginWith(s.dataset("pairs"), good(40), object{"atomicity": "all_or_nothing"})
	<-held.Reached()
	if a := s.call("POST", "/v1/jobs/"+jobID+"/cancel", object{}, "Idempotency-Key", key()); a.status != http.StatusConflict || a.body.text("error.code") != "INVALID_JOB_STATE" {
		t.Errorf("cancel: %d %v", a.status, a.body)
	}
	held.Remove()
	if j := s.rescued(jobID); j.text("status") != "succeeded" || j.number("result.rows_accepted") != 40 {
		t.Errorf("job: %v", j)
	}
	s.audit()
}

// TestRetry cancels an import in the middle and runs it again: what the first attempt applied is unchanged.
func TestRetry(t *testing.T) {
	s := start(t, 64, nil)
	content := pairs(400)
	jobID := s.submitHeld(content)
	held := s.stack.Faults().Add(faults.Rule{Caller: "ProcessFunction", Operation: "UpdateItem", N: 60, Action: faults.HoldBefore})
	s.complete(jobID)
	<-held.Reached()
	s.call("POST", "/v1/jobs/"+jobID+"/cancel", object{}, "Idempotency-Key", key())
	held.Remove()
	first := s.rescued(jobID)
	path := "/v1/jobs/" + jobID + "/retry"
	a := s.call("POST", path, object{}, "Idempotency-Key", "one")
	if a.status != http.StatusAccepted || a.body.text("retry_of") != jobID || a.body.number("attempt") != 2 {
		t.Fatalf("retry: %d %v", a.status, a.body)
	}
	for _, k := range []string{"one", "two"} {
		if b := s.call("POST", path, object{}, "Idempotency-Key", k); b.status != http.StatusAccepted || b.body.text("job_id") != a.body.text("job_id") {
			t.Errorf("key %s: %d %v", k, b.status, b.body)
		}
	}
	j := s.rescued(a.body.text("job_id"))
	want := s.outcome("calm", s.wait(s.begin(s.dataset("calm"), content)))
	got := s.outcome("pairs", j)
	if j.number("result.rows_unchanged") != first.number("result.rows_accepted") {
		t.Errorf("%d rows unchanged, the first attempt had applied %d", j.number("result.rows_unchanged"), first.number("result.rows_accepted"))
	}
	for _, name := range []string{"rows_created", "rows_unchanged"} {
		delete(want.Counters, name)
		delete(got.Counters, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-undisturbed +second attempt):\n%s", diff)
	}
	if a := s.call("POST", "/v1/jobs/"+j.text("job_id")+"/retry", object{}, "Idempotency-Key", key()); a.status != http.StatusConflict {
		t.Errorf("retry of a partial job: %d %v", a.status, a.body)
	}
	s.verify(j)
	s.audit()
}

// TestReprocess runs a file again at another version; what another job changed since stays.
func TestReprocess(t *testing.T) {
	s := start(t, 64, nil)
	s.dataset("pairs")
	first := s.wait(s.begin("pairs", []byte("k,v\na,1\nb,-1\nc,3\n")))
	s.wait(s.begin("pairs", []byte("k,v\nc,30\n")))
	a := s.call("PUT", "/v1/datasets/pairs", object{"schema": object{"primaryKey": []string{"k"}, "fields": []object{{"name": "k", "type": "string"}, {"name": "v", "type": "integer"}}}})
	if a.body.number("version") != 2 {
		t.Fatalf("PUT dataset: %d %v", a.status, a.body)
	}
	a = s.call("POST", "/v1/jobs/"+first.text("job_id")+"/reprocess", object{"dataset_version": 2}, "Idempotency-Key", key())
	if a.status != http.StatusAccepted || a.body.text("reprocess_of") != first.text("job_id") {
		t.Fatalf("reprocess: %d %v", a.status, a.body)
	}
	j := s.wait(a.body.text("job_id"))
	o := s.outcome("pairs", j)
	if diff := cmp.Diff(map[string]int64{"created": 1, "unchanged": 1, "rejected": 1}, counts(j)); diff != "" {
		t.Errorf("counters: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "-1", "c": "30"}, o.Records); diff != "" || o.Rejected[3] != "KEY_CONFLICT" {
		t.Errorf("rejected %v, records: %s", o.Rejected, diff)
	}
	s.audit()
}

// verify runs the operator's command on a job.
func (s *system) verify(j object) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	env := s.stack.Env("ApiFunction")
	file := fmt.Sprintf("AWS_ACCESS_KEY_ID=pintu\nAWS_SECRET_ACCESS_KEY=pintu-local-secret\nAWS_REGION=us-east-1\nAWS_ENDPOINT_URL=%s\n", s.stack.AWSEndpoint())
	for _, name := range []string{"PINTU_CONTROL_TABLE", "PINTU_RECORDS_TABLE", "PINTU_BUCKET", "PINTU_S3_PATH_STYLE"} {
		file += name + "=" + env[name] + "\n"
	}
	code := cli.Run(context.WithoutCancel(s.t.Context()), cli.Env{Args: []string{"job", "verify", j.text("job_id"), "--tenant", "acme", "-o", "json"},
		Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }, Dir: s.devDir(file)})
	if code != 0 || !strings.Contains(stdout.String(), `"problems":null`) {
		s.t.Errorf("verify: exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}

// devDir is a folder with the file that says where a stack on this machine is.
func (s *system) devDir(content string) string {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".pintu"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".pintu", "dev.env"), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return dir
}
