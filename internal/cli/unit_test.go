package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pintu/internal/client"
)

func TestFindDev(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"bin", "link", "path", "empty", "plain"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, mode := range map[string]os.FileMode{"bin/pintu": 0o755, "bin/pintu-dev": 0o755, "path/pintu-dev": 0o755, "empty/pintu": 0o755, "plain/pintu": 0o755, "plain/pintu-dev": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, path), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "bin/pintu"), filepath.Join(dir, "link/pintu")); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, self, path, want string }{
		{"beside this program", "bin/pintu", "path", "bin/pintu-dev"},
		{"beside what a link leads to", "link/pintu", "", "bin/pintu-dev"},
		{"in PATH", "empty/pintu", "path", "path/pintu-dev"},
		{"not executable", "plain/pintu", "", ""},
		{"nowhere", "empty/pintu", "empty", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := findDev(func() (string, error) { return filepath.Join(dir, tt.self), nil },
				func(string) string { return filepath.Join(dir, tt.path) })
			if tt.want == "" {
				if err == nil {
					t.Errorf("found %s", got)
				}
				return
			}
			if want := filepath.Join(dir, tt.want); got != want || err != nil {
				t.Errorf("found %q, %v, want %q", got, err, want)
			}
		})
	}
}

// Everything that makes another import makes another key; nothing else does.
func TestKeyOfAnImport(t *testing.T) {
	base := client.ImportSpec{Dataset: "orders", File: client.File{Name: "o.csv", SizeBytes: 3, SHA256: "aa"}}
	first, err := keyOf(base)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := keyOf(base); again != first || len(first) > 255 {
		t.Errorf("%q, then %q", first, again)
	}
	five := int64(5)
	for name, change := range map[string]func(*client.ImportSpec){
		"dataset":           func(s *client.ImportSpec) { s.Dataset = "other" },
		"version":           func(s *client.ImportSpec) { s.DatasetVersion = 2 },
		"name":              func(s *client.ImportSpec) { s.File.Name = "p.csv" },
		"content":           func(s *client.ImportSpec) { s.File.SHA256 = "ab" },
		"deduplication key": func(s *client.ImportSpec) { s.DeduplicationKey = "d" },
		"force":             func(s *client.ImportSpec) { s.ForceReprocess = true },
		"limit":             func(s *client.ImportSpec) { s.MaxRejected = &five },
		"metadata":          func(s *client.ImportSpec) { s.Metadata = []byte(`{"a":1}`) },
	} {
		spec := base
		change(&spec)
		if key, err := keyOf(spec); key == first || err != nil {
			t.Errorf("another %s: the same key, %v", name, err)
		}
	}
}

func TestParseEnv(t *testing.T) {
	got := parseEnv("# PINTU_URL=no\n\nexport PINTU_URL=http://a/?b=c\r\n PINTU_TOKEN=t \nnonsense\nEMPTY=\n")
	for name, want := range map[string]string{"PINTU_URL": "http://a/?b=c", "PINTU_TOKEN": "t", "EMPTY": ""} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("read %q", got)
	}
}

func TestReadDefinition(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"whole", `{"schema":{"fields":[]},"on_conflict":"update"}`, `{"schema":{"fields":[]},"on_conflict":"update"}`},
		{"bare schema", `{"fields":[1.0]}`, `{"schema":{"fields":[1.0]}}`},
		{"a schema beside a stray field", `{"fields":[],"schema":{}}`, `{"fields":[],"schema":{}}`},
		{"array", `[]`, ""},
		{"no JSON", `{`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d.json")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readDefinition(path)
			if string(got) != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("read %s, %v", got, err)
			}
		})
	}
}

func TestWriteFileLeavesTheOldOneWhenItFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := writeFile(path, func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return errors.New("broken")
	})
	text, _ := os.ReadFile(path)
	entries, _ := os.ReadDir(filepath.Dir(path))
	if err == nil || string(text) != "old" || len(entries) != 1 {
		t.Errorf("%v, %q, %d files", err, text, len(entries))
	}
}

// On a terminal bars are drawn; what they say at their end must be the last that was known.
func TestBarsOnATerminal(t *testing.T) {
	var stderr bytes.Buffer
	env := &Env{Stderr: &stderr, Terminal: true}
	up := newUploadMeter(env, client.File{Name: "o.csv", SizeBytes: 1 << 20})
	up.sent(100)
	up.sent(1 << 20)
	up.done()
	total := int64(1000)
	m := &jobMeter{env: env}
	m.changed(client.Job{ID: "job_1", Status: client.Running, Progress: client.Progress{RowsAccepted: 40, RowsRejected: 2, BytesProcessed: 500, BytesTotal: &total}})
	m.changed(client.Job{ID: "job_1", Status: client.Partial, Progress: client.Progress{RowsAccepted: 90, RowsRejected: 3, BytesProcessed: 1000, BytesTotal: &total}})
	m.done()
	for _, want := range []string{"upload", "rows 90 accepted, 3 rejected"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in %q", want, stderr.String())
		}
	}
}

func TestMetersThatNeverStartedEnd(t *testing.T) {
	env := &Env{Stderr: &bytes.Buffer{}, Terminal: true}
	newUploadMeter(env, client.File{}).done()
	(&jobMeter{env: env}).done()
}

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"outcome", outcome(exitPartial), 3},
		{"refused", hint(&client.Error{Status: 404}, "look"), 1},
		{"refused for now", &client.Error{Status: 503, Retryable: true}, 6},
		{"interrupted", calling(context.Canceled), 6},
		{"no answer", calling(errors.New("connection refused")), 6},
		{"on this side", errors.New("no such file"), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := report(&bytes.Buffer{}, tt.err); got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
}
