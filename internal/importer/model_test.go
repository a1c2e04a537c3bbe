package importer

import (
	"bytes"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pintu/internal/fault"
	"pintu/internal/job"
)

// The model of the import protocol. Several workers import files of a few rows into one dataset. Every call
// to the store is a point at which a random scheduler may let another worker go on, kill the worker, freeze
// it to wake up later, lose the reply so that the call is made again, or deliver the message twice. What
// comes out must be what a sequential import of the same rows gives.
//
// The rules it checks, in plain words:
//   - A dataset has a few slots; an import holds one from when it is queued to its terminal write, and the
//     order in which slots were given is the order of the imports (the epoch). A record remembers, per slot,
//     which row of which import has its key.
//   - A row is one conditional write. It never replaces what a later import wrote. Of two rows of one file
//     with the same key the smaller one stays; it may displace the larger one, after it marked the larger
//     one's chunk to run once more when everything is done.
//   - What a rule for conflicts says of a row is judged by the record as it was before the import, or before
//     the first attempt of the same work. The write holds for the record that was judged only, and a row that
//     was once refused for a conflict stays refused.
//   - Whoever works on a chunk claimed it, and writes checkpoints only while nobody else did. A chunk that
//     was ever started stops only after one more whole batch: a dead or frozen worker may have applied rows
//     of that batch that nobody counted.
//   - Adding a chunk and counting it is one write, and so is ending and counting it. The plan is closed at
//     the number of chunks that was seen. The job ends once the plan is closed and as many are done.
//   - The terminal write is one transaction with the slot that is handed on, and refused if a cancel came.
//
// Each mutant breaks one rule and must be caught, or the model would prove nothing.

var (
	schedules = flag.Int("schedules", 12_000, "schedules of the model to run")
	oneSeed   = flag.Uint64("seed", 0, "run only this schedule of the model")
)

type mutant string

const (
	none            mutant = ""
	markAfter       mutant = "a chunk is marked after its row was displaced, not before"
	noMark          mutant = "a chunk is not marked when its row is displaced"
	noSecondRun     mutant = "marked chunks do not run again"
	keepCounters    mutant = "the second run adds to the counters of the first"
	takeBlind       mutant = "a row displaces whichever row has the key by then"
	keepLarger      mutant = "a smaller row gives way to a larger one that came first"
	replayDuplicate mutant = "a row that meets itself is taken for a duplicate"
	claimInPlace    mutant = "a claim does not raise the version"
	checkpointBlind mutant = "a checkpoint is written whoever holds the chunk"
	noBatch         mutant = "a started chunk stops at its checkpoint"
	shortBatch      mutant = "a batch cut short counts as a whole one"
	stopStarted     mutant = "whoever asks to stop ends chunks that a worker started"
	overwriteLater  mutant = "a row replaces what a later import wrote"
	noFence         mutant = "a row ignores that a later import has the slot"
	sameEpoch       mutant = "imports get the same epoch"
	tryBlind        mutant = "a row's first try asks for no rule"
	judgeBlind      mutant = "a row is written to another record than the one that was judged"
	noBeside        mutant = "a version that another import made meanwhile is as good as an old one"
	noWork          mutant = "what an earlier attempt wrote is a conflict"
	noSince         mutant = "a reprocessing takes what was changed since its input was imported"
	closeBlind      mutant = "closing the plan sets the number of chunks that was seen, whatever was added since"
	addToClosed     mutant = "a chunk is added to a closed plan"
	countApart      mutant = "a chunk is counted in a write of its own"
	endOverCancel   mutant = "the terminal write ignores a cancel that came in between"
	endAgain        mutant = "a finisher that saw the job over ends it once more"
)

var mutants = []mutant{markAfter, noMark, noSecondRun, keepCounters, takeBlind, keepLarger, replayDuplicate, claimInPlace, checkpointBlind,
	noBatch, shortBatch, stopStarted, overwriteLater, noFence, sameEpoch, tryBlind, judgeBlind, noBeside, noWork, noSince, closeBlind, addToClosed, countApart, endOverCancel, endAgain}

func TestModel(t *testing.T) {
	if *oneSeed != 0 {
		t.Log(simulate(*oneSeed, none))
		return
	}
	n := *schedules
	if testing.Short() {
		n /= 10
	}
	const parts = 8
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(part + 1); seed <= uint64(n); seed += parts {
				if bad := simulate(seed, none); bad != "" {
					t.Fatalf("go test -run TestModel -seed %d\n%s", seed, bad)
				}
			}
		})
	}
}

// TestModelMutants breaks one rule at a time.
func TestModelMutants(t *testing.T) {
	const within = 8_000
	for _, m := range mutants {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= within; seed++ {
				if bad := simulate(seed, m); bad != "" {
					what, _, _ := strings.Cut(bad, "\n")
					t.Logf("caught by schedule %d: %s", seed, what)
					return
				}
			}
			t.Errorf("not caught within %d schedules", within)
		})
	}
}

// sim is one schedule.
type sim struct {
	simStore
	rng          *rand.Rand
	lose, timeUp float64 // chances
	inFlight     int
	queue        []simHint
	live, frozen []*simTask
	before       map[string]Hash // records that were there before
	bad          []string
}

// simTask is a worker with the message it works on.
type simTask struct {
	next func() (struct{}, bool)
	stop func()
	hint simHint
}

func (s *sim) chance(p float64) bool { return s.rng.Float64() < p }

func (s *sim) complain(format string, args ...any) {
	s.bad = append(s.bad, fmt.Sprintf(format, args...))
}

func (s *sim) decide(w Write, seen Register) (Action, Outcome) {
	own := seen.Own
	mine := own != nil && own.Epoch == w.Epoch
	switch {
	case s.mutant == noFence && own != nil && own.Epoch > w.Epoch:
		seen.Own = nil
	case s.mutant == overwriteLater:
		seen.Writer = 0
	case s.mutant == keepLarger && mine && own.Row > w.Row, s.mutant == replayDuplicate && mine && own.Row == w.Row:
		return Settled, Duplicate
	}
	return Decide(w, seen)
}

// newSim draws files, sizes and chances.
func newSim(seed uint64, m mutant) *sim {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &sim{simStore: simStore{mutant: m, records: map[string]*simRecord{}}, rng: rng, before: map[string]Hash{},
		lose: []float64{0, .04, .1}[rng.IntN(3)], timeUp: []float64{0, .1, .3}[rng.IntN(3)], inFlight: 1 + rng.IntN(4)}
	keys := "abcdefgh"[:1+rng.IntN(8)]
	for _, k := range keys {
		if rng.IntN(10) < 3 {
			h := s.hash()
			s.before[string(k)] = h
			s.records[string(k)] = &simRecord{hash: h[:], version: 1, writer: beforeAll, changed: beforeAll, found: map[int64]simFound{}}
		}
	}
	s.line.lastEpoch = beforeAll
	for i := range []int{1, 1, 2, 2, 3, 3}[rng.IntN(6)] {
		s.jobs = append(s.jobs, s.draw(i, keys))
	}
	return s
}

// draw makes the i-th job: an import of a file of its own, or a retry of the one before.
func (s *sim) draw(i int, keys string) *simJob {
	rng := s.rng
	j := &simJob{id: i, chunkRows: 1 + rng.IntN(7), batch: 1 + rng.IntN(5), rejected: map[int]fault.Code{},
		head: simHead{status: job.Uploading, slot: job.NoSlot}}
	if i > 0 && rng.IntN(3) == 0 {
		j.retryOf = s.jobs[i-1]
		j.rows, j.rules = slices.Clone(j.retryOf.rows), j.retryOf.rules
		if j.reprocess = rng.IntN(2) == 0; j.reprocess {
			for row := range j.rows {
				j.rows[row].hash = s.hash()
			}
		}
		return j
	}
	j.rules = Rules{OnConflict: []OnConflict{Update, Update, Skip, Reject, IfUnchanged}[rng.IntN(5)], LastWins: rng.IntN(3) == 0}
	for range rng.IntN(15) {
		j.rows = append(j.rows, simRow{key: string(keys[rng.IntN(len(keys))]), hash: s.hash(), valid: rng.IntN(8) > 0, expect: []int64{0, 1, 1, 1, 2}[rng.IntN(5)]})
	}
	return j
}

func (s *sim) hash() Hash { return Hash{byte('x' + s.rng.IntN(3))} }

// simulate runs one schedule to its end and tells what is wrong, or "".
func simulate(seed uint64, m mutant) string {
	s := newSim(seed, m)
	at := map[int][]simHint{} // what clients do, by step
	plan := func(kind simKind, j *simJob, from, span int) {
		step := from + s.rng.IntN(span)
		at[step] = append(at[step], simHint{kind, j, -1})
	}
	for i, j := range s.jobs {
		plan(hintSubmit, j, i*s.rng.IntN(100), 20)
		if s.chance(.5) {
			plan(hintCancel, j, 0, 250)
		}
		if s.chance(.15) {
			plan(hintStop, j, 0, 250)
		}
	}
	const tooMany = 100_000 // workers that claim the same chunk hinder each other for long
	for step := 0; !s.allEnded(); step++ {
		if step == tooMany {
			s.complain("stuck: %+v", s.jobs[0].head)
			break
		}
		s.queue = append(s.queue, at[step]...)
		s.step()
		if len(s.bad) > 0 {
			break
		}
	}
	s.quiet()
	s.check()
	return strings.Join(s.bad, "\n")
}

func (s *sim) allEnded() bool {
	return !slices.ContainsFunc(s.jobs, func(j *simJob) bool { return !j.head.status.Terminal() })
}

// step receives a message or lets one worker make one call.
func (s *sim) step() {
	if len(s.live) < 3 && len(s.queue) > 0 && s.chance(.5) {
		s.receive(s.rng.IntN(len(s.queue)))
	}
	if len(s.live) == 0 {
		s.sweep()
		return
	}
	i := s.rng.IntN(len(s.live))
	t := s.live[i]
	switch p := s.rng.Float64(); {
	case p < .03: // killed: the message comes back
		t.stop()
		s.live = slices.Delete(s.live, i, i+1)
		s.queue = append(s.queue, t.hint)
		return
	case p < .06: // frozen to wake up later: the message comes back
		s.live = slices.Delete(s.live, i, i+1)
		s.queue = append(s.queue, t.hint)
		s.frozen = append(s.frozen, t)
		return
	}
	if len(s.frozen) > 0 && s.chance(.02) {
		s.live = append(s.live, s.frozen[0])
		s.frozen = s.frozen[1:]
	}
	if _, more := t.next(); !more {
		s.live = slices.DeleteFunc(s.live, func(o *simTask) bool { return o == t })
	}
}

// receive starts a worker on a message, and now and then leaves the message there as well.
func (s *sim) receive(i int) {
	h := s.queue[i]
	if !s.chance(.2) {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	t := &simTask{hint: h}
	t.next, t.stop = iter.Pull(resumable(func(yield func(struct{}) bool) {
		if !(&simWorker{s: s, yield: yield}).handle(h) {
			s.queue = append(s.queue, h)
		}
	}))
	s.live = append(s.live, t)
}

// sweep sends again what every job that is not over needs.
func (s *sim) sweep() {
	for _, j := range s.jobs {
		if j.head.status.Terminal() || j.head.slot == job.NoSlot {
			continue
		}
		s.queue = append(s.queue, simHint{hintPlan, j, -1})
		for k, c := range j.chunks {
			if !c.done {
				s.queue = append(s.queue, simHint{hintChunk, j, k})
			}
		}
	}
}

// quiet lets everything that is still under way come to its end: frozen workers and old messages too.
func (s *sim) quiet() {
	s.live = append(s.live, s.frozen...)
	s.frozen = nil
	for len(s.queue) > 0 {
		s.receive(0)
		if len(s.queue) > 1000 {
			break
		}
	}
	for _, t := range s.live {
		for range 400 {
			if _, more := t.next(); !more {
				break
			}
		}
		t.stop()
	}
}

// simFinal is what a job's terminal write left.
type simFinal struct {
	counts   simCounts
	entries  map[string]*Entry // of the job, by key
	rejected map[int]fault.Code
	chunks   []simChunk
}

// ended looks at everything the moment a terminal status is written.
func (s *sim) ended(j *simJob, counts simCounts) {
	f := &simFinal{counts: counts, entries: map[string]*Entry{}, rejected: maps.Clone(j.rejected)}
	j.final = f
	for key, r := range s.records {
		if j.head.slot >= 0 && r.entries[j.head.slot] != nil && r.entries[j.head.slot].Epoch == j.head.epoch {
			f.entries[key] = r.entries[j.head.slot]
		}
	}
	var sum simCounts
	next := 0
	for k, c := range j.chunks {
		if !c.done || c.start != next {
			s.complain("job %d ended with chunk %d open or out of place", j.id, k)
		}
		next = c.end
		sum.add(c.counts)
		f.chunks = append(f.chunks, *c)
	}
	if len(j.chunks) != j.head.planned || j.head.done != j.head.planned || sum != counts {
		s.complain("job %d ended with %d chunks, %d planned, %d done; counted %v of %v", j.id, len(j.chunks), j.head.planned, j.head.done, counts, sum)
	}
	if j.head.complete && next != len(j.rows) {
		s.complain("job %d: chunks cover %d of %d rows", j.id, next, len(j.rows))
	}
	s.checkRows(j, f)
}

// checkRows compares a job with a sequential import of the rows that it says it settled.
func (s *sim) checkRows(j *simJob, f *simFinal) {
	byKey := map[string][]int{}
	rejected := map[int]fault.Code{}
	want := simCounts{}
	for _, c := range f.chunks {
		for row := c.start; row < c.at; row++ {
			if r := j.rows[row]; r.valid {
				byKey[r.key] = append(byKey[r.key], row)
				continue
			}
			rejected[row] = fault.TypeMismatch
			want[simBad]++
		}
	}
	for key, rows := range byKey {
		for row, outcome := range s.checkKey(j, key, rows, f.entries[key]) {
			want[outcome]++
			if code := refusalOf(j.rules, outcome); code != "" {
				rejected[row] = code
			}
		}
	}
	for key := range f.entries {
		if len(byKey[key]) == 0 {
			s.complain("job %d: record %s carries an entry, and no row of it was settled", j.id, key)
		}
	}
	if !maps.Equal(rejected, f.rejected) {
		s.complain("job %d: rejected %v, want %v", j.id, f.rejected, rejected)
	}
	if f.counts != want {
		s.complain("job %d: counted %v, want %v", j.id, f.counts, want)
	}
}

// checkKey gives the outcomes that the rows of one key must have, by the record as the entry says it was
// before, and checks that this is what it was.
func (s *sim) checkKey(j *simJob, key string, rows []int, e *Entry) map[int]Outcome {
	out := map[int]Outcome{}
	stays := -1
	for _, row := range rows {
		switch {
		case e == nil || j.rules.OnConflict == IfUnchanged && j.rows[row].expect != e.VersionBefore:
			out[row] = j.rules.conflict()
		case stays < 0 || j.rules.LastWins:
			stays = row
			fallthrough
		default:
			out[row] = Duplicate
		}
	}
	if e == nil {
		s.checkConflict(j, key, rows)
		return out
	}
	if stays < 0 || e.Row != int64(stays) || !bytes.Equal(e.Written, j.rows[stays].hash[:]) {
		s.complain("job %d: key %s belongs to row %d, its entry is %+v", j.id, key, stays, e)
		return out
	}
	out[stays] = e.outcome()
	found := s.records[key].found[j.head.epoch]
	if keeps := j.rules.OnConflict == Skip || j.rules.OnConflict == Reject; keeps && found.writer != 0 && !slices.Contains(j.rules.Work, found.writer) {
		s.complain("job %d: key %s was written by %d and taken all the same", j.id, key, found.writer)
	}
	if since := j.since(); since != 0 && found.changed > since && !slices.Contains(j.rules.Work, found.changed) {
		s.complain("job %d: key %s was changed by %d since %d and taken all the same", j.id, key, found.changed, since)
	}
	s.checkAlone(j, key, e)
	return out
}

// checkConflict checks that there is a record which the rules keep these rows from.
func (s *sim) checkConflict(j *simJob, key string, rows []int) {
	old, existed := s.records[key], s.record(key).hash != nil
	if j.rules.Outright() || (j.rules.OnConflict == Skip || j.rules.OnConflict == Reject) && !existed {
		s.complain("job %d: key %s has no entry, and no record is in the way: %+v", j.id, key, old)
	}
	if !s.alone(j) {
		return
	}
	_, before := s.before[key]
	for _, row := range rows {
		expect := map[bool]int64{true: 1}[before]
		if j.rules.OnConflict == IfUnchanged && j.rows[row].expect == expect || j.rules.OnConflict != IfUnchanged && !before {
			s.complain("job %d: row %d of key %s was refused, there was nothing in the way", j.id, row, key)
		}
	}
}

// alone tells that all jobs are attempts of one work.
func (s *sim) alone(j *simJob) bool {
	return !slices.ContainsFunc(s.jobs[1:], func(o *simJob) bool { return o.retryOf == nil }) && j.final != nil
}

// checkAlone compares an entry with the records from before all imports. Only the first attempt finds them.
func (s *sim) checkAlone(j *simJob, key string, e *Entry) {
	if !s.alone(j) {
		return
	}
	old, existed := s.before[key]
	first := len(j.rules.Work) == 0
	if first && (existed != (e.Before != nil) || existed && !bytes.Equal(e.Before, old[:])) || e.VersionBefore != map[bool]int64{true: 1}[existed] && j.rules.OnConflict == IfUnchanged {
		s.complain("job %d: the entry of key %s says %v at version %d was there before", j.id, key, e.Before, e.VersionBefore)
	}
	version := e.VersionBefore
	if !bytes.Equal(e.Before, e.Written) {
		version++
	}
	if got := s.records[key].version; first && got != version {
		s.complain("job %d: key %s has version %d, want %d", j.id, key, got, version)
	}
}

// check looks at everything once nothing is under way any more.
func (s *sim) check() {
	latest := map[string]*Entry{}
	for _, j := range s.jobs {
		f := j.final
		if f == nil {
			continue // stuck
		}
		if j.head.cancel && j.head.status != job.Canceled {
			s.complain("job %d ended %s over a cancel", j.id, j.head.status)
		}
		if !maps.Equal(j.rejected, f.rejected) {
			s.complain("job %d: rows rejected after the end", j.id)
		}
		s.checkStill(j, f)
		for key, e := range f.entries {
			if latest[key] == nil || e.Epoch > latest[key].Epoch {
				latest[key] = e
			}
			if now := s.records[key].entries[j.head.slot]; now != e && now.Epoch <= e.Epoch {
				s.complain("job %d: the entry of key %s changed after the end", j.id, key)
			}
		}
	}
	for key, r := range s.records {
		want, there := s.before[key]
		e := latest[key]
		if e == nil && !there && r.hash == nil {
			continue // looked at only
		}
		if e != nil {
			want = Hash(e.Written)
		}
		if r.hash == nil || !bytes.Equal(r.hash, want[:]) || e != nil && r.writer != e.Epoch {
			s.complain("key %s holds %v by %d, want %v by %+v", key, r.hash, r.writer, want, e)
		}
	}
	if s.line.holders != [simSlots]*simJob{} && len(s.bad) == 0 {
		s.complain("slots are held after all jobs ended")
	}
}

// checkStill checks that chunks did not change after the end. A frozen worker may still mark one to run
// again; only a chunk that did can be marked so, and nothing comes of it.
func (s *sim) checkStill(j *simJob, f *simFinal) {
	if len(j.chunks) != len(f.chunks) {
		s.complain("job %d: chunks were added after the end", j.id)
		return
	}
	for k, c := range j.chunks {
		now := *c
		if now.again && !now.rerun && s.mutant != noSecondRun {
			s.complain("job %d: chunk %d is marked and did not run again", j.id, k)
		}
		now.again = f.chunks[k].again
		if now != f.chunks[k] {
			s.complain("job %d: chunk %d changed after the end", j.id, k)
		}
	}
}
