package webhook

import (
	"testing"
	"time"
)

func TestScheduleIsFromSecondsToHoursWithinThreeDays(t *testing.T) {
	for i := 1; i < len(steps); i++ {
		if steps[i] < steps[i-1] {
			t.Errorf("step %d is shorter than the one before", i)
		}
	}
	for jitter, want := range map[float64]time.Duration{0: 64*time.Hour + 42*time.Minute + 35*time.Second, 1: 71*time.Hour + 10*time.Minute + 50*time.Second + 500*time.Millisecond} {
		at := noon
		for i := range steps {
			var ok bool
			if at, ok = next(i+1, noon, at, 0, jitter); !ok {
				t.Fatalf("over after %d tries", i+1)
			}
		}
		if got := at.Sub(noon); got != want || got > Budget {
			t.Errorf("jitter %v: the last try is after %v, want %v", jitter, got, want)
		}
	}
}

func TestNext(t *testing.T) {
	day3 := noon.Add(Budget)
	for name, c := range map[string]struct {
		tries  int
		now    time.Time
		hint   time.Duration
		jitter float64
		want   time.Time // zero: the round is over
	}{
		"first failure":                  {tries: 1, now: noon, want: noon.Add(5 * time.Second)},
		"with all jitter":                {tries: 1, now: noon, jitter: 1, want: noon.Add(5500 * time.Millisecond)},
		"second failure":                 {tries: 2, now: noon, want: noon.Add(30 * time.Second)},
		"asked for longer":               {tries: 1, now: noon, hint: 2 * time.Minute, want: noon.Add(2 * time.Minute)},
		"asked for longer, with jitter":  {tries: 1, now: noon, hint: 100 * time.Second, jitter: 0.5, want: noon.Add(105 * time.Second)},
		"asked for less":                 {tries: 7, now: noon, hint: time.Second, want: noon.Add(3 * time.Hour)},
		"asked for a month":              {tries: 1, now: noon, hint: 720 * time.Hour, want: noon.Add(14 * time.Hour)},
		"asked for beyond the third day": {tries: 2, now: noon.Add(70 * time.Hour), hint: 14 * time.Hour, want: day3},
		"step beyond the third day":      {tries: 9, now: noon.Add(65 * time.Hour), want: day3},
		"twelfth failure":                {tries: 12, now: noon.Add(50 * time.Hour), want: noon.Add(64 * time.Hour)},
		"thirteenth failure":             {tries: 13, now: noon.Add(64 * time.Hour)},
		"after three days":               {tries: 1, now: day3},
	} {
		t.Run(name, func(t *testing.T) {
			at, ok := next(c.tries, noon, c.now, c.hint, c.jitter)
			if ok == c.want.IsZero() || !at.Equal(c.want) {
				t.Errorf("got %v %v, want %v", at, ok, c.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		status int
		value  string
		want   time.Duration
	}{
		{429, "120", 2 * time.Minute},
		{503, " 7 ", 7 * time.Second},
		{503, "0", 0},
		{429, "", 0},
		{429, "-5", 0},
		{429, "+5", 0},
		{429, "1.5", 0},
		{429, "soon", 0},
		{429, "999999999999999999", maxHint},
		{429, "99999999999999999999999999", 0},
		{503, "Mon, 27 Jul 2026 12:10:00 GMT", 10 * time.Minute},
		{503, "Monday, 27-Jul-26 12:10:00 GMT", 10 * time.Minute},
		{503, "Mon, 27 Jul 2026 11:00:00 GMT", 0},
		{503, "Mon, 27 Jul 2099 11:00:00 GMT", maxHint},
		{500, "120", 0},
		{200, "120", 0},
		{301, "120", 0},
	} {
		if got := retryAfter(c.status, c.value, noon); got != c.want {
			t.Errorf("retryAfter(%d, %q) = %v, want %v", c.status, c.value, got, c.want)
		}
	}
}
