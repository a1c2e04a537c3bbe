package importer

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"pintu/internal/job"
	"pintu/internal/record"
)

// publish makes the rows of an import of all or nothing visible (PROTOCOL A20). All of them are staged and
// none is bad. The commit point is one write on the job; from then on the rows are copied to their records,
// page by page, whoever dies in between. Nothing is parsed or judged again: no other import can have written
// since, for this one holds every slot of the dataset.
func (im *Importer) publish(ctx context.Context, j job.Job, accepted int64) (job.Job, error) {
	if j.CommittedAt.IsZero() {
		at := im.Now().UTC()
		if err := im.Store.Commit(ctx, j, at); err != nil {
			return j, fmt.Errorf("commit: %w", err)
		}
		j.CommittedAt = at
	}
	for at := j.Copied; at.Shard < record.Shards; {
		if timeUp(ctx) {
			return j, errYield
		}
		to, err := im.copyPage(ctx, j, at)
		if err != nil {
			return j, err
		}
		at = to
		if at.Rows == j.Copied.Rows { // the end of a shard costs nothing to find again
			continue
		}
		if err := im.Store.SaveCopied(ctx, j, at); err != nil {
			return j, fmt.Errorf("keep how far rows are copied: %w", err)
		}
		j.Copied = at
	}
	if j.Copied.Rows != accepted {
		return j, fmt.Errorf("ledger of job %s: %d rows were copied, %d were accepted", j.ID, j.Copied.Rows, accepted)
	}
	return j, nil
}

// copyPage copies the next rows of a shard and gives the place behind them.
func (im *Importer) copyPage(ctx context.Context, j job.Job, at job.Copied) (job.Copied, error) {
	rows, err := im.Records.Staged(ctx, j, at.Shard, at.Key, j.Plan.BatchRows)
	if err != nil {
		return at, err
	}
	if len(rows) == 0 {
		return job.Copied{Shard: at.Shard + 1, Rows: at.Rows}, nil
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(im.InFlight)
	for _, w := range rows {
		w.Now = im.Now()
		group.Go(func() error {
			outcome, err := im.settleRow(gctx, w, j, im.Records.WriteRecord, new(marks))
			if err == nil && outcome == Duplicate {
				err = fmt.Errorf("its record is another row's")
			}
			if err != nil {
				return fmt.Errorf("copy row %d: %w", w.Row, err)
			}
			return nil
		})
	}
	last := rows[len(rows)-1]
	return job.Copied{Shard: at.Shard, Key: last.Key, Rows: at.Rows + int64(len(rows))}, group.Wait()
}
