package importtest

import (
	"context"
	"testing"

	"pintu/internal/dataset"
	"pintu/internal/importer"
)

// writes drives rows of a record through the store by hand, as workers do call by call.
type writes struct{ *world }

func (w writes) row(epoch, row int64, slot int, content byte, rules importer.Rules, expect int64) importer.Write {
	return importer.Write{Tenant: "acme", Dataset: "pairs", Key: "b", Slot: slot, Epoch: epoch, Row: row, Hash: importer.Hash{content},
		Fields: []string{"k"}, Values: []dataset.Value{{Kind: dataset.String, Text: []byte{content}}}, JobID: "job_x", Now: w.now(), Rules: &rules, Expect: expect}
}

func (w writes) try(write importer.Write, a importer.Action, seen importer.Register) *importer.Register {
	w.t.Helper()
	refused, _, err := w.store.WriteRecord(w.t.Context(), write, a, seen)
	if err != nil {
		w.t.Fatal(err)
	}
	return refused
}

// settle repeats a row until its outcome is known.
func (w writes) settle(write importer.Write) importer.Outcome {
	w.t.Helper()
	return w.settleIn(w.store.WriteRecord, write)
}

type put func(context.Context, importer.Write, importer.Action, importer.Register) (*importer.Register, bool, error)

func (w writes) settleIn(to put, write importer.Write) importer.Outcome {
	w.t.Helper()
	action, outcome, seen := importer.Apply, importer.Created, importer.Register{}
	for {
		refused, _, err := to(w.t.Context(), write, action, seen)
		if err != nil {
			w.t.Fatal(err)
		}
		if refused == nil {
			return outcome
		}
		seen = *refused
		if action, outcome = importer.Decide(write, seen); action == importer.Settled {
			return outcome
		}
	}
}

// A worker under if_unchanged judged a record that an import beside it had found equal, and is frozen before
// its write. The other import has the key in more rows: they find the record equal too, or change it, and end
// where it began. Another worker judges the row anew. Whatever that one concludes, the write of the frozen
// one must not contradict it.
func TestFrozenWriteHoldsForWhatWasJudged(t *testing.T) {
	for name, beside := range map[string]string{"found equal": "yy", "changed and changed back": "yzy"} {
		t.Run(name, func(t *testing.T) {
			w := writes{newWorld(t)}
			w.settle(w.row(2, 1, 0, 'y', importer.Rules{}, 0))
			w.settle(w.row(3, 9, 0, beside[0], importer.Rules{}, 0))
			judged := w.row(4, 1, 1, 'y', importer.Rules{OnConflict: importer.IfUnchanged, Beside: []int64{3}}, 1)
			seen := w.try(judged, importer.Apply, importer.Register{})
			action, _ := importer.Decide(judged, *seen)
			if action != importer.Confirm {
				t.Fatalf("judged %v", action)
			}
			for i := 1; i < len(beside); i++ {
				w.settle(w.row(3, int64(9-i), 0, beside[i], importer.Rules{}, 0))
			}
			now := w.try(judged, importer.Apply, importer.Register{})
			_, outcome := importer.Decide(judged, *now)
			if wrote := w.try(judged, action, *seen) == nil; wrote == (outcome == importer.Conflict) {
				t.Errorf("the frozen write was applied: %v, the row's outcome is %v", wrote, outcome)
			}
		})
	}
}

// An import that has a key in several rows and leaves its record as it was has not changed it.
func TestEqualRowsChangeNothing(t *testing.T) {
	w := writes{newWorld(t)}
	w.settle(w.row(2, 1, 0, 'y', importer.Rules{}, 0))
	w.settle(w.row(3, 9, 0, 'y', importer.Rules{}, 0))
	w.settle(w.row(3, 5, 0, 'y', importer.Rules{}, 0))
	if got := w.settle(w.row(4, 1, 1, 'x', importer.Rules{OnConflict: importer.IfUnchanged, Beside: []int64{3}}, 1)); got == importer.Conflict {
		t.Error("a record that nobody changed is a conflict")
	}
}

// A dry run holds no slot but its own: another import may write a record after a row of the dry run has taken
// its key. The other rows of that key are judged by the record as the first one found it.
func TestStagedRowGoesBeforeALaterRecord(t *testing.T) {
	w := writes{newWorld(t)}
	rules := importer.Rules{OnConflict: importer.Reject}
	dry := func(row int64) importer.Outcome {
		return w.settleIn(w.store.StageRecord, w.row(3, row, 0, 'y', rules, 0))
	}
	if got := dry(5); got != importer.Created {
		t.Fatalf("first row: %v", got)
	}
	w.settle(w.row(4, 1, 1, 'x', importer.Rules{}, 0))
	for row, want := range map[int64]importer.Outcome{5: importer.Created, 9: importer.Duplicate} {
		if got := dry(row); got != want {
			t.Errorf("row %d: %v, want %v", row, got, want)
		}
	}
	if got := dry(2); got != importer.Created {
		t.Errorf("a smaller row: %v", got)
	}
}
