// Command bench measures Pintu on this machine and prints figures beside the bar each must reach. Speeds are
// ratios to encoding/csv over the same file in the same run, because machines differ and share their
// cores; it fails when a bar is missed. It refuses to be a load test: everything is on loopback and bounded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// bench is one run.
type bench struct {
	ctx    context.Context
	root   string
	dir    string // for generated files
	missed []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	only := flag.String("only", "", "parse, memory, cost or start; all of them when empty")
	flag.Parse()
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pintu-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{ctx: ctx, root: root, dir: dir}
	for _, part := range []struct {
		name string
		run  func() error
	}{{"parse", b.parse}, {"cost", b.cost}, {"memory", b.memory}, {"start", b.start}} {
		if *only != "" && *only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if len(b.missed) > 0 {
		return fmt.Errorf("below the bar: %v", b.missed)
	}
	return nil
}

// atLeast prints a figure and its bar, and remembers it when it is missed.
func (b *bench) atLeast(what string, got, bar float64, unit string) {
	b.verdict(what, got, bar, unit, "at least", got >= bar)
}

func (b *bench) atMost(what string, got, bar float64, unit string) {
	b.verdict(what, got, bar, unit, "at most", got <= bar)
}

func (b *bench) verdict(what string, got, bar float64, unit, relation string, ok bool) {
	mark := "ok"
	if !ok {
		mark = "MISSED"
		b.missed = append(b.missed, what)
	}
	fmt.Printf("  %-52s %9.2f %-8s (%s %g) %s\n", what, got, unit, relation, bar, mark)
}

func show(what string, got float64, unit string) { fmt.Printf("  %-52s %9.2f %s\n", what, got, unit) }
