package importtest

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"pintu/internal/fault"
)

// A row that does not fit a record is rejected for that, whether a row of the same key was there first or not.
func TestTooLargeInAnyOrder(t *testing.T) {
	large := strings.Repeat("x", 420_000)
	fits := strings.Repeat("x", 396<<10-len("k12v12note12")-len("c1"))
	body := "k,v,note\na,1,\na,2," + large + "\nb,1," + large + "\nb,2,\nc,1," + fits + "\nd,1,x" + fits + "\n"
	want := map[int64]fault.Code{2: fault.RecordTooLarge, 3: fault.RecordTooLarge, 6: fault.RecordTooLarge}
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.define("notes", `{"schema":{"fields":[{"name":"k","type":"string"},{"name":"v","type":"integer"},{"name":"note","type":"string"}],"primaryKey":["k"]}}`)
			w.chunkBytes = 16
			jobID := w.uploaded("notes", []byte(body))
			w.drainPlan()
			w.shuffle(rand.New(rand.NewPCG(seed, 3)))
			w.drain(jobID)
			if diff := cmp.Diff(want, w.state(jobID).Rejected); diff != "" {
				t.Errorf("order %d (-want +got):\n%s", seed, diff)
			}
			w.audit(t)
		})
	}
}
