package infra_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"

	"pintu/infra"
)

var update = flag.Bool("update", false, "write openapi.json from openapi.yaml")

func TestServedDocumentIsTheWrittenOne(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal(source, &doc); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want.Bytes(), infra.OpenAPI) {
		t.Error("openapi.json is not openapi.yaml; run: go test ./infra -update")
	}
}

// TestDocumentIsSound checks the document against OpenAPI 3.1, and every example against its schema.
func TestDocumentIsSound(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(infra.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	err = doc.Validate(t.Context(), openapi3.EnableExamplesValidation())
	if err != nil {
		t.Error(err)
	}
}

func TestEveryOperationIsCompletelyDescribed(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(infra.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			if op.OperationID == "" || op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s lacks an id, a summary, a description or its tag", name)
			}
			for status, response := range op.Responses.Map() {
				if len(response.Value.Content) == 0 && status != "304" {
					t.Errorf("%s: answer %s has no content", name, status)
				}
				for _, media := range response.Value.Content {
					if len(media.Examples) == 0 {
						t.Errorf("%s: answer %s has no example", name, status)
					}
				}
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" || p.Value.Example == nil {
					t.Errorf("%s: parameter %s lacks a description or an example", name, p.Value.Name)
				}
			}
			if op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Value.Content {
				if len(media.Examples) == 0 {
					t.Errorf("%s: the body has no example", name)
				}
			}
		}
	}
}
