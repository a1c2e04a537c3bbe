// Package dev is the stack as a developer runs it: in the foreground, with a client to call it by, and a file that tells
// the CLI where it is. It refuses to serve anyone but this machine: everything listens on 127.0.0.1, and its AWS
// credentials open nothing else.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
	"pintu/localstack/stack"
)

// Options of a run.
type Options struct {
	Root          string // repository
	Port, AWSPort int    // 0 takes a free one
	Data          string // directory of the state; empty keeps it in memory
	Stdout        io.Writer
	Stderr        io.Writer // what functions print, and the stack's own remarks
}

// Run starts the stack, writes Root/.pintu/dev.env, tells on Stdout what to do next, and serves until ctx ends. Then
// it ends the functions, flushes the state and removes the file. An end by ctx is no error.
func Run(ctx context.Context, o Options) (err error) {
	started := time.Now()
	if o.Root, err = filepath.Abs(o.Root); err != nil {
		return err
	}
	if o.Data != "" { // the stack's object store changes the working directory
		if o.Data, err = filepath.Abs(o.Data); err != nil {
			return err
		}
	}
	s, err := stack.Start(ctx, stack.Config{Root: o.Root, Port: o.Port, AWSPort: o.AWSPort, Data: o.Data, Log: o.Stderr, Schedules: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	token, err := devToken(ctx, s, o.Data)
	if err != nil {
		return err
	}
	path := filepath.Join(o.Root, ".pintu", "dev.env")
	if err := WriteEnv(path, s, token); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(path)) }()
	fmt.Fprintf(o.Stdout, welcome, time.Since(started).Seconds(), s.URL(), path, s.AWSEndpoint(), kept(o.Data))
	<-ctx.Done()
	fmt.Fprintln(o.Stderr, "stopping")
	return nil
}

const welcome = `
Pintu is up after %.2f s: %s
  token         in %s, where the CLI finds it
  AWS endpoint  %s
  state         %s

In another terminal, from this folder:
  bin/pintu import FILE.csv --dataset NAME --schema SCHEMA.json --wait
  bin/pintu job list
  curl -s %[2]s/v1/health

Ctrl-C ends it.
`

func kept(data string) string {
	if data == "" {
		return "in memory, gone at the end (--data DIR keeps it)"
	}
	return "in " + data
}

// devToken gives a token of client dev in tenant dev. With kept state it is the same at every start.
func devToken(ctx context.Context, s *stack.Stack, data string) (string, error) {
	path := filepath.Join(data, "token")
	if data != "" {
		text, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(text)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the token of client dev: %w", err)
		}
	}
	token, err := NewClient(ctx, s, "dev", "dev")
	if err != nil || data == "" {
		return token, err
	}
	return token, writeFile(path, token+"\n")
}

// NewClient makes a client with every scope and the default limits, and gives its token.
func NewClient(ctx context.Context, s *stack.Stack, tenant, name string) (token string, err error) {
	store := dynamostore.New(dynamostore.Config{AWS: s.Client(), ControlTable: s.Env("ApiFunction")["PINTU_CONTROL_TABLE"], Now: time.Now})
	clients := access.New(access.Config{Store: store, Now: time.Now})
	token, err = clients.CreateClient(ctx, tenant, name, access.Scopes, access.Limits{}, time.Time{})
	if err != nil {
		return "", fmt.Errorf("create client %s of tenant %s: %w", name, tenant, err)
	}
	return token, nil
}
