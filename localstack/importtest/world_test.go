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
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/dataset"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/importer"
	"pintu/internal/job"
	"pintu/internal/sweep"
	"pintu/localstack/ddb"
	"pintu/localstack/storetest"
)

// world is everything of the system but HTTP, Lambda, SQS and S3: those are plain values here.
type world struct {
	t      testing.TB
	cfg    aws.Config
	ddb    *ddb.Server
	db     *dynamodb.Client
	store  *dynamostore.Store // undisturbed, for clients and assertions
	jobs   *job.Service
	files  *files
	caller access.Caller

	chunkBytes int64
	batchRows  int

	mu    sync.Mutex
	queue []job.Hint
	clock time.Duration // ahead of the machine's
}

func newWorld(t testing.TB) *world {
	store, server, cfg := storetest.Start(t)
	cfg.HTTPClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(cfg.HTTPClient.(*http.Client).CloseIdleConnections)
	w := &world{t: t, cfg: cfg, ddb: server, db: dynamodb.NewFromConfig(cfg), store: store, files: &files{objects: map[string][]byte{}},
		chunkBytes: 64, batchRows: 3,
		caller: access.Caller{Tenant: "acme", Client: "loader", Limits: access.DefaultLimits()}}
	w.jobs = w.service(store)
	def, err := dataset.Parse([]byte(`{"schema":{"fields":[{"name":"k","type":"string"},{"name":"v","type":"integer","constraints":{"minimum":0}}],"primaryKey":["k"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.catalog(store).Put(t.Context(), w.caller, idempotency.Intent{}, "pairs", def); err != nil {
		t.Fatal(err)
	}
	return w
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, hints...)
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

func (w *world) service(store *dynamostore.Store) *job.Service {
	return job.New(job.Config{Store: store, Blob: w.files, Hints: w, Datasets: store, Rates: w, Now: w.now})
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
	cfg := w.cfg
	if kill != nil {
		kill.next = w.cfg.HTTPClient.(*http.Client).Transport
		cfg.HTTPClient = &http.Client{Transport: kill}
	}
	store := dynamostore.New(dynamostore.Config{AWS: cfg, ControlTable: storetest.ControlTable, RecordsTable: storetest.RecordsTable, Now: w.now})
	return importer.New(importer.Config{Store: store, Records: store, Quarantine: store, Blob: w.files, Definitions: definitions{w.catalog(store)},
		Access: w, Hints: w, Jobs: w.service(store), Now: w.now, ChunkBytes: w.chunkBytes, BatchRows: w.batchRows, InFlight: 4})
}

// submit uploads a file and completes it.
func (w *world) submit(body string) id.Job {
	w.t.Helper()
	spec := job.ImportSpec{Dataset: "pairs", Format: "csv", UploadMethod: "put", MaxRejected: job.DefaultMaxRejected, Retention: job.DefaultRetention(),
		File: job.File{Name: "pairs.csv", SizeBytes: int64(len(body)), ContentType: "text/csv"}}
	got, err := w.jobs.SubmitImport(w.t.Context(), w.caller, idempotency.Intent{}, "req", spec)
	if err != nil {
		w.t.Fatal(err)
	}
	w.files.put(got.Job.Input.Key, []byte(body))
	if _, err := w.jobs.Complete(w.t.Context(), w.caller, idempotency.Intent{}, got.Job.ID); err != nil {
		w.t.Fatal(err)
	}
	return got.Job.ID
}

// handle has a worker work on one message. A message whose worker fails comes back.
func (w *world) handle(ctx context.Context, im *importer.Importer, h job.Hint) error {
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
	h := w.queue[i]
	w.queue = append(w.queue[:i], w.queue[i+1:]...)
	return h, true
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
