package importtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
)

// rule is how an import meets records and its own rows.
type rule struct{ conflict, duplicates string }

var everyRule = []rule{
	{"update", "reject"}, {"update", "last_wins"}, {"skip", "reject"}, {"skip", "last_wins"},
	{"reject", "reject"}, {"reject", "last_wins"}, {"if_unchanged", "reject"}, {"if_unchanged", "last_wins"},
}

func (r rule) String() string { return r.conflict + "+" + r.duplicates }

// set makes an import go by the rule. Files of these tests carry versions in column was.
func (r rule) set(s *job.ImportSpec) {
	s.OnConflict, s.Duplicates = r.conflict, r.duplicates
	if r.conflict == "if_unchanged" {
		s.VersionColumn = "was"
	}
}

// versioned makes a file of rows "key,value,version".
func versioned(rows ...string) string { return "k,v,was\n" + strings.Join(rows, "\n") + "\n" }

// row is one line of such a file.
type row struct {
	number int64
	key, v string
	was    string
	bad    fault.Code
}

func rowsOf(body string) []row {
	var out []row
	for i, line := range strings.Split(strings.TrimSuffix(body, "\n"), "\n")[1:] {
		cells := strings.Split(line, ",")
		r := row{number: int64(i + 1), key: cells[0], v: cells[1], was: cells[2]}
		if n, err := strconv.Atoi(r.v); err != nil {
			r.bad = fault.TypeMismatch
		} else if n < 0 {
			r.bad = fault.ConstraintViolated
		}
		out = append(out, r)
	}
	return out
}

// naiveByRule imports rows one after the other, in memory. only are the rows that were settled, nil for all;
// ours are the keys whose records an earlier attempt of the same work wrote, with what was there before it.
func naiveByRule(before map[string]stored, body string, r rule, only map[int64]bool, ours map[string]stored) state {
	s := state{Records: maps.Clone(before), Rejected: map[int64]fault.Code{}}
	if s.Records == nil {
		s.Records = map[string]stored{}
	}
	all := rowsOf(body)
	stays := map[string]int64{}
	for _, line := range all {
		if only != nil && !only[line.number] || line.bad != "" || clashes(line, r, before, ours) {
			continue
		}
		if _, taken := stays[line.key]; !taken || r.duplicates == "last_wins" {
			stays[line.key] = line.number
		}
	}
	for _, line := range all {
		if only == nil || only[line.number] {
			s.take(line, r, stays, clashes(line, r, before, ours))
		}
	}
	s.Total = int64(len(all))
	s.Status = s.verdict()
	return s
}

// clashes tells whether a row may not touch the record that was there before the import.
func clashes(line row, r rule, before, ours map[string]stored) bool {
	there, exists := before[line.key]
	base, mine := ours[line.key]
	if mine {
		there = base
	}
	switch r.conflict {
	case "skip", "reject":
		return exists && !mine
	case "if_unchanged":
		was, _ := strconv.ParseInt(line.was, 10, 64)
		return was != there.Version
	}
	return false
}

func (s *state) take(line row, r rule, stays map[string]int64, conflict bool) {
	switch {
	case line.bad != "":
		s.reject(line.number, line.bad)
	case conflict && r.conflict == "skip":
		s.Counters.Skipped++
	case conflict:
		s.reject(line.number, fault.KeyConflict)
	case stays[line.key] == line.number:
		s.apply(line)
	case r.duplicates == "last_wins":
		s.Counters.Skipped++
	default:
		s.reject(line.number, fault.DuplicateKey)
	}
}

func (s *state) reject(number int64, code fault.Code) {
	s.Rejected[number] = code
	s.Counters.Add(job.Counters{Rejected: 1, ByCode: map[fault.Code]int64{code: 1}, ByClass: map[string]int64{"data": 1}})
}

func (s *state) apply(line row) {
	old, existed := s.Records[line.key]
	now := stored{V: line.v, Version: old.Version + 1, Row: line.number}
	switch {
	case !existed:
		s.Counters.Created++
	case old.V == line.v:
		s.Counters.Unchanged++
		now.Version = old.Version
	default:
		s.Counters.Updated++
	}
	s.Records[line.key] = now
}

func (s *state) verdict() job.Status {
	switch {
	case s.Counters.Rejected > 0 && s.Counters.Accepted() == 0:
		return job.Failed
	case s.Counters.Rejected > 0:
		return job.Partial
	}
	return job.Succeeded
}

// submitBy uploads a file that is imported by a rule, and completes it.
func (w *world) submitBy(r rule, body string, change ...func(*job.ImportSpec)) id.Job {
	w.t.Helper()
	jobID := w.upload("pairs", []byte(body), func(s *job.ImportSpec) {
		r.set(s)
		for _, f := range change {
			f(s)
		}
	})
	if _, err := w.jobs.Complete(w.t.Context(), w.caller, idempotency.Intent{}, jobID); err != nil {
		w.t.Fatal(err)
	}
	return jobID
}

// grown are records of which some changed a few times.
func (w *world) grown() map[string]stored {
	w.t.Helper()
	for _, body := range []string{file("a,1", "b,1", "c,1"), file("b,2", "c,2"), file("c,3")} {
		w.drain(w.submit(body))
	}
	return w.records() // a has version 1, b 2, c 3
}

// awkward meets every rule: records as they are, older and newer, keys of which some rows conflict, and
// keys of the file alone, in first, last and middle place.
var awkward = versioned("a,9,1", "x,1,", "b,8,1", "x,2,", "c,3,3", "b,7,2", "x,-1,", "y,1,1", "b,6,2", "c,5,3", "z,1,", "x,4,", "a,1,1", "y,2,", "q,z,", "b,2,2", "b,5,9", "a,1,")

func TestEveryRule(t *testing.T) {
	for _, r := range everyRule {
		t.Run(r.String(), func(t *testing.T) {
			for _, chunk := range []int64{8, 16, 40, 1 << 20} {
				w := newWorld(t)
				w.chunkBytes = chunk
				before := w.grown()
				jobID := w.submitBy(r, awkward)
				w.drainPlan()
				w.shuffle(rand.New(rand.NewPCG(uint64(chunk), 5)))
				w.drain(jobID)
				w.check(t, naiveByRule(before, awkward, r, nil, nil), jobID)
			}
		})
	}
}

// TestEveryRuleKilledAtEveryCall kills the first worker that comes to its n-th call. Each rule dies at every
// fifth call, all of them together at every one.
func TestEveryRuleKilledAtEveryCall(t *testing.T) {
	for i, r := range everyRule {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			for n := 1 + i%5; ; n += 5 {
				w := newWorld(t)
				w.chunkBytes = 40
				before := w.grown()
				jobID := w.submitBy(r, awkward)
				reached := w.killOnce(n, n%2 == 0, jobID)
				w.drain(jobID)
				w.check(t, naiveByRule(before, awkward, r, nil, nil), jobID)
				if t.Failed() {
					t.Fatalf("killed at call %d", n)
				}
				if !reached {
					return
				}
			}
		})
	}
}

// TestRandomRules imports by random rules while everything goes wrong that can.
func TestRandomRules(t *testing.T) {
	runSeeds(t, randomRule)
}

// runSeeds runs a test for many seeds, or the one that was asked for.
func runSeeds(t *testing.T, run func(t *testing.T, seed uint64, verbose bool)) {
	if *oneSeed != 0 {
		run(t, *oneSeed, true)
		return
	}
	n := *seeds
	if testing.Short() {
		n /= 10
	}
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(part + 1); seed <= uint64(n) && !t.Failed(); seed += parts {
				run(t, seed, false)
			}
		})
	}
}

func randomRule(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rng := rand.New(rand.NewPCG(seed, 3))
		s := newSchedule(w, rng)
		w.chunkBytes = []int64{8, 16, 24, 40, 64, 128, 1 << 20}[rng.IntN(7)]
		w.batchRows = 1 + rng.IntN(5)
		before := w.grown()
		r := everyRule[rng.IntN(len(everyRule))]
		u := newVersioned(w, rng, r)
		s.run([]*upload{u})
		w.checkByRule(t, u, r, before, nil)
		if t.Failed() || verbose {
			t.Logf("go test ./importtest -run %s -v -seed %d: %s %q\n%s", strings.SplitN(t.Name(), "/", 2)[0], seed, r, u.body, strings.Join(s.trace, "\n"))
		}
	})
}

// newVersioned uploads random rows, of which many meet others or a record.
func newVersioned(w *world, rng *rand.Rand, r rule, change ...func(*job.ImportSpec)) *upload {
	keys := "abcxyz"[:1+rng.IntN(6)]
	rows := make([]string, 1+rng.IntN(16))
	for i := range rows {
		v, was := fmt.Sprint(rng.IntN(4)), ""
		if rng.IntN(8) == 0 {
			v = []string{"-1", "x"}[rng.IntN(2)]
		}
		if rng.IntN(3) > 0 {
			was = fmt.Sprint(1 + rng.IntN(3))
		}
		rows[i] = fmt.Sprintf("%c,%s,%s", keys[rng.IntN(len(keys))], v, was)
	}
	return uploadBy(w, rng, r, versioned(rows...), change...)
}

// uploadBy uploads a file for a random schedule.
func uploadBy(w *world, rng *rand.Rand, r rule, body string, change ...func(*job.ImportSpec)) *upload {
	u := &upload{body: body, complete: rng.IntN(5) > 0, cancelAt: -1}
	if rng.IntN(4) == 0 {
		u.cancelAt = rng.IntN(200)
	}
	u.jobID = w.upload("pairs", []byte(u.body), func(s *job.ImportSpec) {
		r.set(s)
		for _, f := range change {
			f(s)
		}
	})
	time.Sleep(time.Duration(rng.IntN(3)) * time.Second)
	return u
}

// checkByRule holds an import against a naive one of the rows that it says it settled.
func (w *world) checkByRule(t *testing.T, u *upload, r rule, before, ours map[string]stored) {
	t.Helper()
	j, got := w.job(u.jobID), w.state(u.jobID)
	want := naiveByRule(before, u.body, r, w.settledRows(u.jobID), ours)
	if j.Result == nil { // it never began
		want.Counters = job.Counters{}
	}
	want.Status, want.Report = statusOf(j, want), got.Report
	if got.Total == -1 {
		want.Total = -1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job %s (-want +got):\n%s", u.jobID, diff)
	}
	w.verify(t, u.jobID)
	w.audit(t)
}

// settledRows are those that a job's chunks say they settled.
func (w *world) settledRows(jobID id.Job) map[int64]bool {
	settled := map[int64]bool{}
	for _, c := range w.chunks(jobID) {
		for n := c.Start.Row; n < c.At.Row; n++ {
			settled[n] = true
		}
	}
	return settled
}
