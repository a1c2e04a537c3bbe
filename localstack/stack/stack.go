// Package stack assembles the embedded stack: from template.yaml and the binaries under build/ it makes one process that
// serves the HTTP API and an AWS endpoint with DynamoDB, SQS and S3 behind it, runs the functions, and feeds them from
// queues and schedules. What it creates is what the template declares.
//
// It refuses to be the product's second implementation: it holds no rule of the product, and tests reach the product
// over HTTP, the AWS endpoint and the fault injector only. It does not enforce what AWS enforces outside the code: IAM
// policies, memory limits, the bucket's lifecycle.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"pintu/localstack/ddb"
	"pintu/localstack/events"
	"pintu/localstack/faults"
	"pintu/localstack/gateway"
	"pintu/localstack/lambda"
	"pintu/localstack/sqs"
	"pintu/localstack/template"
)

// What stands for an AWS account here.
const (
	Region    = "us-east-1"
	Account   = "000000000000"
	AccessKey = "pintu"
	SecretKey = "pintu-local-secret"
)

// Config of a Stack.
type Config struct {
	// Root is the repository: template.yaml and build/<LogicalId>/bootstrap are read from it. Empty is the working
	// directory.
	Root string
	// Port of the API and AWSPort of the AWS endpoint, both on 127.0.0.1; 0 takes a free one.
	Port, AWSPort int
	// Data keeps the state; empty keeps it in memory and, for S3, in a temporary directory.
	Data string
	// Env overrides environment variables of functions, by logical id or "*" for all.
	Env map[string]map[string]string
	// Parameters override those of the template.
	Parameters map[string]string
	// Log gets what functions print and what the stack has to say; nil drops it.
	Log io.Writer
	// Clock is the time of tables, queues and schedules; nil makes a new one.
	Clock *Clock
	// Schedules fires the template's schedules, at the start and then by the clock.
	Schedules bool
	// MaxConcurrency bounds the processes of functions, by logical id. The default is 4 for readers of queues (at most
	// the template's MaximumConcurrency) and 32 for others; each is started only when all before it are busy.
	MaxConcurrency map[string]int
	// RedeliverAtOnce makes the messages of an invocation that failed as a whole (killed, timed out, crashed, error)
	// visible again at once. Without it they come back as on AWS, after the queue's visibility time-out: advance the
	// clock.
	RedeliverAtOnce bool
}

// Stack is a running system.
type Stack struct {
	cfg     Config
	system  *template.System
	clock   *Clock
	url     string
	aws     string
	ddb     *ddb.Server
	sqs     *sqs.Server
	s3URL   string
	faults  *faults.Injector
	broker  *lambda.Broker
	timers  []*events.Schedule
	feeding sync.WaitGroup
	closers []func() error // run last first
	closed  sync.Once
	failure error // of Close
}

// Start builds the system (one per process at a time: the object store takes over the working directory) and returns when GET {url}/v1/health answers 200. The caller closes the stack; ctx bounds
// the start only.
func Start(ctx context.Context, c Config) (*Stack, error) {
	if c.Root == "" {
		c.Root = "."
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	c.Log = &lockedWriter{out: c.Log}
	if c.Clock == nil {
		c.Clock = NewClock()
	}
	s := &Stack{cfg: c, clock: c.Clock}
	if err := errors.Join(absolute(&s.cfg.Root), absolute(&s.cfg.Data), s.start(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("start the embedded stack: %w", err), s.Close())
	}
	return s, nil
}

// absolute resolves a path that is given; the object store changes the working directory.
func absolute(path *string) error {
	if *path == "" {
		return nil
	}
	var err error
	*path, err = filepath.Abs(*path)
	return err
}

func (s *Stack) start(ctx context.Context) error {
	awsListener, err := s.listen(s.cfg.AWSPort)
	if err != nil {
		return err
	}
	apiListener, err := s.listen(s.cfg.Port)
	if err != nil {
		return err
	}
	s.aws, s.url = "http://"+awsListener.Addr().String(), "http://"+apiListener.Addr().String()
	if s.system, err = s.load(); err != nil {
		return err
	}
	if err := s.makeBroker(); err != nil {
		return err
	}
	if err := s.startServices(ctx); err != nil {
		return err
	}
	if err := s.createResources(ctx); err != nil {
		return err
	}
	api, err := gateway.New(gateway.Config{System: s.system, Invoke: s.broker.Invoke, Account: Account, Log: s.cfg.Log})
	if err != nil {
		return err
	}
	s.serve(awsListener, s.faults)
	s.serve(apiListener, api)
	if err := s.healthy(ctx); err != nil {
		return err
	}
	s.feed()
	return nil
}

func (s *Stack) listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.onClose(func() error { l.Close(); return nil }) // a server that has it closes it too
	return l, nil
}

// load reads the template with what a local target sets.
func (s *Stack) load() (*template.System, error) {
	parameters := map[string]string{"StageName": "dev", "S3PathStyle": "true", "PublicS3Endpoint": s.aws}
	for name, value := range s.cfg.Parameters {
		parameters[name] = value
	}
	return template.Load(s.templatePath(), template.Options{Parameters: parameters, StackName: "pintu", Region: Region, Account: Account, Endpoint: s.aws})
}

func (s *Stack) serve(l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	s.onClose(server.Close)
	go server.Serve(l) // ends with Close
}

// healthy asks the product whether it works; the answer needs a function, and so the whole way to it.
func (s *Stack) healthy(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/health", nil)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /v1/health answered %s: %s", answer.Status, body)
	}
	return nil
}

// URL is the base of the API: {url}/v1/health.
func (s *Stack) URL() string { return s.url }

// AWSEndpoint is what AWS_ENDPOINT_URL must be.
func (s *Stack) AWSEndpoint() string { return s.aws }

// Faults stands before the AWS endpoint.
func (s *Stack) Faults() *faults.Injector { return s.faults }

// Clock is the time of tables, queues and schedules.
func (s *Stack) Clock() *Clock { return s.clock }

// SQS is the server of the queues, for tests that look inside or deliver a message twice.
func (s *Stack) SQS() *sqs.Server { return s.sqs }

// DDB is the server of the tables.
func (s *Stack) DDB() *ddb.Server { return s.ddb }

// System is what the template declares, with the names of this stack.
func (s *Stack) System() *template.System { return s.system }

// Client is for SDK clients of tests and tools. Their calls pass the fault injector without a caller name.
func (s *Stack) Client() aws.Config { return client(s.aws, nil) }

func client(endpoint string, h aws.HTTPClient) aws.Config {
	return aws.Config{Region: Region, Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""), BaseEndpoint: &endpoint, HTTPClient: h}
}

// Env is the environment the template and the Config give a function; empty for an unknown one.
func (s *Stack) Env(logicalID string) map[string]string {
	for _, f := range s.system.Functions {
		if f.LogicalID == logicalID {
			return s.env(f)
		}
	}
	return nil
}

// Invoke runs a function and gives its answer. A function that fails is an error that carries what it said.
func (s *Stack) Invoke(ctx context.Context, logicalID string, payload []byte) ([]byte, error) {
	r, err := s.broker.Invoke(ctx, logicalID, payload)
	if err != nil {
		return nil, err
	}
	if r.Failed {
		return nil, fmt.Errorf("invoke %s: it failed: %s", logicalID, r.Payload)
	}
	return r.Payload, nil
}

// FireSchedules runs every schedule of the template once, in order, and waits for each. It does not need
// Config.Schedules.
func (s *Stack) FireSchedules(ctx context.Context) error {
	for _, timer := range s.timers {
		r, err := timer.Fire(ctx, s.clock.Now())
		if err != nil {
			return fmt.Errorf("fire schedule %s: %w", timer.Rule.Name, err)
		}
		if r.Failed {
			return fmt.Errorf("fire schedule %s: %s failed: %s", timer.Rule.Name, timer.Function, r.Payload)
		}
	}
	return nil
}

// Kill ends one function process with SIGKILL, by its app id (ProcessFunction-3). It tells whether there was one.
func (s *Stack) Kill(appID string) bool { return s.broker.Kill(appID) }

// Processes gives the app ids of the function processes that run.
func (s *Stack) Processes() []string { return s.broker.Processes() }

func (s *Stack) onClose(f func() error) { s.closers = append(s.closers, f) }

// Close ends the functions, the servers and the state, in that order. It may be called more than once.
func (s *Stack) Close() error {
	s.closed.Do(func() {
		var errs []error
		for i := len(s.closers) - 1; i >= 0; i-- {
			errs = append(errs, s.closers[i]())
		}
		s.failure = errors.Join(errs...)
	})
	return s.failure
}
