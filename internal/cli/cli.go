// Package cli is the pintu command. Data goes to stdout (-o json keeps its shape), prose in lower case to
// stderr. Running a command again is always safe. It refuses to hold rules of its own: it asks the API, or
// for client commands the control table, and shows what they say.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Exit codes. They are part of the command's contract.
const (
	exitOK       = 0
	exitRefused  = 1 // the request was refused, or something on this side went wrong
	exitUsage    = 2 // the command line makes no sense
	exitPartial  = 3 // the job ended as partial
	exitFailed   = 4 // the job ended as failed
	exitCanceled = 5 // the job ended as canceled
	exitBroken   = 6 // no answer, or interrupted: the same command takes up where this one stopped
)

const exitCodes = `Exit codes:
  0  done; a job that was waited for has succeeded
  1  the request was refused
  2  wrong usage
  3  the job ended as partial: some rows were rejected
  4  the job ended as failed
  5  the job ended as canceled
  6  no answer or interrupted: run the same command again, it takes up where this one stopped`

// Env is what a run of the command has around it.
type Env struct {
	Args     []string // without the program's name
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Dir      string // working directory, where .pintu/dev.env is looked for, and above
	Terminal bool   // stderr is one: show bars
}

// Main runs the command in the process's own environment and gives its exit code. Ctrl-C ends a command
// in good order.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pintu: working directory:", err)
		return exitRefused
	}
	return Run(ctx, Env{
		Args: os.Args[1:], Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Dir: dir,
		Terminal: term.IsTerminal(int(os.Stderr.Fd())),
	})
}

// Run runs the command and gives its exit code.
func Run(ctx context.Context, env Env) int {
	root := newRoot(&env)
	root.SetArgs(env.Args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	return report(env.Stderr, err)
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "pintu",
		Short:         "bring files into datasets, and get back exactly which rows went in",
		Long:          "pintu submits files to a Pintu deployment, waits for the outcome and shows the rows that did not go in.\n\nPINTU_URL and PINTU_TOKEN say where and as whom. When neither is set, .pintu/dev.env of this folder or one above is used,\nwhich `pintu dev` writes.\n\n" + exitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%v", err) })
	root.AddCommand(importCommand(env), jobCommand(env), rowsCommand(env), recordsCommand(env), datasetCommand(env), clientCommand(env), devCommand(env))
	return root
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return usage(cmd, "a subcommand is missing")
	}}
	c.AddCommand(commands...)
	return c
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, "%q is not known", args[0])
	}
	return nil
}

// args checks the number of arguments; what names them.
func args(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage(cmd, "want %s", what)
		}
		return nil
	}
}

// usageError is a command line that makes no sense.
type usageError struct{ message, command string }

func (e *usageError) Error() string { return e.message }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), cmd.CommandPath()}
}

// hinted is an error with advice for whoever reads it.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

func hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// outcome is an exit code that needs no words: the job has been shown.
type outcome int

func (o outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// report tells an error on stderr and gives the exit code.
func report(stderr io.Writer, err error) int {
	var code outcome
	if err == nil || errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(stderr, "pintu:", describe(err))
	for _, line := range advice(err) {
		fmt.Fprintln(stderr, line)
	}
	return exitCodeOf(err)
}
