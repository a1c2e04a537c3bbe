// Package lambda runs function binaries the way AWS Lambda does: as processes that fetch their invocations from the
// Runtime API, one at a time each, kept warm between them, killed when they run out of time, and started anew when they
// died. The binaries are those that are deployed; nothing in them knows that they run here.
//
// It refuses to be a sandbox: a process sees the machine's file system and network, memory is not bounded, and an idle
// process is not frozen.
package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// MaxPayload is the largest event a synchronous invocation takes, in bytes.
const MaxPayload = 6 << 20

// maxResponse is the largest answer a function may give, in bytes (6 MB and what AWS adds to it).
const maxResponse = MaxPayload + 100

// Errors of Invoke that say that no function has run.
var (
	ErrTooLarge = errors.New("request must be smaller than 6291456 bytes for the InvokeFunction operation")
	ErrClosed   = errors.New("the broker is closed")
)

// Function is what a Broker can run.
type Function struct {
	LogicalID       string // its processes call themselves LogicalID-1, LogicalID-2, … in logs and in User-Agent
	Name, ARN       string
	Bootstrap       string // path of the binary
	Timeout         time.Duration
	MemoryMB        int
	LogFormat       string            // JSON or Text
	Env             map[string]string // on top of what Lambda sets
	MaxEnvironments int               // processes at the same time; further invocations wait
}

// Config of a Broker.
type Config struct {
	Region               string
	AccessKey, SecretKey string
	Endpoint             string    // AWS_ENDPOINT_URL of the functions
	Log                  io.Writer // what functions print, a prefix before each line; nil drops it
	// InitTime is how long a process may take from its start to its first poll; 0 means 10 s, as on AWS.
	InitTime time.Duration
	// Grace is what a process gets between SIGTERM and SIGKILL when the broker closes; 0 means 500 ms.
	Grace time.Duration
}

// Result is the outcome of an invocation.
type Result struct {
	RequestID string
	Payload   []byte // the function's answer, or the error as Lambda describes it
	Failed    bool   // X-Amz-Function-Error: Unhandled
	Died      bool   // the process is gone: it crashed, was killed or ran out of time
}

// Broker runs functions. It is safe for concurrent use.
type Broker struct {
	cfg     Config
	log     *log
	spawner *spawner
	pools   map[string]*pool
	done    chan struct{}
	settled sync.WaitGroup // processes, and what waits for them

	mu     sync.Mutex
	closed bool
}

// New makes a broker of functions. Nothing is started before the first invocation.
func New(c Config, functions ...Function) *Broker {
	if c.InitTime == 0 {
		c.InitTime = 10 * time.Second
	}
	if c.Grace == 0 {
		c.Grace = 500 * time.Millisecond
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	b := &Broker{cfg: c, log: &log{out: c.Log}, spawner: newSpawner(), pools: map[string]*pool{}, done: make(chan struct{})}
	for _, f := range functions {
		b.pools[f.LogicalID] = newPool(b, f)
	}
	return b
}

// Invoke runs a function to its end and gives its answer. ctx bounds the wait for a free process only: as on AWS, an
// invocation that has begun is not stopped when its caller goes away. A function that fails is no error of Invoke.
func (b *Broker) Invoke(ctx context.Context, logicalID string, payload []byte) (Result, error) {
	p, ok := b.pools[logicalID]
	if !ok {
		return Result{}, fmt.Errorf("invoke %s: no such function", logicalID)
	}
	if len(payload) > MaxPayload {
		return Result{}, fmt.Errorf("invoke %s: %w", logicalID, ErrTooLarge)
	}
	r, err := p.invoke(ctx, payload)
	if err != nil {
		return Result{}, fmt.Errorf("invoke %s: %w", logicalID, err)
	}
	return r, nil
}

// Kill sends SIGKILL to the process with that app id, such as ProcessFunction-3, and waits until it is gone. It tells
// whether there was such a process.
func (b *Broker) Kill(appID string) bool {
	for _, p := range b.pools {
		if e := p.find(appID); e != nil {
			e.kill()
			<-e.exited
			return true
		}
	}
	return false
}

// Processes gives the app ids of the processes that run now.
func (b *Broker) Processes() []string {
	var out []string
	for _, p := range b.pools {
		for _, e := range p.running() {
			out = append(out, e.appID)
		}
	}
	return out
}

// Close ends every process, SIGTERM first, and returns when all are gone. Invocations under way fail.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	close(b.done)
	b.mu.Unlock()
	for _, p := range b.pools {
		for _, e := range p.running() {
			go e.stop(b.cfg.Grace)
		}
	}
	b.settled.Wait()
	b.spawner.close()
	return nil
}

// track counts a goroutine that Close waits for; false when the broker is closed.
func (b *Broker) track() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.settled.Add(1)
	return true
}
