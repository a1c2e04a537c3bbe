package importer

import (
	"errors"
	"iter"

	"pintu/internal/fault"
	"pintu/internal/job"
)

// This file is what workers and clients of the model do: the steps of Advance, Process, settleRow and
// finish, and of submitting and canceling, call by call. It decides about rows with the real Decide.

// simHint is a message; each names work that may be done any number of times.
type simHint struct {
	kind  simKind
	job   *simJob
	chunk int
}

type simKind int

const (
	hintSubmit simKind = iota // the client's: complete the upload
	hintCancel                // the client's
	hintStop                  // sweep's: a time limit
	hintPlan
	hintChunk
)

// simWorker is one process at work. Whenever it is about to make a call it lets the scheduler run, which
// may never let it come back.
type simWorker struct {
	s      *sim
	yield  func(struct{}) bool
	marked map[int]bool // chunks that this claim has marked; its rows share it
}

var errSimKilled = errors.New("killed")

func (w *simWorker) pause() {
	if !w.yield(struct{}{}) {
		panic(errSimKilled)
	}
}

// call makes one read or plain write. When its reply is lost, the SDK makes it once more.
func (w *simWorker) call(f func()) {
	w.pause()
	f()
	if w.s.chance(w.s.lose) {
		w.pause()
		f()
	}
}

// transact makes one transaction, whose token makes a repetition of a success harmless.
func (w *simWorker) transact(f func() bool) bool {
	w.pause()
	ok := f()
	if w.s.chance(w.s.lose) {
		w.pause()
		ok = ok || f()
	}
	return ok
}

func (w *simWorker) send(h simHint) { w.call(func() { w.s.queue = append(w.s.queue, h) }) }

func (w *simWorker) head(j *simJob) (h simHead) {
	w.call(func() { h = j.head })
	return h
}

// handle works on one message and tells whether to acknowledge it.
func (w *simWorker) handle(h simHint) bool {
	switch h.kind {
	case hintSubmit:
		return w.submit(h.job)
	case hintCancel:
		return w.cancel(h.job)
	case hintStop:
		w.call(func() { w.s.requestStop(h.job) })
		w.send(simHint{hintPlan, h.job, -1})
		return true
	case hintPlan:
		return w.advance(h.job)
	}
	return w.process(h.job, h.chunk)
}

func (w *simWorker) submit(j *simJob) bool {
	for first := j.retryOf; first != nil; first = first.retryOf { // a retry is made when it is over
		if !w.head(first).status.Terminal() {
			return false
		}
	}
	j.rules.Work, j.rules.Since = w.s.work(j), j.since()
	if w.s.mutant == noSince {
		j.rules.Since = 0
	}
	for {
		var revision int64
		w.call(func() { revision = w.s.line.revision })
		moved := false
		ok := w.transact(func() (ok bool) { ok, moved = w.s.enqueue(j, revision); return ok })
		if !ok && moved {
			continue
		}
		w.send(simHint{hintPlan, j, -1})
		return true
	}
}

func (w *simWorker) cancel(j *simJob) bool {
	for {
		seen := w.head(j)
		switch {
		case seen.status.Terminal():
			return true
		case seen.status != job.Running:
			if w.end(j, seen, job.Canceled, simCounts{}) {
				return true
			}
		case w.transact(func() bool {
			if j.head.status != job.Running || j.head.cancel {
				return false
			}
			j.head.cancel = true
			return true
		}):
			w.send(simHint{hintPlan, j, -1})
			return true
		}
		if seen.cancel {
			return true
		}
	}
}

// end writes a terminal status, reading the line again whenever it moved. false: the job is no longer
// what was seen.
func (w *simWorker) end(j *simJob, seen simHead, status job.Status, counts simCounts) bool {
	for {
		var revision int64
		w.call(func() { revision = w.s.line.revision })
		var moved bool
		var promoted []*simJob
		ok := w.transact(func() (ok bool) {
			ok, moved, promoted = w.s.end(j, seen, status, revision)
			if ok {
				w.s.ended(j, counts)
			}
			return ok
		})
		if !ok && moved {
			continue
		}
		for _, p := range promoted {
			w.send(simHint{hintPlan, p, -1})
		}
		return ok
	}
}

func (w *simWorker) advance(j *simJob) bool {
	h := w.head(j)
	if h.status.Terminal() || h.status == job.Uploading || h.slot == job.NoSlot {
		return true
	}
	if h.status == job.Queued {
		ok := false
		if w.call(func() { ok = w.s.startRunning(j, h) }); !ok {
			return false
		}
		h = w.head(j)
	}
	if h.cancel || h.stop {
		if !w.stopChunks(j, h) {
			return false
		}
		h = w.head(j)
	}
	if !h.closed {
		planned, yielded := w.plan(j, h)
		if !planned || yielded {
			return planned
		}
		h = w.head(j)
	}
	if h.done < h.planned {
		return true
	}
	return w.finish(j, h)
}

// stopChunks closes the plan and ends the chunks that nobody ever took.
func (w *simWorker) stopChunks(j *simJob, h simHead) bool {
	if !h.closed {
		ok := false
		if w.call(func() { ok = w.s.closePlan(j, h, false) }); !ok {
			return false
		}
	}
	for k := 0; ; k++ {
		c, there := w.chunk(j, k)
		if !there {
			return true
		}
		if (!c.started || w.s.mutant == stopStarted) && !c.done {
			w.transact(func() bool { return w.s.endChunk(j, j.chunks[k], c) })
		}
	}
}

func (w *simWorker) chunk(j *simJob, k int) (c simChunk, there bool) {
	w.call(func() {
		if there = k < len(j.chunks); there {
			c = *j.chunks[k]
		}
	})
	return c, there
}

// plan adds chunks from where the plan stands. yielded: time was up and a fresh message carries on.
func (w *simWorker) plan(j *simJob, h simHead) (ok, yielded bool) {
	for k := h.planned; k*j.chunkRows < len(j.rows); k++ {
		start := k * j.chunkRows
		end := min(start+j.chunkRows, len(j.rows))
		c := simChunk{start: start, end: end, at: start, until: end}
		if !w.transact(func() bool { return w.s.addChunk(j, k, c) }) {
			return false, false
		}
		h.planned = k + 1
		w.send(simHint{hintChunk, j, k})
		if w.s.chance(w.s.timeUp) {
			w.send(simHint{hintPlan, j, -1})
			return true, true
		}
	}
	w.call(func() { ok = w.s.closePlan(j, h, true) })
	return ok, false
}

func (w *simWorker) finish(j *simJob, h simHead) bool {
	var again []int
	var chunks []simChunk
	var sum simCounts
	for k := 0; ; k++ {
		c, there := w.chunk(j, k)
		if !there {
			break
		}
		if !c.done {
			return false // somebody else opened it for its second run
		}
		if !c.again && !c.stopped && c.counts.settled() != c.end-c.start {
			w.s.complain("job %d: chunk %d settled %d of rows %d to %d", j.id, k, c.counts.settled(), c.start, c.end)
		}
		if c.again {
			again = append(again, k)
		}
		chunks = append(chunks, c)
		sum.add(c.counts)
	}
	if len(again) > 0 && w.s.mutant != noSecondRun {
		for _, k := range again {
			if !w.transact(func() bool { return w.s.runAgain(j, j.chunks[k], chunks[k]) }) {
				return false
			}
			w.send(simHint{hintChunk, j, k})
		}
		return true
	}
	status := job.Succeeded
	switch {
	case h.cancel:
		status = job.Canceled
	case h.stop:
		status = job.Failed
	}
	return w.end(j, h, status, sum) || w.head(j).status.Terminal()
}

// process settles the rows of one chunk from its checkpoint on.
func (w *simWorker) process(j *simJob, k int) bool {
	h := w.head(j)
	c, there := w.chunk(j, k)
	if !there || c.done || h.status.Terminal() {
		return there
	}
	settled := !c.started || w.s.mutant == noBatch
	ok := false
	if w.call(func() { ok = w.s.claim(j.chunks[k], c) }); !ok {
		return false
	}
	if w.s.mutant != claimInPlace {
		c.version++
	}
	w.marked = map[int]bool{}
	for {
		stop := (h.cancel || h.stop) && !c.rerun
		if c.at >= c.until || stop && settled {
			return w.endChunk(j, k, c)
		}
		if w.s.chance(w.s.timeUp) {
			w.send(simHint{hintChunk, j, k})
			return true
		}
		n := j.batch
		if w.s.chance(w.s.timeUp) {
			n = 1 + w.s.rng.IntN(n) // an early checkpoint
		}
		full := n == j.batch || c.at+n >= c.until || w.s.mutant == shortBatch
		n = min(n, c.until-c.at)
		counts, ok := w.batch(j, h, k, c.at, n)
		if !ok {
			return false
		}
		settled = settled || full
		c.at += n
		c.counts.add(counts)
		if w.call(func() { ok = w.s.checkpoint(j.chunks[k], c) }); !ok {
			return false
		}
		c.version++
		if h = w.head(j); h.status.Terminal() {
			return true
		}
	}
}

func (w *simWorker) endChunk(j *simJob, k int, c simChunk) bool {
	ok := w.transact(func() bool { return w.s.endChunk(j, j.chunks[k], c) })
	if ok && w.s.mutant == countApart {
		w.call(func() { j.head.done++ })
	}
	h := w.head(j)
	if ok && h.closed && h.done == h.planned {
		w.send(simHint{hintPlan, j, -1})
	}
	return ok || h.status.Terminal()
}

// batch settles rows [from, from+n), a few at once. false: a row met a later import in its slot.
func (w *simWorker) batch(j *simJob, h simHead, k, from, n int) (counts simCounts, ok bool) {
	type flight struct {
		next func() (struct{}, bool)
		stop func()
	}
	var live []flight
	defer func() {
		for _, f := range live {
			f.stop()
		}
	}()
	ok = true
	for row := from; (row < from+n || len(live) > 0) && ok; {
		if row < from+n && len(live) < w.s.inFlight && (len(live) == 0 || w.s.rng.IntN(2) == 0) {
			r := row
			next, stop := iter.Pull(resumable(func(yield func(struct{}) bool) {
				outcome, fine := (&simWorker{w.s, yield, w.marked}).settle(j, h, k, r)
				if ok = ok && fine; fine {
					counts[outcome]++
				}
			}))
			live = append(live, flight{next, stop})
			row++
		}
		i := w.s.rng.IntN(len(live))
		if _, more := live[i].next(); more {
			w.pause()
			continue
		}
		live = append(live[:i], live[i+1:]...)
	}
	return counts, ok
}

// resumable makes a sequence that can be ended while it is at a call.
func resumable(f func(yield func(struct{}) bool)) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(errSimKilled) {
				panic(r)
			}
		}()
		f(yield)
	}
}

// settle drives one row through the register. false: a later import has the slot.
func (w *simWorker) settle(j *simJob, h simHead, k, row int) (outcome Outcome, ok bool) {
	r := j.rows[row]
	if !r.valid {
		w.call(func() { w.s.reject(j, row, fault.TypeMismatch) })
		return simBad, true
	}
	write := Write{Key: r.key, Slot: h.slot, Epoch: h.epoch, Row: int64(row), Chunk: k, Hash: r.hash, Rules: &j.rules, Expect: r.expect}
	action, outcome, seen := Apply, Created, Register{}
	for {
		if action == Displace && w.s.mutant != markAfter {
			w.mark(j, seen.Own.Chunk)
		}
		var refused *Register
		var existed bool
		w.call(func() { refused, existed = w.s.write(write, action, seen) })
		if refused == nil {
			if action == Displace && w.s.mutant == markAfter {
				w.mark(j, seen.Own.Chunk)
			}
			if action == Apply && existed {
				outcome = Updated
			}
			return outcome, true
		}
		seen = *refused
		switch action, outcome = w.s.decide(write, seen); action {
		case Settled:
			if code := refusalOf(j.rules, outcome); code != "" {
				w.call(func() { w.s.reject(j, row, code) })
			}
			return outcome, true
		case Fenced:
			return 0, false
		case Apply:
			outcome = Created
		}
	}
}

// mark has a chunk run again. Once per claim is enough.
func (w *simWorker) mark(j *simJob, chunk int) {
	if w.marked[chunk] || w.s.mutant == noMark {
		return
	}
	w.call(func() { j.chunks[chunk].again = true })
	w.marked[chunk] = true
}

// refusalOf is the code that a row with this outcome is quarantined for, if any.
func refusalOf(rules Rules, o Outcome) fault.Code {
	switch {
	case o == Conflict:
		return fault.KeyConflict
	case o == Duplicate && !rules.LastWins:
		return fault.DuplicateKey
	}
	return ""
}
