package app

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"pintu/internal/aws/lambdaio"
	"pintu/internal/dataset"
	"pintu/internal/httpapi"
	"pintu/internal/importer"
	"pintu/internal/job"
	"pintu/internal/logline"
	"pintu/internal/sweep"
	"pintu/internal/worker"
)

// Handler is what lambda.Start takes: a function of (context, event) to (response, error).
type Handler any

// API builds the function behind every operation but PUT of datasets.
func API(ctx context.Context, c Config, log *logline.Logger) (Handler, error) {
	p, err := newParts(ctx, c)
	if err != nil {
		return nil, err
	}
	h := httpapi.New(httpapi.Config{Access: p.access, Jobs: p.jobs, Datasets: p.datasets, Records: p.store, Rows: p.rows, Log: log.Slog(), Now: p.now})
	return lambdaio.API(h, log), nil
}

// Compute compiles the computed columns of a definition. The functions that need it are given it by their
// mains: the compiler adds megabytes to every binary that this package is linked into with it.
type Compute func(*dataset.Definition) (dataset.Evaluator, error)

// Datasets builds the function behind PUT of datasets.
func Datasets(compute Compute) Build {
	return func(ctx context.Context, c Config, log *logline.Logger) (Handler, error) {
		p, err := newParts(ctx, c)
		if err != nil {
			return nil, err
		}
		h := httpapi.NewDatasets(httpapi.Config{Access: p.access, Datasets: p.datasets, Compute: compute, Log: log.Slog(), Now: p.now})
		return lambdaio.API(h, log), nil
	}
}

// Plan builds the function that reads the plan queue.
func Plan(ctx context.Context, c Config, log *logline.Logger) (Handler, error) {
	return messages(ctx, c, log, job.HintPlan, c.PlanQueueURL, nil)
}

// Process builds the function that reads the process queue.
func Process(compute Compute) Build {
	return func(ctx context.Context, c Config, log *logline.Logger) (Handler, error) {
		return messages(ctx, c, log, job.HintProcess, c.ProcessQueueURL, compute)
	}
}

func messages(ctx context.Context, c Config, log *logline.Logger, queue job.HintKind, url string, compute Compute) (Handler, error) {
	p, err := newParts(ctx, c)
	if err != nil {
		return nil, err
	}
	imports := importer.New(importer.Config{Store: p.store, Records: p.store, Quarantine: p.store, Rows: p.rows, Blob: p.blob, Definitions: newDefinitions(p.datasets), Compute: compute,
		Access: p.access, Hints: p.queues, Jobs: p.jobs, Now: p.now, ChunkBytes: c.ChunkBytes})
	source := lambdaio.Source{Name: string(queue), MaxReceives: MaxReceives, Visibility: lambdaio.NewQueueVisibility(p.aws, url), Jitter: rand.Float64}
	return lambdaio.Messages(source, worker.New(p.store, imports, p.now).Handle, log), nil
}

// Sweep builds the function that runs every minute.
func Sweep(ctx context.Context, c Config, log *logline.Logger) (Handler, error) {
	p, err := newParts(ctx, c)
	if err != nil {
		return nil, err
	}
	sweeper := sweep.New(p.store, p.jobs, p.queues, p.queues, p.now)
	run := func(ctx context.Context) error {
		report, err := sweeper.Run(ctx)
		logline.Add(ctx, slog.Int("looked", report.Looked), slog.Int("failed", report.Failed))
		if err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
		return nil
	}
	return lambdaio.Tick("sweep", run, log), nil
}
