package importtest

import (
	"encoding/json"
	"testing"

	"pintu/localstack/audit"
	"pintu/localstack/storetest"
)

// audit looks at everything that is stored. Twice: a quiet system does not change by itself.
func (w *world) audit(t testing.TB) {
	t.Helper()
	var digests [2]string
	for i := range digests {
		report, err := audit.Run(t.Context(), audit.Config{DB: w.db, ControlTable: storetest.ControlTable, RecordsTable: storetest.RecordsTable, Messages: w.messages()})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range report.Violations {
			t.Errorf("audit: %s", v)
		}
		digests[i] = report.Digest
	}
	if digests[0] != digests[1] {
		t.Error("audit: something changed while nothing was going on")
	}
}

func (w *world) messages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var bodies []string
	for _, m := range w.queue {
		b, err := json.Marshal(m.hint)
		if err != nil {
			w.t.Fatal(err)
		}
		bodies = append(bodies, string(b))
	}
	return bodies
}
