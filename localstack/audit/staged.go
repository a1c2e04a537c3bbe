package audit

import (
	"fmt"
	"strings"

	"pintu/internal/job"
)

// sortRecord tells rows that a job staged from records.
func (s *stored) sortRecord(it item) error {
	rest, staged := strings.CutPrefix(text(it, "pk"), "STAGE#")
	if !staged {
		s.records = append(s.records, it)
		return nil
	}
	jobPK := "job#" + rest[:strings.LastIndexByte(rest, '#')]
	s.staged[jobPK] = append(s.staged[jobPK], it)
	return nil
}

func pkOf(j job.Job) string { return "job#" + j.Tenant + "#" + string(j.ID) }

// home is where the rows of a job went, and the slot of their entries there: the records, or for a job that
// was not to write any, or not yet, its own partition.
func (s *stored) home(j job.Job) (items []item, slot string) {
	if j.Staged() && j.CommittedAt.IsZero() {
		return s.staged[pkOf(j)], "0"
	}
	return s.recordsOf(j), fmt.Sprint(j.Slot)
}

// adrift tells that a dry run, which holds no slot but its own, had its records change under it. Its rows are
// judged by one call and staged by the next: a row that was refused in between may be staged all the same by
// a worker that was frozen. Nothing comes of it, for a dry run copies nothing.
func (s *stored) adrift(j job.Job) bool {
	if !j.Spec.DryRun {
		return false
	}
	for _, o := range s.jobs {
		beside := o.ID != j.ID && o.Tenant == j.Tenant && o.Spec.Dataset == j.Spec.Dataset && !o.Staged() && o.Epoch != 0
		if beside && o.StartedAt.Before(j.FinishedAt) && (!o.Status.Terminal() || o.FinishedAt.After(j.StartedAt)) {
			return true
		}
	}
	return false
}

// checkStaged checks that what was staged goes by itself one day and belongs to a job, that a job which did
// not commit left no trace in the records, and that one which did left every row it staged.
func (s *stored) checkStaged() {
	for pk, items := range s.staged {
		j, known := s.jobs[pk]
		if !known || !j.Staged() {
			s.complain("rows are staged for %s, which is none that does so", pk)
		}
		for _, it := range items {
			if number(it, "ttl") == 0 {
				s.complain("%s: staged row %d stays for ever", j.ID, number(it, "r0"))
			}
		}
	}
	for pk, j := range s.jobs {
		switch {
		case !j.Staged() || j.Epoch == 0:
		case j.CommittedAt.IsZero():
			s.checkNoTrace(j)
		case j.Status.Terminal():
			s.checkCopied(j, s.staged[pk])
		}
		if !j.CommittedAt.IsZero() && (!j.Exclusive() || j.Status.Terminal() && j.Status != job.Succeeded || !j.CancelRequestedAt.IsZero() || j.Stop != nil) {
			s.complain("%s committed and is %s", j.ID, j.Status)
		}
	}
}

func (s *stored) checkNoTrace(j job.Job) {
	for _, it := range s.recordsOf(j) {
		for slot := range job.Slots {
			if number(it, fmt.Sprint("e", slot)) == j.Epoch || number(it, "w") == j.Epoch || text(it, "j") == string(j.ID) {
				s.complain("%s did not commit, and record %q carries its row %d", j.ID, text(it, "sk"), number(it, fmt.Sprint("r", slot)))
			}
		}
	}
}

func (s *stored) checkCopied(j job.Job, staged []item) {
	records := map[string]item{}
	for _, it := range s.recordsOf(j) {
		records[text(it, "sk")] = it
	}
	slot := fmt.Sprint(j.Slot)
	for _, it := range staged {
		r := records[text(it, "sk")]
		own := number(r, "e"+slot) == j.Epoch && number(r, "r"+slot) == number(it, "r0")
		if !own && number(r, "e"+slot) <= j.Epoch {
			s.complain("%s committed, and record %q does not carry its row %d", j.ID, text(it, "sk"), number(it, "r0"))
		}
	}
	if int64(len(staged)) != j.Copied.Rows {
		s.complain("%s staged %d rows and copied %d", j.ID, len(staged), j.Copied.Rows)
	}
}
