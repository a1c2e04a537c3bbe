package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"golang.org/x/sync/errgroup"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/quarantine"
)

var _ quarantine.Store = (*Store)(nil)

// RowsOwner tells whose the rows of a job are, and whether it is over.
func (s *Store) RowsOwner(ctx context.Context, tenant string, jobID id.Job) (quarantine.Owner, error) {
	j, err := s.Job(ctx, tenant, jobID)
	if err != nil {
		return quarantine.Owner{}, err
	}
	if j.Kind != job.Import {
		return quarantine.Owner{}, fault.New(fault.JobNotFound, "there is no such import job")
	}
	o := quarantine.Owner{Status: string(j.Status), Over: j.Status.Terminal(), Rows: jobID}
	if j.RowsOf != "" {
		o.Rows = j.RowsOf
	}
	return o, nil
}

// rowsAtOnce is how many rows are looked for at the same time.
const rowsAtOnce = 32

// FindRows reads quarantined rows by number. The chunk of each is found by halving, since chunks are in row
// order; what was read of the chunks serves all of them.
func (s *Store) FindRows(ctx context.Context, tenant string, jobID id.Job, rowNumbers []int64) ([]quarantine.Row, error) {
	j, err := s.Job(ctx, tenant, jobID)
	if err != nil {
		return nil, err
	}
	starts := chunkStarts{store: s, tenant: tenant, job: jobID, count: j.Plan.ChunksPlanned, known: map[int]int64{}}
	rows := make([]quarantine.Row, len(rowNumbers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(rowsAtOnce)
	for i, n := range rowNumbers {
		chunk, err := starts.chunkOf(ctx, n)
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		group.Go(func() (err error) {
			rows[i], err = s.ReadRow(ctx, tenant, jobID, chunk, n)
			return err
		})
	}
	return rows, group.Wait()
}

// chunkStarts are the first row numbers of a job's chunks, as far as they were read.
type chunkStarts struct {
	store  *Store
	tenant string
	job    id.Job
	count  int
	known  map[int]int64
}

// chunkOf gives the last chunk that does not start behind a row; -1 when all do.
func (c *chunkStarts) chunkOf(ctx context.Context, rowNumber int64) (int, error) {
	var failed error
	behind := sort.Search(c.count, func(i int) bool {
		if _, read := c.known[i]; !read && failed == nil {
			chunk, err := c.store.Chunk(ctx, c.tenant, c.job, i)
			c.known[i], failed = chunk.Start.Row, err
		}
		return c.known[i] > rowNumber
	})
	return behind - 1, failed
}

// ReadRow reads one row of a known chunk.
func (s *Store) ReadRow(ctx context.Context, tenant string, jobID id.Job, chunk int, rowNumber int64) (quarantine.Row, error) {
	it, err := s.get(ctx, "read row", rowsKey(tenant, jobID, max(chunk, 0), rowNumber))
	if err != nil {
		return quarantine.Row{}, err
	}
	if it == nil {
		return quarantine.Row{}, fault.New(fault.RowNotFound, "row %d is not in the quarantine of this job", rowNumber).With("row_number", rowNumber)
	}
	return rowFrom(it), nil
}

// ChangeRow writes a row over the state it was read in. That state is kept beside it with who changed it, so
// that the first payload and every change stay on record.
func (s *Store) ChangeRow(ctx context.Context, tenant, by string, jobID id.Job, was, now quarantine.Row, at time.Time) error {
	tx := transaction{op: "change row"}
	tx.put(s.control, rowItem(tenant, jobID, now), unchangedRow(was), quarantine.ErrMoved)
	past := rowItem(tenant, jobID, was)
	k := rowHistoryKey(tenant, jobID, was)
	past[attrPK], past[attrSK] = str(k.pk), str(k.sk)
	past["by"], past["changed_at"] = str(by), num(millis(at))
	tx.put(s.control, past, notExists(), quarantine.ErrMoved)
	return tx.run(ctx, s)
}

func unchangedRow(was quarantine.Row) expression.ConditionBuilder {
	return expression.Name(rowRev).Equal(expression.Value(was.Rev))
}

// rowHistoryKey is where a former state of a row is kept, apart from the rows so that no list reads it.
func rowHistoryKey(tenant string, jobID id.Job, r quarantine.Row) key {
	return key{"rowlog#" + tenant + "#" + string(jobID), fmt.Sprintf("%012d#%06d", r.RowNumber, r.Rev)}
}

// LockRow names the retry that has a row in hand. Nothing that was on record is lost by it, so no former
// state is kept.
func (s *Store) LockRow(ctx context.Context, tenant string, jobID id.Job, was quarantine.Row, retry id.Job) error {
	return s.update(ctx, "lock row", rowsKey(tenant, jobID, was.Chunk, was.RowNumber),
		setAll(fields{rowRetry: string(retry), rowRev: was.Rev + 1}), unchangedRow(was), quarantine.ErrMoved)
}

// ResolveRow marks a row that its retry has applied.
func (s *Store) ResolveRow(ctx context.Context, tenant string, jobID id.Job, chunk int, rowNumber int64, retry id.Job) error {
	mine := expression.Name(rowRetry).Equal(expression.Value(string(retry)))
	open := expression.Name(rowState).Equal(expression.Value(string(quarantine.Quarantined)))
	notFailed := expression.AttributeNotExists(expression.Name(rowAttempt)).Or(expression.Name(rowAttempt).NotEqual(expression.Value(string(retry))))
	change := expression.Set(expression.Name(rowState), expression.Value(string(quarantine.Resolved))).
		Set(expression.Name(rowResolved), expression.Value(string(retry))).Add(expression.Name(rowRev), expression.Value(1))
	return s.update(ctx, "resolve row", rowsKey(tenant, jobID, chunk, rowNumber), change, mine.And(open, notFailed), quarantine.ErrMoved)
}

// RememberRows writes the intent of a request about rows, which is done by then: doing it again changes
// nothing, so the two need not be one write. An intent that is there already is this one.
func (s *Store) RememberRows(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job, now time.Time) error {
	if in.Key == "" {
		return nil
	}
	tx := transaction{op: "remember request"}
	tx.add(s.idemPut(caller, in, idempotency.Changed, string(jobID), now), errIntentThere, nil)
	if err := tx.run(ctx, s); err != errIntentThere {
		return err
	}
	rec, err := s.FindIntent(ctx, caller, in, now)
	if err != nil || rec == nil {
		return err
	}
	return rec.Match(in)
}

var errIntentThere = errors.New("the intent is there")
