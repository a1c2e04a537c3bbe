package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"pintu/internal/logline"
)

// Build makes a function's handler.
type Build func(context.Context, Config, *logline.Logger) (Handler, error)

// Start runs a function: the environment is read, the parts are built, Lambda's loop begins. What is wrong
// with the environment is told on stderr and ends the process, so that Lambda reports it as a failed start.
func Start(build Build) {
	ctx := context.Background()
	handler, err := prepare(ctx, build)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// SIGTERM is delivered only to who asks for it. There is nothing to finish, work in hand resumes elsewhere;
	// the process ends at once instead of being killed two seconds later.
	lambda.StartWithOptions(handler, lambda.WithContext(ctx), lambda.WithEnableSIGTERM(func() { os.Exit(0) }))
}

func prepare(ctx context.Context, build Build) (Handler, error) {
	c, err := ReadConfig(os.Getenv)
	if err != nil {
		return nil, err
	}
	return build(ctx, c, logline.New(os.Stdout, time.Now))
}
