package httpapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"pintu/infra"
	"pintu/internal/access"
	"pintu/internal/fault"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(infra.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestRoutesAreThoseOfTheDocument compares every operation: that it exists on both sides, its query
// parameters, what it does with Idempotency-Key, whether it takes a body and a token, and its scope.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	want := map[string]route{}
	for _, r := range (&api{}).routes() {
		want[r.method+" "+r.path] = r
	}
	seen := map[string]bool{}
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			seen[name] = true
			r, ok := want[name]
			if !ok {
				t.Errorf("%s is in the document only", name)
				continue
			}
			compare(t, name, op, r)
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("%s is not in the document", name)
		}
	}
}

func compare(t *testing.T, name string, op *openapi3.Operation, r route) {
	t.Helper()
	var query []string
	key := keyIgnored
	for _, p := range op.Parameters {
		switch {
		case p.Value.In == "query":
			query = append(query, p.Value.Name)
		case p.Value.Name == "Idempotency-Key" && p.Value.Required:
			key = keyRequired
		case p.Value.Name == "Idempotency-Key":
			key = keyAccepted
		}
	}
	slices.Sort(query)
	if diff := cmp.Diff(slices.Sorted(slices.Values(r.query)), query); diff != "" {
		t.Errorf("%s: query parameters (-routes +document)\n%s", name, diff)
	}
	if key != r.key {
		t.Errorf("%s: Idempotency-Key rule is %d in the document, %d in routes", name, key, r.key)
	}
	if body := op.RequestBody != nil; body != (r.maxBody > 0) {
		t.Errorf("%s: takes a body in the document: %t", name, body)
	}
	if open := op.Security != nil && len(*op.Security) == 0; open != (r.permission == nil) {
		t.Errorf("%s: needs no token in the document: %t", name, open)
	}
	if r.permission == nil {
		return
	}
	scope := r.permission(&http.Request{})
	told := strings.Contains(op.Description, "Needs the scope "+string(scope)) || strings.HasPrefix(op.Description, "As `GET /v1/jobs/{id}`")
	if scope != "" && !told {
		t.Errorf("%s: the document does not say that it needs %s", name, scope)
	}
}

// TestEveryCodeHasAStatusAndATranslation reads the codes out of the fault package, so that a new one cannot
// be forgotten here.
func TestEveryCodeHasAStatusAndATranslation(t *testing.T) {
	answers, jobs, _, _ := faultCodes(t)
	if len(answers) < 20 || len(jobs) < 10 {
		t.Fatalf("read %d and %d codes from the fault package", len(answers), len(jobs))
	}
	for _, code := range answers {
		if statuses[code] == 0 {
			t.Errorf("%s has no HTTP status", code)
		}
	}
	if len(statuses) != len(answers) {
		t.Errorf("the table has %d statuses for %d codes", len(statuses), len(answers))
	}
	for _, code := range append(answers, jobs...) {
		if messagesID[code] == "" {
			t.Errorf("%s has no Indonesian message", code)
		}
	}
}

// TestTheDocumentKnowsEveryCode compares the enums of the document with the codes of the fault package.
func TestTheDocumentKnowsEveryCode(t *testing.T) {
	answers, jobs, rows, warnings := faultCodes(t)
	gateway := fault.Code("UPSTREAM_GATEWAY") // said by API Gateway alone
	rows = append(rows, fault.InvalidEncoding, fault.Internal)
	schemas := document(t).Components.Schemas
	sameCodes(t, "ErrorCode", append(answers, gateway), schemas["ErrorCode"].Value.Enum)
	sameCodes(t, "JobErrorCode", append(jobs, fault.UploadMismatch, fault.Internal), schemas["JobErrorCode"].Value.Enum)
	sameCodes(t, "RowCode", rows, schemas["RowCode"].Value.Enum)
	warning := schemas["JobMembers"].Value.Properties["warnings"].Value.Items.Value.Properties["code"].Value.Enum
	sameCodes(t, "warnings", warnings, warning)
	var served []any
	for _, code := range rowCodes {
		served = append(served, code)
	}
	sameCodes(t, "?code= of rows", rows, served)
}

func sameCodes(t *testing.T, what string, want []fault.Code, got []any) {
	t.Helper()
	var codes []fault.Code
	for _, v := range got {
		codes = append(codes, fault.Code(v.(string)))
	}
	slices.Sort(codes)
	slices.Sort(want)
	if diff := cmp.Diff(want, codes); diff != "" {
		t.Errorf("%s (-fault +document)\n%s", what, diff)
	}
}

// faultCodes gives the constants of the fault package, one slice per declaration: answers, jobs, rows, warnings.
func faultCodes(t *testing.T) (answers, jobs, rows, warnings []fault.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../fault/fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var groups [][]fault.Code
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		var codes []fault.Code
		for _, spec := range d.Specs {
			text, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, fault.Code(text))
		}
		groups = append(groups, codes)
	}
	if len(groups) != 4 {
		t.Fatalf("the fault package has %d groups of codes, not 4", len(groups))
	}
	return groups[0], groups[1], groups[2], groups[3]
}

func TestRejectedArtifactsNeedTheScopeOfRows(t *testing.T) {
	for name, want := range map[string]access.Scope{"rejected.csv": access.RowsRead, "rejected.safe.csv": access.RowsRead, "report.json": access.JobsRead} {
		r := &http.Request{}
		r.SetPathValue("name", name)
		if got := artifactScope(r); got != want {
			t.Errorf("%s needs %s, want %s", name, got, want)
		}
	}
}
