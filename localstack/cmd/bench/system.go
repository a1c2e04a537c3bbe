package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/client"
	"pintu/localstack/faults"
	"pintu/localstack/stack"
)

// system is a running stack with a client.
type system struct {
	*stack.Stack
	client *client.Client
}

func (b *bench) system(env map[string]string) (*system, error) {
	var log bytes.Buffer
	s, err := stack.Start(b.ctx, stack.Config{Root: b.root, Log: &log, RedeliverAtOnce: true, Env: map[string]map[string]string{"*": env}})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, log.String())
	}
	names := s.Env("ApiFunction")
	store := dynamostore.New(dynamostore.Config{AWS: s.Client(), ControlTable: names["PINTU_CONTROL_TABLE"], RecordsTable: names["PINTU_RECORDS_TABLE"]})
	token, err := access.New(access.Config{Store: store, Now: time.Now}).CreateClient(b.ctx, "bench", "bench", access.Scopes, access.Limits{}, time.Time{})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	c, err := client.New(client.Config{BaseURL: s.URL(), Token: token})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	_, _, err = c.PutDataset(b.ctx, "orders", json.RawMessage(ordersSchema), "")
	return &system{Stack: s, client: c}, err
}

// submit uploads a file and gives its job.
func (s *system) submit(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	spec := client.ImportSpec{Dataset: "orders", Format: "csv", File: client.File{Name: filepath.Base(path), SizeBytes: info.Size(), ContentType: "text/csv"}}
	got, err := s.client.Import(ctx, spec, filepath.Base(path), f, func(int64) {})
	return got.Job.ID, err
}

// costRows is about how many rows the clean import has.
const costBytes = 12 << 20

// cost counts requests and capacity units of a clean import.
func (b *bench) cost() (err error) {
	file, err := b.generate("clean.csv", costBytes)
	if err != nil {
		return err
	}
	s, err := b.system(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	s.Faults().Measure()
	began := time.Now()
	jobID, err := s.submit(b.ctx, file)
	if err != nil {
		return err
	}
	j, err := s.client.Wait(b.ctx, jobID, nil)
	if err != nil {
		return err
	}
	if j.Status != "succeeded" {
		return fmt.Errorf("job %s ended %s", jobID, j.Status)
	}
	rows := float64(j.Result.RowsAccepted)
	fmt.Printf("\nA clean import of %.0f rows on the embedded stack\n", rows)
	show("end to end", rows/time.Since(began).Seconds(), "rows/s")
	process := faults.Rule{Service: faults.DynamoDB, Caller: "ProcessFunction"}
	used := s.Faults().Used(process)
	b.atMost("requests per row, workers", float64(s.Faults().Count(process))/rows, 1.05, "")
	b.atMost("write units per row, workers", used.WriteUnits/rows, 1.05, "")
	for _, op := range []string{"GetItem", "Query", "BatchGetItem"} {
		show("  of the requests: "+op+" (job and chunks)", float64(s.Faults().Count(faults.Rule{Caller: "ProcessFunction", Operation: op}))/rows, "per row")
	}
	return nil
}

const (
	memoryBytes = 2 << 30
	memoryLimit = 64 // MB above idle
)

// memory watches the peak of a plan and of process workers on a large file. The plan pass is watched to
// its end, the workers for a while; then the job is canceled.
func (b *bench) memory() (err error) {
	file, err := b.generate("large.csv", memoryBytes)
	if err != nil {
		return err
	}
	s, err := b.system(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	idle := map[string]int64{}
	for _, name := range []string{"PlanFunction", "ProcessFunction"} {
		if _, err := s.Invoke(b.ctx, name, []byte(`{"Records":[]}`)); err != nil {
			return err
		}
		if idle[name], err = b.resident(name, "VmRSS"); err != nil {
			return err
		}
	}
	jobID, err := s.submit(b.ctx, file)
	if err != nil {
		return err
	}
	chunks, err := b.planned(s, jobID)
	if err != nil {
		return err
	}
	fmt.Printf("\nPeak memory on a file of %d MB in %d chunks\n", memoryBytes>>20, chunks)
	for _, name := range []string{"PlanFunction", "ProcessFunction"} {
		peak, err := b.resident(name, "VmHWM")
		if err != nil {
			return err
		}
		show(name+" idle", float64(idle[name])/1024, "MB")
		b.atMost(name+" above idle", float64(peak-idle[name])/1024, memoryLimit, "MB")
	}
	return nil
}

// planned waits until the plan pass has ended and the workers had a minute, then cancels the job.
func (b *bench) planned(s *system, jobID string) (int, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	least := time.Now().Add(time.Minute)
	for {
		select {
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		case <-tick.C:
		}
		j, err := s.client.Job(b.ctx, jobID)
		if err != nil {
			return 0, err
		}
		closed, chunks, err := b.plan(s, jobID)
		if err != nil {
			return 0, err
		}
		if j.Status.Terminal() {
			return 0, fmt.Errorf("job %s ended %s", jobID, j.Status)
		}
		if closed && time.Now().After(least) {
			_, err := s.client.Cancel(b.ctx, jobID, "cancel")
			return chunks, err
		}
	}
}

// plan looks at the job as it is stored.
func (b *bench) plan(s *system, jobID string) (closed bool, chunks int, err error) {
	names := s.Env("ApiFunction")
	store := dynamostore.New(dynamostore.Config{AWS: s.Stack.Client(), ControlTable: names["PINTU_CONTROL_TABLE"], RecordsTable: names["PINTU_RECORDS_TABLE"]})
	j, err := store.Job(b.ctx, "bench", jobOf(jobID))
	return j.Plan.Closed, j.Plan.ChunksPlanned, err
}

// resident reads the largest figure of a function's processes, in KB.
func (b *bench) resident(function, field string) (int64, error) {
	binary := filepath.Join(b.root, "build", function, "bootstrap")
	processes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	var most int64
	for _, exe := range processes {
		if target, err := os.Readlink(exe); err != nil || target != binary {
			continue // it ended, or is another program
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(exe), "status"))
		if err != nil {
			continue
		}
		most = max(most, statusField(string(status), field))
	}
	if most == 0 {
		return 0, fmt.Errorf("no process of %s", function)
	}
	return most, nil
}

func statusField(status, field string) int64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	return 0
}

// start measures how long the api binary takes from its start to its first poll, without the cost of a
// container around it.
func (b *bench) start() error {
	var best time.Duration
	for range 10 {
		took, err := b.firstPoll()
		if err != nil {
			return err
		}
		if best == 0 || took < best {
			best = took
		}
	}
	fmt.Println("\nCold start")
	show("api: start to first poll, best of 10", float64(best.Microseconds())/1000, "ms")
	return nil
}

var errNoPoll = errors.New("the function did not ask for an invocation")
