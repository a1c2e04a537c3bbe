package lambda

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// pool holds the processes of one function.
type pool struct {
	Function
	broker *Broker
	slots  chan struct{} // one token per process that may still be started or is busy

	mu   sync.Mutex
	last int            // number of the newest process
	all  []*environment // every process that has not been reaped
	idle []*environment // those that wait for work; the last one was used last
}

func newPool(b *Broker, f Function) *pool {
	return &pool{Function: f, broker: b, slots: make(chan struct{}, max(f.MaxEnvironments, 1))}
}

// invoke waits for a slot, takes a warm process or starts one, and runs the event in it.
func (p *pool) invoke(ctx context.Context, payload []byte) (Result, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	case <-p.broker.done:
		return Result{}, ErrClosed
	}
	if !p.broker.track() {
		<-p.slots
		return Result{}, ErrClosed
	}
	inv := newInvocation(payload)
	e, failure := p.environment(inv)
	if failure != nil {
		p.finish(nil)
		return *failure, nil
	}
	r := e.run(inv, p.Timeout)
	go p.finish(e)
	return r, nil
}

// environment gives a process that has asked for work, or how its start failed.
func (p *pool) environment(inv *invocation) (*environment, *Result) {
	if e := p.warm(); e != nil {
		return e, nil
	}
	p.mu.Lock()
	p.last++
	appID := p.LogicalID + "-" + strconv.Itoa(p.last)
	p.mu.Unlock()
	e, err := p.start(appID)
	if err != nil {
		return nil, inv.failed("Runtime.InvalidEntrypoint", "RequestId: "+inv.id+" Error: "+err.Error())
	}
	if failure := e.initialise(inv, p.broker.cfg.InitTime); failure != nil {
		e.kill()
		<-e.exited
		return nil, failure
	}
	return e, nil
}

// warm takes the idle process that was used last, so that the others can be seen to be unneeded.
func (p *pool) warm() *environment {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		e := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if e.alive() {
			return e
		}
	}
	return nil
}

// finish waits until a process asks for more work, or is gone, and frees its slot. An invocation ends with that: a
// process may still crash after it has answered.
func (p *pool) finish(e *environment) {
	defer p.broker.settled.Done()
	if e != nil {
		timer := time.NewTimer(p.Timeout)
		defer timer.Stop()
		select {
		case <-e.polled:
			p.mu.Lock()
			p.idle = append(p.idle, e)
			p.mu.Unlock()
		case <-e.exited:
		case <-timer.C: // it answered but never came back
			e.kill()
		}
	}
	<-p.slots
}

func (p *pool) find(appID string) *environment {
	for _, e := range p.running() {
		if e.appID == appID {
			return e
		}
	}
	return nil
}

func (p *pool) running() []*environment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

func (p *pool) forget(e *environment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	is := func(o *environment) bool { return o == e }
	p.all = slices.DeleteFunc(p.all, is)
	p.idle = slices.DeleteFunc(p.idle, is)
}
