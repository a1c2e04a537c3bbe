package webhook

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newDelivery(t testing.TB) Delivery {
	t.Helper()
	e, err := JobEvent(jobID, "import", []byte("null"), noon)
	if err != nil {
		t.Fatal(err)
	}
	return NewDelivery("acme", "https://hooks.example.com:8443/in?key=1", "req_1", e)
}

func claim(t testing.TB, d Delivery, now time.Time) Delivery {
	t.Helper()
	d, err := d.Claim(now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNewDeliveryIsDueAtOnce(t *testing.T) {
	d := newDelivery(t)
	want := Delivery{Tenant: "acme", ID: DeliveryID("dlv_" + string(jobID[4:])), EventID: EventID("evt_" + string(jobID[4:])), EventType: "import.job.completed",
		JobID: jobID, RequestID: "req_1", URL: "https://hooks.example.com:8443/in?key=1", Body: d.Body, State: Pending, CreatedAt: noon, RoundAt: noon,
		NextAt: noon, DueAt: noon.Add(queueGrace)}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if got := d.Destination(); got != "acme https://hooks.example.com:8443" {
		t.Errorf("destination %q", got)
	}
}

func TestAttemptsDecideTheState(t *testing.T) {
	for name, c := range map[string]struct {
		a    Attempt
		want State
	}{
		"200": {Attempt{Status: 200}, Delivered}, "204": {Attempt{Status: 204}, Delivered}, "299": {Attempt{Status: 299}, Delivered},
		"410":                 {Attempt{Status: 410}, Gone},
		"refused at the dial": {Attempt{Failure: NotAllowed}, Blocked},
		"199":                 {Attempt{Status: 199}, Pending}, "301": {Attempt{Status: 301}, Pending}, "304": {Attempt{Status: 304}, Pending}, "400": {Attempt{Status: 400}, Pending},
		"401": {Attempt{Status: 401}, Pending}, "404": {Attempt{Status: 404}, Pending}, "429": {Attempt{Status: 429}, Pending}, "500": {Attempt{Status: 500}, Pending},
		"101": {Attempt{Status: 101}, Pending}, "999": {Attempt{Status: 999}, Pending},
		"unreachable": {Attempt{Failure: Unreachable}, Pending}, "timeout": {Attempt{Failure: TimedOut}, Pending}, "tls": {Attempt{Failure: BadTLS}, Pending},
		"broken": {Attempt{Failure: Broken}, Pending}, "interrupted": {Attempt{Failure: Interrupted}, Pending},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Number = 1
			d := claim(t, newDelivery(t), noon).Record(c.a, noon.Add(time.Second), 0)
			ended := c.want != Pending
			if d.State != c.want || d.EndedAt.IsZero() == ended || d.DueAt.IsZero() != ended || d.NextAt.IsZero() != ended || !d.ClaimedAt.IsZero() || d.Attempts != 1 || d.Tries != 1 {
				t.Errorf("%+v", d)
			}
			if !ended && !d.NextAt.Equal(noon.Add(6*time.Second)) {
				t.Errorf("next try at %v", d.NextAt)
			}
			if _, err := d.Claim(noon.Add(time.Second)); ended != errors.Is(err, ErrEnded) {
				t.Errorf("claim after it: %v", err)
			}
		})
	}
}

func TestClaimIsForOneAtATime(t *testing.T) {
	d := claim(t, newDelivery(t), noon)
	if !d.DueAt.Equal(noon.Add(ClaimLife)) {
		t.Errorf("a claim is looked at again at %v", d.DueAt)
	}
	if _, err := d.Claim(noon.Add(time.Hour)); !errors.Is(err, ErrClaimed) {
		t.Errorf("a second claim: %v", err)
	}
	d = d.Record(Attempt{Number: 1, Status: 500}, noon, 0)
	if _, err := d.Claim(noon.Add(4 * time.Second)); !errors.Is(err, ErrNotYet) {
		t.Errorf("a claim before its time: %v", err)
	}
	claim(t, d, noon.Add(5*time.Second))
}

func TestDeadClaimIsATryOnRecord(t *testing.T) {
	d := claim(t, newDelivery(t), noon)
	if _, _, ok := d.Interrupt(noon.Add(ClaimLife-1), 0); ok {
		t.Error("a claim was taken from a live process")
	}
	now := noon.Add(ClaimLife)
	d, lost, ok := d.Interrupt(now, 0)
	if diff := cmp.Diff(Attempt{Number: 1, At: noon, Failure: Interrupted}, lost); !ok || diff != "" {
		t.Errorf("%v %s", ok, diff)
	}
	d = claim(t, d, now)
	if d.Tries != 1 || d.Attempts != 1 {
		t.Errorf("%+v", d)
	}
	if _, _, ok := newDelivery(t).Interrupt(now, 0); ok {
		t.Error("nothing was interrupted")
	}
}

func TestDeliveryThatKillsEveryProcessEnds(t *testing.T) {
	d, now := newDelivery(t), noon
	for tries := 0; d.State == Pending; tries++ {
		if tries > len(steps)+1 {
			t.Fatal("it does not end")
		}
		d = claim(t, d, now)
		now = now.Add(ClaimLife)
		d, _, _ = d.Interrupt(now, 0)
		if d.NextAt.After(now) {
			now = d.NextAt
		}
	}
	if d.State != Exhausted || d.Attempts != len(steps)+1 {
		t.Errorf("%s after %d", d.State, d.Attempts)
	}
}

// Messages carry waits of at most 15 minutes; a longer wait is left to the due index. Either way it is looked at.
func TestLongWaitsAreLeftToSweep(t *testing.T) {
	for tries, step := range steps {
		d := newDelivery(t)
		d.Tries = tries
		d = claim(t, d, noon).Record(Attempt{Number: 1, Status: 500}, noon, 0)
		delay, ok := d.Delay(noon)
		if ok != (step <= MaxQueueDelay) || ok && delay != step {
			t.Errorf("after step %v: delay %v, %v", step, delay, ok)
		}
		if want := d.NextAt.Add(queueGrace); ok && !d.DueAt.Equal(want) || !ok && !d.DueAt.Equal(d.NextAt) {
			t.Errorf("after step %v: due at %v", step, d.DueAt)
		}
	}
	if delay, ok := newDelivery(t).Delay(noon.Add(time.Hour)); delay != 0 || !ok {
		t.Errorf("overdue: %v %v", delay, ok)
	}
	if _, ok := claim(t, newDelivery(t), noon).Record(Attempt{Status: 200}, noon, 0).Delay(noon); ok {
		t.Error("an ended delivery gets a message")
	}
}

func TestDeferringUsesNoTryAndEndsWithTheRound(t *testing.T) {
	d := claim(t, newDelivery(t), noon).Defer(noon.Add(10*time.Minute), noon)
	if d.Tries != 0 || !d.NextAt.Equal(noon.Add(10*time.Minute)) || !d.ClaimedAt.IsZero() || d.Last(d.NextAt) {
		t.Errorf("%+v", d)
	}
	late := noon.Add(Budget - time.Minute)
	d = claim(t, d, late).Defer(late.Add(10*time.Minute), late)
	if end := noon.Add(Budget); !d.NextAt.Equal(end) || !d.Last(end) {
		t.Errorf("next at %v, last %v", d.NextAt, d.Last(end))
	}
	d = claim(t, d, d.NextAt).Record(Attempt{Number: 1, Failure: TimedOut}, d.NextAt, 0)
	if d.State != Exhausted {
		t.Errorf("%s after the third day", d.State)
	}
}

func TestRedeliverBeginsANewRoundOfTheSameEvent(t *testing.T) {
	first := newDelivery(t)
	later := noon.Add(100 * time.Hour)
	for _, a := range []Attempt{{Number: 1, Status: 200}, {Number: 1, Status: 410}, {Number: 1, Failure: NotAllowed}} {
		d := claim(t, first, noon).Record(a, noon, 0).Redeliver(later)
		want := first
		want.Attempts, want.RoundAt, want.NextAt, want.DueAt = 1, later, later, later.Add(queueGrace)
		if diff := cmp.Diff(want, d); diff != "" {
			t.Error(diff)
		}
	}
	waiting := claim(t, first, noon).Record(Attempt{Number: 1, Status: 500}, noon, 0)
	if d := waiting.Redeliver(noon.Add(time.Second)); !d.NextAt.Equal(noon.Add(time.Second)) || d.Tries != 1 {
		t.Errorf("pending: %+v", d)
	}
	inHand := claim(t, first, noon)
	if diff := cmp.Diff(inHand, inHand.Redeliver(noon)); diff != "" {
		t.Errorf("a try in hand was changed: %s", diff)
	}
}

// Whatever a receiver does, and whenever we come to it: a pending delivery is always due some time, no try comes
// before its time, and a round ends within its budget, in at most 13 tries, with at least one.
func TestEveryRoundEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, err := JobEvent(jobID, "import", []byte("null"), noon)
		if err != nil {
			t.Fatal(err)
		}
		d, now, number := NewDelivery("acme", "https://example.com/", "", e), noon, 0
		for d.State == Pending {
			if d.DueAt.IsZero() || d.DueAt.Before(d.NextAt) {
				t.Fatalf("due at %v, next at %v", d.DueAt, d.NextAt)
			}
			now = later(d.NextAt, now).Add(time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "late")))
			if d, err = d.Claim(now); err != nil {
				t.Fatal(err)
			}
			if !d.Last(now) && rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
				d = d.Defer(now.Add(openMax), now)
				continue
			}
			number++
			a := Attempt{Number: number, Status: 503, RetryAfter: time.Duration(rapid.Int64Range(0, int64(maxHint)).Draw(t, "hint"))}
			d = d.Record(a, now, rapid.Float64Range(0, 0.999).Draw(t, "jitter"))
		}
		if d.State != Exhausted || number < 1 || number > len(steps)+1 || now.After(noon.Add(Budget+2*time.Hour)) || !d.DueAt.IsZero() {
			t.Fatalf("%s after %d tries and %v", d.State, number, now.Sub(noon))
		}
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
