package webhook

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pintu/internal/netguard"
)

// blocks gives the code of the README by file name: the fences that name one.
func blocks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^```\\w+ (\\S+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		code[m[1]] = m[2]
	}
	return code
}

// write puts the README's code into files of a folder.
func write(t *testing.T, code map[string]string, verify, receiver string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{verify, receiver} {
		if code[name] == "" {
			t.Fatalf("the README has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(code[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// missing skips a test for want of something, but in CI, where everything must be there.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "%s is not installed", name)
	}
	return path
}

// built compiles a receiver as if it stood in a folder of this module, for the libraries that are required here.
func built(t *testing.T, dir string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, name := range []string{"verify.go", "receiver.go"} {
		replace[filepath.Join(here, "readmereceiver", name)] = filepath.Join(dir, name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "receiver")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program(t, "go"), "build", "-overlay", file, "-o", binary, "./readmereceiver").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// modules gives a folder with the npm packages of testdata/npm, installed once for each lock file.
func modules(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("testdata/npm/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing(t, "there is no folder for caches: %v", err)
	}
	dir := filepath.Join(cache, "pintu-tests", fmt.Sprintf("npm-%x", sha256.Sum256(lock)))
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "standardwebhooks")); err == nil {
		return filepath.Join(dir, "node_modules")
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/npm")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	npm := exec.CommandContext(t.Context(), program(t, "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		missing(t, "npm cannot install the packages of testdata/npm: %v\n%s", err, out)
	}
	return filepath.Join(dir, "node_modules")
}

// running is a receiver of the README as a process.
type running struct {
	url   string
	lines *bufio.Scanner
}

func launch(t *testing.T, held []Secret, name string, args ...string) *running {
	t.Helper()
	var texts []string
	for _, s := range held {
		texts = append(texts, s.Reveal())
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRETS="+strings.Join(texts, ","), "PORT=0", "PYTHONDONTWRITEBYTECODE=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	r := &running{lines: bufio.NewScanner(out)}
	r.url = "http://" + strings.TrimPrefix(r.line(), "listening ") + "/hook"
	if r.url == "http:///hook" {
		cmd.Wait()
		t.Fatalf("the receiver did not start: %s", stderr.String())
	}
	return r
}

// line gives the next line that the receiver prints; empty when it has ended.
func (r *running) line() string {
	r.lines.Scan()
	return r.lines.Text()
}

// post sends what a stranger could send.
func (r *running) post(t *testing.T, h http.Header, body []byte) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// readmeReceivers are the programs of the README: the files they are put together from, and how they are run.
var readmeReceivers = map[string]struct {
	verify, receiver string
	signsID          bool // the scheme it verifies signs the id header
	command          func(t *testing.T, dir string) []string
}{
	"Go":                        {"verify.go", "receiver.go", false, func(t *testing.T, dir string) []string { return []string{built(t, dir)} }},
	"Go with Standard Webhooks": {"standard/verify.go", "receiver.go", true, func(t *testing.T, dir string) []string { return []string{built(t, dir)} }},
	"Python": {"verify.py", "receiver.py", false, func(t *testing.T, dir string) []string {
		return []string{program(t, "python3"), filepath.Join(dir, "receiver.py")}
	}},
	"Node": {"verify.mjs", "receiver.mjs", false, node},
	"Node with Standard Webhooks": {"standard/verify.mjs", "receiver.mjs", true, func(t *testing.T, dir string) []string {
		command := node(t, dir)
		if err := os.Symlink(modules(t), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		return command
	}},
}

func node(t *testing.T, dir string) []string {
	t.Helper()
	return []string{program(t, "node"), filepath.Join(dir, "receiver.mjs")}
}

func TestReceiversOfTheReadme(t *testing.T) {
	code := blocks(t)
	for name, c := range readmeReceivers {
		t.Run(name, func(t *testing.T) {
			command := c.command(t, write(t, code, c.verify, c.receiver))
			first, second, third := secret(t, "acme", 1), secret(t, "acme", 2), secret(t, "acme", 3)
			r := launch(t, []Secret{first, second}, command[0], command[1:]...)
			t.Run("accepts what we send", func(t *testing.T) { acceptsDeliveries(t, r, first, second, third) })
			t.Run("refuses what we did not send", func(t *testing.T) { refusesStrangers(t, r, first, third, c.signsID) })
		})
	}
}

// acceptsDeliveries sends events as they are sent for real, with every set of secrets that a rotation goes through.
func acceptsDeliveries(t *testing.T, r *running, first, second, third Secret) {
	guard, err := netguard.New(netguard.Config{AdmitLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	sender := NewSender(guard, DefaultTimes, time.Now)
	for i, signing := range [][]Secret{{first}, {second, first}, {second}, {third, second}} {
		event := jobEvent(t)
		if i > 0 {
			if event, err = TestEvent(time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		d := NewDelivery("acme", r.url, "req_1", event)
		for _, want := range []string{"new", "again"} { // the second as if the first answer had been lost
			a, err := sender.Send(t.Context(), d, signing, netguard.Policy{Code: netguard.CallbackURLNotAllowed})
			if err != nil || a.outcome() != delivered {
				t.Fatalf("signed with %d secrets: %+v %v", len(signing), a, err)
			}
			if got := r.line(); got != want+" "+string(event.ID) {
				t.Errorf("the receiver says %q, want %s %s", got, want, event.ID)
			}
		}
	}
}

func refusesStrangers(t *testing.T, r *running, held, stranger Secret, signsID bool) {
	event := jobEvent(t)
	now := time.Now()
	headers := func(at time.Time, s ...Secret) http.Header {
		h := http.Header{}
		sign(h, event.ID, at, event.Body, s)
		return h
	}
	with := func(h http.Header, pairs ...string) http.Header {
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	later := fmt.Sprint(now.Unix() + 1)
	changedID := http.StatusNoContent
	if signsID {
		changedID = http.StatusUnauthorized
	}
	for name, c := range map[string]struct {
		h    http.Header
		body []byte
		want int
	}{
		"as sent":                   {headers(now, held), event.Body, http.StatusNoContent},
		"nearly 300 seconds old":    {headers(now.Add(-290*time.Second), held), event.Body, http.StatusNoContent},
		"nearly 300 seconds ahead":  {headers(now.Add(290*time.Second), held), event.Body, http.StatusNoContent},
		"more than 300 seconds old": {headers(now.Add(-310*time.Second), held), event.Body, http.StatusUnauthorized},
		"more than 300 ahead":       {headers(now.Add(310*time.Second), held), event.Body, http.StatusUnauthorized},
		"another secret":            {headers(now, stranger), event.Body, http.StatusUnauthorized},
		"another body":              {headers(now, held), append([]byte(" "), event.Body...), http.StatusUnauthorized},
		"no body":                   {headers(now, held), nil, http.StatusUnauthorized},
		"another time":              {with(headers(now, held), headerTimestamp, later, standardTimestamp, later), event.Body, http.StatusUnauthorized},
		"time of words":             {with(headers(now, held), headerTimestamp, "now", standardTimestamp, "now"), event.Body, http.StatusUnauthorized},
		"another id":                {with(headers(now, held), headerID, "evt_x", standardID, "evt_x"), event.Body, changedID},
		"empty signatures":          {with(headers(now, held), headerSignature, "v1=", standardSignature, "v1,"), event.Body, http.StatusUnauthorized},
		"signatures of nonsense":    {with(headers(now, held), headerSignature, "é,v1=é", standardSignature, "v1,é v1"), event.Body, http.StatusUnauthorized},
		"no headers":                {http.Header{}, event.Body, http.StatusUnauthorized},
	} {
		if got := r.post(t, c.h, c.body); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestReadmeNamesTheSchedule(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, step := range steps[:len(steps)-3] {
		named = append(named, strings.NewReplacer("h0m0s", " h", "m0s", " min", "s", " s").Replace(step.String()))
	}
	want := strings.Join(named, ", ") + " and three times 14 h"
	if got := strings.Join(strings.Fields(string(text)), " "); !strings.Contains(got, want) {
		t.Errorf("the README does not say %q", want)
	}
}
