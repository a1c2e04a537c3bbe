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
	rows     map[string]int64            // quarantined rows by the job's partition key
	actives  map[string]item             // by "tenant#client"
	slots    map[string]item             // by dataset partition key
	waiting  map[string]bool             // job ids in line
	intents  []item
	records  []item
	problems []string
}

// Run audits.
func Run(ctx context.Context, c Config) (Report, error) {
	s := &stored{jobs: map[string]job.Job{}, due: map[string]bool{}, chunks: map[string][]importer.Chunk{}, rows: map[string]int64{},
		actives: map[string]item{}, slots: map[string]item{}, waiting: map[string]bool{}}
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
	if err := each(c.RecordsTable, func(it item) error { s.records = append(s.records, it); return nil }); err != nil {
		return Report{}, err
	}
	for pk, j := range s.jobs {
		s.checkJob(pk, j)
	}
	s.checkCounters()
	s.checkSlots()
	s.checkNames(c.Messages)
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
	case kind == "rows":
		s.rows["job#"+rest[:strings.LastIndexByte(rest, '#')]]++
	case kind == "client" && sk == "active":
		s.actives[rest] = it
	case kind == "dataset" && sk == "slots":
		s.slots[pk] = it
	case kind == "dataset" && strings.HasPrefix(sk, "wait#"):
		s.waiting[sk[strings.LastIndexByte(sk, '#')+1:]] = true
	case kind == "idem":
		s.intents = append(s.intents, it)
	}
	return nil
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
	done := 0
	for i, c := range chunks {
		if c.Done {
			done++
		}
		if c.Index != i || i > 0 && c.Start != chunks[i-1].End {
			s.complain("%s: chunk %d does not follow on the one before", j.ID, i)
		}
	}
	if done != j.Plan.ChunksDone {
		s.complain("%s counts %d chunks done, %d are", j.ID, j.Plan.ChunksDone, done)
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
		if c.Again {
			s.complain("%s ended with chunk %d marked to run again", j.ID, c.Index)
		}
	}
	r := j.Result
	if a, b := fmt.Sprint(sum), fmt.Sprint(r.Counters); a != b {
		s.complain("%s: chunks say %s, result says %s", j.ID, a, b)
	}
	if r.RowsTotal != nil && *r.RowsTotal != rows || r.RowsPlanned != rows || r.Counters.Settled()+r.RowsUnprocessed != rows {
		s.complain("%s: %d rows, accounted for %d and %d unprocessed", j.ID, rows, r.Counters.Settled(), r.RowsUnprocessed)
	}
	if got := s.rows[pk]; got != sum.Rejected {
		s.complain("%s rejected %d rows, quarantine has %d", j.ID, sum.Rejected, got)
	}
	s.checkApplied(j, sum)
}

// checkApplied counts the records that carry an entry of the job. Entries that a later import of the same
// slot took over can only be fewer.
func (s *stored) checkApplied(j job.Job, sum job.Counters) {
	slot := fmt.Sprint(j.Slot)
	var own, later, created, updated, unchanged int64
	for _, it := range s.records {
		if !strings.HasPrefix(text(it, "pk"), j.Tenant+"#"+j.Spec.Dataset+"#") {
			continue
		}
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

// checkSlots checks that slots are held by jobs that are not over, each once, and that who waits is queued.
func (s *stored) checkSlots() {
	holds := map[string]string{}
	for pk, it := range s.slots {
		var line struct{ Holders []string }
		if err := attributevalue.UnmarshalMap(it, &line); err != nil {
			s.complain("slots of %s: %v", pk, err)
		}
		for slot, holder := range line.Holders {
			if holder != "" {
				holds[holder] = fmt.Sprint(slot)
			}
		}
	}
	for _, j := range s.jobs {
		slot, held := holds[string(j.ID)]
		moving := j.Status == job.Queued || j.Status == job.Running
		if held != (moving && j.Slot != job.NoSlot) || held && slot != fmt.Sprint(j.Slot) {
			s.complain("%s is %s with slot %d, the dataset says %q", j.ID, j.Status, j.Slot, slot)
		}
		if waits := s.waiting[string(j.ID)]; waits != (j.Status == job.Queued && j.Slot == job.NoSlot) {
			s.complain("%s is %s with slot %d, in line: %v", j.ID, j.Status, j.Slot, waits)
		}
	}
}

// checkNames checks that whatever names a job names one that exists.
func (s *stored) checkNames(messages []string) {
	ids := map[string]bool{}
	for _, j := range s.jobs {
		ids[string(j.ID)] = true
	}
	for _, it := range s.intents {
		if ref := text(it, "ref"); strings.HasPrefix(ref, "job_") && !ids[ref] {
			s.complain("an idempotency record names %s, which does not exist", ref)
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
