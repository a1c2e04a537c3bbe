package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the repository, seen from this folder.
const root = "../.."

// goFile is one parsed file. Files of every build tag are read.
type goFile struct {
	path string // from the root, with slashes
	pkg  string // folder from the root
	test bool
	ast  *ast.File
	set  *token.FileSet
}

var readSources = sync.OnceValues(func() ([]goFile, error) {
	var files []goFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "build" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parse(path)
		files = append(files, f)
		return err
	})
	return files, err
})

func parse(path string) (goFile, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	rel, _ := filepath.Rel(root, path)
	rel = filepath.ToSlash(rel)
	pkg := rel[:max(strings.LastIndex(rel, "/"), 0)]
	return goFile{path: rel, pkg: pkg, test: strings.HasSuffix(rel, "_test.go"), ast: parsed, set: set}, err
}

func sources(t *testing.T) []goFile {
	t.Helper()
	files, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("only %d files found: the tests look at the wrong folder", len(files))
	}
	return files
}

// imports of a file, unquoted.
func (f goFile) imports() []string {
	var paths []string
	for _, i := range f.ast.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, path)
	}
	return paths
}

func (f goFile) line(p token.Pos) int { return f.set.Position(p).Line }

// calls gives the lines on which name of the package imported from path is used.
func (f goFile) uses(path, name string) (lines []int) {
	if !slices.Contains(f.imports(), path) {
		return nil
	}
	local := path[strings.LastIndex(path, "/")+1:]
	ast.Inspect(f.ast, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == local && strings.HasPrefix(s.Sel.Name, name) {
			lines = append(lines, f.line(s.Pos()))
		}
		return true
	})
	return lines
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	documented, packages := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		packages[f.pkg] = true
		if doc := f.ast.Doc.Text(); strings.HasPrefix(doc, "Package "+f.ast.Name.Name+" ") || strings.HasPrefix(doc, "Command ") {
			documented[f.pkg] = true
		}
	}
	for pkg := range packages {
		if !documented[pkg] {
			t.Errorf("%s: no package comment (what it is for, what it refuses to do)", pkg)
		}
	}
}

// A function that does not fit a screen does two things; a file of many screens is two files. Tests are not held to
// the first: a table of cases is as long as it is.
const maxFunctionLines, maxFileLines = 100, 600

func TestFunctionsAndFilesStayShort(t *testing.T) {
	for _, f := range sources(t) {
		if n := f.line(f.ast.FileEnd); n > maxFileLines {
			t.Errorf("%s has %d lines, at most %d", f.path, n, maxFileLines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || f.test {
				continue
			}
			if n := f.line(fn.Body.Rbrace) - f.line(fn.Pos()) + 1; n > maxFunctionLines {
				t.Errorf("%s:%d %s has %d lines, at most %d", f.path, f.line(fn.Pos()), fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestMainsOfFunctionsStayShort(t *testing.T) {
	mains, err := filepath.Glob(root + "/functions/*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("no functions found: %v", err)
	}
	for _, path := range mains {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 40 {
			t.Errorf("%s has %d lines, at most 40: what it does belongs into internal", path, n)
		}
	}
}
