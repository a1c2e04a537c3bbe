package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"pintu/internal/access"
	"pintu/internal/fault"
)

func TestSubmitsPerMinute(t *testing.T) {
	s, c := newAccess(t) // at 10:15:30
	caller := authenticate(t, s, create(t, s, access.Limits{SubmitsPerMinute: 2}))
	steps := []struct {
		name string
		move time.Duration
		want access.Allowance
		ok   bool
	}{
		{"first", 0, access.Allowance{Limit: 2, Remaining: 1, ResetSeconds: 30}, true},
		{"second", 10 * time.Second, access.Allowance{Limit: 2, Remaining: 0, ResetSeconds: 20}, true},
		{"third", 19 * time.Second, access.Allowance{Limit: 2, Remaining: 0, ResetSeconds: 1}, false},
		{"next minute", time.Second, access.Allowance{Limit: 2, Remaining: 1, ResetSeconds: 60}, true},
	}
	for _, step := range steps {
		c.move(step.move)
		got, err := s.TakeSubmit(t.Context(), caller)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		if step.ok {
			if err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			continue
		}
		refusal, ok := fault.As(err)
		if !ok || refusal.Code != fault.RateLimited || refusal.RetryAfter != time.Second {
			t.Fatalf("%s: %#v", step.name, err)
		}
		if diff := cmp.Diff(map[string]any{"limit": 2, "retry_after_seconds": 1}, refusal.Details); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

func TestSubmitsAtOnceNeverPassTheLimit(t *testing.T) {
	s, _ := newAccess(t)
	caller := authenticate(t, s, create(t, s, access.Limits{SubmitsPerMinute: 20}))
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := s.TakeSubmit(t.Context(), caller); err == nil {
				passed.Add(1)
			} else if !fault.Is(err, fault.RateLimited) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 20 {
		t.Errorf("%d of 50 submits passed a limit of 20", passed.Load())
	}
}

func TestWaitingIsPaidFromTheMinute(t *testing.T) {
	s, c := newAccess(t)
	caller := authenticate(t, s, create(t, s, access.Limits{WaitSecondsPerMinute: 50}))
	steps := []struct {
		move      time.Duration
		ask, want int
	}{
		{0, 20, 20}, {0, 25, 25}, {0, 25, 5}, {0, 1, 0}, {0, 0, 0}, {30 * time.Second, 99, 50}, {0, 3, 0},
	}
	for i, step := range steps {
		c.move(step.move)
		if got, err := s.TakeWait(t.Context(), caller, step.ask); got != step.want || err != nil {
			t.Errorf("step %d: TakeWait(%d) = %d, %v, want %d", i, step.ask, got, err, step.want)
		}
	}
}

func TestWaitingAtOnceNeverPassesTheLimit(t *testing.T) {
	s, _ := newAccess(t)
	caller := authenticate(t, s, create(t, s, access.Limits{WaitSecondsPerMinute: 100}))
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			n, err := s.TakeWait(t.Context(), caller, 7)
			if err != nil {
				t.Error(err)
			}
			granted.Add(int64(n))
		})
	}
	wg.Wait()
	if granted.Load() != 100 {
		t.Errorf("%d s granted of 100", granted.Load())
	}
}

func TestUse(t *testing.T) {
	store, _, cfg := Start(t)
	s := access.New(access.Config{Store: store, Now: newClock().now})
	caller := authenticate(t, s, create(t, s, access.Limits{}))
	if got, err := s.Use(t.Context(), caller); got != (access.Use{}) || err != nil {
		t.Errorf("Use = %+v, %v before anything", got, err)
	}
	_, err := dynamodb.NewFromConfig(cfg).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(ControlTable), Item: item{
		"pk": str("client#acme#loader"), "sk": str("active"), "active": num("3"), "uploading": num("1"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.TakeSubmit(t.Context(), caller); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.TakeWait(t.Context(), caller, 20); err != nil {
		t.Fatal(err)
	}
	want := access.Use{SubmitsThisMinute: 2, WaitSecondsThisMinute: 20, ActiveJobs: 3, UploadingJobs: 1}
	if got, err := s.Use(t.Context(), caller); got != want || err != nil {
		t.Errorf("Use = %+v, %v, want %+v", got, err, want)
	}
}

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
