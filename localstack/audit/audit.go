// Package audit looks at both tables and all queues from outside and says what contradicts the promises
// of the system. It knows the stored form on purpose and shares no code with what wrote it, but for the
// types. It runs after every end-to-end test; a quiet system must pass it twice with nothing changed.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/importer"
	"pintu/internal/job"
)

// Config says where to look.
type Config struct {
	DB                         *dynamodb.Client
	ControlTable, RecordsTable string
	Messages                   []string // bodies of all messages in all queues, dead-letter queues included
}

// Report is what an audit found.
type Report struct {
	Violations []string
	Digest     string // of everything stored; equal for two audits of a quiet system
	Jobs, Rows int
}

type item = map[string]types.AttributeValue

// stored is the content of both tables, sorted out.
type stored struct {
	jobs     map[string]job.Job          // by partition key
	due      map[string]bool             // partition keys of jobs with a due time
	chunks   map[string][]importer.Chunk // by the job's partition key
	rejected map[string]int64            // what a chunk's item says it rejected, by its rows' partition key
	rows     map[string][]int64          // numbers of quarantined rows by partition key
	kept     map[string][]item           // the rows themselves by the job's partition key
	actives  map[string]item             // by "tenant#client"
	slots    map[string]item             // by dataset partition key
	waiting  map[string][]place          // by dataset partition key
	intents  []item                      // idempotency and deduplication records
	records  []item
	staged   map[string][]item // by the job's partition key
	problems []string
}

// place is a job's place in the line of a dataset, in the order of its sort key.
type place struct {
	sk  string
	all bool // waits until all slots are free
}

func (p place) jobID() string { return p.sk[strings.LastIndexByte(p.sk, '#')+1:] }

// Run audits.
func Run(ctx context.Context, c Config) (Report, error) {
	s := &stored{jobs: map[string]job.Job{}, due: map[string]bool{}, chunks: map[string][]importer.Chunk{}, rejected: map[string]int64{},
		rows: map[string][]int64{}, kept: map[string][]item{}, actives: map[string]item{}, slots: map[string]item{}, waiting: map[string][]place{}, staged: map[string][]item{}}
	digest := sha256.New()
	each := func(table string, f func(item) error) error {
		return scan(ctx, c.DB, table, func(it item) error {
			b, err := json.Marshal(it)
			if err != nil {
				return err
			}
			digest.Write(b)
			return f(it)
		})
	}
	if err := each(c.ControlTable, s.sort); err != nil {
		return Report{}, err
	}
	if err := each(c.RecordsTable, s.sortRecord); err != nil {
		return Report{}, err
	}
	for pk, j := range s.jobs {
		s.checkJob(pk, j)
	}
	s.checkCounters()
	s.checkSlots()
	s.checkRetries()
	s.checkNames(c.Messages)
	s.checkStaged()
	slices.Sort(s.problems)
	return Report{Violations: s.problems, Digest: hex.EncodeToString(digest.Sum(nil)), Jobs: len(s.jobs), Rows: len(s.records)}, nil
}

func scan(ctx context.Context, db *dynamodb.Client, table string, f func(item) error) error {
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("scan %s: %w", table, err)
		}
		for _, it := range page.Items {
			if err := f(it); err != nil {
				return err
			}
		}
	}
	return nil
}

// sort puts an item of the control table where it belongs.
func (s *stored) sort(it item) error {
	pk, sk := text(it, "pk"), text(it, "sk")
	kind, rest, _ := strings.Cut(pk, "#")
	switch {
	case kind == "job" && sk == "job":
		var j job.Job
		if err := attributevalue.UnmarshalMap(it, &j); err != nil {
			return err
		}
		s.jobs[pk] = j
		s.due[pk] = it["due_shard"] != nil && it["due_at"] != nil
	case kind == "job":
		var c importer.Chunk
		if err := attributevalue.UnmarshalMap(it, &c); err != nil {
			return err
		}
		s.chunks[pk] = append(s.chunks[pk], c)
		s.rejected[rowsOf(pk, c)] = number(it, "rejected")
	case kind == "rows":
		s.keepRow(pk, it)
	case kind == "client" && sk == "active":
		s.actives[rest] = it
	case kind == "dataset" && sk == "slots":
		s.slots[pk] = it
	case kind == "dataset" && strings.HasPrefix(sk, "wait#"):
		s.waiting[pk] = append(s.waiting[pk], place{sk, it["all"] != nil})
	case kind == "idem", kind == "dedupe":
		s.intents = append(s.intents, it)
	}
	return nil
}

// rowsOf is the partition key of a chunk's quarantined rows.
func rowsOf(jobPK string, c importer.Chunk) string {
	return fmt.Sprintf("rows%s#%08d", strings.TrimPrefix(jobPK, "job"), c.Index)
}

func (s *stored) complain(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *stored) checkJob(pk string, j job.Job) {
	if terminal := j.Status.Terminal(); terminal == s.due[pk] {
		s.complain("%s is %s and due: %v", j.ID, j.Status, s.due[pk])
	}
	if (j.Error != nil) != (j.Status == job.Failed) {
		s.complain("%s is %s with error %v", j.ID, j.Status, j.Error)
	}
	chunks := s.chunks[pk]
	slices.SortFunc(chunks, func(a, b importer.Chunk) int { return a.Index - b.Index })
	if len(chunks) != j.Plan.ChunksPlanned {
		s.complain("%s planned %d chunks and has %d", j.ID, j.Plan.ChunksPlanned, len(chunks))
	}
	done, stalled := 0, 0
	if j.PlanStalled != nil {
		stalled++
	}
	for i, c := range chunks {
		if c.Done {
			done++
		}
		if c.Stalled != nil {
			stalled++
		}
		if c.Index != i || i > 0 && c.Start != chunks[i-1].End {
			s.complain("%s: chunk %d does not follow on the one before", j.ID, i)
		}
		if len(s.rows[rowsOf(pk, c)]) > 0 && s.rejected[rowsOf(pk, c)] == 0 && c.Done {
			s.complain("%s: chunk %d has quarantined rows and says it has none", j.ID, i)
		}
	}
	if done != j.Plan.ChunksDone {
		s.complain("%s counts %d chunks done, %d are", j.ID, j.Plan.ChunksDone, done)
	}
	if stalled != j.StalledCount {
		s.complain("%s counts %d stalled, %d are marked", j.ID, j.StalledCount, stalled)
	}
	if j.Status.Terminal() && !j.StartedAt.IsZero() {
		s.checkEnded(pk, j, chunks)
	}
}

// checkEnded checks the counter law: from the chunks, on the job, and from what is stored.
func (s *stored) checkEnded(pk string, j job.Job, chunks []importer.Chunk) {
	if !j.Plan.Closed || j.Plan.ChunksDone != j.Plan.ChunksPlanned || j.Result == nil {
		s.complain("%s is %s with an open plan, open chunks or no result", j.ID, j.Status)
		return
	}
	var sum job.Counters
	var rows int64
	for _, c := range chunks {
		sum.Add(c.Counters)
		rows += c.Rows
		// A worker that was frozen in between may mark a chunk that ran again already; nothing comes of it.
		if c.Again && !c.Rerun {
			s.complain("%s ended with chunk %d marked to run again", j.ID, c.Index)
		}
		if j.RowsOf == "" {
			s.checkQuarantine(pk, j, c)
		}
	}
	r, told := j.Result, sum
	if j.Spec.Atomicity == job.AllOrNothing && j.Status != job.Succeeded {
		told.Created, told.Updated, told.Unchanged = 0, 0, 0 // found good, and not applied
	}
	if a, b := fmt.Sprint(told), fmt.Sprint(r.Counters); a != b {
		s.complain("%s: chunks say %s, result says %s", j.ID, a, b)
	}
	if r.RowsTotal != nil && *r.RowsTotal != rows || r.RowsPlanned != rows || r.Counters.Settled()+r.RowsUnprocessed != rows {
		s.complain("%s: %d rows, accounted for %d and %d unprocessed", j.ID, rows, r.Counters.Settled(), r.RowsUnprocessed)
	}
	if s.adrift(j) {
		return
	}
	s.checkApplied(j, sum)
	if j.RowsOf != "" {
		s.checkRetried(pk, j, chunks, sum)
		return
	}
	s.checkEntries(j, chunks)
}

// checkQuarantine checks that a chunk's quarantined rows are as many as it counted, and rows it settled.
func (s *stored) checkQuarantine(pk string, j job.Job, c importer.Chunk) {
	rows := s.rows[rowsOf(pk, c)]
	if n := int64(len(rows)); n != c.Counters.Rejected || n != s.rejected[rowsOf(pk, c)] {
		s.complain("%s: chunk %d rejected %d rows, its item says %d, quarantine has %d", j.ID, c.Index, c.Counters.Rejected, s.rejected[rowsOf(pk, c)], n)
	}
	for _, row := range rows {
		if row < c.Start.Row || row >= c.At.Row {
			s.complain("%s: quarantined row %d is not one that chunk %d settled", j.ID, row, c.Index)
		}
	}
}

// checkEntries checks that every entry of a job names a row that the chunk it names settled and did not
// quarantine, each at most once.
func (s *stored) checkEntries(j job.Job, chunks []importer.Chunk) {
	holds := map[int64]bool{}
	home, slot := s.home(j)
	for _, it := range home {
		if number(it, "e"+slot) != j.Epoch {
			continue
		}
		row, chunk := number(it, "r"+slot), number(it, "c"+slot)
		if chunk >= int64(len(chunks)) || row < chunks[chunk].Start.Row || row >= chunks[chunk].At.Row {
			s.complain("%s: record %q carries its row %d, which chunk %d did not settle", j.ID, text(it, "sk"), row, chunk)
			continue
		}
		if holds[row] || slices.Contains(s.rows[rowsOf("job#"+j.Tenant+"#"+string(j.ID), chunks[chunk])], row) {
			s.complain("%s: row %d was applied and has another outcome as well", j.ID, row)
		}
		holds[row] = true
	}
}

func (s *stored) recordsOf(j job.Job) []item {
	var out []item
	for _, it := range s.records {
		if strings.HasPrefix(text(it, "pk"), j.Tenant+"#"+j.Spec.Dataset+"#") {
			out = append(out, it)
		}
	}
	return out
}

// checkApplied counts the records that carry an entry of the job. Entries that a later import of the same
// slot took over can only be fewer.
func (s *stored) checkApplied(j job.Job, sum job.Counters) {
	home, slot := s.home(j)
	var own, later, created, updated, unchanged int64
	for _, it := range home {
		switch epoch := number(it, "e"+slot); {
		case epoch > j.Epoch:
			later++
		case epoch == j.Epoch:
			own++
			before, written := binary(it, "b"+slot), binary(it, "h"+slot)
			switch {
			case len(before) <= 1:
				created++
			case string(before) == string(written):
				unchanged++
			default:
				updated++
			}
		}
	}
	if own > sum.Accepted() || own+later < sum.Accepted() {
		s.complain("%s accepted %d rows, %d records carry its entry and %d one of a later import", j.ID, sum.Accepted(), own, later)
	}
	if later == 0 && (created != sum.Created || updated != sum.Updated || unchanged != sum.Unchanged) {
		s.complain("%s counted created %d updated %d unchanged %d, records say %d %d %d", j.ID, sum.Created, sum.Updated, sum.Unchanged, created, updated, unchanged)
	}
}

// checkCounters compares every client's counters with its jobs.
func (s *stored) checkCounters() {
	active, uploading := map[string]int64{}, map[string]int64{}
	for _, j := range s.jobs {
		client := j.Tenant + "#" + j.Client
		switch {
		case j.Status == job.Uploading:
			uploading[client]++
		case !j.Status.Terminal():
			active[client]++
		}
		if s.actives[client] == nil {
			s.complain("client %s has jobs and no counter", client)
		}
	}
	for client, it := range s.actives {
		if number(it, "active") != active[client] || number(it, "uploading") != uploading[client] {
			s.complain("client %s counts %d active and %d uploading jobs, there are %d and %d", client, number(it, "active"), number(it, "uploading"), active[client], uploading[client])
		}
	}
}

// checkSlots checks that slots are held by jobs that are not over, one each or all, that who waits is queued,
// and that no epoch was given twice.
func (s *stored) checkSlots() {
	holds, waits, epochs := map[string][]int{}, map[string]bool{}, map[string]string{}
	for pk, it := range s.slots {
		s.checkLine(pk, it, holds)
	}
	for _, line := range s.waiting {
		for _, p := range line {
			waits[p.jobID()] = true
		}
	}
	for _, j := range s.jobs {
		var want []int
		if moving := j.Status == job.Queued || j.Status == job.Running; moving && j.Slot != job.NoSlot {
			want = []int{j.Slot}
			if j.Exclusive() {
				want = []int{0, 1, 2, 3}
			}
		}
		if got := holds[string(j.ID)]; !slices.Equal(want, got) {
			s.complain("%s is %s with slot %d, the dataset says it has %v", j.ID, j.Status, j.Slot, got)
		}
		if waits[string(j.ID)] != (j.Status == job.Queued && j.Slot == job.NoSlot) {
			s.complain("%s is %s with slot %d, in line: %v", j.ID, j.Status, j.Slot, waits[string(j.ID)])
		}
		epoch := fmt.Sprint(j.Tenant, "#", j.Spec.Dataset, "#", j.Epoch)
		if other := epochs[epoch]; j.Epoch != 0 && other != "" {
			s.complain("%s and %s have epoch %d of one dataset", min(other, string(j.ID)), max(other, string(j.ID)), j.Epoch)
		}
		epochs[epoch] = string(j.ID)
		delete(holds, string(j.ID))
		delete(waits, string(j.ID))
	}
	for jobID := range holds {
		s.complain("%s holds a slot and does not exist", jobID)
	}
	for jobID := range waits {
		s.complain("%s waits for a slot and does not exist", jobID)
	}
}

// checkLine looks at the slots of one dataset: nobody waits for what is free.
func (s *stored) checkLine(pk string, it item, holds map[string][]int) {
	var line struct {
		Holders []string
		Waiting int
	}
	if err := attributevalue.UnmarshalMap(it, &line); err != nil {
		s.complain("slots of %s: %v", pk, err)
	}
	free := 0
	for slot, holder := range line.Holders {
		if holder == "" {
			free++
			continue
		}
		holds[holder] = append(holds[holder], slot)
	}
	waiting := s.waiting[pk]
	slices.SortFunc(waiting, func(a, b place) int { return strings.Compare(a.sk, b.sk) })
	if len(waiting) != line.Waiting {
		s.complain("%s counts %d jobs in line, %d are", pk, line.Waiting, len(waiting))
	}
	if len(waiting) > 0 && free > 0 && (!waiting[0].all || free == len(line.Holders)) {
		s.complain("%s has jobs in line beside free slots: %q", pk, line.Holders)
	}
}

// checkNames checks that whatever names a job names one that exists.
func (s *stored) checkNames(messages []string) {
	ids := map[string]bool{}
	for _, j := range s.jobs {
		ids[string(j.ID)] = true
	}
	for _, it := range s.intents {
		for _, ref := range []string{text(it, "ref"), text(it, "job_id")} {
			if strings.HasPrefix(ref, "job_") && !ids[ref] {
				s.complain("%s names %s, which does not exist", text(it, "sk"), ref)
			}
		}
	}
	for _, body := range messages {
		var h job.Hint
		if err := json.Unmarshal([]byte(body), &h); err != nil || !ids[string(h.JobID)] {
			s.complain("a message names no job: %.200s", body)
		}
	}
}

func text(it item, name string) string {
	v, _ := it[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

func number(it item, name string) int64 {
	var n int64
	if v, ok := it[name].(*types.AttributeValueMemberN); ok {
		fmt.Sscan(v.Value, &n)
	}
	return n
}

func binary(it item, name string) []byte {
	v, _ := it[name].(*types.AttributeValueMemberB)
	if v == nil {
		return nil
	}
	return v.Value
}
