// Package importtest runs the importer on bytes, through the real store to the embedded DynamoDB, and kills
// it wherever it can be killed. What comes out is held against a naive import that nothing disturbs.
package importtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/dataset"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/importer"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/sweep"
	"pintu/localstack/ddb"
	"pintu/localstack/storetest"
)

// world is everything of the system but HTTP, Lambda, SQS and S3: those are plain values here.
type world struct {
	t      testing.TB
	cfg    aws.Config
	server *ddb.Server
	db     *dynamodb.Client
	store  *dynamostore.Store // undisturbed, for clients and assertions
	jobs   *job.Service
	files  *files
	caller access.Caller

	chunkBytes int64
	batchRows  int

	mu    sync.Mutex
	queue []message
	clock time.Duration // ahead of the machine's
}

// message is a hint that waits to be received.
type message struct {
	hint     job.Hint
	receives int
	sentAt   time.Time
}

func newWorld(t testing.TB) *world {
	server, err := ddb.New(ddb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("pintu", "pintu-local-secret", ""),
		BaseEndpoint: aws.String("http://dynamodb.test"), HTTPClient: &http.Client{Transport: direct{server}},
	}
	w := &world{t: t, cfg: cfg, db: dynamodb.NewFromConfig(cfg), server: server, files: &files{objects: map[string][]byte{}},
		chunkBytes: 64, batchRows: 3, caller: access.Caller{Tenant: "acme", Client: "loader", Limits: access.DefaultLimits()}}
	if err := storetest.CreateTables(t.Context(), w.db); err != nil {
		t.Fatal(err)
	}
	w.store = w.storeThrough(direct{server})
	w.jobs = w.service(w.store, w.files, w)
	if _, err := access.New(access.Config{Store: w.store, Now: w.now}).CreateClient(t.Context(), w.caller.Tenant, w.caller.Client,
		[]access.Scope{access.JobsSubmit, access.RowsWrite}, w.caller.Limits, time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.define("pairs", `{"schema":{"fields":[{"name":"k","type":"string"},{"name":"v","type":"integer","constraints":{"minimum":0}}],"primaryKey":["k"]}}`)
	return w
}

// direct is the way to the embedded DynamoDB without a socket: a connection that breaks is an error here too.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		if broken := recover(); broken == http.ErrAbortHandler {
			err = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		} else if broken != nil {
			panic(broken)
		}
	}()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// define puts a dataset.
func (w *world) define(name, definition string) {
	w.t.Helper()
	def, err := dataset.Parse([]byte(definition))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.catalog(w.store).Put(w.t.Context(), w.caller, idempotency.Intent{}, name, def); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) storeThrough(way http.RoundTripper) *dynamostore.Store {
	cfg := w.cfg
	cfg.HTTPClient = &http.Client{Transport: way}
	return dynamostore.New(dynamostore.Config{AWS: cfg, ControlTable: storetest.ControlTable, RecordsTable: storetest.RecordsTable, Now: w.now})
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.clock)
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock += d
}

// Send makes the world the queue of its workers.
func (w *world) Send(_ context.Context, hints ...job.Hint) error {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range hints {
		w.queue = append(w.queue, message{hint: h, sentAt: now})
	}
	return nil
}

// Idle says that nothing waits.
func (w *world) Idle(context.Context, job.HintKind) (bool, error) { return true, nil }

// Holds says that nobody was revoked.
func (w *world) Holds(context.Context, string, string, access.Scope) (bool, error) { return true, nil }

// TakeSubmit never refuses.
func (w *world) TakeSubmit(context.Context, access.Caller) (access.Allowance, error) {
	return access.Allowance{}, nil
}

func (w *world) service(store *dynamostore.Store, blob blob, hints job.Hints) *job.Service {
	return job.New(job.Config{Store: store, Blob: blob, Hints: hints, Datasets: store, Rows: w.rows(store, blob), Rates: w, Now: w.now})
}

func (w *world) catalog(store *dynamostore.Store) *dataset.Catalog {
	return dataset.NewCatalog(dataset.CatalogConfig{Store: store, Now: w.now})
}

// definitions adapts the catalog to what the importer asks.
type definitions struct{ *dataset.Catalog }

func (d definitions) Definition(ctx context.Context, tenant, name string, version int) (*dataset.Definition, error) {
	v, err := d.GetVersion(ctx, tenant, name, version)
	return v.Definition, err
}

// worker makes an importer whose calls go through a switch that can kill it.
func (w *world) worker(kill *killer) *importer.Importer {
	if kill == nil {
		return w.importer(w.store, w.files, w)
	}
	kill.next = direct{w.server}
	return w.importer(w.storeThrough(kill), w.files, w)
}

func (w *world) importer(store *dynamostore.Store, blob blob, hints job.Hints) *importer.Importer {
	return importer.New(importer.Config{Store: store, Records: store, Quarantine: store, Rows: w.rows(store, blob), Blob: blob, Definitions: definitions{w.catalog(store)},
		Access: access.New(access.Config{Store: store, Now: w.now}), Hints: hints, Jobs: w.service(store, blob, hints), Now: w.now, ChunkBytes: w.chunkBytes, BatchRows: w.batchRows, InFlight: 4})
}

func (w *world) rows(store *dynamostore.Store, blob quarantine.Blob) *quarantine.Service {
	return quarantine.New(store, blob, w.now)
}

// blob is the object store as jobs and imports need it.
type blob interface {
	job.Blob
	importer.Blob
}

// submit uploads a file and completes it.
func (w *world) submit(body string) id.Job {
	w.t.Helper()
	return w.uploaded("pairs", []byte(body))
}

// uploaded uploads a file for a dataset and completes it.
func (w *world) uploaded(dataset string, body []byte) id.Job {
	w.t.Helper()
	jobID := w.upload(dataset, body, nil)
	if _, err := w.jobs.Complete(w.t.Context(), w.caller, idempotency.Intent{}, jobID); err != nil {
		w.t.Fatal(err)
	}
	return jobID
}

// upload submits a job and uploads its file, but does not complete it.
func (w *world) upload(dataset string, body []byte, change func(*job.ImportSpec)) id.Job {
	w.t.Helper()
	spec := job.ImportSpec{Dataset: dataset, Format: "csv", UploadMethod: "put", MaxRejected: job.DefaultMaxRejected, Retention: job.DefaultRetention(),
		File: job.File{Name: "rows.csv", SizeBytes: int64(len(body)), ContentType: "text/csv"}}
	if change != nil {
		change(&spec)
	}
	got, err := w.jobs.SubmitImport(w.t.Context(), w.caller, idempotency.Intent{}, "req", spec)
	if err != nil {
		w.t.Fatal(err)
	}
	w.files.put(got.Job.Input.Key, body)
	return got.Job.ID
}

// handle has a worker work on one message. A message whose worker fails comes back.
func (w *world) handle(ctx context.Context, im *importer.Importer, h job.Hint) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	var err error
	if h.Kind == job.HintPlan {
		err = im.Advance(ctx, h)
	} else {
		err = im.Process(ctx, h)
	}
	if err != nil {
		_ = w.Send(ctx, h)
	}
	return err
}

// take receives a random message.
func (w *world) take(r *rand.Rand) (job.Hint, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return job.Hint{}, false
	}
	i := r.IntN(len(w.queue))
	m := w.queue[i]
	w.queue = slices.Delete(w.queue, i, i+1)
	return m.hint, true
}

// shuffle puts the waiting messages into another order.
func (w *world) shuffle(r *rand.Rand) {
	r.Shuffle(len(w.queue), func(i, j int) { w.queue[i], w.queue[j] = w.queue[j], w.queue[i] })
}

// drain works off the queue undisturbed, one message after the other, sweeping when it is empty, until
// the job ended.
func (w *world) drain(jobID id.Job) job.Job {
	w.t.Helper()
	r, im := rand.New(rand.NewPCG(1, 2)), w.worker(nil)
	var last error
	for range 500 {
		if j := w.job(jobID); j.Status.Terminal() {
			return j
		}
		h, ok := w.take(r)
		if !ok {
			w.sweep()
			continue
		}
		if err := w.handle(w.t.Context(), im, h); err != nil {
			last = err
		}
	}
	w.t.Fatalf("job %s did not end: %+v (last error: %v)", jobID, w.job(jobID), last)
	return job.Job{}
}

// sweep lets enough time pass for everything to be due.
func (w *world) sweep() {
	w.t.Helper()
	w.advance(2 * time.Hour)
	if _, err := sweep.New(w.store, w.jobs, w, w, w.now).Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) job(jobID id.Job) job.Job {
	w.t.Helper()
	j, err := w.store.Job(w.t.Context(), w.caller.Tenant, jobID)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// errKilled is what a worker sees of its own death.
var errKilled = errors.New("killed")

// killer lets a worker die at its n-th call: before it reaches the store, or after it was executed and
// before the reply came. Calls after that do not happen.
type killer struct {
	next   http.RoundTripper
	at     int // 0: never
	after  bool
	cancel context.CancelFunc

	mu   sync.Mutex
	seen int
	dead bool
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	k.seen++
	now := k.seen == k.at
	dead := k.dead
	if now {
		k.dead = true
	}
	k.mu.Unlock()
	switch {
	case dead:
		return nil, errKilled
	case !now:
		return k.next.RoundTrip(r)
	case k.after:
		if res, err := k.next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err == nil {
			_ = res.Body.Close()
		}
	}
	k.cancel()
	return nil, errKilled
}

// files is the object store: versions are not needed, since nothing here writes a key twice.
type files struct {
	mu      sync.Mutex
	objects map[string][]byte
	breaks  error // of every read, when not nil
}

func (f *files) put(key string, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[key] = body
}

func (f *files) get(key string) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.objects[key]
	return b, ok
}

func (f *files) PresignPut(context.Context, string, job.File) (job.Grant, error) {
	return job.Grant{}, nil
}

func (f *files) PresignGet(context.Context, string, string, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}

func (f *files) Head(_ context.Context, key string) (job.Object, bool, error) {
	b, ok := f.get(key)
	return job.Object{VersionID: "1", SizeBytes: int64(len(b)), ContentType: "text/csv"}, ok, nil
}

func (f *files) Open(_ context.Context, key, _ string, from, to int64) (io.ReadCloser, error) {
	b, ok := f.get(key)
	if f.breaks != nil {
		return nil, f.breaks
	}
	if !ok {
		return nil, fmt.Errorf("no object %s", key)
	}
	if to < 0 {
		to = int64(len(b))
	}
	return io.NopCloser(bytes.NewReader(b[from:to])), nil
}

func (f *files) Put(ctx context.Context, key, _ string, body io.Reader) (string, error) {
	b, err := io.ReadAll(body)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		f.put(key, b)
	}
	return "1", err
}
