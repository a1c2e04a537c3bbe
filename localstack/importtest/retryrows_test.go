package importtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

// retry asks for a retry of rows at the newest version; no numbers stand for all.
func (w *world) retry(jobID id.Job, numbers ...int64) id.Job {
	w.t.Helper()
	got, err := w.jobs.RetryRows(w.t.Context(), w.caller, idempotency.Intent{}, "req", jobID, quarantine.Selection{Numbers: numbers}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Job.ID
}

// fix corrects the payload of a row.
func (w *world) fix(jobID id.Job, n int64, raw string) {
	w.t.Helper()
	if _, err := w.patch(jobID, n, "", raw); err != nil {
		w.t.Fatal(err)
	}
}

// patch corrects a row that has the etag; "" stands for any.
func (w *world) patch(jobID id.Job, n int64, etag, raw string) (quarantine.Row, error) {
	bytes := []byte(raw)
	return w.rows(w.store, w.files).Patch(w.t.Context(), w.caller, jobID, n, func(tag string) bool { return etag == "" || tag == etag },
		quarantine.Change{Raw: &bytes})
}

// shown lists the rows of a job as people see them: number, state, code and attempts.
func (w *world) shown(jobID id.Job) []string {
	w.t.Helper()
	page, err := w.rows(w.store, w.files).List(w.t.Context(), w.caller, jobID, quarantine.Filter{}, "", 1000, 4<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, r := range page.Rows {
		out = append(out, fmt.Sprintf("%d %s %s %d", r.RowNumber, r.State, r.Code, r.Attempts))
	}
	return out
}

func (w *world) artifact(jobID id.Job, name string) string {
	for _, a := range w.job(jobID).Result.Artifacts {
		if a.Name == name {
			body, _ := w.files.get(a.Key)
			return string(body)
		}
	}
	return ""
}

func same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// mixed has rows of every kind: rows 2 and 5 are bad, row 4 has the key of row 1, row 7 is malformed.
func mixed(w *world) id.Job {
	w.t.Helper()
	jobID := w.submit(file("a,1", "b,-1", "c,3", "a,4", "d,x", "e,6", `"f,7`, "g,8"))
	w.drain(jobID)
	same(w.t, "quarantine", []string{"2 quarantined CONSTRAINT_VIOLATED 1", "4 quarantined DUPLICATE_KEY_IN_FILE 1", "5 quarantined TYPE_MISMATCH 1", "7 quarantined MALFORMED_ROW 1"}, w.shown(jobID))
	return jobID
}

func TestRetryRows(t *testing.T) {
	w := newWorld(t)
	jobID := mixed(w)
	before := w.job(jobID)
	w.fix(jobID, 2, "b,22\n")
	w.fix(jobID, 7, `"f",77`)
	retry := w.retry(jobID)
	j := w.drain(retry)
	same(t, "status", job.Partial, j.Status)
	same(t, "counters", job.Counters{Created: 2, Rejected: 1, ByCode: map[fault.Code]int64{fault.TypeMismatch: 1}, ByClass: map[string]int64{"data": 1}}, j.Result.Counters)
	same(t, "total", int64(3), *j.Result.RowsTotal)
	same(t, "attempt", 2, j.Attempt)
	same(t, "samples", []job.SampleError{{RowNumber: 5, Line: 6, Field: "v", Code: fault.TypeMismatch, Class: "data", Message: j.Result.SampleErrors[0].Message}}, j.Result.SampleErrors)
	same(t, "rows of the job", []string{"2 resolved CONSTRAINT_VIOLATED 1", "4 quarantined DUPLICATE_KEY_IN_FILE 1", "5 quarantined TYPE_MISMATCH 2", "7 resolved MALFORMED_ROW 1"}, w.shown(jobID))
	same(t, "rows of the retry", []string{"2 resolved CONSTRAINT_VIOLATED 1", "5 quarantined TYPE_MISMATCH 2", "7 resolved MALFORMED_ROW 1"}, w.shown(retry))
	same(t, "records", map[string]stored{"a": {"1", 1, 1}, "b": {"22", 1, 2}, "c": {"3", 1, 3}, "e": {"6", 1, 6}, "f": {"77", 1, 7}, "g": {"8", 1, 8}}, w.records())
	if report := w.artifact(retry, "rejected.csv"); !strings.HasSuffix(report, "d,x\n") || strings.Count(report, "\n") != 2 {
		t.Errorf("rejected.csv of the retry:\n%s", report)
	}
	same(t, "the first job", before, w.job(jobID))
	w.audit(t)

	w.fix(retry, 5, "d,55") // through the retry's own address
	last := w.retry(retry)
	same(t, "attempt", 3, w.job(last).Attempt)
	same(t, "status", job.Succeeded, w.drain(last).Status)
	same(t, "row 4 is left", []string{"2 resolved CONSTRAINT_VIOLATED 1", "4 quarantined DUPLICATE_KEY_IN_FILE 1", "5 resolved TYPE_MISMATCH 2", "7 resolved MALFORMED_ROW 1"}, w.shown(jobID))
	w.audit(t)

	named := w.drain(w.retry(jobID, 4)) // asked for, it replaces the row that was applied
	same(t, "counters", job.Counters{Updated: 1}, named.Result.Counters)
	same(t, "record", stored{"4", 2, 4}, w.records()["a"])
	w.audit(t)
	same(t, "nothing is left", job.Succeeded, w.drain(w.retry(jobID)).Status)
	w.audit(t)
}

// A payload of a correction must be one record, whatever it is.
func TestRetryOfPayloadsThatAreNoRecord(t *testing.T) {
	w := newWorld(t)
	jobID := w.submit(file("a,1", "b,-1", "c,-1", "d,-1", "e,-1", "f,-1"))
	w.drain(jobID)
	for n, raw := range map[int64]string{2: "\n", 3: "c,3\nx,4\n", 4: "d,4\n\n", 5: "\"e\n\",5", 6: "f,6,7\n"} {
		w.fix(jobID, n, raw)
	}
	w.drain(w.retry(jobID))
	same(t, "rows", []string{"2 quarantined MALFORMED_ROW 2", "3 quarantined MALFORMED_ROW 2", "4 resolved CONSTRAINT_VIOLATED 1", "5 resolved CONSTRAINT_VIOLATED 1", "6 quarantined WRONG_COLUMN_COUNT 2"}, w.shown(jobID))
	if _, there := w.records()["e\n"]; !there {
		t.Errorf("a line end in quotes is part of the record: %v", w.records())
	}
	w.audit(t)
}

// TestRetryKilledAtEveryCall kills the first worker that reaches its n-th call of the store while rows are
// tried again, two of them with one key, and lets the others finish.
func TestRetryKilledAtEveryCall(t *testing.T) {
	body := file("a,1", "b,-1", "c,-1", "d,-1", "e,x", "f,-1")
	want := []string{"2 resolved CONSTRAINT_VIOLATED 1", "3 resolved CONSTRAINT_VIOLATED 1", "4 quarantined DUPLICATE_KEY_IN_FILE 2", "5 quarantined TYPE_MISMATCH 2", "6 resolved CONSTRAINT_VIOLATED 1"}
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t)
			w.batchRows, w.chunkBytes = 2, []int64{1, 150, 1 << 20}[n%3]
			jobID := w.submit(body)
			w.drain(jobID)
			for row, raw := range map[int64]string{2: "b,2", 3: "x,3", 4: "x,4", 6: "a,6"} {
				w.fix(jobID, row, raw)
			}
			retry := w.retry(jobID)
			reached := w.killOnce(n, after, retry)
			j := w.drain(retry)
			same(t, "rows", want, w.shown(jobID))
			same(t, "counters", job.Counters{Created: 2, Updated: 1, Rejected: 2, ByCode: map[fault.Code]int64{fault.DuplicateKey: 1, fault.TypeMismatch: 1}, ByClass: map[string]int64{"data": 2}}, j.Result.Counters)
			same(t, "records", map[string]stored{"a": {"6", 2, 6}, "b": {"2", 1, 2}, "x": {"3", 1, 3}}, w.records())
			w.audit(t)
			if t.Failed() {
				t.Fatalf("killed at call %d (after it: %v)", n, after)
			}
			if !reached {
				t.Logf("after=%v: %d calls", after, n-1)
				break
			}
		}
	}
}

// TestRetryInRandomOrder works off the chunks of retries in orders drawn from a seed, so that rows with one
// key meet in every order.
func TestRetryInRandomOrder(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := newWorld(t)
		w.batchRows, w.chunkBytes = 1+rng.IntN(3), []int64{1, 150, 300, 1 << 20}[rng.IntN(4)]
		rows, fixed := make([]string, 12), make([]string, 12)
		for i := range rows {
			rows[i] = fmt.Sprintf("k%d,-1", i)
			fixed[i] = fmt.Sprintf("%c,%d", "abcde"[rng.IntN(5)], rng.IntN(4)-1)
		}
		jobID := w.submit(file(rows...))
		w.drain(jobID)
		for i, raw := range fixed {
			w.fix(jobID, int64(i+1), raw)
		}
		retry := w.retry(jobID)
		w.drainPlan()
		w.shuffle(rng)
		w.drain(retry)
		want := naive(nil, file(fixed...))
		got := w.state(retry)
		got.Report = ""
		got.Rejected = map[int64]fault.Code{}
		for _, r := range w.shown(jobID) {
			var n int64
			var state, code string
			fmt.Sscan(r, &n, &state, &code)
			if state == "quarantined" {
				got.Rejected[n] = fault.Code(code)
			}
		}
		same(t, fmt.Sprint("seed ", seed), want, got)
		w.audit(t)
		if t.Failed() {
			return
		}
	}
}

// Two retries of the same rows: each row goes to one of them, and both end.
func TestTwoRetriesOfTheSameRows(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t)
		w.chunkBytes = 150
		jobID := w.submit(pairs(9, func(i int) string { return fmt.Sprint("k", i) })[:4] + strings.Repeat("a,-1\n", 9))
		w.drain(jobID)
		for n := range int64(9) {
			w.fix(jobID, n+1, fmt.Sprintf("k%d,%d", n, n))
		}
		one, two := w.retry(jobID), w.retry(jobID)
		w.shuffle(rand.New(rand.NewPCG(seed, 5)))
		a, b := w.drain(one), w.drain(two)
		if n := a.Result.Counters.Created + b.Result.Counters.Created; n != 9 || *a.Result.RowsTotal+*b.Result.RowsTotal != 9 {
			t.Errorf("created %d of 9 rows: %+v %+v", n, a.Result, b.Result)
		}
		w.audit(t)
	}
}

// Rows that were named are in hand as soon as the retry is answered; a second retry, a correction and a
// discard are refused until the retry has ended, however it ends.
func TestRowsInHandAreLocked(t *testing.T) {
	w := newWorld(t)
	jobID := mixed(w)
	retry := w.retry(jobID, 2, 5)
	same(t, "rows", []string{"2 retrying CONSTRAINT_VIOLATED 1", "4 quarantined DUPLICATE_KEY_IN_FILE 1", "5 retrying TYPE_MISMATCH 1", "7 quarantined MALFORMED_ROW 1"}, w.shown(jobID))
	rows := w.rows(w.store, w.files)
	_, patched := w.patch(jobID, 2, "1", "b,2") // with the etag from before: the state is told, not the race
	_, discarded := rows.Discard(t.Context(), w.caller, idempotency.Intent{}, jobID, []int64{4, 5}, "no")
	_, retried := w.jobs.RetryRows(t.Context(), w.caller, idempotency.Intent{}, "req", jobID, quarantine.Selection{Numbers: []int64{2, 7}}, 0)
	for what, err := range map[string]error{"patch": patched, "discard": discarded, "retry": retried} {
		if e, ok := fault.As(err); !ok || e.Code != fault.InvalidRowState || e.Details["state"] != "retrying" {
			t.Errorf("%s of a row in hand: %v", what, err)
		}
	}
	w.cancel(retry)
	same(t, "rows", []string{"2 quarantined CONSTRAINT_VIOLATED 1", "4 quarantined DUPLICATE_KEY_IN_FILE 1", "5 quarantined TYPE_MISMATCH 1", "7 quarantined MALFORMED_ROW 1"}, w.shown(jobID))
	w.fix(jobID, 2, "b,2")
	w.drain(w.retry(jobID, 2))
	same(t, "rows", "2 resolved CONSTRAINT_VIOLATED 1", w.shown(jobID)[0])
	w.audit(t)
}

// TestRetryCanceledAtEveryCall cancels a retry whose worker died at its n-th call: what was applied is
// resolved, what failed has its attempt, and all the rest is as workable as before.
func TestRetryCanceledAtEveryCall(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t)
		w.batchRows, w.chunkBytes = 2, []int64{1, 300, 1 << 20}[n%3]
		jobID := w.submit(file("a,-1", "b,-1", "c,-1", "d,-1", "e,-1"))
		w.drain(jobID)
		for row, raw := range map[int64]string{1: "a,1", 2: "b,2", 4: "d,4", 5: "e,5"} {
			w.fix(jobID, row, raw)
		}
		retry := w.retry(jobID)
		reached := w.killOnce(n, n%2 == 0, retry)
		_, err := w.jobs.Cancel(t.Context(), w.caller, idempotency.Intent{}, retry)
		j := w.drain(retry)
		if !reached && err != nil {
			break
		}
		if j.Result != nil && j.Status == job.Canceled {
			resolved := slices.DeleteFunc(w.shown(jobID), func(s string) bool { return !strings.Contains(s, "resolved") })
			if int64(len(resolved)) != j.Result.Counters.Accepted() || int64(len(w.records())) != j.Result.Counters.Accepted() {
				t.Errorf("accepted %d rows, %v are resolved, records %v", j.Result.Counters.Accepted(), resolved, w.records())
			}
		}
		w.audit(t)
		w.drain(w.retry(jobID))
		w.audit(t)
		same(t, "records", map[string]string{"a": "1", "b": "2", "d": "4", "e": "5"}, w.values())
		if t.Failed() {
			t.Fatalf("killed at call %d", n)
		}
	}
}

func (w *world) values() map[string]string {
	out := map[string]string{}
	for k, r := range w.records() {
		out[k] = r.V
	}
	return out
}

func TestWhatCannotBeRetried(t *testing.T) {
	w := newWorld(t)
	jobID := mixed(w)
	w.drain(w.retry(jobID, 4))
	if _, err := w.rows(w.store, w.files).Discard(t.Context(), w.caller, idempotency.Intent{}, jobID, []int64{5}, "no"); err != nil {
		t.Fatal(err)
	}
	waiting := w.upload("pairs", []byte(file("a,1")), nil)
	dry := w.upload("pairs", []byte(file("a,-1")), func(s *job.ImportSpec) { s.DryRun = true })
	w.cancel(dry)
	whole := w.upload("pairs", []byte(file("a,-1")), func(s *job.ImportSpec) { s.Atomicity = job.AllOrNothing })
	w.cancel(whole)
	for _, c := range []struct {
		name    string
		of      id.Job
		numbers []int64
		version int
		code    fault.Code
	}{
		{"not in quarantine", jobID, []int64{2, 3}, 0, fault.RowNotFound},
		{"beyond the file", jobID, []int64{99}, 0, fault.RowNotFound},
		{"resolved", jobID, []int64{4}, 0, fault.InvalidRowState},
		{"discarded", jobID, []int64{2, 5}, 0, fault.InvalidRowState},
		{"no such job", "job_01JZZZZZZZZZZZZZZZZZZZZZZZ", nil, 0, fault.JobNotFound},
		{"no such version", jobID, nil, 9, fault.VersionNotFound},
		{"not over", waiting, nil, 0, fault.InvalidJobState},
		{"dry run", dry, nil, 0, fault.InvalidJobState},
		{"all or nothing that came to nothing", whole, nil, 0, fault.InvalidJobState},
	} {
		_, err := w.jobs.RetryRows(t.Context(), w.caller, idempotency.Intent{}, "req", c.of, quarantine.Selection{Numbers: c.numbers}, c.version)
		if !fault.Is(err, c.code) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	w.audit(t)
}
