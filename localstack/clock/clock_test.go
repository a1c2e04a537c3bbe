package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAWaitEndsByTimeByAdvanceOrByDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		start := c.Now()
		if !c.WaitUntil(start.Add(time.Minute), nil) || c.Now().Sub(start) != time.Minute {
			t.Fatalf("waited %v by itself, want a minute", c.Now().Sub(start))
		}
		ended := make(chan bool)
		go func() { ended <- c.WaitUntil(start.Add(time.Hour), nil) }()
		synctest.Wait()
		c.Advance(58 * time.Minute)
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("the wait ended a minute early")
		default:
		}
		c.Advance(time.Minute)
		if !<-ended {
			t.Fatal("the wait was not ended by the time")
		}
		done := make(chan struct{})
		go func() { ended <- c.WaitUntil(start.Add(9*time.Hour), done) }()
		synctest.Wait()
		close(done)
		if <-ended {
			t.Fatal("the wait says the time has come, but it was done")
		}
	})
}

func TestHooksRunAtEveryAdvance(t *testing.T) {
	c := New()
	n := 0
	c.OnAdvance(func() { n++ })
	c.Advance(time.Second)
	c.Advance(0)
	if n != 2 {
		t.Errorf("the hook ran %d times, want 2", n)
	}
}
