// Command bootstrap is a function that does what its event asks for, to test what runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

type answer struct {
	PID       int               `json:"pid"`
	Served    int               `json:"served"` // invocations of this process so far
	RequestID string            `json:"request_id"`
	ARN       string            `json:"arn"`
	Deadline  int64             `json:"deadline"` // ms since 1970
	Env       map[string]string `json:"env"`
	Text      string            `json:"text,omitempty"`
}

var served int

func main() {
	if os.Getenv("FAIL_INIT") != "" {
		fmt.Fprintln(os.Stderr, "no table configured")
		os.Exit(4)
	}
	lambda.StartWithOptions(handle, lambda.WithEnableSIGTERM(func() {
		fmt.Println("terminated")
		os.Exit(0)
	}))
}

func handle(ctx context.Context, e event) (*answer, error) {
	served++
	switch e.Do {
	case "error":
		return nil, errors.New(e.Text)
	case "panic":
		panic(e.Text)
	case "exit":
		os.Exit(3)
	case "hang":
		fmt.Println("hanging")
		<-make(chan struct{})
	case "print":
		fmt.Printf("%s\nno end", e.Text)
	case "big":
		return &answer{Text: strings.Repeat("x", 7<<20)}, nil
	case "get":
		r, err := http.Get(e.Text)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	return describe(ctx), nil
}

func describe(ctx context.Context) *answer {
	a := &answer{PID: os.Getpid(), Served: served, Env: map[string]string{}}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		a.RequestID, a.ARN = lc.AwsRequestID, lc.InvokedFunctionArn
	}
	if d, ok := ctx.Deadline(); ok {
		a.Deadline = d.UnixMilli()
	}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		a.Env[name] = value
	}
	return a
}
