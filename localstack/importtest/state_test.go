package importtest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

// state is what an import leaves behind, as far as it must not depend on what happened on the way.
type state struct {
	Status   job.Status
	Records  map[string]stored
	Rejected map[int64]fault.Code
	Counters job.Counters
	Total    int64
	Report   string // rejected.csv
}

type stored struct {
	V       string
	Version int64
	Row     int64
}

func (w *world) state(jobID id.Job) state {
	w.t.Helper()
	j := w.job(jobID)
	s := state{Status: j.Status, Records: w.records(), Rejected: map[int64]fault.Code{}, Total: -1}
	if j.Result != nil {
		s.Counters = j.Result.Counters
		if j.Result.RowsTotal != nil {
			s.Total = *j.Result.RowsTotal
		}
		for _, a := range j.Result.Artifacts {
			if a.Name == "rejected.csv" {
				body, _ := w.files.get(a.Key)
				s.Report = string(body)
			}
		}
	}
	page, err := w.store.ListRows(w.t.Context(), w.caller.Tenant, jobID, quarantine.Filter{}, "", 1000, 4<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range page.Rows {
		s.Rejected[r.RowNumber] = r.Code
	}
	return s
}

func (w *world) records() map[string]stored {
	w.t.Helper()
	out := map[string]stored{}
	for cursor := ""; ; {
		page, err := w.store.ListRecords(w.t.Context(), w.caller.Tenant, "pairs", cursor, 1000, 4<<20)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Records {
			for _, v := range r.Values {
				if v.Field == "v" {
					out[r.Key] = stored{V: v.Text, Version: r.Version, Row: r.Source.RowNumber}
				}
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return out
		}
	}
}

// naive imports a file of lines "k,v" one row after the other, in memory, into what is there before.
func naive(before map[string]stored, body string) state { return naiveRows(before, body, nil) }

// naiveRows imports only some rows of the file; nil stands for all.
func naiveRows(before map[string]stored, body string, only map[int64]bool) state {
	s := state{Records: maps.Clone(before), Rejected: map[int64]fault.Code{}}
	if s.Records == nil {
		s.Records = map[string]stored{}
	}
	seen := map[string]bool{}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")[1:]
	reject := func(row int64, code fault.Code) {
		s.Rejected[row] = code
		s.Counters.Add(job.Counters{Rejected: 1, ByCode: map[fault.Code]int64{code: 1}, ByClass: map[string]int64{"data": 1}})
	}
	for i, line := range lines {
		row := int64(i + 1)
		if only != nil && !only[row] {
			continue
		}
		k, v, _ := strings.Cut(line, ",")
		if n, err := strconv.Atoi(v); err != nil {
			reject(row, fault.TypeMismatch)
			continue
		} else if n < 0 {
			reject(row, fault.ConstraintViolated)
			continue
		}
		if seen[k] {
			reject(row, fault.DuplicateKey)
			continue
		}
		seen[k] = true
		old, existed := s.Records[k]
		now := stored{V: v, Version: old.Version + 1, Row: row}
		switch {
		case !existed:
			s.Counters.Created++
		case old.V == v:
			s.Counters.Unchanged++
			now.Version = old.Version
		default:
			s.Counters.Updated++
		}
		s.Records[k] = now
	}
	s.Total = int64(len(lines))
	switch {
	case s.Counters.Rejected > 0 && s.Counters.Accepted() == 0:
		s.Status = job.Failed
	case s.Counters.Rejected > 0:
		s.Status = job.Partial
	default:
		s.Status = job.Succeeded
	}
	return s
}

// check compares everything but rejected.csv, whose rows it counts.
func (w *world) check(t testing.TB, want state, jobID id.Job) {
	t.Helper()
	got := w.state(jobID)
	if n := int64(max(strings.Count(got.Report, "\n")-1, 0)); n != want.Counters.Rejected {
		t.Errorf("rejected.csv has %d rows, want %d:\n%s", n, want.Counters.Rejected, got.Report)
	}
	got.Report = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job %s (-want +got):\n%s", jobID, diff)
	}
	w.audit(t)
}

func file(rows ...string) string { return "k,v\n" + strings.Join(rows, "\n") + "\n" }

func pairs(n int, key func(int) string) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf("%s,%d", key(i), i)
	}
	return file(rows...)
}
