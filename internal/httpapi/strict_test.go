package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// candidates are values, right and wrong, of every member of a submit. What JSON Schema cannot say (control
// characters, media types, names that stand twice) is left out here and tested by hand.
var candidates = map[string][]string{
	"dataset":              {`"orders"`, `""`, `"Orders"`, `"a b"`, `"-a"`, `"0_-"`, `"` + strings.Repeat("a", 64) + `"`, `"` + strings.Repeat("a", 65) + `"`, `1`, `null`},
	"dataset_version":      {`1`, `0`, `-1`, `1.5`, `2.0`, `2147483647`, `2147483648`, `"1"`, `null`, `true`},
	"format":               {`"csv"`, `"jsonl"`, `"CSV"`, `null`, `1`},
	"upload_method":        {`"put"`, `"post"`, `"multipart"`, `null`},
	"file":                 {`null`, `[]`, `"a"`},
	"dialect":              {`null`, `{}`, `{"delimiter":";"}`, `{"delimiter":";;"}`, `{"header":false,"quoteChar":"'"}`, `{"header":"no"}`, `{"x":1}`, `{"skipInitialSpace":null}`, `7`},
	"encoding":             {`"utf-8"`, `"UTF-8"`, `"utf8"`, `"latin1"`, `null`, `1`},
	"on_conflict":          {`"update"`, `"skip"`, `"reject"`, `"if_unchanged"`, `null`, `[]`},
	"version_column":       {`null`, `"v"`, `false`},
	"duplicates":           {`"reject"`, `"last_wins"`, `null`},
	"atomicity":            {`"per_row"`, `"all_or_nothing"`, `null`},
	"dry_run":              {`false`, `true`, `null`, `0`},
	"max_rejected":         {`0`, `-1`, `1000000000`, `1000000001`, `1e3`, `0.5`, `null`, `"1"`},
	"max_rejected_percent": {`0`, `100`, `0.001`, `100.5`, `-1`, `null`, `"1"`},
	"callback_url":         {`null`, `"https://example.com"`, `""`},
	"deduplication_key":    {`"a"`, `""`, `"` + strings.Repeat("é", 255) + `"`, `"` + strings.Repeat("é", 256) + `"`, `null`, `1`},
	"force_reprocess":      {`true`, `false`, `null`, `"true"`},
	"reuse_window_seconds": {`0`, `2592000`, `2592001`, `-1`, `null`, `1.5`},
	"retention":            {`null`, `{}`, `{"input_days":1}`, `{"input_days":0}`, `{"results_days":365}`, `{"results_days":366}`, `{"quarantine_days":null}`, `{"days":1}`, `[]`},
	"metadata":             {`null`, `{}`, `{"a":[1,{"b":null}]}`, `[]`, `"a"`},
	"unknown":              {`1`, `null`},
}

var fileCandidates = map[string][]string{
	"name":         {`"a.csv"`, `""`, `"` + strings.Repeat("é", 255) + `"`, `"` + strings.Repeat("é", 256) + `"`, `null`, `1`},
	"size_bytes":   {`0`, `1`, `-1`, `1.5`, `1e3`, `9007199254740991`, `9007199254740992`, `null`, `"1"`},
	"content_type": {`"text/csv"`, `""`, `null`, `1`},
	"sha256":       {`"` + strings.Repeat("aB", 32) + `"`, `"` + strings.Repeat("a", 63) + `"`, `"` + strings.Repeat("g", 64) + `"`, `null`, `1`},
	"unknown":      {`1`},
}

// TestSubmitsAreTakenExactlyWhenTheDocumentAllowsThem keeps the hand-written reader and the hand-written
// document from drifting apart, in both directions.
func TestSubmitsAreTakenExactlyWhenTheDocumentAllowsThem(t *testing.T) {
	f, _, _ := submitting()
	v, err := validator()
	if err != nil {
		t.Fatal(err)
	}
	taken := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		// Most submits are right but for the members that are drawn.
		file := map[string]string{"name": `"a.csv"`, "size_bytes": `1`}
		change(rt, file, fileCandidates, "file")
		body := map[string]string{"dataset": `"orders"`, "file": object(file)}
		change(rt, body, candidates, "body")
		text := object(body)
		req := httptest.NewRequest("POST", "/v1/import-jobs", strings.NewReader(text))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "key-1")
		allowed := v.CheckRequest(req, []byte(text))
		a := f.do(t, request{method: "POST", path: "/v1/import-jobs", body: text})
		taken[a.StatusCode == 202]++
		if (a.StatusCode == 202) != (allowed == nil) {
			rt.Fatalf("answered %d, the document says %v\n%s\n%s", a.StatusCode, allowed, text, a.body)
		}
	})
	if taken[true] == 0 || taken[false] == 0 {
		t.Errorf("drew only one side: %v", taken)
	}
}

// change sets up to two members to values drawn from the candidates.
func change(rt *rapid.T, members map[string]string, from map[string][]string, label string) {
	names := make([]string, 0, len(from))
	for name := range from {
		names = append(names, name)
	}
	pick := rapid.SampledFrom(sorted(names))
	for range rapid.IntRange(0, 2).Draw(rt, label+" changes") {
		name := pick.Draw(rt, label+" member")
		members[name] = rapid.SampledFrom(from[name]).Draw(rt, name)
	}
}

func object(members map[string]string) string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	var parts []string
	for _, name := range sorted(names) {
		parts = append(parts, fmt.Sprintf("%q:%s", name, members[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
