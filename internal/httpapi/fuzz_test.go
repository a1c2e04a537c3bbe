package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

// FuzzReadImport: whatever is sent is either refused with every problem named, or understood in a form that
// reads the same again, so that it can be the canonical body.
func FuzzReadImport(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `{"dataset":"orders","file":{"name":"a","size_bytes":1}}`, `{"dataset":"orders","file":{"name":"a","size_bytes":1e3},"metadata":{"b":1,"a":[{}]}}`,
		`{"dataset":"o","file":{"name":"\ud800","size_bytes":0,"sha256":"zz"},"dialect":{"delimiter":"\t"}}`, "{\"a\":\"\xff\"}", `{"a":1,"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		spec, err := readImport(body)
		if err != nil {
			e, ok := fault.As(err)
			fields, _ := e.Details["fields"].([]problem)
			if !ok || e.Code != fault.InvalidRequest || len(fields) == 0 {
				t.Fatalf("refused without saying why: %v", err)
			}
			return
		}
		canonical, err := json.Marshal(map[string]any{
			"dataset": spec.Dataset, "file": spec.File, "metadata": spec.Metadata, "retention": spec.Retention, "dialect": spec.Dialect,
			"max_rejected": spec.MaxRejected, "max_rejected_percent": spec.MaxRejectedPercent, "reuse_window_seconds": spec.ReuseWindowSeconds,
			"force_reprocess": spec.ForceReprocess, "encoding": spec.Encoding,
			"dataset_version": unless(spec.DatasetVersion, 0), "deduplication_key": text(spec.DeduplicationKey),
		})
		if err != nil {
			t.Fatal(err)
		}
		if spec.File.SHA256 == "" {
			canonical = json.RawMessage(dropEmptySHA(t, canonical))
		}
		again, err := readImport(canonical)
		if err != nil {
			t.Fatalf("refuses what it understood: %v\n%s", err, canonical)
		}
		if diff := cmp.Diff(spec, again); diff != "" {
			t.Errorf("reads differently again\n%s", diff)
		}
	})
}

func unless(v, none int) *int {
	if v == none {
		return nil
	}
	return &v
}

func dropEmptySHA(t *testing.T, body []byte) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	delete(v["file"].(map[string]any), "sha256")
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
