// Command testreport reads what `go test -json` says, of one module or of several in a row, prints a line per
// package, everything that failing tests print, and the totals. It fails when a test or a build failed, and when
// there was nothing to report: a run that never began must not look like success.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// report is what was seen so far.
type report struct {
	out                     io.Writer
	printed                 map[string][]string // what each test printed, until it has ended
	packages                int
	passed, failed, skipped int
	broken                  bool // something beside a test failed
}

func main() {
	r := report{out: os.Stdout, printed: map[string][]string{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.sum() {
		os.Exit(1)
	}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		r.broken = true // the go command itself had something to say
		fmt.Fprintf(r.out, "%s", line)
		return
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "build-fail":
		r.broken = true
	case e.Test == "":
		r.pkg(e)
	default:
		r.test(e)
	}
}

// pkg takes what is said of a package as a whole.
func (r *report) pkg(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" && !strings.Contains(e.Output, "[no test files]") {
			fmt.Fprint(r.out, e.Output)
		}
	case "pass":
		r.packages++
	case "fail":
		r.packages++
		r.broken = true
		for name, printed := range r.printed { // of tests that never ended: a panic, a time-out
			if strings.HasPrefix(name, e.Package+" ") {
				fmt.Fprint(r.out, strings.Join(printed, ""))
				delete(r.printed, name)
			}
		}
	}
}

func (r *report) test(e event) {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.printed[name] = append(r.printed[name], e.Output)
		return
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
	case "fail":
		r.failed++
		fmt.Fprint(r.out, strings.Join(r.printed[name], ""))
	default:
		return
	}
	delete(r.printed, name)
}

// sum prints the totals and tells whether all is well.
func (r *report) sum() bool {
	fmt.Fprintf(r.out, "%d tests passed, %d failed, %d skipped, in %d packages\n", r.passed, r.failed, r.skipped, r.packages)
	return r.failed == 0 && !r.broken && r.packages > 0
}
