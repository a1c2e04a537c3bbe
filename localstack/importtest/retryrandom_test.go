package importtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/job"
)

// TestRandomRetries tries rows again while everything goes wrong that can, two retries at once. What comes out
// must be what a sequential import of the rows that each of them took gives.
func TestRandomRetries(t *testing.T) {
	if *oneSeed != 0 {
		randomRetries(t, *oneSeed, true)
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
				randomRetries(t, seed, false)
			}
		})
	}
}

func randomRetries(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rng := rand.New(rand.NewPCG(seed, 3))
		s := newSchedule(w, rng)
		w.chunkBytes = []int64{1, 150, 400, 1 << 20}[rng.IntN(4)]
		w.batchRows = 1 + rng.IntN(4)
		before := seedRecords(w, rng)
		jobID, mended := mendedRows(w, rng)
		var ups []*upload
		for range 1 + rng.IntN(2) {
			ups = append(ups, newRetry(w, rng, jobID, len(mended)))
			time.Sleep(time.Second)
		}
		s.run(ups)
		checkRetries(t, w, before, jobID, mended, ups)
		if t.Failed() || verbose {
			t.Logf("go test ./importtest -run TestRandomRetries -v -seed %d\n%s", seed, strings.Join(s.trace, "\n"))
		}
	})
}

// mendedRows gives a job whose rows were all rejected, and what they were corrected to: some good, some bad
// again, some with a key that others have.
func mendedRows(w *world, rng *rand.Rand) (id.Job, []string) {
	bad, mended := make([]string, 1+rng.IntN(12)), []string{}
	for i := range bad {
		bad[i] = fmt.Sprintf("r%d,-1", i)
		mended = append(mended, fmt.Sprintf("%c,%s", "abcde"[rng.IntN(5)], []string{"0", "1", "2", "-1", "x"}[rng.IntN(5)]))
	}
	jobID := w.submit(file(bad...))
	w.drain(jobID)
	for i, raw := range mended {
		w.fix(jobID, int64(i+1), raw)
	}
	return jobID, mended
}

// newRetry asks for all rows, or for some that nobody has in hand.
func newRetry(w *world, rng *rand.Rand, of id.Job, rows int) *upload {
	var numbers []int64
	if rng.IntN(2) == 0 {
		for n := range int64(rows) {
			if rng.IntN(2) == 0 && w.rows(w.store, w.files).Workable(w.t.Context(), w.caller.Tenant, of, []int64{n + 1}) == nil {
				numbers = append(numbers, n+1)
			}
		}
	}
	u := &upload{jobID: w.retry(of, numbers...), cancelAt: -1}
	if rng.IntN(4) == 0 {
		u.cancelAt = rng.IntN(200)
	}
	return u
}

// checkRetries holds each retry against a sequential import of the rows that it settled, in the order of
// their epochs.
func checkRetries(t *testing.T, w *world, before map[string]stored, of id.Job, mended []string, ups []*upload) {
	shown, attempts := make([]string, len(mended)), map[int64]int{}
	state := func(row int64, state string, code fault.Code) {
		shown[row-1] = fmt.Sprintf("%d %s %s %d", row, state, code, 1+attempts[row])
	}
	codes := map[int64]fault.Code{}
	for i := range shown {
		codes[int64(i+1)] = fault.ConstraintViolated
		state(int64(i+1), "quarantined", fault.ConstraintViolated)
	}
	slices.SortFunc(ups, func(a, b *upload) int { return int(w.job(a.jobID).Epoch - w.job(b.jobID).Epoch) })
	records := before
	for _, u := range ups {
		settled := w.settledOfList(u.jobID)
		want := naiveRows(records, file(mended...), settled)
		records = want.Records
		for row := range settled {
			code, rejected := want.Rejected[row]
			if !rejected {
				state(row, "resolved", codes[row])
				continue
			}
			attempts[row]++
			codes[row] = code
			state(row, "quarantined", code)
		}
		j := w.job(u.jobID)
		if j.Result == nil {
			continue
		}
		same(t, fmt.Sprint(u.jobID, " by code"), want.Counters.ByCode, j.Result.Counters.ByCode)
		same(t, fmt.Sprint(u.jobID, " accepted"), want.Counters.Accepted(), j.Result.Counters.Accepted())
		if len(settled) == 0 && j.Status != job.Canceled {
			want.Status = job.Succeeded
		}
		same(t, fmt.Sprint(u.jobID, " status"), statusOf(j, want), j.Status)
	}
	same(t, "rows", shown, w.shown(of))
	got := w.records()
	for key, r := range got {
		if len(ups) > 1 {
			r.Version = records[key].Version // depends on the order of retries, row by row
			got[key] = r
		}
	}
	if len(records)+len(got) > 0 {
		same(t, "records", records, got)
	}
	w.audit(t)
}

// settledOfList are the rows of a retry's list that its chunks settled.
func (w *world) settledOfList(retry id.Job) map[int64]bool {
	w.t.Helper()
	settled := map[int64]bool{}
	list, _ := w.files.get(w.job(retry).Input.Key)
	lines := strings.Split(string(list), "\n")
	for _, c := range w.chunks(retry) {
		for n := c.Start.Row; n < c.At.Row; n++ {
			var line struct {
				RowNumber int64 `json:"row_number"`
			}
			if err := json.Unmarshal([]byte(lines[n-1]), &line); err != nil {
				w.t.Fatal(err)
			}
			settled[line.RowNumber] = true
		}
	}
	return settled
}
