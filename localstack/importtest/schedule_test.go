package importtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/sweep"
	"pintu/internal/worker"
	"pintu/localstack/faults"
)

// schedule runs the real code, worker beside worker, in an order drawn from a seed. Inside a synctest bubble
// every call of every process stops at a gate: to the store, to the bucket, to the queue. When all of them
// stand still the schedule lets one go on, and decides what becomes of its call. So the order of calls is
// the schedule's, not the machine's, and time passes only when the schedule sleeps.
type schedule struct {
	w        *world
	rng      *rand.Rand
	chances  chances
	maxTries int // receives before a message goes to the dead-letter queue
	wire     map[fate]http.Handler

	mu     sync.Mutex
	gates  []*gate
	nextID int

	live  []*process
	dead  []message // the dead-letter queue
	idle  int       // times that nothing was going on
	trace []string
}

// chances of what goes wrong, per call or message.
type chances struct{ fault, kill, freeze, twice, lost float64 }

// fate is what becomes of one call.
type fate int

const (
	passes fate = iota
	killed      // the process is gone; the call is not executed
	throttled
	conflicts // with a transaction, as an exception or as the reason a transaction was canceled for
	breaks    // the service has an internal error
	vanishes  // the connection breaks before the call arrives
	unheard   // the call is executed, its reply is lost
	doubled   // the call is executed twice, the second reply arrives
)

// failing are the fates that the schedule draws from.
var failing = []fate{throttled, conflicts, breaks, vanishes, unheard, unheard, doubled}

// gate is a process about to make a call.
type gate struct {
	p     *process
	order string // what tells the calls of one process apart
	open  chan fate
}

// process is one invocation at work on one message, or one request.
type process struct {
	id     int
	name   string
	msg    *message // nil for requests and sweeps
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	frozen bool
	gone   bool // killed
}

func newSchedule(w *world, rng *rand.Rand) *schedule {
	pick := func(from ...float64) float64 { return from[rng.IntN(len(from))] }
	s := &schedule{w: w, rng: rng, maxTries: []int{2, 3, 5, 10}[rng.IntN(4)], wire: map[fate]http.Handler{passes: w.server},
		chances: chances{fault: pick(0, .01, .05), kill: pick(0, .005, .02), freeze: pick(0, .005, .02), twice: pick(0, .1), lost: pick(0, 0, .1)}}
	for f, r := range map[fate]faults.Rule{
		throttled: {Action: faults.Fail, Error: faults.Throughput}, breaks: {Action: faults.Fail, Error: faults.InternalServerError},
		vanishes: {Action: faults.Reset}, unheard: {Action: faults.LoseReply}, doubled: {Action: faults.Duplicate},
	} {
		injector := faults.New(w.server, nil)
		injector.Add(r)
		s.wire[f] = injector
	}
	conflict := faults.New(w.server, nil)
	conflict.Add(faults.Rule{Operation: "TransactWriteItems", Action: faults.Fail, Error: faults.TransactionCanceled})
	conflict.Add(faults.Rule{Action: faults.Fail, Error: faults.TransactionConflict})
	s.wire[conflicts] = conflict
	return s
}

func (s *schedule) chance(p float64) bool { return s.rng.Float64() < p }

func (s *schedule) log(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

// start has a process work. Its store, bucket and queue go through gates.
func (s *schedule) start(name string, msg *message, limit time.Duration, work func(ctx context.Context, p *process) error) *process {
	ctx, cancel := context.WithTimeout(s.w.t.Context(), limit)
	p := &process{id: s.nextID, name: name, msg: msg, cancel: cancel, ended: make(chan struct{})}
	s.nextID++
	s.live = append(s.live, p)
	s.log("%s starts as %d", name, p.id)
	go func() {
		defer close(p.ended)
		defer cancel()
		p.err = work(ctx, p)
	}()
	return p
}

// wait stops a process at a gate until the schedule opens it.
func (s *schedule) wait(p *process, order string) fate {
	g := &gate{p: p, order: order, open: make(chan fate, 1)}
	s.mu.Lock()
	if p.gone {
		s.mu.Unlock()
		return killed
	}
	s.gates = append(s.gates, g)
	s.mu.Unlock()
	return <-g.open
}

// RoundTrip is a process's way to DynamoDB.
type wire struct {
	s *schedule
	p *process
}

func (t wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	f := t.s.wait(t.p, orderOf(r.Header.Get("X-Amz-Target"), body))
	if f == killed {
		return nil, errKilled
	}
	// A call that was on its way when its caller gave up arrives all the same.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return direct{t.s.wire[f]}.RoundTrip(r)
}

// orderOf names a call by operation and item, so that calls that one process makes at once have an order.
func orderOf(target string, body []byte) string {
	var call struct {
		Key, Item                 map[string]struct{ S string }
		ExpressionAttributeValues map[string]json.RawMessage
	}
	_ = json.Unmarshal(body, &call) // not every call has these, nor texts only
	return fmt.Sprint(target, call.Key["sk"].S, call.Item["sk"].S, string(call.ExpressionAttributeValues[":r"]))
}

// bucket is a process's way to the object store.
type bucket struct {
	*files
	s *schedule
	p *process
}

func (b bucket) Head(ctx context.Context, key string) (job.Object, bool, error) {
	if err := b.s.through(b.p, "head"); err != nil {
		return job.Object{}, false, err
	}
	return b.files.Head(ctx, key)
}

func (b bucket) Open(ctx context.Context, key, version string, from, to int64) (io.ReadCloser, error) {
	if err := b.s.through(b.p, "open"); err != nil {
		return nil, err
	}
	return b.files.Open(ctx, key, version, from, to)
}

func (b bucket) Put(ctx context.Context, key, contentType string, body io.Reader) (string, error) {
	if err := b.s.through(b.p, "put"); err != nil {
		return "", err
	}
	return b.files.Put(ctx, key, contentType, body)
}

// queues is a process's way to the queues.
type queues struct {
	s *schedule
	p *process
}

func (q queues) Send(ctx context.Context, hints ...job.Hint) error {
	if err := q.s.through(q.p, "send"); err != nil {
		return err
	}
	return q.s.w.Send(ctx, hints...)
}

// Idle is what a queue says of its messages that are not being worked on.
func (q queues) Idle(_ context.Context, kind job.HintKind) (bool, error) {
	q.s.w.mu.Lock()
	defer q.s.w.mu.Unlock()
	return !slices.ContainsFunc(q.s.w.queue, func(m message) bool { return m.hint.Kind == kind }), nil
}

// through is a call that has no wire: it happens, or the process is dead, or the service is away.
func (s *schedule) through(p *process, order string) error {
	switch s.wait(p, order) {
	case killed:
		return errKilled
	case throttled, conflicts, breaks, vanishes:
		return errors.New("the service is away")
	}
	return nil
}

func (s *schedule) store(p *process) *dynamostore.Store { return s.w.storeThrough(wire{s, p}) }

func (s *schedule) service(p *process) *job.Service {
	return s.w.service(s.store(p), bucket{s.w.files, s, p}, queues{s, p})
}

// receive has a worker work on a waiting message, as the queue's event source does.
func (s *schedule) receive() {
	s.w.mu.Lock()
	i := s.rng.IntN(len(s.w.queue))
	m := s.w.queue[i]
	again := s.chance(s.chances.twice)
	if !again {
		s.w.queue = slices.Delete(s.w.queue, i, i+1)
	}
	s.w.mu.Unlock()
	if s.chance(s.chances.lost) {
		s.log("%v is lost", m.hint)
		return
	}
	if m.receives++; m.receives > s.maxTries {
		s.log("%v goes to the dead-letter queue", m.hint)
		s.dead = append(s.dead, m)
		return
	}
	limit := time.Duration(30+s.rng.IntN(600)) * time.Second
	s.start(fmt.Sprintf("%s %d", m.hint.Kind, m.hint.Chunk), &m, limit, func(ctx context.Context, p *process) error {
		store := s.store(p)
		im := s.w.importer(store, bucket{s.w.files, s, p}, queues{s, p})
		return worker.New(store, im, s.w.now).Handle(ctx, worker.Message{Hint: m.hint, ReceiveCount: m.receives, MaxReceives: s.maxTries,
			SentAt: m.sentAt, Queue: string(m.hint.Kind)})
	})
}

// sweep is one tick of the schedule that looks after jobs.
func (s *schedule) sweep() {
	s.start("sweep", nil, 50*time.Second, func(ctx context.Context, p *process) error {
		_, err := sweep.New(s.store(p), s.service(p), queues{s, p}, queues{s, p}, s.w.now).Run(ctx)
		return err
	})
}

func (s *schedule) complete(jobID id.Job) {
	s.start("complete", nil, 29*time.Second, func(ctx context.Context, p *process) error {
		_, err := s.service(p).Complete(ctx, s.w.caller, idempotency.Intent{}, jobID)
		return err
	})
}

func (s *schedule) cancel(jobID id.Job) {
	s.start("cancel", nil, 29*time.Second, func(ctx context.Context, p *process) error {
		_, err := s.service(p).Cancel(ctx, access.Caller{Tenant: s.w.caller.Tenant}, idempotency.Intent{}, jobID)
		return err
	})
}

// settled waits until every process stands at a gate, sleeps or has ended, and takes away those that ended.
func (s *schedule) settled() {
	synctest.Wait()
	s.live = slices.DeleteFunc(s.live, func(p *process) bool {
		select {
		case <-p.ended:
		default:
			return false
		}
		s.log("%s (%d) ends: %v", p.name, p.id, p.err)
		if p.err != nil && p.msg != nil && !p.gone && !p.frozen {
			s.giveBack(*p.msg)
		}
		return true
	})
}

func (s *schedule) giveBack(m message) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.queue = append(s.w.queue, m)
}

// standing gives the gates of processes that are not frozen, in an order that does not depend on the machine.
func (s *schedule) standing() []*gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*gate
	for _, g := range s.gates {
		if !g.p.frozen {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b *gate) int { return cmp.Or(cmp.Compare(a.p.id, b.p.id), cmp.Compare(a.order, b.order)) })
	return out
}

// release lets one call go on to its fate, and its process to its next call. After a fault it lets time pass
// until the process tries again: while it waits nothing happens that could not happen later.
func (s *schedule) release(g *gate, f fate) {
	s.mu.Lock()
	s.gates = slices.DeleteFunc(s.gates, func(o *gate) bool { return o == g })
	s.mu.Unlock()
	g.open <- f
	if f != passes {
		s.log("%d: %s: fate %d", g.p.id, g.order, f)
		time.Sleep(6 * time.Second)
	}
}

// kill ends a process at once. Calls that were on their way may still arrive.
func (s *schedule) kill(p *process) {
	s.log("%s (%d) is killed", p.name, p.id)
	s.mu.Lock()
	p.gone = true
	s.mu.Unlock()
	for _, g := range s.gatesOf(p) {
		f := killed
		if s.chance(.3) {
			f = unheard
		}
		s.release(g, f)
	}
	p.cancel()
	if p.msg != nil {
		s.giveBack(*p.msg)
	}
}

func (s *schedule) gatesOf(p *process) []*gate {
	return slices.DeleteFunc(s.standing(), func(g *gate) bool { return g.p != p })
}

// step lets one thing happen. It is called when everything stands still.
func (s *schedule) step() {
	s.w.mu.Lock()
	waiting := len(s.w.queue)
	s.w.mu.Unlock()
	working := slices.DeleteFunc(slices.Clone(s.live), func(p *process) bool { return p.frozen })
	gates := s.standing()
	switch {
	case waiting > 0 && len(working) < 3 && s.chance(.3):
		s.receive()
	case len(working) == 0 && waiting == 0:
		s.nothing()
	case len(gates) == 0:
		time.Sleep(time.Second) // all are waiting before they try again
	case s.chance(.02):
		time.Sleep(time.Duration(s.rng.IntN(10_000)) * time.Millisecond)
	default:
		s.call(gates[s.rng.IntN(len(gates))])
	}
}

func (s *schedule) call(g *gate) {
	switch {
	case s.chance(s.chances.kill):
		s.kill(g.p)
	case s.chance(s.chances.freeze):
		s.log("%s (%d) is frozen", g.p.name, g.p.id)
		g.p.frozen = true
		if g.p.msg != nil {
			s.giveBack(*g.p.msg)
		}
	case s.chance(s.chances.fault):
		s.release(g, failing[s.rng.IntN(len(failing))])
	default:
		s.release(g, passes)
	}
	if s.chance(.01) {
		s.thaw()
	}
}

// thaw wakes the process that was frozen first.
func (s *schedule) thaw() {
	if i := slices.IndexFunc(s.live, func(p *process) bool { return p.frozen }); i >= 0 {
		s.log("%s (%d) wakes", s.live[i].name, s.live[i].id)
		s.live[i].frozen = false
		s.live[i].msg = nil // its message came back long ago
	}
}

// nothing is going on: an operator redrives what lies in the dead-letter queue, or time passes until sweep
// finds something due.
func (s *schedule) nothing() {
	if len(s.dead) > 0 && s.chance(.5) {
		for _, m := range s.dead {
			s.giveBack(message{hint: m.hint, sentAt: s.w.now()})
		}
		s.dead = nil
		return
	}
	// Longer and longer, so that a message that was lost after it was marked comes to the end of its retention.
	s.idle++
	time.Sleep(10 * time.Minute * time.Duration(1+s.idle/20))
	s.sweep()
	if s.chance(.3) {
		s.sweep()
	}
}

// quiet lets everything that is still under way come to its end undisturbed: frozen processes and old
// messages too.
func (s *schedule) quiet() {
	s.chances, s.maxTries = chances{}, 100
	for _, p := range s.live {
		p.frozen = false
	}
	for range 20_000 {
		s.settled()
		gates := s.standing()
		s.w.mu.Lock()
		waiting := len(s.w.queue)
		s.w.mu.Unlock()
		switch {
		case len(gates) > 0:
			s.release(gates[0], passes)
		case len(s.live) > 0:
			time.Sleep(time.Second)
		case waiting > 0:
			s.receive()
		default:
			return
		}
	}
	s.w.t.Error("it does not come to rest")
	for _, p := range slices.Clone(s.live) {
		s.kill(p)
	}
	s.settled()
}
