package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pintu/internal/client"
)

func jobCommand(env *Env) *cobra.Command {
	return group("job", "look at jobs, wait for them, cancel them, run them again", jobGet(env), jobList(env), jobWait(env), jobCancel(env), jobRetry(env), jobReprocess(env), jobVerify(env), jobArtifact(env))
}

// onJob makes a command that does one thing with one job and shows what it came to.
func onJob(env *Env, use, short string, do func(ctx context.Context, api *client.Client, jobID string) (client.Job, error), then func(client.Job) error) *cobra.Command {
	cmd := &cobra.Command{Use: use + " JOB", Short: short, Args: args(1, "a job id")}
	f := output(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := env.api()
		if err != nil {
			return err
		}
		j, err := do(cmd.Context(), api, args[0])
		if err != nil {
			return calling(err)
		}
		if err := printJob(cmd.OutOrStdout(), *f, j); err != nil {
			return err
		}
		return then(j)
	}
	return cmd
}

func jobGet(env *Env) *cobra.Command {
	return onJob(env, "get", "show a job as it is now", func(ctx context.Context, api *client.Client, jobID string) (client.Job, error) {
		return api.Job(ctx, jobID)
	}, func(client.Job) error { return nil })
}

func jobWait(env *Env) *cobra.Command {
	return onJob(env, "wait", "wait until a job ends; the exit code says how", func(ctx context.Context, api *client.Client, jobID string) (client.Job, error) {
		return waitFor(ctx, env, api, jobID)
	}, func(j client.Job) error { return ended(env.Stderr, j) })
}

func jobCancel(env *Env) *cobra.Command {
	return onJob(env, "cancel", "ask a job to end; rows that are in stay in", func(ctx context.Context, api *client.Client, jobID string) (client.Job, error) {
		return api.Cancel(ctx, jobID, "cancel-"+jobID) // a job is canceled once
	}, func(j client.Job) error {
		if !j.Status.Terminal() {
			fmt.Fprintf(env.Stderr, "the job ends when its workers have stopped\nhint: `pintu job wait %s` waits for it\n", j.ID)
		}
		return nil
	})
}

func jobList(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "list jobs, newest first", Args: noArgs}
	f, l := output(cmd), listFlags(cmd)
	status := cmd.Flags().String("status", "", "only jobs in this status")
	kind := cmd.Flags().String("kind", "", "only jobs of this kind")
	since := cmd.Flags().Duration("since", 0, "only jobs made within this time, such as 24h")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := env.api()
		if err != nil {
			return err
		}
		filter := client.JobFilter{Kind: *kind, Status: client.Status(*status)}
		if *since > 0 {
			filter.CreatedAfter = time.Now().Add(-*since)
		}
		t := table[client.Job]{
			head: []string{"JOB", "STATUS", "DATASET", "CREATED", "ACCEPTED", "REJECTED"},
			cells: func(j client.Job) []any {
				return []any{j.ID, j.Status, j.Dataset, j.CreatedAt.Format(time.RFC3339), j.Progress.RowsAccepted, j.Progress.RowsRejected}
			},
			raw: func(j client.Job) json.RawMessage { return j.Raw },
		}
		return show(cmd.Context(), cmd, *l, *f, "jobs", t, listOf(api.Jobs, filter))
	}
	return cmd
}

// listOf binds a list of the API to what it lists.
func listOf[T, F any](list func(context.Context, F, string, int) (client.Page[T], error), of F) func(context.Context, string, int) (client.Page[T], error) {
	return func(ctx context.Context, cursor string, limit int) (client.Page[T], error) {
		return list(ctx, of, cursor, limit)
	}
}

func jobArtifact(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "artifact JOB NAME", Short: "fetch a file that a job left behind, and check its SHA-256",
		Args: args(2, "a job id and the name of an artifact")}
	to := cmd.Flags().String("to", "", "write to this file instead of stdout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := env.api()
		if err != nil {
			return err
		}
		fetch := func(w io.Writer) error { return calling(api.Artifact(cmd.Context(), args[0], args[1], w)) }
		if *to == "" {
			return fetch(cmd.OutOrStdout())
		}
		if err := writeFile(*to, fetch); err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "wrote %s\n", *to)
		return nil
	}
	return cmd
}

// writeFile puts a file in its place only when all of it has come.
func writeFile(path string, fill func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write artifact: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name()) // the first error is the one to tell
		}
	}()
	if err := fill(tmp); err != nil {
		_ = tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write artifact: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write artifact: %w", err)
	}
	return nil
}
