package dynamostore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/sweep"
)

var _ job.Store = (*Store)(nil)

// jobItem encodes a whole job, index attributes included.
func jobItem(j job.Job) (item, error) {
	k := jobKey(j.Tenant, j.ID)
	it, err := marshal(k, j)
	if err != nil {
		return nil, err
	}
	it[attrDueShard], it[attrDueAt] = str(dueShard(k.pk)), num(millis(j.DueAt))
	it[attrJobsOf], it[attrJobsAt] = str(j.Tenant), str(jobsAt(j.CreatedAt, j.ID))
	return it, nil
}

func jobOf(it item) (job.Job, error) {
	var j job.Job
	if err := unmarshal(it, &j); err != nil {
		return job.Job{}, err
	}
	j.DueAt = fromMillis(intOf(it, attrDueAt))
	return j, nil
}

// Job reads one job, strongly consistent.
func (s *Store) Job(ctx context.Context, tenant string, jobID id.Job) (job.Job, error) {
	it, err := s.get(ctx, "read job", jobKey(tenant, jobID))
	if err != nil {
		return job.Job{}, err
	}
	if it == nil {
		return job.Job{}, fault.New(fault.JobNotFound, "there is no such job")
	}
	return jobOf(it)
}

// Deduplicated gives the job that a draft's deduplication key names, or "".
func (s *Store) Deduplicated(ctx context.Context, draft job.Job) (id.Job, error) {
	it, err := s.get(ctx, "read deduplication key", jobDedupeKey(draft))
	if err != nil || textOf(it, "dedupe_key") != draft.Spec.DeduplicationKey {
		return "", err
	}
	return id.Job(textOf(it, "job_id")), nil
}

func jobDedupeKey(j job.Job) key {
	return dedupeKey(j.Tenant, string(j.Kind), j.Spec.Dataset, j.Spec.DeduplicationKey)
}

// CreateJob writes a job with all that must not exist without it.
func (s *Store) CreateJob(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job, stale id.Job) error {
	it, err := jobItem(j)
	if err != nil {
		return err
	}
	tx := transaction{op: "submit job"}
	tx.put(s.control, it, notExists(), job.ErrMoved)
	tx.intent(s, caller, in, idempotency.Created, j)
	tx.dedupe(s, j, stale)
	tx.countJob(s, caller, j)
	return tx.run(ctx, s)
}

// dedupe makes a job the one that its deduplication key names.
func (t *transaction) dedupe(s *Store, j job.Job, stale id.Job) {
	if j.Spec.DeduplicationKey != "" {
		t.put(s.control, dedupeItem(j), namesJob(stale), job.ErrDedupeTaken)
	}
}

// countJob counts a new job of a client within its limits.
func (t *transaction) countJob(s *Store, caller access.Caller, j job.Job) {
	counter, limit, what := "active", caller.Limits.ActiveJobs, "active jobs"
	if j.Status == job.Uploading {
		counter, limit, what = "uploading", caller.Limits.UploadingJobs, "jobs waiting for their upload"
	}
	t.update(s.control, clientKey(j.Tenant, j.Client, skActive), expression.Add(expression.Name(counter), expression.Value(1)), below(counter, limit), tooMany(what, limit))
}

func dedupeItem(j job.Job) item {
	it := jobDedupeKey(j).item()
	it["job_id"], it["dedupe_key"] = str(string(j.ID)), str(j.Spec.DeduplicationKey)
	return it
}

// namesJob is the condition that a deduplication record still names the job that was read.
func namesJob(stale id.Job) expression.ConditionBuilder {
	if stale == "" {
		return notExists()
	}
	return expression.Name("job_id").Equal(expression.Value(string(stale)))
}

// RememberHit writes an intent that found an earlier job, while the record still names it.
func (s *Store) RememberHit(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job) error {
	tx := transaction{op: "remember request"}
	tx.check(s.control, jobDedupeKey(j), namesJob(j.ID), job.ErrDedupeTaken)
	tx.intent(s, caller, in, idempotency.Deduplicated, j)
	return tx.run(ctx, s)
}

// RememberSame writes an intent alone: the job is already as it asks it to be.
func (s *Store) RememberSame(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job) error {
	tx := transaction{op: "remember request"}
	tx.intent(s, caller, in, idempotency.Changed, j)
	return tx.run(ctx, s)
}

// RenewWindow moves the end of a job's upload window.
func (s *Store) RenewWindow(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job) error {
	tx := transaction{op: "renew upload window"}
	tx.update(s.control, jobKey(j.Tenant, j.ID),
		setAll(fields{"Input.WindowEndsAt": j.Input.WindowEndsAt, attrDueAt: millis(j.DueAt)}),
		inStatus(job.Uploading), job.ErrMoved)
	tx.intent(s, caller, in, idempotency.Changed, j)
	return tx.run(ctx, s)
}

// RequestCancel marks a running job; its workers stop by themselves.
func (s *Store) RequestCancel(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job) error {
	tx := transaction{op: "request cancel"}
	tx.update(s.control, jobKey(j.Tenant, j.ID),
		setAll(fields{"CancelRequestedAt": j.CancelRequestedAt, "CanceledBy": j.CanceledBy, attrDueAt: millis(j.DueAt)}),
		inStatus(job.Running).And(noCancel(), uncommitted()), job.ErrMoved)
	tx.intent(s, caller, in, idempotency.Changed, j)
	return tx.run(ctx, s)
}

// Enqueue moves a job from uploading to queued, with a slot or a place in the line of its dataset.
func (s *Store) Enqueue(ctx context.Context, caller access.Caller, in idempotency.Intent, j job.Job, limit int) (job.Job, error) {
	for range maxSlotRaces {
		line, err := s.readLine(ctx, j.Tenant, j.Spec.Dataset)
		if err != nil {
			return j, err
		}
		queued := line.admit(j)
		tx := transaction{op: "queue job"}
		tx.update(s.control, jobKey(j.Tenant, j.ID), setAll(fields{
			"Status": job.Queued, "UploadedAt": queued.UploadedAt, "Input": queued.Input, "Slot": queued.Slot, "Epoch": queued.Epoch,
			"Beside": queued.Beside, "Progress": queued.Progress, attrDueAt: millis(queued.DueAt),
		}), inStatus(job.Uploading), job.ErrMoved)
		active := expression.Name("uploading").GreaterThanEqual(expression.Value(1))
		if limit > 0 {
			active = active.And(below("active", limit))
		}
		tx.update(s.control, clientKey(j.Tenant, j.Client, skActive),
			expression.Add(expression.Name("uploading"), expression.Value(-1)).Add(expression.Name("active"), expression.Value(1)),
			active, tooMany("active jobs", limit))
		line.write(&tx, s)
		tx.intent(s, caller, in, idempotency.Changed, j)
		if err := tx.run(ctx, s); err != errLineMoved {
			queued.Status = job.Queued
			return queued, err
		}
	}
	return j, unavailable("queue job", errLineMoved)
}

// End writes a terminal state. It is the only place that does (PROTOCOL P6).
func (s *Store) End(ctx context.Context, e job.Ending) ([]job.Hint, error) {
	for range maxSlotRaces {
		tx := transaction{op: "end job"}
		tx.updateRemoving(s.control, jobKey(e.Job.Tenant, e.Job.ID), terminalFields(e), []string{attrDueShard, attrDueAt}, endable(e), job.ErrMoved)
		counter := "active"
		if e.Job.Status == job.Uploading {
			counter = "uploading"
		}
		tx.update(s.control, clientKey(e.Job.Tenant, e.Job.Client, skActive), expression.Add(expression.Name(counter), expression.Value(-1)),
			expression.Name(counter).GreaterThanEqual(expression.Value(1)), fmt.Errorf("end job: counter %s of client %s is already 0", counter, e.Job.Client))
		var hints []job.Hint
		if e.Job.Status != job.Uploading {
			line, err := s.readLine(ctx, e.Job.Tenant, e.Job.Spec.Dataset)
			if err != nil {
				return nil, err
			}
			if hints, err = line.leave(ctx, s, &tx, e); err != nil {
				return nil, err
			}
		}
		tx.intent(s, e.Caller, e.Intent, idempotency.Changed, e.Job)
		if err := tx.run(ctx, s); err != errLineMoved {
			return hints, err
		}
	}
	return nil, unavailable("end job", errLineMoved)
}

func terminalFields(e job.Ending) fields {
	f := fields{
		"Status": e.Status, "FinishedAt": e.At, "Result": e.Result, "Warnings": e.Warnings, "StalledCount": 0, "PlanStalled": nil,
		attrTTL: e.At.Add(keepJob(e.Job)).Unix(),
	}
	if e.Error != nil {
		f["Error"] = *e.Error
	}
	if e.Status == job.Canceled && e.Job.CanceledBy == "" {
		f["CanceledBy"] = e.CanceledBy
		f["CancelRequestedAt"] = e.At
	}
	return f
}

// keepJob is how long a job's item outlives its end: longer than anything it names.
func keepJob(j job.Job) time.Duration {
	days := max(j.Spec.Retention.ResultsDays, j.Spec.Retention.QuarantineDays) + 30
	return time.Duration(days) * 24 * time.Hour
}

// endable is the condition of a terminal write: the status that was read, every chunk settled, and, but
// for a canceled job, that no cancel came in between.
func endable(e job.Ending) expression.ConditionBuilder {
	c := inStatus(e.Job.Status)
	if e.Job.Status != job.Running {
		return c
	}
	c = c.And(allDone(e.Job), expression.Name("CommittedAt").Equal(expression.Value(e.Job.CommittedAt)))
	if e.Status == job.Canceled {
		return c
	}
	return c.And(noCancel())
}

// allDone is the condition that the plan is closed at the number of chunks that was seen, and all are done.
func allDone(j job.Job) expression.ConditionBuilder {
	n := j.Plan.ChunksPlanned
	return expression.Name("Plan.ChunksPlanned").Equal(expression.Value(n)).And(expression.Name("Plan.ChunksDone").Equal(expression.Value(n)),
		expression.Name("Plan.Closed").Equal(expression.Value(true)))
}

func inStatus(s job.Status) expression.ConditionBuilder {
	return expression.Name("Status").Equal(expression.Value(string(s)))
}

// noCancel is the condition that nobody asked to cancel: the zero time is stored as such.
func noCancel() expression.ConditionBuilder {
	return expression.Name("CancelRequestedAt").Equal(expression.Value(time.Time{}))
}

func notExists() expression.ConditionBuilder {
	return expression.AttributeNotExists(expression.Name(attrPK))
}

func below(counter string, limit int) expression.ConditionBuilder {
	return expression.AttributeNotExists(expression.Name(counter)).Or(expression.Name(counter).LessThan(expression.Value(limit)))
}

func tooMany(what string, limit int) error {
	return fault.New(fault.TooManyActiveJobs, "this client has too many %s; wait for some to end", what).With("limit", limit).
		With("retry_after_seconds", 30).After(30 * time.Second)
}

// DueShards is how many shards the due index has.
func (s *Store) DueShards() int { return dueShards }

// Due lists jobs of one due shard whose time has come, oldest first.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, limit int) ([]sweep.Due, error) {
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.control, IndexName: aws.String(indexDue), Limit: aws.Int32(int32(limit)),
		KeyConditionExpression: aws.String("due_shard = :s AND due_at <= :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":s": str(fmt.Sprintf("due#%d", shard)), ":now": num(millis(now))},
	})
	if err != nil {
		return nil, unavailable("read due index", err)
	}
	var due []sweep.Due
	for _, it := range out.Items {
		if tenant, jobID, ok := parseJobPK(textOf(it, attrPK)); ok {
			due = append(due, sweep.Due{Tenant: tenant, JobID: jobID})
		}
	}
	return due, nil
}
