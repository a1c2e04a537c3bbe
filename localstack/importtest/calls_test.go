package importtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/job"
	"pintu/localstack/storetest"
)

// recordCalls counts the calls to the records table, by operation.
type recordCalls struct {
	next http.RoundTripper
	mu   sync.Mutex
	n    map[string]int
}

func (c *recordCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(body, []byte(`"TableName":"`+storetest.RecordsTable+`"`)) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		c.mu.Lock()
		c.n[op]++
		c.mu.Unlock()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return c.next.RoundTrip(r)
}

// TestOneWriteAndNoReadForARow: a row that meets nothing unexpected is one conditional write, by every rule.
func TestOneWriteAndNoReadForARow(t *testing.T) {
	const rows = 20
	lines := func(v int, was string) string {
		out := make([]string, rows)
		for i := range out {
			out[i] = fmt.Sprintf("key%d,%d,%s", i, i+v, was)
		}
		return versioned(out...)
	}
	for _, c := range []struct {
		name  string
		over  bool // records of another job
		rule  rule
		body  string
		set   func(*job.ImportSpec)
		calls map[string]int
	}{
		{"update of nothing", false, rule{"update", "reject"}, lines(1, ""), nil, map[string]int{"UpdateItem": rows}},
		{"update of records", true, rule{"update", "last_wins"}, lines(1, ""), nil, map[string]int{"UpdateItem": rows}},
		{"reject of nothing", false, rule{"reject", "reject"}, lines(1, ""), nil, map[string]int{"UpdateItem": rows}},
		{"reject of records", true, rule{"reject", "reject"}, lines(1, ""), nil, map[string]int{"UpdateItem": rows}},
		{"skip of records", true, rule{"skip", "reject"}, lines(1, ""), nil, map[string]int{"UpdateItem": rows}},
		{"if_unchanged of nothing", false, rule{"if_unchanged", "reject"}, lines(1, ""), nil, map[string]int{"UpdateItem": rows}},
		{"if_unchanged of records", true, rule{"if_unchanged", "reject"}, lines(1, "1"), nil, map[string]int{"UpdateItem": rows}},
		// Rows 21 to 40 are refused once and displace, then all 40 run again: 2.5 calls a row.
		{"every key twice and the last wins", false, rule{"update", "last_wins"}, lines(1, "") + strings.TrimPrefix(lines(2, ""), "k,v,was\n"), nil, map[string]int{"UpdateItem": 5 * rows}},
		{"dry run", false, rule{"update", "reject"}, lines(1, ""), dryRun, map[string]int{"UpdateItem": rows, "GetItem": rows}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.chunkBytes = 1 << 20
			if c.over {
				w.drain(w.submit(pairs(rows, func(i int) string { return fmt.Sprint("key", i) })))
			}
			calls := &recordCalls{next: direct{w.server}, n: map[string]int{}}
			jobID := w.submitBy(c.rule, c.body, func(s *job.ImportSpec) {
				if c.set != nil {
					c.set(s)
				}
			})
			w.work(t.Context(), w.importer(w.storeThrough(calls), w.files, w), jobID)
			if !w.job(jobID).Status.Terminal() {
				t.Fatal("the job did not end")
			}
			if diff := cmp.Diff(c.calls, calls.n); diff != "" {
				t.Errorf("calls (-want +got): %s", diff)
			}
		})
	}
}
