package e2e

import (
	"testing"

	"pintu/localstack/faults"
)

// TestTheLaterImportStays: a worker of the first import is held in the middle of a chunk and killed, the
// second import of the dataset runs to its end, then the first one's message comes back.
func TestTheLaterImportStays(t *testing.T) {
	s := start(t, 1<<20, nil)
	s.dataset("pairs")
	first, second := []byte("k,v\na,1\nb,2\nc,3\nd,4\n"), []byte("k,v\na,10\nb,20\nc,30\nf,60\n")
	held := s.stack.Faults().Add(faults.Rule{Caller: "ProcessFunction", Operation: "UpdateItem", N: 4, Action: faults.HoldBefore})
	one := s.begin("pairs", first)
	<-held.Reached()
	two := s.wait(s.begin("pairs", second))
	if two.text("status") != "succeeded" || two.number("result.rows_accepted") != 4 {
		t.Fatalf("second import: %v", two)
	}
	for _, p := range s.stack.Processes() { // whoever holds the first import's chunk dies; its message comes back
		if len(p) > 15 && p[:15] == "ProcessFunction" {
			s.stack.Kill(p)
		}
	}
	held.Release()
	j := s.rescued(one)
	if j.text("status") != "succeeded" || j.number("result.rows_accepted") != 4 {
		t.Fatalf("first import: %v", j)
	}
	want := map[string]string{"a": "10", "b": "20", "c": "30", "d": "4", "f": "60"}
	for key, v := range s.outcome("pairs", j).Records {
		if want[key] != v {
			t.Errorf("%s = %s, want %s", key, v, want[key])
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	s.audit()
}
