package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/importer"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

const (
	endedRetry  = id.Job("job_01JZZZZZZZZZZZZZZZZZZZZZZE")
	activeRetry = id.Job("job_01JZZZZZZZZZZZZZZZZZZZZZZR")
	lostRetry   = id.Job("job_01JZZZZZZZZZZZZZZZZZZZZZZ0")
)

var worker = access.Caller{Tenant: "acme", Client: "mender"}

// payloads are a bucket.
type payloads map[string]string

func (p payloads) Open(_ context.Context, key, _ string, _, _ int64) (io.ReadCloser, error) {
	body, there := p[key]
	if !there {
		return nil, errors.New("no object " + key)
	}
	return io.NopCloser(strings.NewReader(body)), nil
}

// quarantined has three chunks of ten rows with one quarantined row of each kind; a retry is under way, one
// has ended, and one is past its retention.
func quarantined(t *testing.T) (*quarantine.Service, *dynamostore.Store, aws.Config) {
	t.Helper()
	store, _, cfg := Start(t)
	putJob(t, cfg, job.Job{Tenant: "acme", ID: rowsJob, Kind: job.Import, Status: job.Partial, Plan: job.Plan{ChunksPlanned: 3}})
	putJob(t, cfg, job.Job{Tenant: "acme", ID: endedRetry, Kind: job.Import, Status: job.Canceled, RowsOf: rowsJob})
	putJob(t, cfg, job.Job{Tenant: "acme", ID: activeRetry, Kind: job.Import, Status: job.Queued, RowsOf: rowsJob})
	for i := range 3 {
		it, err := attributevalue.MarshalMap(importer.Chunk{Tenant: "acme", JobID: rowsJob, Index: i, Start: rowio.Position{Row: int64(10*i + 1)}})
		if err != nil {
			t.Fatal(err)
		}
		it["pk"], it["sk"], it["rejected"] = str("job#acme#"+string(rowsJob)), str(fmt.Sprintf("chunk#%08d", i)), num("9")
		putItem(t, cfg, ControlTable, it)
	}
	for _, r := range []quarantine.Row{
		{RowNumber: 1, State: quarantine.Quarantined},
		{RowNumber: 10, State: quarantine.Quarantined, RetryJob: endedRetry},
		{RowNumber: 11, State: quarantine.Quarantined, RetryJob: activeRetry},
		{RowNumber: 15, State: quarantine.Resolved, RetryJob: endedRetry, ResolvedBy: string(endedRetry)},
		{RowNumber: 21, State: quarantine.Discarded, Reason: "gone"},
		{RowNumber: 29, State: quarantine.Quarantined, RetryJob: lostRetry, RawKey: "raw/29"},
	} {
		r.Chunk, r.Code, r.Class, r.Attempts, r.DatasetVersion, r.Rev = int(r.RowNumber-1)/10, fault.TypeMismatch, quarantine.Data, 1, 1, 1
		if r.RawKey == "" {
			r.Raw = fmt.Appendf(nil, "raw %d\n", r.RowNumber)
		}
		if err := store.PutRow(t.Context(), "acme", rowsJob, r); err != nil {
			t.Fatal(err)
		}
	}
	return quarantine.New(store, payloads{"raw/29": "large, \"quoted\"\n"}, newClock().now), store, cfg
}

func putJob(t *testing.T, cfg aws.Config, j job.Job) {
	t.Helper()
	it, err := attributevalue.MarshalMap(j)
	if err != nil {
		t.Fatal(err)
	}
	it["pk"], it["sk"] = str("job#acme#"+string(j.ID)), str("job")
	putItem(t, cfg, ControlTable, it)
}

// states lists rows as they are shown: number and state.
func states(t *testing.T, s *quarantine.Service, of id.Job, f quarantine.Filter) (out []string) {
	t.Helper()
	page, err := s.List(t.Context(), worker, of, f, "", 1000, roomy)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		out = append(out, fmt.Sprint(r.RowNumber, " ", r.State))
	}
	return out
}

func TestRowsAreShownAsWhatTheyAre(t *testing.T) {
	s, _, _ := quarantined(t)
	for _, c := range []struct {
		name string
		of   id.Job
		f    quarantine.Filter
		want []string
	}{
		{"all", rowsJob, quarantine.Filter{}, []string{"1 quarantined", "10 quarantined", "11 retrying", "15 resolved", "21 discarded", "29 quarantined"}},
		{"quarantined", rowsJob, quarantine.Filter{State: quarantine.Quarantined}, []string{"1 quarantined", "10 quarantined", "29 quarantined"}},
		{"retrying", rowsJob, quarantine.Filter{State: quarantine.Retrying}, []string{"11 retrying"}},
		{"resolved", rowsJob, quarantine.Filter{State: quarantine.Resolved}, []string{"15 resolved"}},
		{"of a retry", endedRetry, quarantine.Filter{}, []string{"10 quarantined", "15 resolved"}},
		{"of a retry under way", activeRetry, quarantine.Filter{State: quarantine.Retrying}, []string{"11 retrying"}},
		{"one", rowsJob, quarantine.Filter{Row: 11}, []string{"11 retrying"}},
		{"one that is not there", rowsJob, quarantine.Filter{Row: 12}, nil},
		{"one in another state", rowsJob, quarantine.Filter{Row: 15, State: quarantine.Quarantined}, nil},
		{"one that another retry took", endedRetry, quarantine.Filter{Row: 11}, nil},
		{"one beyond the last", rowsJob, quarantine.Filter{Row: 999_999_999_999}, nil},
	} {
		if diff := cmp.Diff(c.want, states(t, s, c.of, c.f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if _, err := s.List(t.Context(), access.Caller{Tenant: "other"}, rowsJob, quarantine.Filter{}, "", 10, roomy); !fault.Is(err, fault.JobNotFound) {
		t.Errorf("another tenant: %v", err)
	}
}

// A payload in the bucket is shown as far as the page has room for it.
func TestLargePayloadsAreShownWhenThereIsRoom(t *testing.T) {
	_, store, _ := quarantined(t)
	payload := strings.Repeat(`"`, 300<<10) // four bytes each in the end
	s := quarantine.New(store, payloads{"raw/29": payload}, newClock().now)
	for maxBytes, want := range map[int]string{4_000_000: payload, 1_100_000: "", 300_000: ""} {
		page, err := s.List(t.Context(), worker, rowsJob, quarantine.Filter{Row: 29}, "", 10, maxBytes)
		if err != nil || len(page.Rows) != 1 {
			t.Fatal(page, err)
		}
		if r := page.Rows[0]; string(r.Raw) != want || (r.RawKey == "") != (want != "") {
			t.Errorf("page of %d bytes: %d bytes of payload, key %q", maxBytes, len(r.Raw), r.RawKey)
		}
	}
}

func patchOf(etag, raw string) (func(string) bool, quarantine.Change) {
	payload := []byte(raw)
	return func(tag string) bool { return tag == etag }, quarantine.Change{Raw: &payload}
}

func TestPatch(t *testing.T) {
	for _, c := range []struct {
		name string
		of   id.Job
		row  int64
		etag string
		code fault.Code // "": it works
	}{
		{"a quarantined row", rowsJob, 1, "1", ""},
		{"one whose retry has ended", rowsJob, 10, "1", ""},
		{"through the retry that took it", endedRetry, 10, "1", ""},
		{"one whose retry is past its retention", rowsJob, 29, "1", ""},
		{"with an old etag", rowsJob, 1, "0", fault.PreconditionFailed},
		{"a row in hand", rowsJob, 11, "1", fault.InvalidRowState},
		{"a row in hand, with an old etag", rowsJob, 11, "0", fault.InvalidRowState},
		{"a resolved row", rowsJob, 15, "1", fault.InvalidRowState},
		{"a discarded row", rowsJob, 21, "1", fault.InvalidRowState},
		{"a row that was applied", rowsJob, 2, "1", fault.RowNotFound},
		{"through a retry that did not take it", endedRetry, 1, "1", fault.RowNotFound},
		{"of a job that has not ended", activeRetry, 11, "1", fault.InvalidJobState},
		{"of no job", lostRetry, 1, "1", fault.JobNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, store, _ := quarantined(t)
			matches, change := patchOf(c.etag, "mended")
			row, err := s.Patch(t.Context(), worker, c.of, c.row, matches, change)
			if c.code != "" {
				if !fault.Is(err, c.code) {
					t.Errorf("answered %v, want %s", err, c.code)
				}
				return
			}
			if err != nil || string(row.Raw) != "mended" || row.RawKey != "" || row.ETag() != "2" {
				t.Fatalf("%+v, %v", row, err)
			}
			stored, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{c.row})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row, stored[0]); diff != "" {
				t.Errorf("stored (-answered +stored):\n%s", diff)
			}
		})
	}
}

func TestPatchOfTheClassLeavesThePayload(t *testing.T) {
	s, _, _ := quarantined(t)
	class := quarantine.Code
	row, err := s.Patch(t.Context(), worker, rowsJob, 29, func(string) bool { return true }, quarantine.Change{Class: &class})
	if err != nil || row.Class != class || row.RawKey != "raw/29" {
		t.Errorf("%+v, %v", row, err)
	}
}

// Of many people who correct what they all saw, one gets through.
func TestOneOfManyPatchesWins(t *testing.T) {
	s, store, _ := quarantined(t)
	var wins, losses int
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			matches, change := patchOf("1", fmt.Sprint("mended by ", i))
			_, err := s.Patch(t.Context(), worker, rowsJob, 1, matches, change)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				wins++
			case fault.Is(err, fault.PreconditionFailed):
				losses++
			default:
				t.Error(err)
			}
		})
	}
	wait.Wait()
	rows, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{1})
	if err != nil || wins != 1 || losses != 7 || rows[0].Rev != 2 {
		t.Errorf("%d won, %d lost, %+v, %v", wins, losses, rows, err)
	}
}

// Every former state of a row is kept, with who changed it.
func TestHistoryOfARow(t *testing.T) {
	s, _, cfg := quarantined(t)
	for i := range 3 {
		matches, change := patchOf(fmt.Sprint(i+1), fmt.Sprint("try ", i+1))
		if _, err := s.Patch(t.Context(), worker, rowsJob, 1, matches, change); err != nil {
			t.Fatal(err)
		}
	}
	discard(t, s, []int64{1}, "gave up")
	out, err := dynamodb.NewFromConfig(cfg).Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String(ControlTable),
		KeyConditionExpression: aws.String("pk = :pk"), ExpressionAttributeValues: item{":pk": str("rowlog#acme#" + string(rowsJob))}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range out.Items {
		var past struct {
			Raw []byte `dynamodbav:"raw"`
			St  string `dynamodbav:"st"`
			By  string `dynamodbav:"by"`
		}
		if err := attributevalue.UnmarshalMap(it, &past); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %q by %s", past.St, past.Raw, past.By))
	}
	want := []string{`quarantined "raw 1\n" by mender`, `quarantined "try 1" by mender`, `quarantined "try 2" by mender`, `quarantined "try 3" by mender`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func discard(t *testing.T, s *quarantine.Service, rows []int64, reason string) {
	t.Helper()
	if _, err := s.Discard(t.Context(), worker, idempotency.Intent{}, rowsJob, rows, reason); err != nil {
		t.Fatal(err)
	}
}

func TestDiscard(t *testing.T) {
	s, store, _ := quarantined(t)
	before := states(t, s, rowsJob, quarantine.Filter{})
	for rows, code := range map[[2]int64]fault.Code{{1, 11}: fault.InvalidRowState, {1, 15}: fault.InvalidRowState, {1, 12}: fault.RowNotFound} {
		if _, err := s.Discard(t.Context(), worker, idempotency.Intent{}, rowsJob, rows[:], "no"); !fault.Is(err, code) {
			t.Errorf("%v: %v", rows, err)
		}
	}
	if diff := cmp.Diff(before, states(t, s, rowsJob, quarantine.Filter{})); diff != "" {
		t.Errorf("a refused request changed rows:\n%s", diff)
	}
	in := idempotency.Intent{Key: "k", Fingerprint: "one"}
	for _, again := range []bool{false, true} {
		replayed, err := s.Discard(t.Context(), worker, in, rowsJob, []int64{1, 10, 21, 29}, "not ours")
		if err != nil || replayed != again {
			t.Errorf("replayed %t, %v", replayed, err)
		}
	}
	want := []string{"1 discarded", "10 discarded", "11 retrying", "15 resolved", "21 discarded", "29 discarded"}
	if diff := cmp.Diff(want, states(t, s, rowsJob, quarantine.Filter{})); diff != "" {
		t.Error(diff)
	}
	rows, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{1, 21})
	if err != nil || rows[0].Reason != "not ours" || rows[1].Reason != "gone" || !bytes.Equal(rows[0].Raw, []byte("raw 1\n")) {
		t.Errorf("%+v, %v", rows, err)
	}
	in.Fingerprint = "two"
	if _, err := s.Discard(t.Context(), worker, in, rowsJob, []int64{1}, "no"); !fault.Is(err, fault.KeyReused) {
		t.Errorf("a key for two requests: %v", err)
	}
}

// taken gives the numbers of the rows that a retry gets.
func taken(t *testing.T, s *quarantine.Service, sel quarantine.Selection, retry id.Job) (numbers []int64) {
	t.Helper()
	err := s.Take(t.Context(), "acme", rowsJob, sel, retry, func(r quarantine.Row) error {
		if r.RetryJob != retry {
			t.Errorf("row %d is in the hand of %q", r.RowNumber, r.RetryJob)
		}
		numbers = append(numbers, r.RowNumber)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func TestTake(t *testing.T) {
	const retry = id.Job("job_01JZZZZZZZZZZZZZZZZZZZZZZN")
	for _, c := range []struct {
		name string
		sel  quarantine.Selection
		want []int64
	}{
		{"all", quarantine.Selection{}, []int64{1, 10, 13, 29}},
		{"named", quarantine.Selection{Numbers: []int64{1, 11, 15, 21, 29}}, []int64{1, 29}},
		{"by code", quarantine.Selection{Code: fault.TypeMismatch}, []int64{1, 10, 29}},
		{"by another code", quarantine.Selection{Code: fault.DuplicateKey}, []int64{12}},
		{"by class", quarantine.Selection{Class: quarantine.Code}, []int64{13}},
		{"by both", quarantine.Selection{Code: fault.TypeMismatch, Class: quarantine.Code}, nil},
		{"those of a retry", quarantine.Selection{Retry: endedRetry}, []int64{10}},
		{"a lost key by name", quarantine.Selection{Numbers: []int64{12}}, []int64{12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, store, cfg := quarantined(t)
			putRow(t, cfg, rowsJob, 1, 12, "DUPLICATE_KEY_IN_FILE", "data", "quarantined", []byte{})
			putRow(t, cfg, rowsJob, 1, 13, "TRANSFORM_FAILED", "code", "quarantined", []byte{})
			putJob(t, cfg, job.Job{Tenant: "acme", ID: retry, Kind: job.Import, Status: job.Running, RowsOf: rowsJob})
			for range 2 { // a plan that died does it again
				if diff := cmp.Diff(c.want, taken(t, s, c.sel, retry)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			rows, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{11})
			if err != nil || rows[0].RetryJob != activeRetry {
				t.Errorf("a row in another hand: %+v, %v", rows, err)
			}
		})
	}
}

// The outcome of a retry is written once, however often and however late its workers repeat it.
func TestOutcomesOfARetry(t *testing.T) {
	const retry = activeRetry
	failed := quarantine.Attempt{Number: 2, Code: fault.MissingValue, Class: quarantine.Code, Field: "v", Message: "none", DatasetVersion: 3}
	resolve := func(s *quarantine.Service, ctx context.Context) error {
		return s.Resolve(ctx, "acme", rowsJob, 1, 11, retry)
	}
	fail := func(s *quarantine.Service, ctx context.Context) error {
		return s.Fail(ctx, "acme", rowsJob, 1, 11, retry, failed)
	}
	type step func(*quarantine.Service, context.Context) error
	for _, c := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"applied", []step{resolve}, "resolved TYPE_MISMATCH 1 rev 2"},
		{"applied, repeated", []step{resolve, resolve}, "resolved TYPE_MISMATCH 1 rev 2"},
		{"failed", []step{fail}, "quarantined MISSING_VALUE 2 rev 2"},
		{"failed, repeated", []step{fail, fail}, "quarantined MISSING_VALUE 2 rev 2"},
		{"applied, then gave way in the second run", []step{resolve, fail, fail}, "quarantined MISSING_VALUE 2 rev 3"},
		{"gave way, and the first run's worker wakes up", []step{resolve, fail, resolve}, "quarantined MISSING_VALUE 2 rev 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, store, _ := quarantined(t)
			for _, step := range c.steps {
				if err := step(s, t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			rows, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{11})
			if err != nil {
				t.Fatal(err)
			}
			r := rows[0]
			if got := fmt.Sprintf("%s %s %d rev %d", r.State, r.Code, r.Attempts, r.Rev); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if resolved := r.ResolvedBy != ""; resolved != (r.State == quarantine.Resolved) {
				t.Errorf("%s, resolved by %q", r.State, r.ResolvedBy)
			}
		})
	}
}

// A worker that wakes up after its retry has ended changes nothing of what came after.
func TestALateWorkerChangesNothing(t *testing.T) {
	const next = id.Job("job_01JZZZZZZZZZZZZZZZZZZZZZZN")
	s, store, cfg := quarantined(t)
	putJob(t, cfg, job.Job{Tenant: "acme", ID: activeRetry, Kind: job.Import, Status: job.Canceled, RowsOf: rowsJob})
	putJob(t, cfg, job.Job{Tenant: "acme", ID: next, Kind: job.Import, Status: job.Running, RowsOf: rowsJob})
	if diff := cmp.Diff([]int64{11}, taken(t, s, quarantine.Selection{Numbers: []int64{11}}, next)); diff != "" {
		t.Fatal(diff)
	}
	before, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{11})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Resolve(t.Context(), "acme", rowsJob, 1, 11, activeRetry); !errors.Is(err, quarantine.ErrMoved) {
		t.Errorf("resolve: %v", err)
	}
	if err := s.Fail(t.Context(), "acme", rowsJob, 1, 11, activeRetry, quarantine.Attempt{Number: 2}); !errors.Is(err, quarantine.ErrMoved) {
		t.Errorf("fail: %v", err)
	}
	after, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{11})
	if diff := cmp.Diff(before, after); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Of many retries that want the same rows, each row goes to exactly one.
func TestManyRetriesShareNoRow(t *testing.T) {
	s, _, cfg := quarantined(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	owners := map[int64][]id.Job{}
	for i := range 6 {
		retry := id.Job(fmt.Sprintf("job_01JZZZZZZZZZZZZZZZZZZZZZ%02d", i))
		putJob(t, cfg, job.Job{Tenant: "acme", ID: retry, Kind: job.Import, Status: job.Running, RowsOf: rowsJob})
		wait.Go(func() {
			err := s.Take(t.Context(), "acme", rowsJob, quarantine.Selection{}, retry, func(r quarantine.Row) error {
				mu.Lock()
				defer mu.Unlock()
				owners[r.RowNumber] = append(owners[r.RowNumber], retry)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, row := range []int64{1, 10, 29} {
		if len(owners[row]) != 1 {
			t.Errorf("row %d went to %v", row, owners[row])
		}
	}
}

// FindRows reads a chunk's start once, however many rows it looks for.
func TestFindRowsInManyChunks(t *testing.T) {
	store, _, cfg := Start(t)
	const chunks = 300
	putJob(t, cfg, job.Job{Tenant: "acme", ID: rowsJob, Kind: job.Import, Status: job.Partial, Plan: job.Plan{ChunksPlanned: chunks}})
	var numbers []int64
	for i := range chunks {
		it, err := attributevalue.MarshalMap(importer.Chunk{Tenant: "acme", JobID: rowsJob, Index: i, Start: rowio.Position{Row: int64(5*i + 1)}})
		if err != nil {
			t.Fatal(err)
		}
		it["pk"], it["sk"] = str("job#acme#"+string(rowsJob)), str(fmt.Sprintf("chunk#%08d", i))
		putItem(t, cfg, ControlTable, it)
		putRow(t, cfg, rowsJob, i, 5*i+1, "TYPE_MISMATCH", "data", "quarantined", []byte{})
		putRow(t, cfg, rowsJob, i, 5*i+5, "TYPE_MISMATCH", "data", "quarantined", []byte{})
		numbers = append(numbers, int64(5*i+1), int64(5*i+5))
	}
	rows, err := store.FindRows(t.Context(), "acme", rowsJob, numbers)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		if r.RowNumber != numbers[i] {
			t.Fatalf("row %d at the place of row %d", r.RowNumber, numbers[i])
		}
	}
	for _, missing := range []int64{2, 1496, 1501} {
		if _, err := store.FindRows(t.Context(), "acme", rowsJob, []int64{1, missing}); (missing != 1496) != fault.Is(err, fault.RowNotFound) {
			t.Errorf("row %d: %v", missing, err)
		}
	}
}
