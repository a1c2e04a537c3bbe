// Package clock is the time of the embedded stack: the machine's, plus what tests have moved it by. Waits end when the
// clock says so, whether it got there by itself or was moved. It only goes forward, and it refuses to reach into the
// function processes: they keep the machine's clock.
package clock

import (
	"sync"
	"time"
)

// Clock is a movable clock. It is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	offset  time.Duration
	moved   chan struct{} // closed and replaced by Advance
	onMoved []func()
}

// New gives a clock that shows the machine's time.
func New() *Clock { return &Clock{moved: make(chan struct{})} }

// Now is the time of the stack.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

// Advance moves the clock forward and ends the waits that have become due. It panics when d is negative.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: it only goes forward")
	}
	c.mu.Lock()
	c.offset += d
	close(c.moved)
	c.moved = make(chan struct{})
	hooks := c.onMoved
	c.mu.Unlock()
	for _, f := range hooks {
		f()
	}
}

// OnAdvance calls f after every Advance, before it returns.
func (c *Clock) OnAdvance(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onMoved = append(c.onMoved[:len(c.onMoved):len(c.onMoved)], f)
}

// WaitUntil waits until the clock shows t or done is closed, and tells which: true is t.
func (c *Clock) WaitUntil(t time.Time, done <-chan struct{}) bool {
	for {
		c.mu.Lock()
		left := t.Sub(time.Now().Add(c.offset))
		moved := c.moved
		c.mu.Unlock()
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-moved:
			timer.Stop()
		case <-done:
			timer.Stop()
			return false
		}
	}
}
