package sqs

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// hint is what the model knows of a message.
type hint struct {
	visible  time.Time
	receives int
	flying   bool
}

// TestQueueAgainstModel compares a standard queue with a map of messages, for random operations and a moving clock.
func TestQueueAgainstModel(t *testing.T) {
	const limit, hide = 3, 10 * time.Second
	rapid.Check(t, func(r *rapid.T) {
		now := time.UnixMilli(1_700_000_000_000)
		q := newQueue("q", "arn")
		q.set.retention = time.Hour
		model, n := map[string]*hint{}, 0
		held := map[string]*instance{}
		id := func() string {
			for id := range held {
				return id
			}
			return ""
		}
		r.Repeat(map[string]func(*rapid.T){
			"send": func(r *rapid.T) {
				n++
				delay := time.Duration(rapid.IntRange(0, 3).Draw(r, "delay")) * time.Second
				group := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "group")
				m := &message{ID: fmt.Sprint(n), Group: group, Sent: now, Instances: []*instance{{Visible: now.Add(delay)}}}
				q.add(m, now)
				model[m.ID] = &hint{visible: now.Add(delay)}
			},
			"receive": func(r *rapid.T) {
				want, spent := 0, 0
				for _, h := range model {
					if !h.visible.After(now) && h.receives >= limit {
						spent++
					} else if !h.visible.After(now) {
						want++
					}
				}
				max := rapid.IntRange(1, 10).Draw(r, "n")
				got, dead := q.take(now, max, hide, limit)
				if len(got) != min(want, max) || len(dead) > spent {
					r.Fatalf("took %d and buried %d of %d and %d", len(got), len(dead), want, spent)
				}
				for _, in := range got {
					h := model[in.msg.ID]
					if h == nil || h.visible.After(now) || h.receives >= limit {
						r.Fatalf("took %s, which is %+v", in.msg.ID, h)
					}
					h.visible, h.receives, h.flying = now.Add(hide), h.receives+1, true
					held[in.msg.ID] = in
				}
				for _, m := range dead {
					if h := model[m.ID]; h == nil || h.receives < limit {
						r.Fatalf("buried %s, which is %+v", m.ID, h)
					}
					delete(model, m.ID)
					delete(held, m.ID)
				}
			},
			"remove": func(*rapid.T) {
				if id := id(); id != "" {
					q.remove(held[id].msg)
					delete(model, id)
					delete(held, id)
				}
			},
			"hide": func(r *rapid.T) {
				if id := id(); id != "" && held[id].InFlight {
					to := now.Add(time.Duration(rapid.IntRange(0, 20).Draw(r, "s")) * time.Second)
					q.move(held[id], to, now)
					model[id].visible = to
				}
			},
			"pass": func(r *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 12).Draw(r, "s")) * time.Second)
				q.advance(now)
			},
			"": func(r *rapid.T) {
				var visible, inFlight, delayed int
				for _, h := range model {
					switch {
					case !h.visible.After(now):
						visible, h.flying = visible+1, false
					case h.flying:
						inFlight++
					default:
						delayed++
					}
				}
				if a, b, c := q.counts(); a != visible || b != inFlight || c != delayed || len(q.msgs) != len(model) {
					r.Fatalf("counts %d/%d/%d of %d, want %d/%d/%d of %d", a, b, c, len(q.msgs), visible, inFlight, delayed, len(model))
				}
			},
		})
	})
}

func BenchmarkSendReceiveDelete(b *testing.B) {
	now := time.Now()
	q := newQueue("q", "arn")
	q.set.retention = time.Hour
	for i := range 100_000 { // the backlog
		q.add(&message{ID: fmt.Sprint("old", i), Group: fmt.Sprint("g", i%50), Sent: now, Instances: []*instance{{Visible: now}}}, now)
	}
	for i := 0; b.Loop(); i++ {
		q.add(&message{ID: fmt.Sprint(i), Group: "g", Sent: now, Instances: []*instance{{Visible: now}}}, now)
		got, _ := q.take(now, 1, time.Minute, 0)
		q.remove(got[0].msg)
	}
}
