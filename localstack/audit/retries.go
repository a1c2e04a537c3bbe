package audit

import (
	"fmt"
	"strings"

	"pintu/internal/importer"
	"pintu/internal/job"
)

// keepRow sorts out a quarantined row, by the job of its file.
func (s *stored) keepRow(pk string, it item) {
	s.rows[pk] = append(s.rows[pk], number(it, "rn"))
	of := "job" + strings.TrimPrefix(pk[:strings.LastIndexByte(pk, '#')], "rows")
	s.kept[of] = append(s.kept[of], it)
}

// checkRetries checks that what a row says of retries is so: they are retries of its job, and it is resolved
// exactly if one of them applied it.
func (s *stored) checkRetries() {
	for of, rows := range s.kept {
		tenant := strings.Split(of, "#")[1]
		for _, it := range rows {
			row := number(it, "rn")
			for _, name := range []string{"rj", "aj", "rb"} {
				if named := text(it, name); named != "" && "job#"+tenant+"#"+string(s.jobs["job#"+tenant+"#"+named].RowsOf) != of {
					s.complain("row %d of %s names %s, which is no retry of its rows", row, of, named)
				}
			}
			if resolved := text(it, "st") == "resolved"; resolved != (text(it, "rb") != "") {
				s.complain("row %d of %s is %s, resolved by %q", row, of, text(it, "st"), text(it, "rb"))
			}
			if tried := text(it, "aj") != ""; tried != (number(it, "at") > 1) {
				s.complain("row %d of %s has %d attempts, the last by %q", row, of, number(it, "at"), text(it, "aj"))
			}
		}
	}
}

// checkRetried checks a finished retry: the outcomes it counted are those of the rows it took, it quarantined
// none of its own, and its records carry rows that it resolved, each at most once.
func (s *stored) checkRetried(pk string, j job.Job, chunks []importer.Chunk, sum job.Counters) {
	for _, c := range chunks {
		if len(s.rows[rowsOf(pk, c)]) > 0 {
			s.complain("%s retries rows and has some of its own in chunk %d", j.ID, c.Index)
		}
	}
	resolved := map[int64]bool{}
	var failed, later int64
	for _, it := range s.kept["job#"+j.Tenant+"#"+string(j.RowsOf)] {
		switch {
		case text(it, "rb") == string(j.ID):
			resolved[number(it, "rn")] = true
		case text(it, "aj") == string(j.ID):
			failed++
		case text(it, "rj") != string(j.ID) && text(it, "aj") != "":
			later++ // tried again since
		}
	}
	if n := int64(len(resolved)); n != sum.Accepted()+sum.Skipped {
		s.complain("%s accepted %d rows and skipped %d, %d are resolved by it", j.ID, sum.Accepted(), sum.Skipped, n)
	}
	if failed > sum.Rejected || failed+later < sum.Rejected {
		s.complain("%s rejected %d rows, %d say so and %d were tried again since", j.ID, sum.Rejected, failed, later)
	}
	slot := fmt.Sprint(j.Slot)
	for _, it := range s.recordsOf(j) {
		if number(it, "e"+slot) != j.Epoch {
			continue
		}
		row := number(it, "r"+slot)
		if !resolved[row] {
			s.complain("%s: record %q carries row %d, which it did not resolve, or twice", j.ID, text(it, "sk"), row)
		}
		resolved[row] = false
	}
}
