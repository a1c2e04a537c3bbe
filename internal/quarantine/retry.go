package quarantine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"pintu/internal/fault"
	"pintu/internal/id"
)

// Selection says which rows a retry takes. Its JSON is part of stored fingerprints.
type Selection struct {
	Numbers []int64    `json:"rows"` // ascending, each once; nil: all that the rest lets through
	Code    fault.Code `json:"code"`
	Class   Class      `json:"class"`
	Retry   id.Job     `json:"-"` // only rows that this earlier retry took
}

// takes tells whether a row is selected. A row that lost its key to another row of its file is taken when
// it is named only: with all rows it would replace the row that was applied.
func (s Selection) takes(r Row) bool {
	switch {
	case s.Retry != "" && r.RetryJob != s.Retry:
		return false
	case s.Numbers != nil:
		_, found := slices.BinarySearch(s.Numbers, r.RowNumber)
		return found
	case s.Class != "" && r.Class != s.Class:
		return false
	}
	return s.Code == r.Code || s.Code == "" && r.Code != fault.DuplicateKey
}

// MaxRetryRows bounds how many rows one retry takes; another one takes the rest. A list of so many is made
// within one invocation.
const MaxRetryRows = 500_000

// inFlight is how many calls of the store about rows are under way at once.
const inFlight = 48

// pageRows and pageBytes bound what is read of a job's rows at a time.
const (
	pageRows  = 1000
	pageBytes = 8 << 20
)

// maxRaces bounds how often a row is read again that others change at the same time.
const maxRaces = 20

// Take gives every selected row of a job to one of its retries, and calls f with each in row order, as it is
// in hand. Doing it again gives the same rows: nobody changes what a retry has in hand.
func (s *Service) Take(ctx context.Context, tenant string, of id.Job, sel Selection, retry id.Job, f func(Row) error) error {
	t := taking{s: s, tenant: tenant, of: of, sel: sel, retry: retry, retries: s.retries(tenant), f: f}
	if sel.Numbers != nil {
		rows, err := s.store.FindRows(ctx, tenant, of, sel.Numbers)
		if err != nil {
			return err
		}
		return t.page(ctx, rows)
	}
	return s.eachPage(ctx, tenant, of, Filter{State: Quarantined, Code: sel.Code, Class: sel.Class}, func(rows []Row) error {
		return t.page(ctx, rows)
	})
}

// errEnough ends a walk over rows early.
var errEnough = errors.New("enough rows")

func (s *Service) eachPage(ctx context.Context, tenant string, of id.Job, f Filter, do func([]Row) error) error {
	for cursor := ""; ; {
		page, err := s.store.ListRows(ctx, tenant, of, f, cursor, pageRows, pageBytes)
		if err != nil {
			return err
		}
		if err := do(page.Rows); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}

// taking is one walk over the rows of a job.
type taking struct {
	s       *Service
	tenant  string
	of      id.Job
	sel     Selection
	retry   id.Job
	retries *retries
	f       func(Row) error
	taken   int
}

// page takes the selected rows of one page, all at once, and passes them on in order.
func (t *taking) page(ctx context.Context, rows []Row) error {
	mine := make([]bool, len(rows))
	indexes := make([]int, len(rows))
	for i := range indexes {
		indexes[i] = i
	}
	err := each(ctx, indexes, func(ctx context.Context, i int) (err error) {
		rows[i], mine[i], err = t.row(ctx, rows[i])
		return err
	})
	if err != nil {
		return err
	}
	for i, r := range rows {
		if !mine[i] {
			continue
		}
		if t.taken == MaxRetryRows {
			return errEnough
		}
		t.taken++
		if err := t.f(r); err != nil {
			return err
		}
	}
	return nil
}

// row gives one row to the retry, unless it is settled, not selected, or in another retry's hand.
func (t *taking) row(ctx context.Context, r Row) (now Row, mine bool, err error) {
	for range maxRaces {
		if r.RetryJob == t.retry {
			return r, true, nil
		}
		state, err := t.retries.state(ctx, r)
		if err != nil || state != Quarantined || !t.sel.takes(r) {
			return r, false, err
		}
		err = t.s.store.LockRow(ctx, t.tenant, t.of, r, t.retry)
		if err == nil {
			r.RetryJob, r.Rev = t.retry, r.Rev+1
			return r, true, nil
		}
		if !errors.Is(err, ErrMoved) {
			return r, false, err
		}
		if r, err = t.s.store.ReadRow(ctx, t.tenant, t.of, r.Chunk, r.RowNumber); err != nil {
			return r, false, err
		}
	}
	return r, false, busy()
}

func busy() error {
	return fault.New(fault.DependencyUnavailable, "too many requests about this row at once; try again")
}

// Resolve marks a row that its retry has applied. Doing it again changes nothing.
func (s *Service) Resolve(ctx context.Context, tenant string, of id.Job, chunk int, rowNumber int64, retry id.Job) error {
	err := s.store.ResolveRow(ctx, tenant, of, chunk, rowNumber, retry)
	if !errors.Is(err, ErrMoved) {
		return err
	}
	r, rerr := s.store.ReadRow(ctx, tenant, of, chunk, rowNumber)
	if rerr != nil {
		return rerr
	}
	if r.ResolvedBy == string(retry) || r.RetryJob == retry && r.AttemptJob == retry {
		return nil // a repetition
	}
	return err
}

// Attempt is the outcome of a retry that failed.
type Attempt struct {
	Number         int // of the attempt, as listed when the row was taken
	Code           fault.Code
	Class          Class
	Field, Message string
	DatasetVersion int
}

// Fail adds an attempt to a row that its retry could not apply. Doing it again changes nothing. The second
// run of a retry's chunk may find that a row it had applied has to give way.
func (s *Service) Fail(ctx context.Context, tenant string, of id.Job, chunk int, rowNumber int64, retry id.Job, a Attempt) error {
	for range maxRaces {
		was, err := s.store.ReadRow(ctx, tenant, of, chunk, rowNumber)
		switch {
		case err != nil:
			return err
		case was.RetryJob != retry:
			return ErrMoved // the retry is over: this is a worker that was frozen
		case was.AttemptJob == retry && was.State != Resolved:
			return nil
		}
		now := was
		now.State, now.ResolvedBy, now.AttemptJob, now.Attempts = Quarantined, "", retry, a.Number
		now.Code, now.Class, now.Field, now.Message, now.DatasetVersion = a.Code, a.Class, a.Field, a.Message, a.DatasetVersion
		now.Rev++
		err = s.store.ChangeRow(ctx, tenant, string(retry), of, was, now, s.now())
		if !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return busy()
}

// Failed calls f with every row that a retry could not apply, in row order, until f says stop.
func (s *Service) Failed(ctx context.Context, tenant string, of id.Job, retry id.Job, f func(Row) (more bool, err error)) error {
	return s.eachPage(ctx, tenant, of, Filter{State: Quarantined, Retry: retry}, func(rows []Row) error {
		for _, r := range rows {
			if r.AttemptJob != retry {
				continue
			}
			if more, err := f(r); err != nil {
				return err
			} else if !more {
				return errEnough
			}
		}
		return nil
	})
}

// retries knows which retries of a tenant are over. What is over stays so.
type retries struct {
	s      *Service
	tenant string
	mu     sync.Mutex
	over   map[id.Job]bool
}

func (s *Service) retries(tenant string) *retries {
	return &retries{s: s, tenant: tenant, over: map[id.Job]bool{"": true}}
}

// state is that of a row as it is shown: a job that has it in hand is never stored.
func (t *retries) state(ctx context.Context, r Row) (State, error) {
	if r.State != Quarantined {
		return r.State, nil
	}
	over, err := t.isOver(ctx, r.RetryJob)
	if err != nil || over {
		return r.State, err
	}
	return Retrying, nil
}

// isOver tells that a retry has ended or is past its retention.
func (t *retries) isOver(ctx context.Context, jobID id.Job) (bool, error) {
	t.mu.Lock()
	over, known := t.over[jobID]
	t.mu.Unlock()
	if known {
		return over, nil
	}
	owner, err := t.s.store.RowsOwner(ctx, t.tenant, jobID)
	if err != nil && !fault.Is(err, fault.JobNotFound) {
		return false, err
	}
	over = err != nil || owner.Over
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over[jobID] = over
	return over, nil
}

// each calls f with every value, some at once, and gives the first error.
func each[T any](ctx context.Context, values []T, f func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	for _, v := range values {
		group.Go(func() error { return f(ctx, v) })
	}
	return group.Wait()
}
