package receiver_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"pintu/internal/id"
	"pintu/internal/netguard"
	"pintu/internal/webhook"
	"pintu/localstack/receiver"
)

// times are short, so that what does not answer is given up quickly.
var times = webhook.Times{
	Limits: netguard.Limits{Connect: 2 * time.Second, FirstByte: 300 * time.Millisecond, Total: time.Second},
	Answer: 200 * time.Millisecond,
}

var policy = netguard.Policy{Code: netguard.CallbackURLNotAllowed}

func start(t testing.TB) *receiver.Server {
	t.Helper()
	s, err := receiver.Start(10 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func sender(t testing.TB, admitLoopback bool) *webhook.Sender {
	t.Helper()
	guard, err := netguard.New(netguard.Config{AdmitLoopback: admitLoopback})
	if err != nil {
		t.Fatal(err)
	}
	return webhook.NewSender(guard, times, time.Now)
}

func secrets(t testing.TB, generations ...int) (all []webhook.Secret) {
	t.Helper()
	m, err := webhook.ParseMaster(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32)))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range generations {
		s, err := m.Secret("acme", g)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func delivery(t testing.TB, url string) webhook.Delivery {
	t.Helper()
	e, err := webhook.JobEvent(id.NewJob(time.Now()), "import", json.RawMessage(`{"metadata":{"a":"<&>é"},"status":"partial"}`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	d, err := webhook.NewDelivery("acme", url, "req_1", e).Claim(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func send(t testing.TB, s *webhook.Sender, d webhook.Delivery) webhook.Attempt {
	t.Helper()
	a, err := s.Send(t.Context(), d, secrets(t, 1), policy)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What each receiver does ends in the right record, the right state and the right wait, within the time of a try.
func TestEveryReceiverEndsInTheRightRecord(t *testing.T) {
	r, s := start(t), sender(t, true)
	for _, c := range []struct {
		behaviour receiver.Behaviour
		status    int
		failure   webhook.Failure
		answer    int // bytes at least
		state     webhook.State
		wait      time.Duration // to the next try
	}{
		{receiver.OK, 200, "", 9, webhook.Delivered, 0},
		{receiver.NoContent, 204, "", 0, webhook.Delivered, 0},
		{receiver.Trickle, 200, "", 1, webhook.Delivered, 0},
		{receiver.Huge, 200, "", 1024, webhook.Delivered, 0},
		{receiver.Bomb, 200, "", 1024, webhook.Delivered, 0},
		{receiver.Gone, 410, "", 0, webhook.Gone, 0},
		{receiver.Redirect, 302, "", 0, webhook.Pending, 5 * time.Second},
		{receiver.Fail, 500, "", 12, webhook.Pending, 5 * time.Second},
		{receiver.Busy, 503, "", 0, webhook.Pending, receiver.RetryAfterSeconds * time.Second},
		{receiver.Refuse, 0, webhook.Unreachable, 0, webhook.Pending, 5 * time.Second},
		{receiver.Hang, 0, webhook.TimedOut, 0, webhook.Pending, 5 * time.Second},
		{receiver.Late, 0, webhook.TimedOut, 0, webhook.Pending, 5 * time.Second},
		{receiver.TrickleHeader, 0, webhook.TimedOut, 0, webhook.Pending, 5 * time.Second},
		{receiver.Reset, 0, webhook.Broken, 0, webhook.Pending, 5 * time.Second},
		{receiver.Garbage, 0, webhook.Broken, 0, webhook.Pending, 5 * time.Second},
		{receiver.BadTLS, 0, webhook.BadTLS, 0, webhook.Pending, 5 * time.Second},
		{receiver.PlainTLS, 0, webhook.BadTLS, 0, webhook.Pending, 5 * time.Second},
	} {
		t.Run(string(c.behaviour), func(t *testing.T) {
			d := delivery(t, r.URL(c.behaviour, "a"))
			a := send(t, s, d)
			if a.Status != c.status || a.Failure != c.failure || len(a.Answer) < c.answer || len(a.Answer) > 1024 || a.Number != 1 || a.At.IsZero() {
				t.Errorf("%+v", a)
			}
			if longest := times.Total + times.Answer + time.Second; a.Duration <= 0 || a.Duration > longest {
				t.Errorf("it took %v", a.Duration)
			}
			if c.behaviour == receiver.Trickle && a.Duration >= times.Total {
				t.Errorf("a body that trickles was read for %v", a.Duration)
			}
			now := time.Now()
			d = d.Record(a, now, 0)
			if d.State != c.state || d.State == webhook.Pending && d.NextAt.Sub(now) != c.wait {
				t.Errorf("%s, next in %v", d.State, d.NextAt.Sub(now))
			}
		})
	}
	if got := r.Received(r.URL(receiver.OK, "redirected")); len(got) != 0 {
		t.Errorf("a redirect was followed: %v", got)
	}
	if n := r.Written(); n > receiver.HugeBytes/2 {
		t.Errorf("%d bytes of an answer were taken", n)
	}
}

// However much a receiver answers, a try takes little memory.
func TestAnswersTakeLittleMemory(t *testing.T) {
	r, s := start(t), sender(t, true)
	const bound = 2 << 20 // both ends of the connection, buffers included
	for _, b := range []receiver.Behaviour{receiver.Huge, receiver.Bomb, receiver.Trickle} {
		d := delivery(t, r.URL(b, "memory"))
		send(t, s, d) // what is made once is made before it is measured
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		send(t, s, d)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > bound {
			t.Errorf("%s: %d bytes were allocated, want at most %d", b, used, bound)
		} else {
			t.Logf("%s: %d bytes allocated", b, used)
		}
	}
}

func TestEveryTrySendsTheSameBytesUnderANewSignature(t *testing.T) {
	r, s := start(t), sender(t, true)
	url := r.URL(receiver.Fail, "again")
	d := delivery(t, url)
	keys := secrets(t, 2, 1)
	for range 3 {
		a, err := s.Send(t.Context(), d, keys, policy)
		if err != nil {
			t.Fatal(err)
		}
		if d, err = d.Record(a, d.NextAt, 0).Claim(d.NextAt.Add(24 * time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	got := r.Received(url)
	if len(got) != 3 {
		t.Fatalf("%d tries arrived", len(got))
	}
	for i, req := range got {
		if !bytes.Equal(req.Body, d.Body) {
			t.Errorf("try %d sent %s", i+1, req.Body)
		}
		h := req.Header
		if h.Get("X-Webhook-Id") != string(d.EventID) || h.Get("Webhook-Id") != string(d.EventID) || h.Get("X-Request-Id") != "req_1" ||
			h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("Accept-Encoding") != "" {
			t.Errorf("try %d has headers %v", i+1, h)
		}
		if n := strings.Count(h.Get("X-Webhook-Signature"), "v1="); n != 2 {
			t.Errorf("try %d has %d signatures", i+1, n)
		}
		for _, key := range keys {
			if err := webhook.Verify(h, req.Body, req.At, key); err != nil {
				t.Errorf("try %d: %v", i+1, err)
			}
			library, err := standardwebhooks.NewWebhook(key.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			if err := library.Verify(req.Body, h); err != nil {
				t.Errorf("try %d: the Standard Webhooks library says %v", i+1, err)
			}
		}
	}
}

func TestRefusedURLIsBlockedAndNothingIsSent(t *testing.T) {
	r, s := start(t), sender(t, false)
	for url, reason := range map[string]string{
		r.URL(receiver.OK, "blocked"): netguard.ReasonPort, "http://127.0.0.1/": netguard.ReasonPrivateAddress, "http://169.254.169.254/latest": netguard.ReasonPrivateAddress,
		"http://[64:ff9b::7f00:1]/": netguard.ReasonPrivateAddress,
	} {
		d := delivery(t, url)
		a := send(t, s, d)
		if a.Failure != webhook.NotAllowed || a.Reason != reason || a.Status != 0 {
			t.Errorf("%s: %+v", url, a)
		}
		if got := d.Record(a, time.Now(), 0).State; got != webhook.Blocked {
			t.Errorf("%s: %s", url, got)
		}
	}
	if got := r.Received(r.URL(receiver.OK, "blocked")); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestOurOwnEndIsNoFailureOfTheReceiver(t *testing.T) {
	r, s := start(t), sender(t, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := s.Send(ctx, delivery(t, r.URL(receiver.OK, "canceled")), secrets(t, 1), policy); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v %v", a, err)
	}
}

// Errors of a try name no URL: it may hold a secret of its owner.
func TestRecordsHoldNoURL(t *testing.T) {
	r, s := start(t), sender(t, true)
	for _, b := range []receiver.Behaviour{receiver.Refuse, receiver.Hang, receiver.BadTLS, receiver.Reset, receiver.Garbage} {
		a := send(t, s, delivery(t, r.URL(b, "x")+"?token=s3cret"))
		if strings.Contains(fmt.Sprintf("%+v", a), "s3cret") {
			t.Errorf("%s: %+v", b, a)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	r, s := start(b), sender(b, true)
	d, keys := delivery(b, r.URL(receiver.NoContent, "bench")), secrets(b, 1)
	for b.Loop() {
		if a, err := s.Send(b.Context(), d, keys, policy); err != nil || a.Status != 204 {
			b.Fatalf("%+v %v", a, err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}
