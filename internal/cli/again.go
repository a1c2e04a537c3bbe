package cli

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"pintu/internal/client"
)

// ruleFlags are the rules by which the rows of an import meet records and each other.
func ruleFlags(cmd *cobra.Command, spec *client.ImportSpec) {
	f := cmd.Flags()
	f.StringVar(&spec.OnConflict, "on-conflict", "", "update, skip, reject or if_unchanged a record from another job; default: as the dataset says")
	f.StringVar(&spec.VersionColumn, "version-column", "", "column with the version each row was made from, for --on-conflict if_unchanged")
	f.StringVar(&spec.Duplicates, "duplicates", "", "reject or last_wins for keys that come twice in the file; default: as the dataset says")
	f.StringVar(&spec.Atomicity, "atomicity", "", "per_row, or all_or_nothing: no row goes in if any is rejected")
	f.BoolVar(&spec.DryRun, "dry-run", false, "check every row and write no record")
}

func jobRetry(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "retry JOB", Short: "run a failed or canceled job again", Args: args(1, "a job id")}
	cmd.Long = "retry makes the next attempt of a job that failed or was canceled, with the same file and options. A job has one next attempt:\nretrying it again shows that one."
	return runAgain(env, cmd, "version of the dataset; 0: that of the job", "retry", func(ctx context.Context, api *client.Client, jobID string, version int, key string) (client.Submitted, error) {
		return api.Retry(ctx, jobID, version, key)
	})
}

func jobReprocess(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "reprocess JOB", Short: "run the file of a finished job again at another dataset version", Args: args(1, "a job id")}
	cmd.Long = "reprocess runs the whole file of a job that ended succeeded or partial again, good rows included, as a job of its own. Records\nthat another job changed since are left as they are."
	return runAgain(env, cmd, "version of the dataset; 0: the newest", "reprocess", func(ctx context.Context, api *client.Client, jobID string, version int, key string) (client.Submitted, error) {
		return api.Reprocess(ctx, jobID, version, key)
	})
}

// runAgain makes a command that makes a job of another one.
func runAgain(env *Env, cmd *cobra.Command, versionHelp, what string, run func(ctx context.Context, api *client.Client, jobID string, version int, key string) (client.Submitted, error)) *cobra.Command {
	f := output(cmd)
	version := cmd.Flags().Int("dataset-version", 0, versionHelp)
	key := cmd.Flags().String("key", "", "idempotency key: the same key finds the job that it made")
	wait := cmd.Flags().Bool("wait", false, "wait until the job has ended; the exit code says how")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *key == "" {
			*key = "pintu-" + what + "-" + ulid.Make().String()
		}
		api, err := env.api()
		if err != nil {
			return err
		}
		s, err := run(cmd.Context(), api, args[0], *version, *key)
		if err != nil && exitCodeOf(calling(err)) == exitBroken {
			return hint(calling(err), "whether the job was made is not known; --key %s finds it", *key)
		}
		if err != nil {
			return calling(err)
		}
		return showAgain(cmd, env, api, *f, s, *wait)
	}
	return cmd
}

func showAgain(cmd *cobra.Command, env *Env, api *client.Client, f format, s client.Submitted, wait bool) error {
	j := s.Job
	fmt.Fprintf(env.Stderr, "job %s, attempt %d\n", j.ID, j.Attempt)
	var err error
	if wait && j.Status != client.Uploading && !j.Status.Terminal() {
		if j, err = waitFor(cmd.Context(), env, api, j.ID); err != nil {
			return calling(err)
		}
	}
	if err := printJob(cmd.OutOrStdout(), f, j); err != nil {
		return err
	}
	switch {
	case j.Status == client.Uploading:
		fmt.Fprintln(env.Stderr, "the file was never checked, so the job waits for it\nhint: -o json shows where to send it, in upload")
	case !j.Status.Terminal():
		fmt.Fprintf(env.Stderr, "hint: `pintu job wait %s` waits for the outcome\n", j.ID)
	}
	return ended(env.Stderr, j)
}
