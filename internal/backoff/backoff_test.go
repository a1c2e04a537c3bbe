package backoff

import (
	"testing"
	"time"
)

func TestExponential(t *testing.T) {
	for _, c := range []struct {
		attempt int
		jitter  float64
		want    time.Duration
	}{
		{1, 0, 500 * time.Millisecond},
		{1, 0.5, 750 * time.Millisecond},
		{3, 0, 2 * time.Second},
		{50, 0, 5 * time.Second},
	} {
		if got := Exponential(c.attempt, time.Second, 10*time.Second, c.jitter); got != c.want {
			t.Errorf("Exponential(%d, jitter %v) = %v, want %v", c.attempt, c.jitter, got, c.want)
		}
	}
}
