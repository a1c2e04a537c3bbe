package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"pintu/internal/client"
	"pintu/internal/fault"
)

func rowsCommand(env *Env) *cobra.Command {
	c := group("rows", "work on the rows that did not go in", rowsList(env), rowsShow(env), rowsFix(env), rowsRetry(env), rowsDiscard(env))
	c.Long = "A row that could not be applied waits in the quarantine of its job. Show it, fix it, retry it as a job of its own, or discard\nit with a reason. While a retry has a row in hand, nobody can change it."
	return c
}

func rowsList(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "list JOB", Short: "list the quarantined rows of a job, in the order of the file", Args: args(1, "a job id")}
	f, l := output(cmd), listFlags(cmd)
	var filter client.RowFilter
	cmd.Flags().StringVar(&filter.State, "state", "", "only rows in this state")
	cmd.Flags().StringVar(&filter.Code, "code", "", "only rows rejected with this code")
	cmd.Flags().StringVar(&filter.Class, "class", "", "data: the row is wrong; code: the schema was not ready for it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := env.api()
		if err != nil {
			return err
		}
		t := table[client.Row]{
			head: []string{"ROW", "LINE", "STATE", "CLASS", "CODE", "FIELD", "MESSAGE"},
			cells: func(r client.Row) []any {
				return []any{r.RowNumber, r.Line, r.State, r.Class, r.Code, r.Field, r.Message}
			},
			raw: func(r client.Row) json.RawMessage { return r.Raw },
		}
		rows := func(ctx context.Context, cursor string, limit int) (client.Page[client.Row], error) {
			return api.Rows(ctx, args[0], filter, cursor, limit)
		}
		return show(cmd.Context(), cmd, *l, *f, "rows", t, rows)
	}
	return cmd
}

// rowNumbers reads arguments that name rows.
func rowNumbers(cmd *cobra.Command, args []string) ([]int64, error) {
	var numbers []int64
	for _, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || n < 1 {
			return nil, usage(cmd, "%q is no row number", arg)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func rowsShow(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "show JOB ROW", Short: "show one row with its payload", Args: args(2, "a job id and a row number")}
	f := output(cmd)
	raw := cmd.Flags().Bool("raw", false, "write the payload alone, byte for byte")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		numbers, err := rowNumbers(cmd, args[1:])
		if err != nil {
			return err
		}
		api, err := env.api()
		if err != nil {
			return err
		}
		r, err := api.Row(cmd.Context(), args[0], numbers[0])
		if err != nil {
			return calling(err)
		}
		if !*raw {
			return printRow(cmd.OutOrStdout(), *f, r)
		}
		payload, ok := r.Payload()
		if !ok {
			return hint(fmt.Errorf("the payload of row %d is too large to be shown", r.RowNumber), "`pintu job artifact %s rejected.csv` has it", args[0])
		}
		_, err = cmd.OutOrStdout().Write(payload)
		return err
	}
	return cmd
}

func printRow(w io.Writer, f format, r client.Row) error {
	if f == asJSON {
		return printJSON(w, r.Raw)
	}
	_, err := io.WriteString(w, rowText(r))
	return err
}

// rowText is a row in a few lines. The payload is quoted as in Go, so that every byte shows and none drives
// a terminal.
func rowText(r client.Row) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("row", "%d, line %d, byte %d", r.RowNumber, r.Line, r.Offset)
	line("state", "%s, attempt %d, dataset version %d", r.State, r.Attempts, r.DatasetVersion)
	line("class", "%s", r.Class)
	problem := string(r.Code)
	if r.Field != "" {
		problem += " in " + oneLine(r.Field)
	}
	line("problem", "%s: %s", problem, oneLine(r.Message))
	if r.RetryJob != "" {
		line("retry", "%s", r.RetryJob)
	}
	if r.ResolvedBy != "" {
		line("resolved", "by %s", r.ResolvedBy)
	}
	if r.DiscardReason != "" {
		line("discarded", "%s", oneLine(r.DiscardReason))
	}
	line("etag", "%s", r.ETag)
	if payload, ok := r.Payload(); ok {
		line("payload", "%q", payload)
	} else {
		line("payload", "too large to be shown")
	}
	return b.String()
}

// fixing is what a row is to become.
type fixing struct {
	raw, file, class, etag string
	change                 client.RowChange
}

func rowsFix(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "fix JOB ROW", Short: "correct the payload or the class of a row", Args: args(2, "a job id and a row number")}
	cmd.Long = "fix replaces the payload of a quarantined row, its class, or both. Whether the payload is right shows when the row is retried.\n`pintu rows show JOB ROW --raw` writes the payload to start from. With --etag the row is changed only if it is still as it\nwas shown; without it, only if nobody changes it at the same moment."
	f := output(cmd)
	var o fixing
	cmd.Flags().StringVar(&o.raw, "raw", "", "the new payload: one record, as it would stand in the file")
	cmd.Flags().StringVar(&o.file, "file", "", "read the new payload from this file; -: from stdin")
	cmd.Flags().StringVar(&o.class, "class", "", "data: the row is wrong; code: the schema was not ready for it")
	cmd.Flags().StringVar(&o.etag, "etag", "", "state of the row that was seen")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		numbers, err := rowNumbers(cmd, args[1:])
		if err != nil {
			return err
		}
		if err := o.read(cmd); err != nil {
			return err
		}
		api, err := env.api()
		if err != nil {
			return err
		}
		r, err := o.apply(cmd.Context(), api, args[0], numbers[0])
		if err != nil {
			return calling(err)
		}
		if err := printRow(cmd.OutOrStdout(), *f, r); err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "hint: `pintu rows retry %s %d` tries it again\n", args[0], r.RowNumber)
		return nil
	}
	return cmd
}

func (o *fixing) read(cmd *cobra.Command) error {
	o.change.Class = o.class
	switch {
	case cmd.Flags().Changed("raw") && o.file != "":
		return usage(cmd, "--raw and --file exclude each other")
	case cmd.Flags().Changed("raw"):
		o.change.Payload = []byte(o.raw)
	case o.file == "-":
		b, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return fmt.Errorf("read payload: %w", err)
		}
		o.change.Payload = b
	case o.file != "":
		b, err := os.ReadFile(o.file)
		if err != nil {
			return fmt.Errorf("read payload: %w", err)
		}
		o.change.Payload = b
	case o.class == "":
		return usage(cmd, "--raw, --file or --class is missing")
	}
	return nil
}

// apply changes the row. When it was changed meanwhile and is as it should be, that was this command, whose
// answer was lost.
func (o *fixing) apply(ctx context.Context, api *client.Client, jobID string, number int64) (client.Row, error) {
	etag := o.etag
	if etag == "" {
		now, err := api.Row(ctx, jobID, number)
		if err != nil {
			return now, err
		}
		etag = now.ETag
	}
	r, err := api.PatchRow(ctx, jobID, number, etag, o.change)
	if !client.Is(err, fault.PreconditionFailed) {
		return r, err
	}
	now, rerr := api.Row(ctx, jobID, number)
	if rerr != nil {
		return now, rerr
	}
	payload, _ := now.Payload()
	if (o.change.Payload == nil || bytes.Equal(payload, o.change.Payload)) && (o.class == "" || now.Class == o.class) {
		return now, nil
	}
	return r, hint(err, "`pintu rows show %s %d` shows it as it is now", jobID, number)
}

func rowsRetry(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "retry JOB [ROW…]", Short: "try rows again as a job of its own"}
	cmd.Long = "retry makes an import job over quarantined rows as they are now: those named, those of a code or class, or all. Rows that lost\ntheir key to another row of the file (DUPLICATE_KEY_IN_FILE) are tried only when they or their code are named. Rows that go\nin are resolved; the others stay, with one attempt more."
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, "want a job id, and row numbers or none")
		}
		return nil
	}
	f := output(cmd)
	var sel client.RowSelection
	cmd.Flags().StringVar((*string)(&sel.Code), "code", "", "only rows rejected with this code")
	cmd.Flags().StringVar(&sel.Class, "class", "", "only rows of this class")
	cmd.Flags().IntVar(&sel.DatasetVersion, "dataset-version", 0, "version of the dataset; 0: the newest")
	key := cmd.Flags().String("key", "", "idempotency key: the same key finds the job that it made")
	wait := cmd.Flags().Bool("wait", false, "wait until the job has ended; the exit code says how")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if sel.Rows, err = rowNumbers(cmd, args[1:]); err != nil {
			return err
		}
		if *key == "" {
			*key = "pintu-rows-" + ulid.Make().String()
		}
		api, err := env.api()
		if err != nil {
			return err
		}
		j, err := retryRows(cmd.Context(), env, api, args[0], sel, *key, *wait)
		if err != nil {
			return calling(err)
		}
		if err := printJob(cmd.OutOrStdout(), *f, j); err != nil {
			return err
		}
		if !j.Status.Terminal() {
			fmt.Fprintf(env.Stderr, "hint: `pintu job wait %s` waits for the outcome\n", j.ID)
		}
		return ended(env.Stderr, j)
	}
	return cmd
}

func retryRows(ctx context.Context, env *Env, api *client.Client, jobID string, sel client.RowSelection, key string, wait bool) (client.Job, error) {
	s, err := api.RetryRows(ctx, jobID, sel, key)
	switch {
	case err != nil && exitCodeOf(calling(err)) == exitBroken:
		return s.Job, hint(err, "whether the job was made is not known; --key %s finds it", key)
	case err != nil:
		return s.Job, err
	case s.Replayed:
		fmt.Fprintf(env.Stderr, "this retry was made before: %s\n", s.Job.ID)
	default:
		fmt.Fprintf(env.Stderr, "submitted %s\n", s.Job.ID)
	}
	if !wait || s.Job.Status.Terminal() {
		return s.Job, nil
	}
	return waitFor(ctx, env, api, s.Job.ID)
}

func rowsDiscard(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "discard JOB ROW…", Short: "give rows up, for a reason that stays on record"}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return usage(cmd, "want a job id and row numbers")
		}
		return nil
	}
	reason := cmd.Flags().String("reason", "", "why (required)")
	yes := cmd.Flags().Bool("yes", false, "do it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		numbers, err := rowNumbers(cmd, args[1:])
		if err != nil {
			return err
		}
		if *reason == "" {
			return usage(cmd, "--reason is missing")
		}
		what := fmt.Sprintf("row %s of %s", strings.Join(args[1:], ", "), args[0])
		if !*yes {
			return hint(fmt.Errorf("this would discard %s for good", what), "add --yes to do it")
		}
		api, err := env.api()
		if err != nil {
			return err
		}
		if err := api.DiscardRows(cmd.Context(), args[0], numbers, *reason); err != nil {
			return calling(err)
		}
		fmt.Fprintln(env.Stderr, "discarded", what)
		return nil
	}
	return cmd
}
