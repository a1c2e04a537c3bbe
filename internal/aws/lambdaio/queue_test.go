package lambdaio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"pintu/internal/job"
	"pintu/internal/logline"
	"pintu/internal/worker"
)

type moved struct {
	Handle string
	After  time.Duration
}

// visibility records what it is told, and fails when it has an error.
type visibility struct {
	moved []moved
	err   error
}

func (v *visibility) ComeBack(ctx context.Context, handle string, after time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	v.moved = append(v.moved, moved{handle, after})
	return v.err
}

func received(t *testing.T, ctx context.Context, v *visibility, e events.SQSEvent, handle func(context.Context, worker.Message) error) (failed []string, log []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	s := Source{Name: "process", MaxReceives: 10, Visibility: v, Jitter: func() float64 { return 0.5 }}
	response, err := Messages(s, handle, logline.New(&out, time.Now))(ctx, e)
	if err != nil {
		t.Fatalf("an error beside the response makes the whole batch come back: %v", err)
	}
	for _, f := range response.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	for d := json.NewDecoder(&out); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		log = append(log, line)
	}
	return failed, log
}

const firstID, secondID = "059f36b4-87a3-44ab-83d2-661975830a7d", "2e1424d4-f796-459a-8184-9c92662be6da"

func TestMessagesAreHandedOnAsTheyWereReceived(t *testing.T) {
	var got []worker.Message
	failed, log := received(t, t.Context(), &visibility{}, read[events.SQSEvent](t, "sqs.json"), func(_ context.Context, m worker.Message) error {
		got = append(got, m)
		return nil
	})
	hint := job.Hint{Kind: job.HintProcess, Tenant: "acme", JobID: "job_01K0000000000000000000000A", Chunk: 3, RequestID: "client-7"}
	second := hint
	second.Chunk = 4
	want := []worker.Message{
		{Hint: hint, ReceiveCount: 4, MaxReceives: 10, SentAt: time.UnixMilli(1785147330123).UTC(), Queue: "process"},
		{Hint: second, ReceiveCount: 1, MaxReceives: 10, SentAt: time.UnixMilli(1785147330650).UTC(), Queue: "process"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if failed != nil {
		t.Errorf("failed %v, want none", failed)
	}
	if len(log) != 2 || log[0]["job_id"] != "job_01K0000000000000000000000A" || log[0]["request_id"] != "client-7" || log[0]["receive"] != 4.0 || log[1]["chunk"] != 4.0 {
		t.Errorf("log %v", log)
	}
}

func TestOnlyWhatFailedComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		fail func() error
		log  string
	}{
		"error": {func() error { return errors.New("boom") }, "boom"},
		"panic": {func() error { panic("A7,rahasia") }, "panic: string"}, // what was being worked on may be in it
	} {
		t.Run(name, func(t *testing.T) {
			v := &visibility{}
			failed, log := received(t, t.Context(), v, read[events.SQSEvent](t, "sqs.json"), func(_ context.Context, m worker.Message) error {
				if m.Hint.Chunk == 3 {
					return c.fail()
				}
				return nil
			})
			if diff := cmp.Diff([]string{firstID}, failed); diff != "" {
				t.Error(diff)
			}
			// Fourth receive: 5 s doubled three times, three quarters of it at a jitter of one half.
			if diff := cmp.Diff([]moved{{"AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a", 30 * time.Second}}, v.moved); diff != "" {
				t.Error(diff)
			}
			if len(log) != 2 || log[0]["error"] != c.log || log[0]["back_in_s"] != 30.0 || log[1]["error"] != nil {
				t.Errorf("log %v", log)
			}
		})
	}
}

func TestMessagesThatCannotBeReadFail(t *testing.T) {
	good := read[events.SQSEvent](t, "sqs.json").Records[0]
	for name, breakIt := range map[string]func(*events.SQSMessage){
		"body is no JSON":       func(m *events.SQSMessage) { m.Body = "hello" },
		"body of another shape": func(m *events.SQSMessage) { m.Body = `{"chunk":"three"}` },
		"no receive count":      func(m *events.SQSMessage) { m.Attributes = map[string]string{"SentTimestamp": "1"} },
		"no time sent":          func(m *events.SQSMessage) { m.Attributes = map[string]string{"ApproximateReceiveCount": "1"} },
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			breakIt(&m)
			v := &visibility{}
			failed, _ := received(t, t.Context(), v, events.SQSEvent{Records: []events.SQSMessage{m}}, func(context.Context, worker.Message) error {
				t.Error("handled")
				return nil
			})
			if diff := cmp.Diff([]string{firstID}, failed); diff != "" {
				t.Error(diff)
			}
			if len(v.moved) != 1 || v.moved[0].After <= 0 {
				t.Errorf("moved %v, want it to come back later", v.moved)
			}
		})
	}
}

func TestMessageComesBackThoughTheWorkIsOutOfTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	v := &visibility{}
	e := read[events.SQSEvent](t, "sqs.json")
	e.Records = e.Records[:1]
	received(t, ctx, v, e, func(ctx context.Context, _ worker.Message) error {
		cancel()
		return ctx.Err()
	})
	if len(v.moved) != 1 {
		t.Errorf("moved %v, want one", v.moved)
	}
}

func TestVisibilityThatCannotBeMovedIsToldButChangesNothing(t *testing.T) {
	v := &visibility{err: errors.New("throttled")}
	e := read[events.SQSEvent](t, "sqs.json")
	failed, log := received(t, t.Context(), v, e, func(context.Context, worker.Message) error { return errors.New("boom") })
	if diff := cmp.Diff([]string{firstID, secondID}, failed); diff != "" {
		t.Error(diff)
	}
	if got := log[0]["error"]; got != "boom\nmove visibility: throttled" {
		t.Errorf("error %q", got)
	}
}

func TestTick(t *testing.T) {
	for name, c := range map[string]struct {
		work func(context.Context) error
		want string
	}{
		"success": {func(context.Context) error { return nil }, ""},
		"error":   {func(context.Context) error { return errors.New("boom") }, "boom"},
		"panic":   {func(context.Context) error { panic("boom") }, "panic: string"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := Tick("sweep", c.work, logline.New(&out, time.Now))(t.Context(), read[events.EventBridgeEvent](t, "schedule.json"))
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if !strings.Contains(out.String(), `"msg":"sweep","scheduled_at":"2026-07-27T10:16:00Z"`) {
				t.Errorf("log %s", &out)
			}
		})
	}
}
