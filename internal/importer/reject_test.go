package importer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"testing"

	"pintu/internal/id"
	"pintu/internal/job"
	"pintu/internal/quarantine"
	"pintu/internal/rowio"
)

// longLine is a bucket and a quarantine that hold one row whose bytes are as long as a file.
type longLine struct{ bytes int64 }

func (l longLine) Open(context.Context, string, string, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(zeros{}, l.bytes)), nil
}

func (longLine) Put(context.Context, string, string, io.Reader) (string, error) {
	return "", errors.New("nothing is written here")
}

func (longLine) PutRow(context.Context, string, id.Job, quarantine.Row) error {
	return errors.New("nothing is written here")
}

func (longLine) ChunkRows(_ context.Context, _ string, _ id.Job, _ int, after int64) ([]quarantine.Row, error) {
	if after > 0 {
		return nil, nil
	}
	return []quarantine.Row{{RowNumber: 1, RawKey: "raw/1", Code: "MALFORMED_ROW", Class: quarantine.Data}}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Reported: a file of one line, gigabytes long, was planned and processed in bounded memory, and then read into
// memory as a whole for rejected.csv, so that its job never ended.
func TestRejectedFileHoldsALineLongerThanMemory(t *testing.T) {
	const size = 256 << 20
	layout, _, err := rowio.Inspect(bytes.NewReader([]byte("a,b\n1,2\n")), rowio.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	line := longLine{size}
	im := New(Config{Blob: line, Quarantine: line})
	j := job.Job{Tenant: "acme", ID: "job_1"}
	j.Plan.Layout = layout
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	count := &counting{w: io.Discard, sum: nowhere{}}
	if err := im.writeRejected(t.Context(), j, []int{0}, count); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if count.n < size {
		t.Errorf("wrote %d bytes, the line alone has %d", count.n, size)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("took %d bytes of memory", took)
	}
}

// nowhere is a hash of nothing: hashing 256 MiB is not what is tested.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Sum(b []byte) []byte         { return b }
func (nowhere) Reset()                      {}
func (nowhere) Size() int                   { return 0 }
func (nowhere) BlockSize() int              { return 1 }
