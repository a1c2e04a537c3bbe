// Command vulngate reads what govulncheck found (-format json, on stdin) and fails for every advisory
// whose code we reach, unless it is on the list of accepted ones for the toolchain in use. It refuses to
// hide anything: what is accepted is printed too.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// accepted are advisories of the standard library of Go 1.26.8 that are fixed in later releases only: the
// answer is a newer toolchain (go.mod asks for one), not a change here. With a newer toolchain none applies.
var accepted = map[string][]string{
	"go1.26.": {"GO-2026-6603", "GO-2026-6605", "GO-2026-6607", "GO-2026-6608", "GO-2026-6610", "GO-2026-6611",
		"GO-2026-6612", "GO-2026-6613", "GO-2026-6617", "GO-2026-6809"},
}

// message is one of govulncheck's stream; other kinds are not looked at.
type message struct {
	Config *struct {
		GoVersion string `json:"go_version"`
	} `json:"config"`
	Finding *struct {
		OSV   string `json:"osv"`
		Trace []struct {
			Module   string `json:"module"`
			Package  string `json:"package"`
			Function string `json:"function"`
		} `json:"trace"`
	} `json:"finding"`
}

func main() {
	reached, goVersion, err := read(os.Stdin)
	if err == nil {
		err = judge(os.Stdout, reached, goVersion)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulngate:", err)
		os.Exit(1)
	}
}

// read gives, for each advisory that is reached, the function of it that is.
func read(in io.Reader) (reached map[string]string, goVersion string, err error) {
	reached = map[string]string{}
	for d := json.NewDecoder(in); ; {
		var m message
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, "", fmt.Errorf("read findings: %w", err)
		}
		if m.Config != nil {
			goVersion = m.Config.GoVersion
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			reached[f.OSV] = f.Trace[0].Module + " " + f.Trace[0].Package + "." + f.Trace[0].Function
		}
	}
	if goVersion == "" {
		return nil, "", errors.New("no scan on stdin")
	}
	return reached, goVersion, nil
}

func judge(out io.Writer, reached map[string]string, goVersion string) error {
	var refused int
	for _, osv := range sorted(reached) {
		verdict := "REFUSED "
		for prefix, ids := range accepted {
			if strings.HasPrefix(goVersion, prefix) && slices.Contains(ids, osv) {
				verdict = "accepted"
			}
		}
		if verdict == "REFUSED " {
			refused++
		}
		fmt.Fprintf(out, "%s %s https://pkg.go.dev/vuln/%s %s\n", verdict, osv, osv, reached[osv])
	}
	if refused > 0 {
		return fmt.Errorf("%d reachable advisories are not accepted", refused)
	}
	fmt.Fprintf(out, "%s: no reachable advisory but %d accepted ones\n", goVersion, len(reached))
	return nil
}

func sorted(m map[string]string) []string {
	ids := make([]string, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
