package dynamostore

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/id"
	"pintu/internal/job"
)

// errLineMoved means that another transaction changed the slots of the dataset since they were read:
// read them again.
var errLineMoved = errors.New("the slots of the dataset moved")

// maxSlotRaces bounds how often a transaction reads the slots anew. Every race lost is another job
// that moved, so it is reached only when as many jobs of one dataset start and end at once.
const maxSlotRaces = 100

// line is the import slots of one dataset and the line of jobs that wait for one (PROTOCOL P1). It is
// read, changed in memory and written on the condition that it is still what was read.
type line struct {
	Revision  int64
	LastEpoch int64
	Holders   [job.Slots]string // job ids, "" = free; a job that needs the dataset for itself is in all of them
	Epochs    [job.Slots]int64  // of the holders
	Waiting   int

	tenant, dataset string
	read            int64    // Revision as read
	joined          *waiting // to write
	now             time.Time
}

// waiting is a job's place in the line.
type waiting struct {
	key key
	all bool // waits for all slots
}

const attrAll = "all"

func (w waiting) item() item {
	it := w.key.item()
	if w.all {
		it[attrAll] = boolean(true)
	}
	return it
}

func (s *Store) readLine(ctx context.Context, tenant, dataset string) (*line, error) {
	it, err := s.get(ctx, "read slots", datasetKey(tenant, dataset, skSlots))
	if err != nil {
		return nil, err
	}
	l := &line{}
	if it != nil {
		if err := unmarshal(it, l); err != nil {
			return nil, err
		}
	}
	l.tenant, l.dataset, l.read, l.now = tenant, dataset, l.Revision, s.now()
	return l, nil
}

// admit gives a job the lowest free slot and an epoch, or the last place in the line.
func (l *line) admit(j job.Job) job.Job {
	if l.Waiting == 0 && l.room(j.Exclusive()) {
		return l.assign(j, j.Exclusive())
	}
	l.Waiting++
	l.joined = &waiting{datasetKey(l.tenant, l.dataset, waitSK(j.UploadedAt, j.ID)), j.Exclusive()}
	j.Slot, j.Progress.Stage = job.NoSlot, job.Waiting
	return j
}

// room tells whether there is a free slot, or whether all are.
func (l *line) room(all bool) bool {
	free := 0
	for _, holder := range l.Holders {
		if holder == "" {
			free++
		}
	}
	return free == job.Slots || free > 0 && !all
}

// assign gives the lowest free slot, or all of them, with an epoch that was never given before, not even
// before a restore of the table to an older moment: the clock is ahead of all that was given then.
func (l *line) assign(j job.Job, all bool) job.Job {
	l.LastEpoch = max(l.LastEpoch+1, l.now.UnixMilli())
	j.Slot, j.Epoch, j.Beside, j.Progress.Stage = job.NoSlot, l.LastEpoch, nil, ""
	for i, holder := range l.Holders {
		if holder != "" {
			j.Beside = append(j.Beside, l.Epochs[i])
			continue
		}
		if j.Slot != job.NoSlot && !all {
			continue
		}
		l.Holders[i], l.Epochs[i] = string(j.ID), j.Epoch
		if j.Slot == job.NoSlot {
			j.Slot = i
		}
	}
	return j
}

// write adds the changed line to a transaction.
func (l *line) write(tx *transaction, s *Store) {
	l.Revision = l.read + 1
	it, err := marshal(datasetKey(l.tenant, l.dataset, skSlots), l)
	cond := expression.Name("Revision").Equal(expression.Value(l.read))
	if l.read == 0 {
		cond = notExists()
	}
	tx.put(s.control, it, cond, errLineMoved)
	if l.joined != nil {
		tx.put(s.control, l.joined.item(), notExists(), errLineMoved)
	}
	tx.err = errors.Join(tx.err, err)
}

// leave takes an ending job out of its slots or out of the line, and hands free slots to those who wait
// longest. The hints are for the jobs that got one.
func (l *line) leave(ctx context.Context, s *Store, tx *transaction, e job.Ending) ([]job.Hint, error) {
	if e.Job.Slot == job.NoSlot {
		l.Waiting--
		// It is in line exactly while it waits: gone means that it was given a slot since it was read.
		tx.remove(s.control, datasetKey(l.tenant, l.dataset, waitSK(e.Job.UploadedAt, e.Job.ID)), exists(), job.ErrMoved)
	}
	for i, holder := range l.Holders {
		if holder == string(e.Job.ID) {
			l.Holders[i], l.Epochs[i] = "", 0
		}
	}
	hints, err := l.promote(ctx, s, tx, e.Job.ID)
	l.write(tx, s)
	return hints, err
}

// promote hands free slots on in the order of the line. Whoever needs all of them is not passed over, or
// it would wait for ever.
func (l *line) promote(ctx context.Context, s *Store, tx *transaction, leaving id.Job) ([]job.Hint, error) {
	if l.Waiting == 0 || !l.room(false) {
		return nil, nil
	}
	next, err := s.firstWaiting(ctx, l.tenant, l.dataset)
	if err != nil {
		return nil, err
	}
	var hints []job.Hint
	for _, w := range next {
		jobID := waitingJob(w.key)
		if jobID == leaving {
			continue
		}
		if !l.room(w.all) {
			break
		}
		j := l.assign(job.Job{Tenant: l.tenant, ID: jobID}, w.all)
		l.Waiting--
		tx.remove(s.control, w.key, exists(), errLineMoved)
		tx.update(s.control, jobKey(l.tenant, jobID), setAll(fields{
			"Slot": j.Slot, "Epoch": j.Epoch, "Beside": j.Beside, "Progress.Stage": "", attrDueAt: millis(l.now.Add(job.LookAgain)),
		}), inStatus(job.Queued).And(expression.Name("Slot").Equal(expression.Value(job.NoSlot))), errLineMoved)
		hints = append(hints, j.Hint())
	}
	return hints, nil
}

// firstWaiting reads the head of the line, as many as there can be free slots and one who may be leaving.
func (s *Store) firstWaiting(ctx context.Context, tenant, dataset string) ([]waiting, error) {
	k := datasetKey(tenant, dataset, prefixWait)
	out, err := s.db.Query(ctx, &dynamodb.QueryInput{
		TableName: &s.control, ConsistentRead: aws.Bool(true), Limit: aws.Int32(job.Slots + 1),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :wait)"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": str(k.pk), ":wait": str(k.sk)},
	})
	if err != nil {
		return nil, unavailable("read the line of a dataset", err)
	}
	var first []waiting
	for _, it := range out.Items {
		first = append(first, waiting{key{textOf(it, attrPK), textOf(it, attrSK)}, it[attrAll] != nil})
	}
	return first, nil
}

func exists() expression.ConditionBuilder {
	return expression.AttributeExists(expression.Name(attrPK))
}
