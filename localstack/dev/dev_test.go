package dev

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// up is a stack in the foreground, from its welcome to its end. It needs the functions' binaries (make build).
type up struct {
	t       *testing.T
	cancel  context.CancelFunc
	ended   chan error
	welcome string
	env     map[string]string
	path    string
}

// signal is a writer that passes on what it is given.
type signal chan string

func (s signal) Write(b []byte) (int, error) { s <- string(b); return len(b), nil }

// repository is found before a test changes the working directory.
var repository, _ = filepath.Abs("../..") // it fails only without a working directory

func begin(t *testing.T, data string) *up {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"template.yaml", "build"} {
		if err := os.Symlink(filepath.Join(repository, name), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	u := &up{t: t, cancel: cancel, ended: make(chan error, 1), env: map[string]string{}, path: filepath.Join(root, ".pintu", "dev.env")}
	welcome := make(signal, 1)
	go func() { u.ended <- Run(ctx, Options{Root: root, Data: data, Stdout: welcome, Stderr: t.Output()}) }()
	select {
	case u.welcome = <-welcome:
	case err := <-u.ended:
		t.Fatalf("ended before it was up: %v", err)
	}
	text, err := os.ReadFile(u.path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		u.env[name] = value
	}
	return u
}

func (u *up) end() {
	u.t.Helper()
	u.cancel()
	if err := <-u.ended; err != nil {
		u.t.Errorf("end: %v", err)
	}
	if _, err := os.Stat(u.path); !errors.Is(err, fs.ErrNotExist) {
		u.t.Errorf("%s is still there: %v", u.path, err)
	}
}

func (u *up) jobs() int {
	u.t.Helper()
	r, err := http.NewRequest("GET", u.env["PINTU_URL"]+"/v1/jobs", nil)
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+u.env["PINTU_TOKEN"])
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		u.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

func TestTheStackInTheForeground(t *testing.T) {
	u := begin(t, "")
	defer u.end()
	if info, err := os.Stat(u.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("dev.env: %v %v, want mode 0600", info.Mode(), err)
	}
	for _, name := range []string{"PINTU_URL", "PINTU_TOKEN", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION",
		"PINTU_CONTROL_TABLE", "PINTU_RECORDS_TABLE", "PINTU_BUCKET", "PINTU_PLAN_QUEUE_URL", "PINTU_PROCESS_QUEUE_URL"} {
		if u.env[name] == "" {
			t.Errorf("dev.env has no %s", name)
		}
	}
	if !strings.Contains(u.welcome, u.env["PINTU_URL"]) || strings.Contains(u.welcome, u.env["PINTU_TOKEN"]) {
		t.Errorf("the welcome must show the address and not the token:\n%s", u.welcome)
	}
	if status := u.jobs(); status != http.StatusOK {
		t.Errorf("the token is answered with %d", status)
	}
}

func TestTheTokenIsKeptWithTheState(t *testing.T) {
	t.Chdir(t.TempDir())
	const data = "state" // relative, as it comes from a command line
	one := begin(t, data)
	one.end()
	two := begin(t, data)
	defer two.end()
	if one.env["PINTU_TOKEN"] != two.env["PINTU_TOKEN"] {
		t.Error("the token changed")
	}
	if status := two.jobs(); status != http.StatusOK {
		t.Errorf("the kept token is answered with %d", status)
	}
}
