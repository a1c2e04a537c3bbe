package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentsDoWhatTheySay runs the shell blocks of README.md as they stand, but for those marked aws. A
// comment "ends with N" behind a command is its exit code; make targets must exist.
func TestDocumentsDoWhatTheySay(t *testing.T) {
	s := start(t, 8<<20, nil)
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, command := range commands(string(text)) {
		line, comment, _ := strings.Cut(command, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "make":
			if !strings.Contains(string(makefile), "\n"+words[1]+":") {
				t.Errorf("%s: the Makefile has no such target", command)
			}
		case words[0] == "bin/pintu":
			ran++
			if got, want := s.shell(words), ending(comment); got != want {
				t.Errorf("%s: exit code %d, want %d", command, got, want)
			}
		default:
			t.Errorf("%s: a command that no test runs", command)
		}
	}
	if ran < 4 {
		t.Errorf("only %d commands were found", ran)
	}
}

// commands gives the lines of all blocks that start with ```sh.
func commands(document string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		switch {
		case line == "```sh":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			out = append(out, line)
		}
	}
	return out
}

func ending(comment string) int {
	_, code, found := strings.Cut(comment, "ends with ")
	if !found {
		return 0
	}
	return int(code[0] - '0')
}

// shell runs one command in the repository's folder, as the client of the test's stack.
func (s *system) shell(words []string) int {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), filepath.Join(root, words[0]), words[1:]...)
	c.Dir = root
	c.Env = []string{"PINTU_URL=" + s.stack.URL(), "PINTU_TOKEN=" + s.token, "HOME=" + s.t.TempDir()}
	output, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%v: %v", words, err)
	}
	if exit != nil {
		s.t.Logf("%v: %s", words, output)
	}
	return c.ProcessState.ExitCode()
}
