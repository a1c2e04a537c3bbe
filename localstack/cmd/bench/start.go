package main

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"time"

	"pintu/internal/id"
	"pintu/localstack/stack"
)

func jobOf(s string) id.Job { return id.Job(s) }

// firstPoll runs the api binary against a Runtime API that notes the first request and never answers it.
func (b *bench) firstPoll() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	polled := make(chan time.Time, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case polled <- time.Now():
		default:
		}
		<-r.Context().Done()
	})}
	go server.Serve(l) // ends with Close
	defer server.Close()
	c := exec.CommandContext(ctx, filepath.Join(b.root, "build/ApiFunction/bootstrap"))
	c.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + l.Addr().String(), "AWS_REGION=" + stack.Region, "AWS_ACCESS_KEY_ID=" + stack.AccessKey, "AWS_SECRET_ACCESS_KEY=" + stack.SecretKey,
		"PINTU_STAGE=bench", "PINTU_CONTROL_TABLE=c", "PINTU_RECORDS_TABLE=r", "PINTU_BUCKET=b", "PINTU_PLAN_QUEUE_URL=http://127.0.0.1/p", "PINTU_PROCESS_QUEUE_URL=http://127.0.0.1/q"}
	began := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	defer c.Wait() // killed by cancel; how it ended says nothing
	defer cancel()
	select {
	case at := <-polled:
		return at.Sub(began), nil
	case <-ctx.Done():
		return 0, errNoPoll
	}
}
