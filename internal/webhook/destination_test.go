package webhook

import (
	"fmt"
	"testing"
	"time"
)

var (
	well   = Attempt{Status: 200}
	failed = Attempt{Failure: TimedOut}
)

// try admits and settles one try at a moment.
func try(t *testing.T, d Destination, a Attempt, now time.Time) Destination {
	t.Helper()
	d, until, ok := d.Admit("dlv_a", now, false, 0)
	if !ok {
		t.Fatalf("not admitted until %v", until)
	}
	return d.Settle("dlv_a", a, now, 0)
}

func broken(t *testing.T) Destination {
	t.Helper()
	var d Destination
	for range maxFailures {
		d = try(t, d, failed, noon)
	}
	return d
}

func TestSeveralFailuresInARowOpenTheBreaker(t *testing.T) {
	d := broken(t)
	_, until, ok := d.Admit("dlv_b", noon, false, 0.5)
	if want := noon.Add(openBase/2 + spread/2); ok || !until.Equal(want) {
		t.Errorf("admitted %v, until %v, want %v", ok, until, want)
	}
	var mixed Destination
	for range 3 {
		for range maxFailures - 1 {
			mixed = try(t, mixed, failed, noon)
		}
		mixed = try(t, mixed, well, noon)
	}
	if _, _, ok := mixed.Admit("dlv_b", noon, false, 0); !ok {
		t.Error("a receiver that answers now and then is cut off")
	}
}

func TestOneProbeDecidesWhetherTheBreakerCloses(t *testing.T) {
	d := broken(t)
	now := d.OpenUntil
	d, _, ok := d.Admit("dlv_a", now, false, 0)
	if !ok {
		t.Fatal("no probe")
	}
	if _, until, ok := d.Admit("dlv_b", now, false, 0); ok || !until.Equal(now.Add(crowded)) {
		t.Errorf("a second probe: %v, until %v", ok, until)
	}
	if closed := d.Settle("dlv_a", well, now, 0); closed.Failures != 0 || !closed.OpenUntil.IsZero() {
		t.Errorf("after a good probe: %+v", closed)
	}
	opened := d.Settle("dlv_a", failed, now, 0)
	if _, _, ok := opened.Admit("dlv_b", now, false, 0); ok || !opened.OpenUntil.Equal(now.Add(openBase)) {
		t.Errorf("after a bad probe: %+v", opened)
	}
}

func TestProbeThatNeverComesBackIsGivenUp(t *testing.T) {
	d := broken(t)
	d, _, _ = d.Admit("dlv_a", d.OpenUntil, false, 0)
	if _, _, ok := d.Admit("dlv_b", d.OpenUntil.Add(ClaimLife-1), false, 0); ok {
		t.Error("two probes")
	}
	if _, _, ok := d.Admit("dlv_b", d.OpenUntil.Add(ClaimLife), false, 0); !ok {
		t.Error("no probe for ever")
	}
}

func TestBreakerStaysOpenLongerAndLonger(t *testing.T) {
	d := broken(t)
	var waits []time.Duration
	for range 8 {
		now := d.OpenUntil
		d = try(t, d, failed, now)
		waits = append(waits, d.OpenUntil.Sub(now))
	}
	want := "[30s 1m0s 2m0s 4m0s 5m0s 5m0s 5m0s 5m0s]"
	if got := fmt.Sprint(waits); got != want {
		t.Errorf("waits %s, want %s", got, want)
	}
}

func TestLastTryPassesAnOpenBreakerInTurn(t *testing.T) {
	d, _, ok := broken(t).Admit("dlv_a", noon, true, 0)
	if !ok {
		t.Fatal("the last try waits for the breaker")
	}
	if _, until, ok := d.Admit("dlv_b", noon, true, 0); ok || !until.Equal(noon.Add(crowded)) {
		t.Error("the bound does not hold for last tries")
	}
}

// places tells how many tries a destination takes at once.
func places(d Destination) (n int) {
	for {
		var ok bool
		if d, _, ok = d.Admit(DeliveryID(fmt.Sprint(n)), noon, false, 0); !ok {
			return n
		}
		n++
	}
}

func TestPlacesAreEarnedAndLost(t *testing.T) {
	var d Destination
	for i := range maxInFlight + 3 {
		if got, want := places(d), min(1+i, maxInFlight); got != want {
			t.Errorf("%d places after %d good answers, want %d", got, i, want)
		}
		d = try(t, d, well, noon)
	}
	if got := places(try(t, d, failed, noon)); got != 1 {
		t.Errorf("%d places after a failure", got)
	}
}

func TestTriesInFlightAreBounded(t *testing.T) {
	d := Destination{Good: maxInFlight}
	for i := range maxInFlight {
		d, _, _ = d.Admit(DeliveryID(fmt.Sprint(i)), noon, false, 0)
	}
	if _, until, ok := d.Admit("more", noon, false, 0.5); ok || !until.Equal(noon.Add(crowded*3/2)) {
		t.Errorf("one more: %v, until %v", ok, until)
	}
	if _, _, ok := d.Admit("3", noon, false, 0); !ok {
		t.Error("a delivery is kept out by its own try")
	}
	if _, _, ok := d.Settle("3", well, noon, 0).Admit("more", noon, false, 0); !ok {
		t.Error("a settled try keeps its place")
	}
	if _, _, ok := d.Admit("more", noon.Add(ClaimLife), false, 0); !ok {
		t.Error("dead tries keep their places")
	}
}

func TestOnlyFailuresOfTheReceiverCount(t *testing.T) {
	for name, c := range map[string]struct {
		a    Attempt
		want int
	}{
		"500": {Attempt{Status: 500}, 4}, "503": {Attempt{Status: 503}, 4}, "429": {Attempt{Status: 429}, 4},
		"timeout": {Attempt{Failure: TimedOut}, 4}, "unreachable": {Attempt{Failure: Unreachable}, 4}, "tls": {Attempt{Failure: BadTLS}, 4}, "broken": {Attempt{Failure: Broken}, 4},
		"200": {Attempt{Status: 200}, 0}, "404": {Attempt{Status: 404}, 0}, "301": {Attempt{Status: 301}, 0}, "410": {Attempt{Status: 410}, 0},
		"blocked": {Attempt{Failure: NotAllowed}, 3}, "interrupted": {Attempt{Failure: Interrupted}, 3},
	} {
		d := Destination{Failures: 3}
		if got := d.Settle("dlv_a", c.a, noon, 0).Failures; got != c.want {
			t.Errorf("%s: %d failures in a row, want %d", name, got, c.want)
		}
	}
}

func TestAdmitChangesNoStateOfItsCaller(t *testing.T) {
	d := Destination{InFlight: map[DeliveryID]time.Time{"dlv_a": noon.Add(time.Hour)}}
	d.Admit("dlv_b", noon, false, 0)
	d.Settle("dlv_a", well, noon, 0)
	if len(d.InFlight) != 1 {
		t.Errorf("%v", d.InFlight)
	}
}
