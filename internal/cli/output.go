package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pintu/internal/client"
)

// format is the value of -o.
type format string

const (
	asText format = "text"
	asJSON format = "json"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "format" }
func (f *format) Set(s string) error {
	if s != string(asText) && s != string(asJSON) {
		return fmt.Errorf("must be text or json")
	}
	*f = format(s)
	return nil
}

// output adds -o to a command.
func output(cmd *cobra.Command) *format {
	f := asText
	cmd.Flags().VarP(&f, "output", "o", "text, or json: the API's own objects, for programs")
	return &f
}

// printJSON writes an object of the API as it came, on one line.
func printJSON(w io.Writer, raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// printIndented writes an object for people, digits and order kept.
func printIndented(w io.Writer, raw json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

func printObject(w io.Writer, f format, raw json.RawMessage) error {
	if f == asJSON {
		return printJSON(w, raw)
	}
	return printIndented(w, raw)
}

func printJob(w io.Writer, f format, j client.Job) error {
	if f == asJSON {
		return printJSON(w, j.Raw)
	}
	_, err := io.WriteString(w, jobText(j))
	return err
}

// jobText is a job in a few lines.
func jobText(j client.Job) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("job", "%s", j.ID)
	line("status", "%s", statusText(j))
	if j.RetryOf != "" {
		line("retry of", "%s", j.RetryOf)
	}
	if j.Dataset != "" {
		line("dataset", "%s version %d", j.Dataset, j.DatasetVersion)
	}
	if j.Input.Name != "" {
		line("file", "%s, %d bytes", j.Input.Name, j.Input.SizeBytes)
	}
	switch r := j.Result; {
	case r != nil:
		line("rows", "%s", rowsText(r))
		if len(r.RejectedByCode) > 0 {
			line("rejected", "%s", countsText(r.RejectedByCode))
		}
		for _, a := range r.Artifacts {
			line("artifact", "%s, %d bytes", a.Name, a.SizeBytes)
		}
	case !j.Status.Terminal():
		p := j.Progress
		line("rows", "%d processed so far: %d accepted, %d rejected", p.RowsProcessed, p.RowsAccepted, p.RowsRejected)
	}
	for _, w := range j.Warnings {
		line("warning", "%s: %s", w.Code, w.Message)
	}
	if s := j.Stalled; s != nil {
		line("stalled", "since %s in queue %s: %s", s.Since.Format("2006-01-02 15:04:05Z07:00"), s.Queue, s.Reason)
	}
	if e := j.Error; e != nil {
		line("error", "%s: %s", e.Code, e.Message)
	}
	return b.String()
}

func statusText(j client.Job) string {
	text := string(j.Status)
	if j.Progress.Stage != "" {
		text += ", " + j.Progress.Stage
	}
	if j.Deduplicated {
		text += " (found by its deduplication key)"
	}
	return text
}

func rowsText(r *client.Result) string {
	total := "total not known"
	if r.RowsTotal != nil {
		total = fmt.Sprintf("%d in total", *r.RowsTotal)
	}
	text := fmt.Sprintf("%s: %d accepted (%d created, %d updated, %d unchanged), %d rejected",
		total, r.RowsAccepted, r.RowsCreated, r.RowsUpdated, r.RowsUnchanged, r.RowsRejected)
	if r.RowsSkipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.RowsSkipped)
	}
	if r.RowsUnprocessed > 0 {
		text += fmt.Sprintf(", %d unprocessed", r.RowsUnprocessed)
	}
	return text
}

func countsText[K ~string](counts map[K]int64) string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", code, counts[code]))
	}
	return strings.Join(parts, ", ")
}

// rejectedFile is the name of the file of rejected rows: it has the format of the import.
func rejectedFile(j client.Job) string {
	if j.Result == nil {
		j.Result = &client.Result{}
	}
	for _, a := range j.Result.Artifacts {
		if strings.HasPrefix(a.Name, "rejected.") {
			return a.Name
		}
	}
	return "rejected.csv"
}

// ended turns the state of a job that was shown into what the command comes to, with hints for the next
// step on stderr.
func ended(stderr io.Writer, j client.Job) error {
	switch j.Status {
	case client.Partial:
		fmt.Fprintf(stderr, "hint: `pintu rows list %s` shows the rejected rows; `pintu job artifact %s %s` gets them as a file to mend and import again\n", j.ID, j.ID, rejectedFile(j))
		return outcome(exitPartial)
	case client.Failed:
		if j.Error != nil && j.Error.Retryable {
			fmt.Fprintln(stderr, "hint: this may go well another time: run the import again with a new --key")
		}
		return outcome(exitFailed)
	case client.Canceled:
		return outcome(exitCanceled)
	}
	return nil
}
