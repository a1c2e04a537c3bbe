package sqs

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// handClock stands still until it is moved.
type handClock struct{ ms atomic.Int64 }

func newHandClock() *handClock {
	c := &handClock{}
	c.ms.Store(1_700_000_000_000)
	return c
}

func (c *handClock) now() time.Time       { return time.UnixMilli(c.ms.Load()).UTC() }
func (c *handClock) move(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func start(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func queueNameOf(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

func TestWakeEndsWhatTheMovedClockEnds(t *testing.T) {
	cases := []struct {
		name string
		do   func(e *env, q string)
		move time.Duration
		want int
	}{
		{"a delay", func(e *env, q string) {
			e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("x"), DelaySeconds: 900})
		}, 900 * time.Second, 1},
		{"a visibility timeout", func(e *env, q string) { e.send(q, "x"); e.one(q) }, 30 * time.Second, 1},
		{"a long poll", func(*env, string) {}, 20 * time.Second, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := newHandClock()
				s := start(t, Config{Now: clock.now})
				defer s.Close()
				e := embedded(t, s)
				q := e.queue("q", nil)
				c.do(e, q)
				polled := make(chan int)
				began := time.Now()
				go func() { polled <- len(e.receive(q, 20)) }()
				synctest.Wait()
				clock.move(c.move - time.Second)
				s.Wake()
				clock.move(time.Second)
				s.Wake()
				if got, took := <-polled, time.Since(began); got != c.want || took > time.Second {
					t.Errorf("received %d after %v of real time, want %d at once", got, took, c.want)
				}
			})
		})
	}
}

// A clock that was moved and goes on must find the timer set anew.
func TestMovedClockGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		s := start(t, Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		defer s.Close()
		e := embedded(t, s)
		q := e.queue("q", map[string]string{"DelaySeconds": "60"})
		e.send(q, "x")
		ahead.Store(int64(50 * time.Second))
		s.Wake()
		began := time.Now()
		if got, took := len(e.receive(q, 20)), time.Since(began); got != 1 || took != 10*time.Second {
			t.Errorf("received %d after %v, want 1 after 10s", got, took)
		}
	})
}

func TestCallerWhoIsGoneTakesNothing(t *testing.T) {
	s := start(t, Config{})
	defer s.Close()
	e := embedded(t, s)
	q := e.queue("q", nil)
	e.send(q, "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(fmt.Sprintf(`{"QueueUrl":%q}`, q)))
	r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
	s.ServeHTTP(httptest.NewRecorder(), r)
	if got := e.counts(q); got != "1/0/0" {
		t.Errorf("counts %s: the message went to nobody", got)
	}
}

// A clock that stands still must not hold a long poll for ever.
func TestLongPollEndsByRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Config{Now: newHandClock().now})
		defer s.Close()
		e := embedded(t, s)
		q := e.queue("q", nil)
		began := time.Now()
		e.receive(q, 20)
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestMoveTaskFollowsTheMovedClock(t *testing.T) {
	clock := newHandClock()
	s := start(t, Config{Now: clock.now})
	defer s.Close()
	e := embedded(t, s)
	q, dlq := e.withDeadLetters("a", 1, "30", nil)
	e.bury(q, dlq, "1", "2", "3", "4", "5")
	if _, err := e.start(dlq, q, 2); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		move time.Duration
		want string
	}{{0, "0/0/0"}, {499 * time.Millisecond, "0/0/0"}, {time.Millisecond, "1/0/0"}, {time.Second, "3/0/0"}, {time.Minute, "5/0/0"}} {
		clock.move(step.move)
		s.Wake()
		if got := e.counts(q); got != step.want {
			t.Fatalf("after %v more: %s, want %s", step.move, got, step.want)
		}
	}
}

func TestPeekConsumesNothing(t *testing.T) {
	clock := newHandClock()
	s := start(t, Config{Now: clock.now})
	defer s.Close()
	e := embedded(t, s)
	q := e.queue("a", nil)
	e.sendTo(q, "g", "", "flying")
	flying := e.one(q)
	clock.move(time.Second)
	_, err := e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("late"), DelaySeconds: 9,
		MessageAttributes: map[string]types.MessageAttributeValue{
			"s": {DataType: aws.String("String"), StringValue: aws.String("v")}, "b": {DataType: aws.String("Binary"), BinaryValue: []byte{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	e.send(q, "there")
	got := s.Peek(queueNameOf(q))
	if len(got) != 3 || got[0].ID != *flying.MessageId {
		t.Fatalf("peeked %+v", got)
	}
	sent := clock.now()
	for i := range got {
		got[i].ID = ""
	}
	want := []Peek{
		{Body: "flying", Group: "g", Attributes: map[string]string{}, ReceiveCount: 1, SentAt: sent.Add(-time.Second), InFlight: true},
		{Body: "late", Attributes: map[string]string{"s": "v", "b": "AQ=="}, SentAt: sent, Delayed: true},
		{Body: "there", Attributes: map[string]string{}, SentAt: sent},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if e.counts(q) != "1/1/1" || s.Peek("none") != nil {
		t.Errorf("afterwards %s", e.counts(q))
	}
}

func TestRedeliver(t *testing.T) {
	clock := newHandClock()
	s := start(t, Config{Now: clock.now})
	defer s.Close()
	e := embedded(t, s)
	q := e.queue("a", nil)
	name := queueNameOf(q)
	e.send(q, "x")
	id := s.Peek(name)[0].ID
	if s.Redeliver(name, "none") || s.Redeliver("none", id) {
		t.Error("redelivered what does not exist")
	}

	// A waiting message twice: two receives, never one receive with both.
	if !s.Redeliver(name, id) || e.counts(q) != "2/0/0" {
		t.Fatalf("counts %s", e.counts(q))
	}
	first, second := e.one(q), e.one(q)
	if *first.MessageId != *second.MessageId || first.Attributes["SentTimestamp"] != second.Attributes["SentTimestamp"] {
		t.Errorf("the copies differ: %v, %v", first, second)
	}
	if got := first.Attributes["ApproximateReceiveCount"] + second.Attributes["ApproximateReceiveCount"]; got != "12" {
		t.Errorf("receive counts %s, want 1 and 2", got)
	}
	e.none(q, "both are in flight")

	// In flight: a third copy; the first copy's handle still hides that one, and deletes all.
	if !s.Redeliver(name, id) || e.counts(q) != "1/2/0" {
		t.Fatalf("counts %s", e.counts(q))
	}
	if err := e.hide(q, first, 60); err != nil {
		t.Error(err)
	}
	if got := s.Peek(name); len(got) != 1 || got[0].ReceiveCount != 2 || got[0].InFlight {
		t.Errorf("peeked %+v", got)
	}
	e.delete(q, first)
	if e.counts(q) != "0/0/0" {
		t.Errorf("after the delete %s", e.counts(q))
	}
	e.delete(q, second)
}

func TestClosedServerAnswersNothing(t *testing.T) {
	s := start(t, Config{})
	e := embedded(t, s)
	q := e.queue("a", nil)
	polled := make(chan error)
	go func() {
		_, err := e.ReceiveMessage(e.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &q, WaitTimeSeconds: 20})
		polled <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-polled // with or without an error, but at once
	_, err := e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("x")})
	e.refused(err, "ServiceUnavailable", "send to a closed server")
}

// state is all that can be seen of a server.
func state(s *Server) map[string]any {
	out := map[string]any{}
	for name, q := range s.queues {
		peeked := s.Peek(name)
		out[name] = []any{peeked, q.attributes(), q.tags}
	}
	for i, task := range s.tasks {
		out[fmt.Sprint("task ", i)] = *task
	}
	return out
}

func journalOf(t testing.TB, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "sqs.journal"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reopened is the state a new server has with that journal.
func reopened(t testing.TB, clock *handClock, dir string, journal []byte) map[string]any {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "sqs.journal"), journal, 0o644); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Dir: dir, Now: clock.now})
	defer s.Close()
	return state(s)
}

// TestRestartLosesNothing does random things to two queues and reads the journal back at random moments.
func TestRestartLosesNothing(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		os.Remove(filepath.Join(dir, "sqs.journal"))
		clock := newHandClock()
		s := start(t, Config{Dir: dir, Now: clock.now})
		defer s.Close()
		e := embedded(t, s)
		q, dlq := e.withDeadLetters("a", 2, "5", nil)
		var held []types.Message
		r.Repeat(map[string]func(*rapid.T){
			"send": func(*rapid.T) { e.send(q, "x") },
			"delayed": func(*rapid.T) {
				e.SendMessage(e.Context(), &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("d"), DelaySeconds: 3})
			},
			"receive": func(r *rapid.T) {
				held = append(held, e.receiveMax(q, int32(rapid.IntRange(1, 10).Draw(r, "n")), 0)...)
			},
			"delete": func(r *rapid.T) {
				if len(held) > 0 {
					e.delete(q, rapid.SampledFrom(held).Draw(r, "m"))
				}
			},
			"hide": func(r *rapid.T) {
				if len(held) > 0 {
					e.hide(q, rapid.SampledFrom(held).Draw(r, "m"), int32(rapid.IntRange(0, 9).Draw(r, "s")))
				}
			},
			"pass":    func(r *rapid.T) { clock.move(time.Duration(rapid.IntRange(1, 6).Draw(r, "s")) * time.Second); s.Wake() },
			"move":    func(*rapid.T) { e.start(dlq, "", 0) },
			"trickle": func(*rapid.T) { e.start(dlq, q, 1) },
			"purge":   func(*rapid.T) { e.PurgeQueue(e.Context(), &awssqs.PurgeQueueInput{QueueUrl: &dlq}) },
			"another": func(*rapid.T) { e.send(e.queue("b", nil), "y") },
			"drop": func(*rapid.T) {
				b := e.queue("b", nil)
				e.DeleteQueue(e.Context(), &awssqs.DeleteQueueInput{QueueUrl: &b})
			},
			"redeliver": func(*rapid.T) { s.Redeliver(queueNameOf(q), firstID(s, q)) },
			"restart": func(r *rapid.T) {
				if d := cmp.Diff(state(s), reopened(t, clock, other, journalOf(t, dir))); d != "" {
					r.Fatal(d)
				}
			},
		})
	})
}

func firstID(s *Server, q string) string {
	if p := s.Peek(queueNameOf(q)); len(p) > 0 {
		return p[0].ID
	}
	return ""
}

// TestTornJournal cuts a journal at every byte: the line that was cut counts for nothing, what is before it for all.
func TestTornJournal(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	clock := newHandClock()
	s := start(t, Config{Dir: dir, Now: clock.now})
	defer s.Close()
	e := embedded(t, s)
	q := e.queue("a", nil)
	e.send(q, "1", "2")
	e.delete(q, e.receiveMax(q, 1, 0)[0])
	e.queue("b", map[string]string{"DelaySeconds": "3"})
	whole := journalOf(t, dir)
	if n := bytes.Count(whole, []byte{'\n'}); n != 6 { // two queues, two sends, a receive, a delete
		t.Fatalf("the journal has %d lines:\n%s", n, whole)
	}
	for cut := range whole {
		records, err := parseJournal(whole[:cut])
		if want := bytes.Count(whole[:cut], []byte{'\n'}); err != nil || len(records) != want {
			t.Fatalf("cut at %d: %d records, %v; want %d", cut, len(records), err, want)
		}
	}
	if got := reopened(t, clock, other, whole[:len(whole)-2]); len(got) != 1 {
		t.Errorf("without its last line the journal gives %v, want the first queue alone", got)
	}
	if d := cmp.Diff(state(s), reopened(t, clock, other, whole)); d != "" {
		t.Error(d)
	}
}

func TestDamage(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	clock := newHandClock()
	s := start(t, Config{Dir: dir, Now: clock.now})
	e := embedded(t, s)
	e.send(e.queue("a", nil), "x")
	s.Close()
	journal := journalOf(t, dir)
	last := bytes.Clone(journal)
	last[len(last)-9] ^= 1
	queueOnly := bytes.IndexByte(journal, '\n') + 1
	if d := cmp.Diff(reopened(t, clock, other, journal[:queueOnly]), reopened(t, clock, other, last)); d != "" {
		t.Errorf("a damaged last line left more than the queue: %s", d)
	}
	journal[12] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "sqs.journal"), journal, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("error %v, want one that names line 1", err)
	}
}

func TestShorterRetentionDropsAtOnce(t *testing.T) {
	clock := newHandClock()
	s := start(t, Config{Now: clock.now})
	defer s.Close()
	e := embedded(t, s)
	q := e.queue("a", nil)
	e.send(q, "x")
	clock.move(2 * time.Minute)
	_, err := e.SetQueueAttributes(e.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"MessageRetentionPeriod": "60"}})
	if err != nil || e.counts(q) != "0/0/0" {
		t.Errorf("counts %s, %v", e.counts(q), err)
	}
}

func TestRestartCompactsTheJournal(t *testing.T) {
	dir := t.TempDir()
	s := start(t, Config{Dir: dir})
	e := embedded(t, s)
	q := e.queue("a", nil)
	for range 50 {
		e.send(q, "x")
		e.delete(q, e.one(q))
	}
	e.send(q, "left")
	before := len(journalOf(t, dir))
	s.Close()
	s = start(t, Config{Dir: dir})
	defer s.Close()
	if after := len(journalOf(t, dir)); after > before/20 || bodies(embedded(t, s).receive(q, 0)) != "left" {
		t.Errorf("the journal went from %d to %d bytes", before, after)
	}
}

func FuzzParseJournal(f *testing.F) {
	var good bytes.Buffer
	appendRecord(&good, record{Queue: "a", Set: &queueRecord{}})
	appendRecord(&good, record{Queue: "a", Message: &message{ID: "1", Instances: []*instance{{}}}})
	f.Add(good.Bytes())
	f.Add([]byte("00000000 \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := parseJournal(data)
		if err != nil {
			return
		}
		var again bytes.Buffer
		for _, r := range records {
			appendRecord(&again, r)
		}
		if back, err := parseJournal(again.Bytes()); err != nil || len(back) != len(records) {
			t.Errorf("%d records became %d, %v", len(records), len(back), err)
		}
	})
}

func FuzzHandle(f *testing.F) {
	f.Add("junk")
	f.Add(makeHandle("q", &instance{Receive: 1, msg: &message{ID: "1"}}))
	q := newQueue("q", "arn")
	q.set.retention = time.Hour
	m := &message{ID: "1", Instances: []*instance{{Receive: 1}}}
	q.add(m, time.Now())
	f.Fuzz(func(t *testing.T, handle string) {
		found, in, err := q.find(handle)
		if in != nil && (err != nil || found != m || makeHandle("q", in) != handle) {
			t.Errorf("handle %q found %v", handle, in)
		}
	})
}
