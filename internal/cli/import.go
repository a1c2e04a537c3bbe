package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pintu/internal/client"
)

// importOptions is what a submit of the command line holds.
type importOptions struct {
	schema      string
	key         string
	wait        bool
	format      *format
	maxRejected int64
	metadata    string
	spec        client.ImportSpec
}

func importCommand(env *Env) *cobra.Command {
	o := &importOptions{}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "import a file into a dataset",
		Long: `import submits a file, uploads it and starts its import; with --wait it stays until the job has ended.

The same command for the same file is the same import: without --key the key is made from the file's content and name,
the dataset and the options. Run it again after an error, a broken connection or Ctrl-C, and it goes on where it stopped;
run it again later, within 24 hours, and it shows the job that it made.`,
		Args: args(1, "a file"),
	}
	o.format = output(cmd)
	f := cmd.Flags()
	f.StringVar(&o.spec.Dataset, "dataset", "", "dataset to import into (required)")
	f.IntVar(&o.spec.DatasetVersion, "dataset-version", 0, "version of the dataset; 0: the newest")
	f.StringVar(&o.schema, "schema", "", "file with the dataset's definition, put before the import")
	f.StringVar(&o.spec.Format, "format", "", "csv or jsonl (one JSON object per line); not given: jsonl for .jsonl and .ndjson, else csv")
	f.StringVar(&o.key, "key", "", "idempotency key; another one makes another import of the same file")
	f.StringVar(&o.spec.DeduplicationKey, "deduplication-key", "", "name of the business intent: a job that has it is found, not repeated")
	f.BoolVar(&o.spec.ForceReprocess, "force-reprocess", false, "make a new job even if the deduplication key has one")
	ruleFlags(cmd, &o.spec)
	f.Int64Var(&o.maxRejected, "max-rejected", -1, "rejected rows beyond which the job fails; -1: the API's default")
	f.StringVar(&o.metadata, "metadata", "", "JSON object to keep with the job")
	f.BoolVar(&o.wait, "wait", false, "wait until the job has ended; the exit code says how")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runImport(cmd, env, o, args[0]) }
	return cmd
}

func runImport(cmd *cobra.Command, env *Env, o *importOptions, path string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	api, err := env.api()
	if err != nil {
		return err
	}
	file, err := o.open(path)
	if err != nil {
		return err
	}
	defer file.Close() // only read
	if o.schema != "" {
		if err := o.putSchema(cmd.Context(), env, api); err != nil {
			return err
		}
	}
	j, err := o.submit(cmd.Context(), env, api, file)
	if err == nil && o.wait && !j.Status.Terminal() {
		j, err = waitFor(cmd.Context(), env, api, j.ID)
	}
	if err != nil {
		return calling(err)
	}
	if err := printJob(cmd.OutOrStdout(), *o.format, j); err != nil {
		return err
	}
	if !j.Status.Terminal() {
		fmt.Fprintf(env.Stderr, "hint: `pintu job wait %s` waits for the outcome\n", j.ID)
	}
	return ended(env.Stderr, j)
}

func (o *importOptions) check(cmd *cobra.Command) error {
	if o.spec.Dataset == "" {
		return usage(cmd, "--dataset is missing")
	}
	if o.schema != "" && o.spec.DatasetVersion != 0 {
		return usage(cmd, "--schema and --dataset-version exclude each other")
	}
	if f := o.spec.Format; f != "" && f != formatCSV && f != formatJSONL {
		return usage(cmd, "--format must be csv or jsonl")
	}
	if o.maxRejected >= 0 {
		o.spec.MaxRejected = &o.maxRejected
	}
	if o.metadata != "" {
		if !json.Valid([]byte(o.metadata)) {
			return usage(cmd, "--metadata is no JSON")
		}
		o.spec.Metadata = json.RawMessage(o.metadata)
	}
	return nil
}

// open hashes the file, so that the upload is bound to what was read now.
func (o *importOptions) open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, hint(fmt.Errorf("read input: %s is no regular file", path), "a stream has to be saved first: its size must be known, and it may be read twice")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read input: %w", err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	if err != nil {
		_ = file.Close() // it was only read
		return nil, fmt.Errorf("read input: %w", err)
	}
	o.spec.File = client.File{Name: filepath.Base(path), SizeBytes: n, ContentType: o.contentType(path), SHA256: hex.EncodeToString(sum.Sum(nil))}
	return file, nil
}

// The formats of input.
const (
	formatCSV   = "csv"
	formatJSONL = "jsonl"
)

// contentType settles the format, by the file's name if it is not given, and tells what to upload it as. CSV is
// the API's default and stays unsaid, so that the key of an import does not depend on how it was chosen.
func (o *importOptions) contentType(path string) string {
	ext := strings.ToLower(filepath.Ext(path))
	if o.spec.Format == formatJSONL || o.spec.Format == "" && (ext == ".jsonl" || ext == ".ndjson") {
		o.spec.Format = formatJSONL
		return "application/jsonl"
	}
	o.spec.Format = ""
	return "text/csv"
}

// putSchema makes the definition the newest version and pins the import to it.
func (o *importOptions) putSchema(ctx context.Context, env *Env, api *client.Client) error {
	definition, err := readDefinition(o.schema)
	if err != nil {
		return err
	}
	d, created, err := api.PutDataset(ctx, o.spec.Dataset, definition, "")
	if err != nil {
		return calling(err)
	}
	sayVersion(env, d, created)
	o.spec.DatasetVersion = d.Version
	return nil
}

// submit brings the job to where it waits for its work.
func (o *importOptions) submit(ctx context.Context, env *Env, api *client.Client, file *os.File) (client.Job, error) {
	key := o.key
	if key == "" {
		var err error
		if key, err = keyOf(o.spec); err != nil {
			return client.Job{}, err
		}
	}
	meter := newUploadMeter(env, o.spec.File)
	s, err := api.Import(ctx, o.spec, key, file, meter.sent)
	meter.done()
	if err != nil {
		if s.Job.ID != "" {
			err = hint(err, "the job %s keeps waiting for its file", s.Job.ID)
		}
		return client.Job{}, err
	}
	switch {
	case s.Replayed && s.Job.Status.Terminal():
		fmt.Fprintf(env.Stderr, "this import was made before: %s\nhint: pass --key with a name of your own to make another one\n", s.Job.ID)
	case s.Replayed:
		fmt.Fprintf(env.Stderr, "going on with %s\n", s.Job.ID)
	default:
		fmt.Fprintf(env.Stderr, "submitted %s\n", s.Job.ID)
	}
	return s.Job, nil
}

// keyOf makes the idempotency key of an import: everything that makes it another import goes in.
func keyOf(spec client.ImportSpec) (string, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("make idempotency key: %w", err)
	}
	sum := sha256.Sum256(b)
	return "pintu-import-" + hex.EncodeToString(sum[:]), nil
}
