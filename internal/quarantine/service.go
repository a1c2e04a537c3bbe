package quarantine

import (
	"context"
	"errors"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
)

// ErrMoved is what a store answers when a row is no longer as it was read.
var ErrMoved = errors.New("the row was changed by another request")

// Owner is what must be known of the job whose rows are asked for.
type Owner struct {
	Over   bool
	Chunks int
	// Rows is the job the rows belong to: the job itself, or for a retry of rows the job of their file.
	Rows id.Job
}

// Store keeps rows. All reads are strongly consistent.
type Store interface {
	// RowsOwner fails with JOB_NOT_FOUND.
	RowsOwner(ctx context.Context, tenant string, jobID id.Job) (Owner, error)
	ListRows(ctx context.Context, tenant string, jobID id.Job, f Filter, cursor string, limit, maxBytes int) (Page, error)
	// FindRow fails with ROW_NOT_FOUND. chunks is how many the job has.
	FindRow(ctx context.Context, tenant string, jobID id.Job, chunks int, rowNumber int64) (Row, error)
	// ChangeRow writes a row over the state it was read in, and keeps that state with who changed what. Fails
	// with ErrMoved.
	ChangeRow(ctx context.Context, caller access.Caller, jobID id.Job, was, now Row, at time.Time) error
	FindIntent(ctx context.Context, caller access.Caller, in idempotency.Intent, now time.Time) (*idempotency.Record, error)
	RememberRows(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job, now time.Time) error
}

// Service is what people can do with quarantined rows.
type Service struct {
	store Store
	now   func() time.Time
}

// New makes a Service.
func New(store Store, now func() time.Time) *Service { return &Service{store: store, now: now} }

// List gives a page of the rows of a job; those of a retry are the rows that it took.
func (s *Service) List(ctx context.Context, caller access.Caller, jobID id.Job, f Filter, cursor string, limit, maxBytes int) (Page, error) {
	owner, err := s.store.RowsOwner(ctx, caller.Tenant, jobID)
	if err != nil {
		return Page{}, err
	}
	if owner.Rows != jobID {
		f.Retry = jobID
	}
	shown := f.State
	if f.State == Retrying {
		f.State = Quarantined
	}
	page, err := s.store.ListRows(ctx, caller.Tenant, owner.Rows, f, cursor, limit, maxBytes)
	if err != nil {
		return Page{}, err
	}
	return s.asShown(ctx, caller.Tenant, page, shown)
}

// asShown marks the rows that a job has in hand, and leaves out those that are not in the state asked for.
func (s *Service) asShown(ctx context.Context, tenant string, page Page, want State) (Page, error) {
	over := map[id.Job]bool{"": true}
	rows := page.Rows[:0]
	for _, r := range page.Rows {
		if _, known := over[r.RetryJob]; !known {
			var err error
			if over[r.RetryJob], err = s.over(ctx, tenant, r.RetryJob); err != nil {
				return Page{}, err
			}
		}
		if r.State == Quarantined && !over[r.RetryJob] {
			r.State = Retrying
		}
		if want == "" || r.State == want {
			rows = append(rows, r)
		}
	}
	page.Rows = rows
	return page, nil
}

// over tells that a retry job has ended or is past its retention.
func (s *Service) over(ctx context.Context, tenant string, jobID id.Job) (bool, error) {
	if jobID == "" {
		return true, nil
	}
	owner, err := s.store.RowsOwner(ctx, tenant, jobID)
	if fault.Is(err, fault.JobNotFound) {
		return true, nil
	}
	return owner.Over, err
}

// Change is what a person corrects in a row; nil fields stay.
type Change struct {
	Raw   *[]byte
	Class *Class
}

// Patch corrects a row that is quarantined and in nobody's hand. etag is the state the person saw.
func (s *Service) Patch(ctx context.Context, caller access.Caller, jobID id.Job, rowNumber int64, etag string, c Change) (Row, error) {
	owner, row, err := s.find(ctx, caller.Tenant, jobID, rowNumber)
	if err != nil {
		return Row{}, err
	}
	if row.ETag() != etag {
		return Row{}, changed(row)
	}
	if err := s.workable(ctx, caller.Tenant, row); err != nil {
		return Row{}, err
	}
	was := row
	if c.Raw != nil {
		row.Raw, row.RawKey = *c.Raw, ""
	}
	if c.Class != nil {
		row.Class = *c.Class
	}
	row.Rev++
	err = s.store.ChangeRow(ctx, caller, owner.Rows, was, row, s.now())
	if errors.Is(err, ErrMoved) {
		return Row{}, changed(row)
	}
	return row, err
}

func changed(row Row) error {
	return fault.New(fault.PreconditionFailed, "the row was changed since you read it; read it again").With("row_number", row.RowNumber)
}

// Discard gives rows up, for a reason that stays on record. All are checked before the first is changed;
// doing it again changes nothing.
func (s *Service) Discard(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job, rowNumbers []int64, reason string) (replayed bool, err error) {
	if replayed, err = s.replayed(ctx, caller, in); err != nil {
		return false, err
	}
	var owner Owner
	var rows []Row
	for _, n := range rowNumbers {
		var row Row
		if owner, row, err = s.find(ctx, caller.Tenant, jobID, n); err != nil {
			return false, err
		}
		if row.State == Discarded {
			continue
		}
		if err := s.workable(ctx, caller.Tenant, row); err != nil {
			return false, err
		}
		rows = append(rows, row)
	}
	for _, was := range rows {
		if err := s.discard(ctx, caller, owner.Rows, was, reason); err != nil {
			return false, err
		}
	}
	return replayed, s.store.RememberRows(ctx, caller, in, jobID, s.now())
}

func (s *Service) discard(ctx context.Context, caller access.Caller, jobID id.Job, was Row, reason string) error {
	now := was
	now.State, now.Reason, now.Rev = Discarded, reason, was.Rev+1
	err := s.store.ChangeRow(ctx, caller, jobID, was, now, s.now())
	if errors.Is(err, ErrMoved) {
		return fault.New(fault.InvalidRowState, "row %d was changed by another request; look at it and try again", was.RowNumber).
			With("row_number", was.RowNumber).With("state", string(was.State))
	}
	return err
}

func (s *Service) replayed(ctx context.Context, caller access.Caller, in idempotency.Intent) (bool, error) {
	rec, err := s.store.FindIntent(ctx, caller, in, s.now())
	if err != nil || rec == nil {
		return false, err
	}
	return true, rec.Match(in)
}

func (s *Service) find(ctx context.Context, tenant string, jobID id.Job, rowNumber int64) (Owner, Row, error) {
	owner, err := s.store.RowsOwner(ctx, tenant, jobID)
	if err != nil {
		return owner, Row{}, err
	}
	if !owner.Over {
		return owner, Row{}, fault.New(fault.InvalidJobState, "rows can be worked on when the job has ended").With("status", "running")
	}
	chunks := owner.Chunks
	if owner.Rows != jobID {
		of, err := s.store.RowsOwner(ctx, tenant, owner.Rows)
		if err != nil {
			return owner, Row{}, err
		}
		chunks = of.Chunks
	}
	row, err := s.store.FindRow(ctx, tenant, owner.Rows, chunks, rowNumber)
	return owner, row, err
}

// workable refuses a row that is settled, or that a retry has in hand.
func (s *Service) workable(ctx context.Context, tenant string, row Row) error {
	state := row.State
	over, err := s.over(ctx, tenant, row.RetryJob)
	if err != nil {
		return err
	}
	if state == Quarantined && !over {
		state = Retrying
	}
	if state == Quarantined {
		return nil
	}
	return fault.New(fault.InvalidRowState, "row %d is %s", row.RowNumber, state).With("state", string(state)).With("row_number", row.RowNumber)
}
