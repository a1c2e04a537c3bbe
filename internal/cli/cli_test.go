package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"pintu/internal/access"
	"pintu/internal/cli"
	"pintu/internal/job"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pintu": func() { os.Exit(cli.Main()) }})
}

// TestScripts runs testdata/script/*.txtar, each against an API of its own. `api` steers it:
//
//	api path STATUS…        states that a job goes through once it is uploaded
//	api next FATE…          what happens to the next requests: ok, lose, or an error code
//	api break N             break the next N uploads or downloads half way
//	api scopes SCOPE…       what the token may do
//	api reached N REQUEST   requests like "POST /v1/import-jobs" must have come N times; {job} is the first job
//	api await N REQUEST     wait until they have come N times
//	api jobs N              N jobs must have been made
//
// and `exits CODE COMMAND…` runs a command that must end with that exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			a, err := startAPI(func(err error) { env.T().Log("contract:", err); t.Error(env.Vars[0], err) })
			if err != nil {
				return err
			}
			env.Defer(a.Close)
			env.Values["api"] = a
			env.Setenv("API_URL", a.URL)
			env.Setenv("API_TOKEN", token)
			env.Setenv("PINTU_URL", a.URL)
			env.Setenv("PINTU_TOKEN", token)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"api": steer, "exits": exits, "job": jobVariable},
	})
}

func steer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: api WHAT VALUE…")
	}
	a := ts.Value("api").(*api)
	if args[0] == "await" {
		await(ts, a, number(ts, args[1]), strings.Join(args[2:], " "))
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch rest := args[1:]; args[0] {
	case "path":
		a.path = nil
		for _, s := range rest {
			a.path = append(a.path, job.Status(s))
		}
	case "next":
		for _, s := range rest {
			a.faults = append(a.faults, strings.TrimSuffix(s, "ok"))
		}
	case "break":
		a.breaks = number(ts, rest[0])
	case "scopes":
		a.scopes = nil
		for _, s := range rest {
			a.scopes = append(a.scopes, access.Scope(s))
		}
	case "jobs":
		if len(a.jobs) != number(ts, rest[0]) {
			ts.Fatalf("%d jobs were made", len(a.jobs))
		}
	case "reached":
		reached(ts, a, number(ts, rest[0]), strings.Join(rest[1:], " "))
	default:
		ts.Fatalf("api %s is not known", args[0])
	}
}

func reached(ts *testscript.TestScript, a *api, want int, request string) {
	if n := a.count(request); n != want {
		ts.Fatalf("%s came %d times:\n%s", request, n, strings.Join(a.requests, "\n"))
	}
}

// await polls, since the process it waits for is not this one.
func await(ts *testscript.TestScript, a *api, want int, request string) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		a.mu.Lock()
		n := a.count(request)
		a.mu.Unlock()
		if n >= want {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s came %d times in a minute", request, n)
		}
	}
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "exit status 0"
	if err != nil {
		got = err.Error()
	}
	if want := "exit status " + args[0]; got != want {
		ts.Fatalf("%s, want %s", got, want)
	}
}

// jobVariable sets $JOB to the id of the newest job.
func jobVariable(ts *testscript.TestScript, _ bool, _ []string) {
	a := ts.Value("api").(*api)
	a.mu.Lock()
	defer a.mu.Unlock()
	ts.Setenv("JOB", string(a.jobs[len(a.jobs)-1].ID))
}

// Every exit code of the help is one that a script expects, so that none is promised and never given.
func TestEveryExitCodeIsTested(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	var all strings.Builder
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for code := 1; code <= 6; code++ {
		if !strings.Contains(all.String(), fmt.Sprintf("exits %d ", code)) {
			t.Errorf("no script expects exit code %d", code)
		}
	}
}
