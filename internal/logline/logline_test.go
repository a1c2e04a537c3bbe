package logline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

// clock moves 5 ms each time it is read.
func clock() func() time.Time {
	t := time.Date(2026, 7, 27, 10, 15, 30, 0, time.UTC)
	return func() time.Time { t = t.Add(5 * time.Millisecond); return t }
}

func written(t *testing.T, end error, add ...slog.Attr) map[string]any {
	t.Helper()
	var out bytes.Buffer
	ctx, line := New(&out, clock()).Begin(t.Context(), "message", slog.String("queue", "plan"))
	Add(ctx, add...)
	line.End(end)
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Fatalf("%d lines, want exactly 1:\n%s", n, &out)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("read line: %v", err)
	}
	delete(got, "time")
	return got
}

func TestLineHoldsWhatWasAdded(t *testing.T) {
	for name, c := range map[string]struct {
		end  error
		add  []slog.Attr
		want map[string]any
	}{
		"success": {
			add:  []slog.Attr{slog.Int("chunk", 3), slog.String("queue", "process")},
			want: map[string]any{"level": "INFO", "msg": "message", "queue": "process", "chunk": 3.0, "duration_ms": 5.0},
		},
		"fault of a caller": {
			end: fmt.Errorf("complete: %w", fault.New(fault.UploadNotFound, "upload first")),
			want: map[string]any{"level": "WARN", "msg": "message", "queue": "plan", "duration_ms": 5.0,
				"code": "UPLOAD_NOT_FOUND", "error": "complete: UPLOAD_NOT_FOUND: upload first"},
		},
		"fault of ours": {
			end:  errors.New("read chunk: boom"),
			want: map[string]any{"level": "ERROR", "msg": "message", "queue": "plan", "duration_ms": 5.0, "error": "read chunk: boom"},
		},
		"internal fault": {
			end: fault.Wrap(errors.New("boom"), fault.Internal, "sorry"),
			want: map[string]any{"level": "ERROR", "msg": "message", "queue": "plan", "duration_ms": 5.0,
				"code": "INTERNAL", "error": "INTERNAL: sorry: boom"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, written(t, c.end, c.add...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSecretsAreTakenOut(t *testing.T) {
	signed := "https://bucket.s3.test/uploads/t/job/input?X-Amz-Signature=5ec4e7&X-Amz-Credential=AKIA"
	got := written(t, fmt.Errorf("get: %w", &url.Error{Op: "Get", URL: signed, Err: errors.New("connection refused")}),
		slog.String("auth", "Bearer pintu_01ab_5ec4e7"),
		slog.Any("cause", errors.New("proxy http://user:5ec4e7@host/x refused")),
		slog.String("hook", "whsec_5ec4e7=="),
	)
	want := map[string]any{
		"level": "ERROR", "msg": "message", "queue": "plan", "duration_ms": 5.0,
		"error": `get: Get "https://bucket.s3.test/uploads/t/job/input?…": connection refused`,
		"auth":  "Bearer …",
		"cause": "proxy http://host/x refused",
		"hook":  "whsec_…",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestScrubKeepsWhatIsNoSecret(t *testing.T) {
	for _, s := range []string{"", "read chunk: EOF", "job_01JZ", "https://host/path", "a?b=c", "pintu_dev"} {
		if got := Scrub(s); got != s {
			t.Errorf("Scrub(%q) = %q", s, got)
		}
	}
}

func TestAddOutsideOfWorkDoesNothing(t *testing.T) {
	Add(context.Background(), slog.Int("n", 1))
}

func TestAddFromManyGoroutines(t *testing.T) {
	var out bytes.Buffer
	ctx, line := New(&out, clock()).Begin(t.Context(), "message")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() { Add(ctx, slog.Int(fmt.Sprint("k", i), i)) })
	}
	wg.Wait()
	line.End(nil)
	for i := range 16 {
		if !strings.Contains(out.String(), fmt.Sprintf(`"k%d":%d`, i, i)) {
			t.Errorf("k%d is missing in %s", i, &out)
		}
	}
}
