package main

import (
	"bytes"
	"strings"
	"testing"
)

const scan = `{"config":{"go_version":"VERSION"}}
{"progress":{"message":"Scanning"}}
{"osv":{"id":"GO-2026-6603"}}
{"finding":{"osv":"GO-2026-6603","trace":[{"module":"stdlib","package":"net/http","function":"Get"},{"module":"pintu"}]}}
{"finding":{"osv":"GO-2020-0001","trace":[{"module":"example.com/imported/only"}]}}
`

func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		fails bool
		want  string
	}{
		"accepted with this toolchain": {
			input: strings.Replace(scan, "VERSION", "go1.26.8", 1),
			want:  "accepted GO-2026-6603 https://pkg.go.dev/vuln/GO-2026-6603 stdlib net/http.Get\ngo1.26.8: no reachable advisory but 1 accepted ones\n",
		},
		"not accepted with another": {
			input: strings.Replace(scan, "VERSION", "go1.27.3", 1),
			fails: true,
			want:  "REFUSED  GO-2026-6603 https://pkg.go.dev/vuln/GO-2026-6603 stdlib net/http.Get\n",
		},
		"reached and on no list": {
			input: `{"config":{"go_version":"go1.26.8"}} {"finding":{"osv":"GO-2030-0001","trace":[{"module":"m","package":"p","function":"F"}]}}`,
			fails: true,
			want:  "REFUSED  GO-2030-0001 https://pkg.go.dev/vuln/GO-2030-0001 m p.F\n",
		},
		"a scan that never ran": {input: "", fails: true},
		"a scan cut short":      {input: `{"config":{"go_version":"go1.26.8"}} {"finding":`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			reached, version, err := read(strings.NewReader(c.input))
			if err == nil {
				err = judge(&out, reached, version)
			}
			if (err != nil) != c.fails || out.String() != c.want {
				t.Errorf("error %v, output:\n%s", err, &out)
			}
		})
	}
}
