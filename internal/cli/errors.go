package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"pintu/internal/client"
	"pintu/internal/fault"
)

// exitCodeOf tells refusals, which a repetition does not mend, from answers that never came.
func exitCodeOf(err error) int {
	var wrong *usageError
	var refusal *client.Error
	var local *fault.Error
	var broken *noAnswer
	switch {
	case errors.As(err, &wrong):
		return exitUsage
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &broken):
		return exitBroken
	case errors.As(err, &refusal) && refusal.Retryable, errors.As(err, &local) && local.Code.Retryable():
		return exitBroken
	}
	return exitRefused
}

// noAnswer is a call of the API that nobody answered.
type noAnswer struct{ error }

func (e *noAnswer) Unwrap() error { return e.error }

// calling marks what a call of the API came to.
func calling(err error) error {
	var refusal *client.Error
	var path *fs.PathError
	if err == nil || errors.As(err, &refusal) || errors.As(err, &path) {
		return err
	}
	return &noAnswer{err}
}

func describe(err error) string {
	var refusal *client.Error
	var local *fault.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &refusal):
		return refusal.Error()
	case errors.As(err, &local):
		return fmt.Sprintf("%s: %s", local.Code, local.Message)
	}
	return err.Error()
}

// hints by code, for refusals whose message does not name a command.
var hints = map[fault.Code]string{
	fault.Unauthorized:     "check PINTU_TOKEN; an operator makes a fresh one with `pintu client rotate`",
	fault.DatasetNotFound:  "make it with `pintu dataset put NAME FILE`; `pintu import` does so too with --schema FILE",
	fault.KeyReused:        "this key stands for another request; pass a new one with --key",
	fault.JobNotFound:      "`pintu job list` shows the jobs there are",
	fault.RowNotFound:      "`pintu rows list JOB` shows the rows there are",
	fault.ArtifactNotFound: "`pintu job get JOB` names the artifacts that a job has",
	fault.UploadMismatch:   "the file changed while it was sent; run the command again with a new --key",
}

// advice gives the lines that follow an error.
func advice(err error) []string {
	var lines []string
	var refusal *client.Error
	if errors.As(err, &refusal) {
		lines = append(lines, details(refusal)...)
		if text, ok := hints[refusal.Code]; ok {
			lines = append(lines, "hint: "+text)
		}
		if scope, ok := refusal.Details["required_scope"].(string); ok {
			lines = append(lines, "hint: the token needs the scope "+scope)
		}
	}
	var wrong *usageError
	if errors.As(err, &wrong) {
		lines = append(lines, "hint: `"+wrong.command+" --help` shows how")
	}
	for rest := err; rest != nil; rest = errors.Unwrap(rest) {
		if h, ok := rest.(*hinted); ok {
			lines = append(lines, "hint: "+h.hint)
		}
	}
	if exitCodeOf(err) == exitBroken {
		lines = append(lines, "hint: run the same command again; it takes up where this one stopped")
	}
	if refusal != nil && refusal.RequestID != "" {
		lines = append(lines, "request id: "+refusal.RequestID)
	}
	return lines
}

// details lists what is wrong with which field.
func details(refusal *client.Error) []string {
	fields, _ := refusal.Details["fields"].([]any)
	var lines []string
	for _, f := range fields {
		field, _ := f.(map[string]any)
		lines = append(lines, strings.TrimRight(fmt.Sprintf("  %v: %v", field["path"], field["reason"]), " "))
	}
	return lines
}
