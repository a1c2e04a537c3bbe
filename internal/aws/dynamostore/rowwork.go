package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/quarantine"
)

var _ quarantine.Store = (*Store)(nil)

// RowsOwner tells whose the rows of a job are, and whether it is over.
func (s *Store) RowsOwner(ctx context.Context, tenant string, jobID id.Job) (quarantine.Owner, error) {
	j, err := s.Job(ctx, tenant, jobID)
	if err != nil {
		return quarantine.Owner{}, err
	}
	o := quarantine.Owner{Over: j.Status.Terminal(), Chunks: j.Plan.ChunksPlanned, Rows: jobID}
	if j.RowsOf != "" {
		o.Rows = j.RowsOf
	}
	return o, nil
}

// FindRow reads one quarantined row. Its chunk is found by halving: chunks are in row order.
func (s *Store) FindRow(ctx context.Context, tenant string, jobID id.Job, chunks int, rowNumber int64) (quarantine.Row, error) {
	missing := fault.New(fault.RowNotFound, "row %d is not in quarantine", rowNumber)
	var failed error
	// The first chunk that starts behind the row; the row is in the one before.
	behind := sort.Search(chunks, func(i int) bool {
		c, err := s.Chunk(ctx, tenant, jobID, i)
		failed = errors.Join(failed, err)
		return c.Start.Row > rowNumber
	})
	if failed != nil {
		return quarantine.Row{}, failed
	}
	if behind == 0 {
		return quarantine.Row{}, missing
	}
	it, err := s.get(ctx, "read row", rowsKey(tenant, jobID, behind-1, rowNumber))
	if err != nil {
		return quarantine.Row{}, err
	}
	if it == nil {
		return quarantine.Row{}, missing
	}
	return rowFrom(it), nil
}

// ChangeRow writes a row over the state it was read in. That state is kept beside it with who changed it, so
// that the first payload and every change stay on record.
func (s *Store) ChangeRow(ctx context.Context, caller access.Caller, jobID id.Job, was, now quarantine.Row, at time.Time) error {
	tx := transaction{op: "change row"}
	same := expression.Name(rowRev).Equal(expression.Value(was.Rev))
	tx.put(s.control, rowItem(caller.Tenant, jobID, now), same, quarantine.ErrMoved)
	past := rowItem(caller.Tenant, jobID, was)
	k := rowHistoryKey(caller.Tenant, jobID, was)
	past[attrPK], past[attrSK] = str(k.pk), str(k.sk)
	past["by"], past["changed_at"] = str(caller.Client), num(millis(at))
	tx.put(s.control, past, notExists(), quarantine.ErrMoved)
	return tx.run(ctx, s)
}

// rowHistoryKey is where a former state of a row is kept, apart from the rows so that no list reads it.
func rowHistoryKey(tenant string, jobID id.Job, r quarantine.Row) key {
	return key{"rowlog#" + tenant + "#" + string(jobID), fmt.Sprintf("%012d#%06d", r.RowNumber, r.Rev)}
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
