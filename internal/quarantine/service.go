package quarantine

import (
	"context"
	"errors"
	"io"
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
	Status string
	Over   bool
	// Rows is the job the rows belong to: the job itself, or for a retry of rows the job of their file.
	Rows id.Job
}

// Store keeps rows. All reads are strongly consistent.
type Store interface {
	// RowsOwner fails with JOB_NOT_FOUND.
	RowsOwner(ctx context.Context, tenant string, jobID id.Job) (Owner, error)
	ListRows(ctx context.Context, tenant string, jobID id.Job, f Filter, cursor string, limit, maxBytes int) (Page, error)
	// FindRows gives one row per number, in the order of the numbers, which ascend. Fails with ROW_NOT_FOUND.
	FindRows(ctx context.Context, tenant string, jobID id.Job, rowNumbers []int64) ([]Row, error)
	// ReadRow reads a row again whose chunk is known. Fails with ROW_NOT_FOUND.
	ReadRow(ctx context.Context, tenant string, jobID id.Job, chunk int, rowNumber int64) (Row, error)
	// ChangeRow writes a row over the state it was read in, and keeps that state with who changed what. Fails
	// with ErrMoved.
	ChangeRow(ctx context.Context, tenant, by string, jobID id.Job, was, now Row, at time.Time) error
	// LockRow names the retry that has the row in hand, over the state it was read in. Fails with ErrMoved.
	LockRow(ctx context.Context, tenant string, jobID id.Job, was Row, retry id.Job) error
	// ResolveRow marks a row that a retry has in hand and has not failed. Fails with ErrMoved.
	ResolveRow(ctx context.Context, tenant string, jobID id.Job, chunk int, rowNumber int64, retry id.Job) error
	FindIntent(ctx context.Context, caller access.Caller, in idempotency.Intent, now time.Time) (*idempotency.Record, error)
	RememberRows(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job, now time.Time) error
}

// Blob holds payloads that do not fit the store.
type Blob interface {
	// Open reads bytes [from, to) of the newest version when versionID is empty; to < 0 means to the end.
	Open(ctx context.Context, key, versionID string, from, to int64) (io.ReadCloser, error)
}

// Service is what people and retries can do with quarantined rows.
type Service struct {
	store Store
	blob  Blob
	now   func() time.Time
}

// New makes a Service.
func New(store Store, blob Blob, now func() time.Time) *Service {
	return &Service{store: store, blob: blob, now: now}
}

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
	page, err := s.page(ctx, caller.Tenant, owner.Rows, f, cursor, limit, maxBytes)
	if err != nil {
		return Page{}, err
	}
	if err := s.asShown(ctx, caller.Tenant, &page, shown); err != nil {
		return Page{}, err
	}
	return page, s.loadLarge(ctx, page.Rows, maxBytes)
}

// page reads a page of rows, or the page that holds the one row asked for.
func (s *Service) page(ctx context.Context, tenant string, of id.Job, f Filter, cursor string, limit, maxBytes int) (Page, error) {
	if f.Row == 0 {
		return s.store.ListRows(ctx, tenant, of, f, cursor, limit, maxBytes)
	}
	rows, err := s.store.FindRows(ctx, tenant, of, []int64{f.Row})
	if fault.Is(err, fault.RowNotFound) {
		return Page{}, nil
	}
	if err != nil || !f.passes(rows[0]) {
		return Page{}, err
	}
	return Page{Rows: rows}, nil
}

// asShown marks the rows that a job has in hand, and leaves out those that are not in the state asked for.
func (s *Service) asShown(ctx context.Context, tenant string, page *Page, want State) error {
	retries, rows := s.retries(tenant), page.Rows[:0]
	for _, r := range page.Rows {
		var err error
		if r.State, err = retries.state(ctx, r); err != nil {
			return err
		}
		if want == "" || r.State == want {
			rows = append(rows, r)
		}
	}
	page.Rows = rows
	return nil
}

// Change is what a person corrects in a row; nil fields stay.
type Change struct {
	Raw   *[]byte
	Class *Class
}

// Patch corrects a row that is quarantined and in nobody's hand. matches tells whether an ETag is the one
// of the state that the person saw.
func (s *Service) Patch(ctx context.Context, caller access.Caller, jobID id.Job, rowNumber int64, matches func(etag string) bool, c Change) (Row, error) {
	of, rows, err := s.workable(ctx, caller.Tenant, jobID, []int64{rowNumber}, nil)
	if err != nil {
		return Row{}, err
	}
	was := rows[0]
	if !matches(was.ETag()) {
		return Row{}, changed(rowNumber)
	}
	now := was
	if c.Raw != nil {
		now.Raw, now.RawKey = *c.Raw, ""
	}
	if c.Class != nil {
		now.Class = *c.Class
	}
	now.Rev++
	err = s.store.ChangeRow(ctx, caller.Tenant, caller.Client, of, was, now, s.now())
	if errors.Is(err, ErrMoved) {
		return Row{}, changed(rowNumber)
	}
	return now, err
}

func changed(rowNumber int64) error {
	return fault.New(fault.PreconditionFailed, "row %d was changed since you read it; read it again", rowNumber).With("row_number", rowNumber)
}

// Discard gives rows up, for a reason that stays on record. All are checked before the first is changed;
// doing it again changes nothing. rowNumbers ascend.
func (s *Service) Discard(ctx context.Context, caller access.Caller, in idempotency.Intent, jobID id.Job, rowNumbers []int64, reason string) (replayed bool, err error) {
	if replayed, err = s.replayed(ctx, caller, in); err != nil {
		return false, err
	}
	of, rows, err := s.workable(ctx, caller.Tenant, jobID, rowNumbers, func(r Row) bool { return r.State == Discarded })
	if err != nil {
		return false, err
	}
	err = each(ctx, rows, func(ctx context.Context, was Row) error {
		if was.State == Discarded {
			return nil
		}
		return s.discard(ctx, caller, of, was, reason)
	})
	if err != nil {
		return false, err
	}
	return replayed, s.store.RememberRows(ctx, caller, in, jobID, s.now())
}

func (s *Service) discard(ctx context.Context, caller access.Caller, of id.Job, was Row, reason string) error {
	now := was
	now.State, now.Reason, now.Rev = Discarded, reason, was.Rev+1
	err := s.store.ChangeRow(ctx, caller.Tenant, caller.Client, of, was, now, s.now())
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

// Workable fails unless every row is quarantined and in nobody's hand. rowNumbers ascend.
func (s *Service) Workable(ctx context.Context, tenant string, jobID id.Job, rowNumbers []int64) error {
	_, _, err := s.workable(ctx, tenant, jobID, rowNumbers, nil)
	return err
}

// workable finds rows that are quarantined and in nobody's hand, or settled as is fine for the caller. of is
// the job that they belong to.
func (s *Service) workable(ctx context.Context, tenant string, jobID id.Job, rowNumbers []int64, fine func(Row) bool) (of id.Job, rows []Row, err error) {
	owner, err := s.store.RowsOwner(ctx, tenant, jobID)
	if err != nil {
		return "", nil, err
	}
	if !owner.Over {
		return "", nil, fault.New(fault.InvalidJobState, "rows can be worked on when the job has ended").With("status", owner.Status)
	}
	if rows, err = s.store.FindRows(ctx, tenant, owner.Rows, rowNumbers); err != nil {
		return "", nil, err
	}
	retries := s.retries(tenant)
	for _, r := range rows {
		if owner.Rows != jobID && r.RetryJob != jobID {
			return "", nil, notFound(r.RowNumber)
		}
		if fine != nil && fine(r) {
			continue
		}
		state, err := retries.state(ctx, r)
		if err != nil {
			return "", nil, err
		}
		if state != Quarantined {
			return "", nil, fault.New(fault.InvalidRowState, "row %d is %s", r.RowNumber, state).With("state", string(state)).With("row_number", r.RowNumber)
		}
	}
	return owner.Rows, rows, nil
}

func notFound(rowNumber int64) error {
	return fault.New(fault.RowNotFound, "row %d is not in the quarantine of this job", rowNumber).With("row_number", rowNumber)
}
