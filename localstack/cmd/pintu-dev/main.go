// Command pintu-dev runs the embedded stack in the foreground; `pintu dev` and `make run` start it. It holds no logic of
// its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"pintu/localstack/dev"
)

const defaultPort = 4510

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends it at once
	}()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	o := dev.Options{Stdout: os.Stdout, Stderr: os.Stderr, Port: defaultPort}
	flags := flag.NewFlagSet("pintu-dev", flag.ContinueOnError)
	if text := os.Getenv("PORT"); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil {
			return report(fmt.Errorf("PORT is %q, which is no number", text), 2)
		}
		o.Port = port
	}
	flags.IntVar(&o.Port, "port", o.Port, "port of the HTTP API; 0 takes a free one (environment: PORT)")
	flags.IntVar(&o.AWSPort, "aws-port", 0, "port of the AWS endpoint; 0 takes a free one")
	flags.StringVar(&o.Data, "data", "", "directory to keep the state in; without it the state is in memory")
	flags.StringVar(&o.Root, "root", "", "repository with template.yaml and build/; without it the folder above this binary's own, or the working directory")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 {
		return report(fmt.Errorf("%q is not known", flags.Arg(0)), 2)
	}
	if o.Root == "" {
		o.Root = repository()
	}
	return report(dev.Run(ctx, o), 1)
}

// repository is the folder that holds bin/pintu-dev, when a template stands there, else the working directory.
func repository() string {
	if path, err := os.Executable(); err == nil {
		above := filepath.Dir(filepath.Dir(path))
		if _, err := os.Stat(filepath.Join(above, "template.yaml")); err == nil {
			return above
		}
	}
	return "."
}

// report prints an error and gives the exit code.
func report(err error, code int) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "pintu-dev:", err)
	return code
}
