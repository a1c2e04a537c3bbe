// Command demo shows the main path on an embedded stack of its own, by the commands a person would type: a
// real file goes in, the same request again changes nothing, a broken file goes in as far as it can and the
// rest is shown with the reason, one row is mended and tried again, and the ledger accounts for every byte. It ends with 0 only if all of that
// came out as it should.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/localstack/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is one run.
type demo struct {
	ctx  context.Context
	root string
	env  []string
	data string // folder of the files
}

func run(ctx context.Context) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	var log bytes.Buffer
	s, err := stack.Start(ctx, stack.Config{Root: root, Log: &log, RedeliverAtOnce: true})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log.String())
	}
	token, err := client(ctx, s)
	if err == nil {
		d := demo{ctx: ctx, root: root, data: filepath.Join(root, "localstack/cmd/demo/testdata"),
			env: []string{"PINTU_URL=" + s.URL(), "PINTU_TOKEN=" + token, "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}}
		err = d.show()
	}
	return errors.Join(err, s.Close())
}

// client makes the client that the demo calls as.
func client(ctx context.Context, s *stack.Stack) (string, error) {
	env := s.Env("ApiFunction")
	store := dynamostore.New(dynamostore.Config{AWS: s.Client(), ControlTable: env["PINTU_CONTROL_TABLE"], RecordsTable: env["PINTU_RECORDS_TABLE"]})
	return access.New(access.Config{Store: store, Now: time.Now}).CreateClient(ctx, "demo", "demo", access.Scopes, access.Limits{}, time.Time{})
}

func (d demo) show() error {
	say("A real file: 3,376 airports, uploaded through a presigned URL and imported chunk by chunk.")
	airports := []string{"import", d.file("airports.csv"), "--dataset", "airports", "--schema", d.file("airports.schema.json"), "--wait"}
	if _, err := d.pintu(0, airports...); err != nil {
		return err
	}
	first, err := d.newest("succeeded", 3376, 0)
	if err != nil {
		return err
	}

	say("The same request again, as after a time-out: the same job, nothing done twice.")
	if _, err := d.pintu(0, airports...); err != nil {
		return err
	}
	if again, err := d.newest("succeeded", 3376, 0); err != nil || again.JobID != first.JobID {
		return fmt.Errorf("the same request made another job: %s and %s (%v)", first.JobID, again.JobID, err)
	}

	say("A file with bad rows: the good ones go in, each bad one is kept with its reason.")
	if _, err := d.pintu(3, "import", d.file("broken.csv"), "--dataset", "airports", "--wait"); err != nil {
		return err
	}
	second, err := d.newest("partial", 2, 5)
	if err != nil {
		return err
	}
	if _, err := d.pintu(0, "rows", "list", second.JobID); err != nil {
		return err
	}
	if _, err := d.pintu(0, "records", "get", "airports", "ZZ5"); err != nil {
		return err
	}

	say("The owner mends a row and tries it again: it goes in, the others stay where they are.")
	if err := d.mend(second.JobID); err != nil {
		return err
	}

	say("The ledger of the first job: every byte of the file is accounted for.")
	ledger, err := json.MarshalIndent(first.Result.Ledger, "", "  ")
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\nDone. `make run` starts a stack that stays, README.md says what to do with it.\n", ledger)
	return nil
}

// mend corrects the row whose latitude is no number and retries it alone.
func (d demo) mend(jobID string) error {
	if _, err := d.pintu(0, "rows", "fix", jobID, "2", "--raw", "ZZ2,North Strip,Ubud,BA,Indonesia,-8.4001,115.1"); err != nil {
		return err
	}
	if _, err := d.pintu(0, "rows", "retry", jobID, "2", "--wait"); err != nil {
		return err
	}
	if _, err := d.newest("succeeded", 1, 0); err != nil {
		return err
	}
	_, err := d.pintu(0, "rows", "list", jobID)
	return err
}

func (d demo) file(name string) string { return filepath.Join(d.data, name) }

// jobView is what the demo reads of a job.
type jobView struct {
	JobID  string `json:"job_id"`
	Status string `json:"status"`
	Result struct {
		RowsAccepted int64           `json:"rows_accepted"`
		RowsRejected int64           `json:"rows_rejected"`
		Ledger       json.RawMessage `json:"ledger"`
	} `json:"result"`
}

// newest reads the newest job and checks what came of it.
func (d demo) newest(status string, accepted, rejected int64) (jobView, error) {
	out, err := d.quietly("job", "list", "-o", "json")
	if err != nil {
		return jobView{}, err
	}
	var list struct {
		Jobs []jobView `json:"jobs"`
	}
	if err := json.Unmarshal(out, &list); err != nil || len(list.Jobs) == 0 {
		return jobView{}, fmt.Errorf("list of jobs: %w: %s", err, out)
	}
	j := list.Jobs[0]
	if j.Status != status || j.Result.RowsAccepted != accepted || j.Result.RowsRejected != rejected {
		return j, fmt.Errorf("job %s is %s with %d rows accepted and %d rejected, not %s with %d and %d",
			j.JobID, j.Status, j.Result.RowsAccepted, j.Result.RowsRejected, status, accepted, rejected)
	}
	return j, nil
}

func say(text string) { fmt.Printf("\n── %s\n", text) }

// pintu runs the CLI as a person would and shows what it prints. want is its exit code.
func (d demo) pintu(want int, args ...string) ([]byte, error) {
	shown := make([]string, len(args))
	for i, arg := range args {
		if shown[i] = strings.TrimPrefix(arg, d.root+"/"); strings.Contains(arg, " ") {
			shown[i] = "'" + shown[i] + "'"
		}
	}
	fmt.Printf("\n$ pintu %s\n", strings.Join(shown, " "))
	return d.exec(want, os.Stdout, args...)
}

func (d demo) quietly(args ...string) ([]byte, error) { return d.exec(0, io.Discard, args...) }

func (d demo) exec(want int, show io.Writer, args ...string) ([]byte, error) {
	var out bytes.Buffer
	c := exec.CommandContext(d.ctx, filepath.Join(d.root, "bin/pintu"), args...)
	c.Env, c.Stdout, c.Stderr = d.env, io.MultiWriter(&out, show), show
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == want, err == nil && want == 0:
		return out.Bytes(), nil
	case err == nil:
		return nil, fmt.Errorf("pintu %s: exit code 0, want %d", strings.Join(args, " "), want)
	}
	return nil, fmt.Errorf("pintu %s: %w", strings.Join(args, " "), err)
}
