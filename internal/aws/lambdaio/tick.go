package lambdaio

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"pintu/internal/logline"
)

// Tick runs work each time a schedule fires. The rule may fire twice or early; work must not care.
func Tick(unit string, work func(context.Context) error, log *logline.Logger) func(context.Context, events.EventBridgeEvent) error {
	return func(ctx context.Context, e events.EventBridgeEvent) error {
		ctx, line := log.Begin(ctx, unit, slog.Time("scheduled_at", e.Time.UTC().Truncate(time.Second)))
		err := guarded(ctx, func() error { return work(ctx) })
		line.End(err)
		return err
	}
}
