package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		in   []string
		want string
		ok   bool
	}{
		"success is one line a package": {
			in: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`,
				`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: "ok  \tp\t0.1s\n1 tests passed, 0 failed, 1 skipped, in 1 packages\n", ok: true,
		},
		"a failing test shows what it printed": {
			in: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: boom\n"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"quiet\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "    a_test.go:1: boom\n1 tests passed, 1 failed, 0 skipped, in 1 packages\n",
		},
		"a panic shows the test that never ended": {
			in: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: "panic: boom\n0 tests passed, 0 failed, 0 skipped, in 1 packages\n",
		},
		"a build that failed": {
			in: []string{
				`{"ImportPath":"p","Action":"build-output","Output":"a.go:1: undefined: x\n"}`,
				`{"ImportPath":"p","Action":"build-fail"}`,
				`{"Action":"pass","Package":"q"}`,
			},
			want: "a.go:1: undefined: x\n0 tests passed, 0 failed, 0 skipped, in 1 packages\n",
		},
		"the go command itself failed": {
			in:   []string{`go: no such tool`, `{"Action":"pass","Package":"q"}`},
			want: "go: no such tool\n0 tests passed, 0 failed, 0 skipped, in 1 packages\n",
		},
		"nothing ran": {want: "0 tests passed, 0 failed, 0 skipped, in 0 packages\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := report{out: &out, printed: map[string][]string{}}
			if err := r.read(strings.NewReader(strings.Join(c.in, "\n"))); err != nil {
				t.Fatal(err)
			}
			if ok := r.sum(); ok != c.ok || out.String() != c.want {
				t.Errorf("ok %v, output:\n%s", ok, &out)
			}
		})
	}
}
