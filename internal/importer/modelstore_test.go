package importer

import (
	"bytes"
	"slices"

	"pintu/internal/fault"
	"pintu/internal/job"
)

// This file is what the model stores: the items of both tables as plain values. Each method is one
// conditional write or one transaction, with the condition that the real store puts on it.

// simSlots is how many import slots a dataset of the model has. Two are enough for imports that run at
// once and for one that waits.
const simSlots = 2

// simCounts are rows by outcome, those that are not valid last.
type simCounts [7]int

const simBad = Outcome(6)

func (c *simCounts) add(o simCounts) {
	for i, n := range o {
		c[i] += n
	}
}

func (c simCounts) settled() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

type simRecord struct {
	hash            []byte
	version         int64
	writer, changed int64
	entries         [simSlots]*Entry   // never changed in place
	found           map[int64]simFound // by epoch: the record as that import took it first; not stored
}

// simHead is the item of a job; workers read copies of it.
type simHead struct {
	status           job.Status
	slot             int
	epoch            int64
	planned, done    int
	closed, complete bool
	cancel, stop     bool
}

// simChunk is the item of a chunk; positions are rows, the first is 0.
type simChunk struct {
	start, end, at, until                int
	version                              int
	started, done, stopped, again, rerun bool
	counts                               simCounts
}

type simFound struct{ writer, changed int64 }

type simRow struct {
	key    string
	hash   Hash
	valid  bool
	expect int64 // version that the row was made from
}

type simJob struct {
	id               int
	rows             []simRow
	rules            Rules
	retryOf          *simJob
	reprocess        bool // runs the rows of retryOf again by another version: their contents differ
	chunkRows, batch int
	head             simHead
	chunks           []*simChunk
	rejected         map[int]fault.Code
	final            *simFinal // as the terminal write left things
}

// beforeAll is the epoch of the records that were there before every import of the model.
const beforeAll = 1

// simLine is the item of a dataset's slots.
type simLine struct {
	revision, lastEpoch int64
	holders             [simSlots]*simJob
	waiting             []*simJob
}

// simStore is both tables.
type simStore struct {
	mutant  mutant
	records map[string]*simRecord
	jobs    []*simJob
	line    simLine
}

func (s *simStore) record(key string) *simRecord {
	r := s.records[key]
	if r == nil {
		r = &simRecord{found: map[int64]simFound{}}
		s.records[key] = r
	}
	return r
}

// write is one conditional write of a row.
func (s *simStore) write(w Write, a Action, seen Register) (refused *Register, existed bool) {
	r := s.record(w.Key)
	own := r.entries[w.Slot]
	hash := bytes.Clone(w.Hash[:])
	e := Entry{Epoch: w.Epoch, Row: w.Row, Chunk: w.Chunk, Written: hash, Before: r.hash, VersionBefore: r.version}
	free := own == nil || own.Epoch < w.Epoch || s.mutant == noFence
	may := free && (r.writer <= w.Epoch || s.mutant == overwriteLater)
	if asSeen := seen.Hash != nil && !w.Rules.Outright(); asSeen && (a == Apply || a == Confirm) {
		may = may && (r.asJudged(seen) || s.mutant == judgeBlind)
		e.VersionBefore = w.VersionBefore(seen)
	} else if a == Apply {
		may = may && !bytes.Equal(r.hash, hash) && (r.allows(w) || s.mutant == tryBlind)
	} else if a == Confirm {
		may = may && bytes.Equal(r.hash, hash)
	}
	switch {
	case a == Apply && may:
		existed = r.hash != nil
		r.took(w)
		r.hash, r.version, r.writer, r.changed = hash, r.version+1, w.Epoch, w.Epoch
	case a == Confirm && may:
		r.took(w)
		r.writer = w.Epoch
	case a == Precede && free && r.writer == seen.Writer && r.changed == seen.Changed:
		r.took(w)
		e.Before, e.VersionBefore = seen.Last.Before, seen.VersionBeforeLast()
	case a == Displace && own != nil && own.Epoch == w.Epoch && r.writer == seen.Writer && (own.Row == seen.Own.Row || s.mutant == takeBlind):
		e.Before, e.VersionBefore = own.Before, own.VersionBefore
		if r.writer == w.Epoch && !bytes.Equal(r.hash, hash) {
			r.hash, r.version, r.changed = hash, seen.VersionBeforeLast(), w.Epoch
			if !bytes.Equal(own.Before, hash) {
				r.version++
			}
		}
	default:
		return r.register(w.Slot), false
	}
	r.entries[w.Slot] = &e
	return nil, existed
}

// asJudged tells that the record is still the one that was judged. Who changed it counts too: the writer's
// own rows may change the content and change it back.
func (r *simRecord) asJudged(seen Register) bool {
	return r.writer == seen.Writer && r.changed == seen.Changed && bytes.Equal(r.hash, seen.Hash) && r.version == seen.Version
}

// allows is the condition that the rules put on a first try, which has not seen the record.
func (r *simRecord) allows(w Write) bool {
	switch rules := w.Rules; {
	case rules.Outright():
		return true
	case rules.OnConflict == IfUnchanged && w.Expect > 0:
		stable := w.Epoch
		if len(rules.Work) > 0 {
			stable = rules.Work[0]
		}
		return r.hash != nil && r.version == w.Expect && r.changed < stable && !slices.Contains(rules.Beside, r.changed)
	case rules.OnConflict == Update:
		return r.changed <= rules.Since
	}
	return r.hash == nil
}

// took remembers whose record it was that an import took first.
func (r *simRecord) took(w Write) {
	if _, again := r.found[w.Epoch]; !again {
		r.found[w.Epoch] = simFound{r.writer, r.changed}
	}
}

func (r *simRecord) register(slot int) *Register {
	seen := &Register{Hash: r.hash, Version: r.version, Writer: r.writer, Changed: r.changed, Own: r.entries[slot]}
	for _, e := range r.entries {
		if e != nil && r.writer != 0 && e.Epoch == r.writer {
			seen.Last = e
		}
	}
	return seen
}

func (s *simStore) reject(j *simJob, row int, code fault.Code) {
	if _, there := j.rejected[row]; !there {
		j.rejected[row] = code
	}
}

func (s *simStore) startRunning(j *simJob, seen simHead) bool {
	if j.head.status != job.Queued || j.head.slot != seen.slot {
		return false
	}
	j.head.status = job.Running
	return true
}

func (s *simStore) addChunk(j *simJob, k int, c simChunk) bool {
	open := !j.head.closed && j.head.status == job.Running || s.mutant == addToClosed
	if !open || j.head.planned != k || len(j.chunks) != k {
		return false
	}
	j.chunks = append(j.chunks, &c)
	j.head.planned++
	return true
}

func (s *simStore) closePlan(j *simJob, seen simHead, complete bool) bool {
	switch {
	case j.head.closed || j.head.status != job.Running:
		return false
	case s.mutant == closeBlind:
		j.head.planned = seen.planned
	case j.head.planned != seen.planned:
		return false
	}
	j.head.closed, j.head.complete = true, complete
	return true
}

func (s *simStore) requestStop(j *simJob) {
	if j.head.status == job.Running {
		j.head.stop = true
	}
}

func (s *simStore) claim(c *simChunk, seen simChunk) bool {
	if c.version != seen.version || c.done {
		return false
	}
	c.started = true
	if s.mutant != claimInPlace {
		c.version++
	}
	return true
}

func (s *simStore) checkpoint(c *simChunk, held simChunk) bool {
	if c.version != held.version && s.mutant != checkpointBlind || c.done {
		return false
	}
	c.at, c.counts = held.at, held.counts
	c.version++
	return true
}

// endChunk also counts the chunk on its job.
func (s *simStore) endChunk(j *simJob, c *simChunk, held simChunk) bool {
	if c.version != held.version || c.done || j.head.status != job.Running {
		return false
	}
	c.done, c.at = true, held.at
	c.stopped = c.at < c.end
	c.version++
	if s.mutant != countApart {
		j.head.done++
	}
	return true
}

func (s *simStore) runAgain(j *simJob, c *simChunk, seen simChunk) bool {
	if c.version != seen.version || !c.done || !c.again || j.head.status != job.Running {
		return false
	}
	c.again, c.done, c.rerun, c.until, c.at = false, false, true, c.at, c.start
	if s.mutant != keepCounters {
		c.counts = simCounts{}
	}
	c.version++
	j.head.done--
	return true
}

// assign gives a slot and the next epoch.
func (s *simStore) assign(j *simJob, slot int) {
	if s.mutant != sameEpoch || s.line.lastEpoch == beforeAll {
		s.line.lastEpoch++
	}
	j.rules.Beside = nil
	for _, other := range s.line.holders {
		if other != nil && s.mutant != noBeside {
			j.rules.Beside = append(j.rules.Beside, other.head.epoch)
		}
	}
	s.line.holders[slot] = j
	j.head.slot, j.head.epoch = slot, s.line.lastEpoch
}

// work gives the epochs of the attempts before a retry.
func (s *simStore) work(j *simJob) (epochs []int64) {
	if j.retryOf == nil || s.mutant == noWork {
		return nil
	}
	epochs = s.work(j.retryOf)
	if e := j.retryOf.head.epoch; e > 0 {
		epochs = append(epochs, e)
	}
	return epochs
}

// since gives the epoch of the job whose input a reprocessing, or a retry of one, runs again.
func (j *simJob) since() int64 {
	for ; j != nil; j = j.retryOf {
		if j.reprocess {
			return j.retryOf.head.epoch
		}
	}
	return 0
}

func (l *simLine) free() int { return slices.Index(l.holders[:], nil) }

// enqueue queues an upload that is complete, on condition that the line is as it was read.
func (s *simStore) enqueue(j *simJob, revision int64) (ok, lineMoved bool) {
	if j.head.status != job.Uploading {
		return false, false
	}
	if s.line.revision != revision {
		return false, true
	}
	s.line.revision++
	j.head.status = job.Queued
	if slot := s.line.free(); slot >= 0 && len(s.line.waiting) == 0 {
		s.assign(j, slot)
	} else {
		s.line.waiting = append(s.line.waiting, j)
	}
	return true, false
}

// end writes a terminal status, gives the slot back and hands it on. promoted got one.
func (s *simStore) end(j *simJob, seen simHead, status job.Status, revision int64) (ok, lineMoved bool, promoted []*simJob) {
	h := &j.head
	waits := slices.Contains(s.line.waiting, j)
	switch {
	case seen.status.Terminal() && s.mutant != endAgain: // no move leaves a terminal status
		return false, false, nil
	case h.status != seen.status || seen.slot == job.NoSlot && seen.status == job.Queued && !waits:
		return false, false, nil
	case h.status == job.Running && (!h.closed || h.planned != seen.planned || h.done != seen.planned):
		return false, false, nil
	case h.status == job.Running && status != job.Canceled && h.cancel && s.mutant != endOverCancel:
		return false, false, nil
	case s.line.revision != revision:
		return false, true, nil
	}
	h.status = status
	s.line.revision++
	if waits {
		s.line.waiting = slices.DeleteFunc(s.line.waiting, func(o *simJob) bool { return o == j })
	} else if h.slot >= 0 {
		s.line.holders[h.slot] = nil
	}
	for len(s.line.waiting) > 0 && s.line.free() >= 0 {
		next := s.line.waiting[0]
		s.line.waiting = s.line.waiting[1:]
		s.assign(next, s.line.free())
		promoted = append(promoted, next)
	}
	return true, false, promoted
}
