package importtest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/importer"
	"pintu/internal/job"
)

var (
	seeds   = flag.Int("seeds", 80, "random schedules to run")
	oneSeed = flag.Uint64("seed", 0, "run only this random schedule, and print what it did")
)

// TestRandom imports random files while everything goes wrong that can, several at once into one dataset.
// What comes out must be what a sequential import of the same rows gives.
func TestRandom(t *testing.T) {
	if *oneSeed != 0 {
		random(t, *oneSeed, true)
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
				random(t, seed, false)
			}
		})
	}
}

// upload is one import of a random schedule.
type upload struct {
	body     string
	jobID    id.Job
	complete bool // its client completes it; else sweep must
	cancelAt int  // step; -1: never
}

func random(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		rng := rand.New(rand.NewPCG(seed, 2))
		s := newSchedule(w, rng)
		w.chunkBytes = []int64{16, 16, 24, 40, 64, 128, 1 << 20}[rng.IntN(7)]
		w.batchRows = 1 + rng.IntN(5)
		w.caller.Limits.JobTime = []time.Duration{0, 0, 0, 2 * time.Hour}[rng.IntN(4)]
		before := seedRecords(w, rng)
		var ups []*upload
		for range []int{1, 1, 2, 3}[rng.IntN(4)] {
			ups = append(ups, newUpload(w, rng))
			time.Sleep(time.Duration(rng.IntN(3)) * time.Second)
		}
		s.run(ups)
		checkAll(t, w, before, ups, s)
		if t.Failed() || verbose {
			t.Logf("go test ./importtest -run TestRandom -v -seed %d\n%s", seed, strings.Join(s.trace, "\n"))
		}
	})
}

// seedRecords imports a file that nothing disturbs.
func seedRecords(w *world, rng *rand.Rand) map[string]stored {
	if rng.IntN(2) == 0 {
		return nil
	}
	var rows []string
	for _, k := range "abcdefgh" {
		if rng.IntN(3) == 0 {
			rows = append(rows, fmt.Sprintf("%c,%d", k, rng.IntN(3)))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	w.drain(w.submit(file(rows...)))
	return w.records()
}

func newUpload(w *world, rng *rand.Rand) *upload {
	keys := "abcdefgh"[:1+rng.IntN(8)]
	rows := make([]string, 1+rng.IntN(16))
	for i := range rows {
		v := fmt.Sprint(rng.IntN(3))
		if rng.IntN(8) == 0 {
			v = []string{"-1", "x"}[rng.IntN(2)]
		}
		rows[i] = fmt.Sprintf("%c,%s", keys[rng.IntN(len(keys))], v)
	}
	u := &upload{body: file(rows...), complete: rng.IntN(5) > 0, cancelAt: -1}
	if rng.IntN(4) == 0 {
		u.cancelAt = rng.IntN(200)
	}
	u.jobID = w.upload("pairs", []byte(u.body), func(s *job.ImportSpec) {
		if rng.IntN(6) == 0 {
			s.MaxRejected = int64(rng.IntN(4))
		}
	})
	return u
}

// run goes on until every import has ended and nothing is under way any more.
func (s *schedule) run(ups []*upload) {
	for _, u := range ups {
		if u.complete {
			s.complete(u.jobID)
		}
	}
	const tooMany = 20_000
	for step := 0; ; step++ {
		s.settled()
		if step%20 == 0 && s.over(ups) {
			break
		}
		if step == tooMany {
			s.w.t.Errorf("stuck: %+v", s.w.job(ups[0].jobID))
			break
		}
		for _, u := range ups {
			if u.cancelAt == step {
				s.cancel(u.jobID)
			}
		}
		s.step()
	}
	before := s.w.picture(ups)
	s.quiet()
	if diff := cmp.Diff(before, s.w.picture(ups)); diff != "" {
		s.w.t.Errorf("changed after the end (-before +after):\n%s", diff)
	}
}

func (s *schedule) over(ups []*upload) bool {
	return !slices.ContainsFunc(ups, func(u *upload) bool { return !s.w.job(u.jobID).Status.Terminal() })
}

// picture is all that must not change any more once the imports ended.
func (w *world) picture(ups []*upload) any {
	var out []any
	for _, u := range ups {
		out = append(out, w.job(u.jobID), w.state(u.jobID))
		for _, c := range w.chunks(u.jobID) {
			c.Again = false // see the audit
			out = append(out, c)
		}
	}
	return out
}

func (w *world) chunks(jobID id.Job) []importer.Chunk {
	w.t.Helper()
	var all []importer.Chunk
	for {
		page, err := w.store.Chunks(w.t.Context(), w.caller.Tenant, jobID, len(all))
		if err != nil {
			w.t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}

// checkAll holds every import against a sequential one of the rows that it says it settled, and the records
// against the imports in the order of their epochs.
func checkAll(t *testing.T, w *world, before map[string]stored, ups []*upload, s *schedule) {
	ups = slices.Clone(ups)
	slices.SortFunc(ups, func(a, b *upload) int { return int(w.job(a.jobID).Epoch - w.job(b.jobID).Epoch) })
	records := maps.Clone(before)
	for _, u := range ups {
		j, got := w.job(u.jobID), w.state(u.jobID)
		settled := map[int64]bool{}
		for _, c := range w.chunks(u.jobID) {
			for row := c.Start.Row; row < c.At.Row; row++ {
				settled[row] = true
			}
		}
		want := naiveRows(records, u.body, settled)
		records = want.Records
		if len(ups) > 1 {
			// Which of several imports found a record there depends on their order row by row.
			want.Counters.Created, want.Counters.Updated, want.Counters.Unchanged = got.Counters.Created, got.Counters.Updated, got.Counters.Unchanged
		}
		want.Status, want.Report, want.Records, got.Records = statusOf(j, want), got.Report, nil, nil
		if j.Result == nil {
			want.Counters = job.Counters{}
		}
		if got.Total == -1 {
			want.Total = -1
		}
		if accepted := int64(len(settled)) - want.Counters.Rejected; j.Result != nil && got.Counters.Accepted() != accepted {
			t.Errorf("job %s accepted %d rows, want %d", u.jobID, got.Counters.Accepted(), accepted)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("job %s of %q (-want +got):\n%s", u.jobID, u.body, diff)
		}
	}
	got := w.records()
	for key, r := range got {
		if len(ups) > 1 {
			r.Version = records[key].Version // depends on the order of imports, row by row
			got[key] = r
		}
	}
	if diff := cmp.Diff(records, got); diff != "" && len(records)+len(got) > 0 {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	w.audit(t)
}

// statusOf is the verdict that a job's own words and the rows' outcomes lead to.
func statusOf(j job.Job, want state) job.Status {
	switch {
	case !j.CancelRequestedAt.IsZero():
		return job.Canceled
	case j.Stop != nil, want.Counters.Rejected > j.Spec.MaxRejected:
		return job.Failed
	case j.Error != nil && j.Error.Code == fault.UploadExpired:
		return job.Failed
	}
	return want.Status
}
