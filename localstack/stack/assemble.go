package stack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"pintu/localstack/ddb"
	"pintu/localstack/events"
	"pintu/localstack/faults"
	"pintu/localstack/lambda"
	"pintu/localstack/sqs"
	"pintu/localstack/template"
)

func (s *Stack) templatePath() string { return filepath.Join(s.cfg.Root, "template.yaml") }

// startServices starts the three stores and puts the injector before them.
func (s *Stack) startServices(ctx context.Context) error {
	dirs, err := s.directories()
	if err != nil {
		return err
	}
	if s.ddb, err = ddb.New(ddb.Config{Dir: dirs.ddb, Now: s.clock.Now}); err != nil {
		return fmt.Errorf("start dynamodb: %w", err)
	}
	s.onClose(s.ddb.Close)
	s.sqs, err = sqs.New(sqs.Config{Dir: dirs.sqs, Now: s.clock.Now, BaseURL: s.aws, Region: Region, Account: Account})
	if err != nil {
		return fmt.Errorf("start sqs: %w", err)
	}
	s.onClose(s.sqs.Close)
	s.clock.OnAdvance(s.sqs.Wake)
	if err := s.startS3(ctx, dirs.s3); err != nil {
		return fmt.Errorf("start s3: %w", err)
	}
	s.faults = faults.New(s.endpoint(), s.broker.Kill)
	s.onClose(func() error { s.faults.Close(); return nil })
	return nil
}

type directories struct{ ddb, sqs, s3 string }

// directories says where the state is kept. S3 needs a directory in any case.
func (s *Stack) directories() (directories, error) {
	d := directories{}
	if s.cfg.Data != "" {
		d = directories{filepath.Join(s.cfg.Data, "dynamodb"), filepath.Join(s.cfg.Data, "sqs"), filepath.Join(s.cfg.Data, "s3")}
		if err := os.MkdirAll(d.s3, 0o700); err != nil {
			return d, err
		}
		return d, s.lock(s.cfg.Data)
	}
	temp, err := os.MkdirTemp("", "pintu-s3-")
	if err != nil {
		return d, fmt.Errorf("make a directory for s3: %w", err)
	}
	s.onClose(func() error { return os.RemoveAll(temp) })
	d.s3 = temp
	return d, nil
}

// makeBroker prepares to run every function. All binaries must be there; no process starts before it is needed.
func (s *Stack) makeBroker() error {
	var functions []lambda.Function
	for _, f := range s.system.Functions {
		bootstrap := filepath.Join(s.cfg.Root, "build", f.LogicalID, "bootstrap")
		if _, err := os.Stat(bootstrap); err != nil {
			return fmt.Errorf("%s is not built (make build): %w", f.LogicalID, err)
		}
		functions = append(functions, lambda.Function{LogicalID: f.LogicalID, Name: f.Name, ARN: f.ARN, Bootstrap: bootstrap, Timeout: f.Timeout,
			MemoryMB: f.MemoryMB, LogFormat: f.LogFormat, Env: s.env(f), MaxEnvironments: s.concurrency(f)})
	}
	s.broker = lambda.New(lambda.Config{Region: Region, AccessKey: AccessKey, SecretKey: SecretKey, Endpoint: s.aws, Log: s.cfg.Log, InitTime: initTime}, functions...)
	s.onClose(s.broker.Close)
	return nil
}

// initTime is longer than the ten seconds of AWS: many processes may start at once on few processors.
const initTime = time.Minute

func (s *Stack) env(f template.Function) map[string]string {
	env := map[string]string{}
	maps.Copy(env, f.Env)
	maps.Copy(env, s.cfg.Env["*"])
	maps.Copy(env, s.cfg.Env[f.LogicalID])
	return env
}

// Processes of a function when Config.MaxConcurrency does not say: readers of queues are busy all the time and share
// the machine, others wait most of the time, long polls of clients above all.
const (
	readers = 4
	others  = 32
)

func (s *Stack) concurrency(f template.Function) int {
	if n := s.cfg.MaxConcurrency[f.LogicalID]; n > 0 {
		return n
	}
	if len(f.Sources) == 0 {
		return others
	}
	n := readers
	for _, source := range f.Sources {
		if source.MaxConcurrency > 0 {
			n = min(n, source.MaxConcurrency)
		}
	}
	return n
}

// feed starts the event sources and, if asked for, the schedules. They end before the functions do, so that no message
// is taken which nobody will handle.
func (s *Stack) feed() {
	ctx, cancel := context.WithCancel(context.Background())
	queues := awssqs.NewFromConfig(client(s.aws, inProcess{s.sqs}))
	for _, f := range s.system.Functions {
		for _, m := range f.Sources {
			source := &events.Source{Mapping: m, Function: f.LogicalID, QueueURL: s.queueURL(m.Queue), Region: Region, SQS: queues,
				Invoke: s.broker.Invoke, Concurrency: s.concurrency(f), RedeliverAtOnce: s.cfg.RedeliverAtOnce, Log: s.cfg.Log}
			s.feeding.Go(func() { source.Run(ctx) })
		}
		for _, rule := range f.Schedules {
			timer := &events.Schedule{Rule: rule, Function: f.LogicalID, Region: Region, Account: Account, Clock: s.clock, Invoke: s.broker.Invoke, Log: s.cfg.Log}
			s.timers = append(s.timers, timer)
			if s.cfg.Schedules {
				s.feeding.Go(func() { timer.Run(ctx) })
			}
		}
	}
	s.onClose(func() error {
		cancel()
		err := s.broker.Close() // ends the invocations that the sources wait for
		s.feeding.Wait()
		return err
	})
}

func (s *Stack) queueURL(name string) string { return s.aws + "/" + Account + "/" + name }

// endpoint routes by protocol: the JSON services name their operation in a header, everything else is S3.
func (s *Stack) endpoint() http.Handler {
	objects := s.s3Proxy()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch faults.Service(r) {
		case faults.DynamoDB:
			s.ddb.ServeHTTP(w, r)
		case faults.SQS:
			s.sqs.ServeHTTP(w, r)
		default:
			objects.ServeHTTP(w, r)
		}
	})
}
