package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"pintu/internal/aws/dynamostore"
	"pintu/internal/aws/s3blob"
	"pintu/internal/compute"
	"pintu/internal/dataset"
	"pintu/internal/id"
	"pintu/internal/importer"
)

func jobVerify(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "verify JOB", Short: "prove the ledger of a finished import (operators only)", Args: args(1, "a job id")}
	cmd.Long = `verify reads the pinned input of an import again, hashes it, splits it as the plan did, and looks for each row where it must be:
in quarantine, in its record, or out of the way of another row. It reads the tables and the bucket themselves, named by
PINTU_CONTROL_TABLE, PINTU_RECORDS_TABLE and PINTU_BUCKET, with the AWS credentials of whoever runs it; when they are not set, the
stack that .pintu/dev.env describes is used. It costs one read per row and changes nothing.`
	f := output(cmd)
	tenant := cmd.Flags().String("tenant", "", "tenant that the job belongs to (required)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		jobID, ok := id.ParseJob(args[0])
		if !ok || *tenant == "" {
			return usage(cmd, "want a job id and --tenant")
		}
		im, entries, err := env.verifier(cmd.Context())
		if err != nil {
			return err
		}
		v, err := im.Verify(cmd.Context(), entries, *tenant, jobID)
		if err != nil {
			return err
		}
		return printVerification(cmd.OutOrStdout(), *f, v)
	}
	return cmd
}

func printVerification(w io.Writer, f format, v importer.Verification) error {
	if f == asJSON {
		b, err := json.Marshal(v)
		if err == nil {
			err = printJSON(w, b)
		}
		if err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w, "read       %d bytes, %d chunks, %d rows\naccepted   %d\nrejected   %d\nskipped    %d\novertaken  %d\n", v.Bytes, v.Chunks, v.Rows, v.Accepted, v.Rejected, v.Skipped, v.Overtaken)
		for _, p := range v.Problems {
			fmt.Fprintln(w, "problem   ", p)
		}
	}
	if len(v.Problems) > 0 {
		return errors.New("the ledger does not hold")
	}
	return nil
}

// verifier builds what reads a deployment's tables and bucket. It can write to neither.
func (e *Env) verifier(ctx context.Context) (*importer.Importer, importer.Entries, error) {
	tables, bucket, err := e.everything()
	if err != nil {
		return nil, nil, err
	}
	store, err := dynamostore.Open(ctx, tables)
	if err != nil {
		return nil, nil, err
	}
	blob, err := s3blob.Open(ctx, bucket)
	if err != nil {
		return nil, nil, err
	}
	catalog := dataset.NewCatalog(dataset.CatalogConfig{Store: store, Now: time.Now})
	return importer.New(importer.Config{Store: store, Quarantine: store, Blob: blob, Definitions: versions{catalog}, Compute: compute.Evaluator, Now: time.Now}), store, nil
}

// everything says where tables and bucket are. Their names and the way to them come from one place.
func (e *Env) everything() (dynamostore.Target, s3blob.Target, error) {
	get := e.Getenv
	tables, err := e.controlTable()
	if err != nil {
		return tables, s3blob.Target{}, err
	}
	if tables.Endpoint != "" { // the stack of dev.env
		dev, _, err := e.devEnv()
		if err != nil {
			return tables, s3blob.Target{}, err
		}
		get = func(name string) string { return dev[name] }
	}
	tables.RecordsTable = get("PINTU_RECORDS_TABLE")
	bucket := s3blob.Target{Bucket: get("PINTU_BUCKET"), Endpoint: tables.Endpoint, Region: tables.Region, AccessKeyID: tables.AccessKeyID, SecretKey: tables.SecretKey,
		PathStyle: get("PINTU_S3_PATH_STYLE") == "true"}
	if tables.RecordsTable == "" || bucket.Bucket == "" {
		return tables, bucket, hint(errors.New("PINTU_RECORDS_TABLE or PINTU_BUCKET is not set"), "they are the outputs RecordsTable and Bucket of the deployed stack")
	}
	return tables, bucket, nil
}

// versions gives definitions to a verifier.
type versions struct{ *dataset.Catalog }

func (v versions) Definition(ctx context.Context, tenant, name string, number int) (*dataset.Definition, error) {
	found, err := v.GetVersion(ctx, tenant, name, number)
	return found.Definition, err
}
