package importer

import (
	"bytes"
	"fmt"
	"testing"
)

const (
	epoch   = 100 // of the import that decides
	earlier = 50  // an import that ended before it began
	beside  = 90  // one that was under way when it began
	later   = 200
)

var (
	hashA = Hash{'a'}
	hashB = Hash{'b'}
)

// stored is a record as an import left it.
func storedBy(writer, version int64, h Hash) Register {
	return Register{Hash: h[:], Version: version, Writer: writer, Changed: writer,
		Last: &Entry{Epoch: writer, Row: 1, Before: []byte("x"), Written: h[:], VersionBefore: version - 1}}
}

func (r Register) with(change func(*Register)) Register {
	change(&r)
	return r
}

// held is a record that row 5 of the deciding import has taken; it had the given version before.
func held(versionBefore int64, before []byte) Register {
	e := &Entry{Epoch: epoch, Row: 5, Chunk: 1, Before: before, Written: hashB[:], VersionBefore: versionBefore}
	return Register{Hash: hashB[:], Version: versionBefore + 1, Writer: epoch, Changed: epoch, Own: e, Last: e}
}

func TestDecide(t *testing.T) {
	type want struct {
		action  Action
		outcome Outcome
	}
	absent, old := Register{}, storedBy(earlier, 3, hashB)
	mine := storedBy(earlier, 3, hashB) // with Work: {earlier}
	for _, c := range []struct {
		name   string
		rules  Rules
		row    int64
		expect int64
		seen   Register
		want   want
	}{
		{"update: other content", Rules{}, 3, 0, old, want{Apply, 0}},
		{"update: same content", Rules{}, 3, 0, storedBy(earlier, 3, hashA), want{Confirm, Unchanged}},
		{"update: a later import was there", Rules{}, 3, 0, storedBy(later, 3, hashB), want{Precede, Updated}},
		{"the slot has a later import", Rules{}, 3, 0, Register{Own: &Entry{Epoch: later}}, want{Fenced, 0}},
		{"replay", Rules{OnConflict: Reject}, 5, 0, held(0, nil), want{Settled, Created}},
		{"replay over an update", Rules{OnConflict: IfUnchanged}, 5, 2, held(2, []byte("x")), want{Settled, Updated}},

		{"first wins: a later row", Rules{}, 9, 0, held(0, nil), want{Settled, Duplicate}},
		{"first wins: an earlier row", Rules{}, 3, 0, held(0, nil), want{Displace, Created}},
		{"last wins: a later row", Rules{LastWins: true}, 9, 0, held(0, nil), want{Displace, Created}},
		{"last wins: an earlier row", Rules{LastWins: true}, 3, 0, held(0, nil), want{Settled, Duplicate}},
		{"last wins: back to what was there", Rules{LastWins: true}, 9, 0, held(2, hashA[:]), want{Displace, Unchanged}},

		{"skip: exists", Rules{OnConflict: Skip}, 3, 0, old, want{Settled, Skipped}},
		{"skip: exists with the same content", Rules{OnConflict: Skip}, 3, 0, storedBy(earlier, 3, hashA), want{Settled, Skipped}},
		{"skip: a later import made it", Rules{OnConflict: Skip}, 3, 0, storedBy(later, 1, hashB), want{Settled, Skipped}},
		{"skip: an own row made it", Rules{OnConflict: Skip}, 9, 0, held(0, nil), want{Settled, Duplicate}},
		{"skip: gone between two calls", Rules{OnConflict: Skip}, 3, 0, absent, want{Apply, 0}},
		{"reject: exists", Rules{OnConflict: Reject}, 3, 0, old, want{Settled, Conflict}},
		{"reject: a later import made it", Rules{OnConflict: Reject}, 3, 0, storedBy(later, 1, hashB), want{Settled, Conflict}},
		{"reject: own row made it", Rules{OnConflict: Reject}, 3, 0, held(0, nil), want{Displace, Created}},
		{"reject: an earlier attempt wrote it", Rules{OnConflict: Reject, Work: []int64{earlier}}, 3, 0, mine, want{Apply, 0}},
		{"reject: an earlier attempt wrote the same", Rules{OnConflict: Reject, Work: []int64{earlier}}, 3, 0, storedBy(earlier, 1, hashA), want{Confirm, Unchanged}},
		{"reject: another job wrote after the earlier attempt", Rules{OnConflict: Reject, Work: []int64{earlier - 10}}, 3, 0, mine, want{Settled, Conflict}},

		{"if_unchanged: same version", Rules{OnConflict: IfUnchanged}, 3, 3, old, want{Apply, 0}},
		{"if_unchanged: same version and content", Rules{OnConflict: IfUnchanged}, 3, 3, storedBy(earlier, 3, hashA), want{Confirm, Unchanged}},
		{"if_unchanged: older version", Rules{OnConflict: IfUnchanged}, 3, 2, old, want{Settled, Conflict}},
		{"if_unchanged: version of the future", Rules{OnConflict: IfUnchanged}, 3, 4, old, want{Settled, Conflict}},
		{"if_unchanged: must not exist and does", Rules{OnConflict: IfUnchanged}, 3, 0, old, want{Settled, Conflict}},
		{"if_unchanged: must exist and does not", Rules{OnConflict: IfUnchanged}, 3, 1, absent, want{Settled, Conflict}},
		{"if_unchanged: the version came from an import that runs beside", Rules{OnConflict: IfUnchanged, Beside: []int64{beside}}, 3, 3, storedBy(beside, 3, hashB), want{Settled, Conflict}},
		{"if_unchanged: the version came from a later import", Rules{OnConflict: IfUnchanged}, 3, 3, storedBy(later, 3, hashB), want{Settled, Conflict}},
		{"if_unchanged: a later import found the record equal", Rules{OnConflict: IfUnchanged}, 3, 3,
			old.with(func(r *Register) { r.Writer, r.Last = later, &Entry{Epoch: later, Before: hashB[:], Written: hashB[:]} }), want{Precede, Updated}},
		{"if_unchanged: against the version before the own row", Rules{OnConflict: IfUnchanged}, 3, 2, held(2, []byte("x")), want{Displace, Updated}},
		{"if_unchanged: another version than the own row's", Rules{OnConflict: IfUnchanged}, 3, 3, held(2, []byte("x")), want{Settled, Conflict}},
		{"if_unchanged: conflict beats duplicate", Rules{OnConflict: IfUnchanged}, 9, 0, held(2, []byte("x")), want{Settled, Conflict}},
		{"if_unchanged: against the version before the first attempt", Rules{OnConflict: IfUnchanged, Work: []int64{earlier}}, 3, 2, mine, want{Apply, 0}},
		{"if_unchanged: another version than before the first attempt", Rules{OnConflict: IfUnchanged, Work: []int64{earlier}}, 3, 3, mine, want{Settled, Conflict}},

		{"if_unchanged: an earlier attempt's record that another import found equal", Rules{OnConflict: IfUnchanged, Work: []int64{earlier}, Beside: []int64{beside}}, 3, 3,
			mine.with(func(r *Register) {
				r.Writer, r.Last = beside, &Entry{Epoch: beside, Before: hashB[:], Written: hashB[:]}
			}), want{Settled, Conflict}},

		{"reprocess: as the first run left it", Rules{Since: earlier, Work: []int64{earlier}}, 3, 0, mine, want{Apply, 0}},
		{"reprocess: an older record that the first run did not touch", Rules{Since: earlier, Work: []int64{earlier}}, 3, 0, storedBy(earlier-10, 3, hashB), want{Apply, 0}},
		{"reprocess: changed since", Rules{Since: earlier, Work: []int64{earlier}}, 3, 0, storedBy(earlier+10, 4, hashB), want{Settled, Conflict}},
		{"reprocess: changed since, and the rule is to skip", Rules{OnConflict: Skip, Since: earlier, Work: []int64{earlier}}, 3, 0, storedBy(earlier+10, 4, hashB), want{Settled, Skipped}},
		{"reprocess: found equal since", Rules{Since: earlier, Work: []int64{earlier}}, 3, 0, mine.with(func(r *Register) { r.Writer, r.Last = earlier+10, nil }), want{Apply, 0}},
		{"reprocess: changed by an earlier attempt of it", Rules{Since: earlier, Work: []int64{earlier, earlier + 10}}, 3, 0, storedBy(earlier+10, 4, hashB), want{Apply, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			action, outcome := Decide(Write{Epoch: epoch, Row: c.row, Expect: c.expect, Hash: hashA, Rules: &c.rules}, c.seen)
			if got := (want{action, outcome}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A conflict stays one whatever other imports do to the record afterwards: the row is in quarantine, and a
// repetition must not apply it. All of a small world is tried.
func TestConflictIsFinal(t *testing.T) {
	tried := 0
	for _, rule := range []OnConflict{Update, Skip, Reject, IfUnchanged} {
		for _, rules := range []Rules{{}, {Work: []int64{earlier}}, {Work: []int64{earlier}, Since: earlier}} {
			rules.OnConflict, rules.Beside = rule, []int64{beside}
			for expect := range int64(5) {
				w := Write{Epoch: epoch, Row: 3, Expect: expect, Hash: hashA, Rules: &rules}
				for _, seen := range beginnings() {
					if _, was := Decide(w, seen); was == Conflict || was == Skipped {
						tried += stays(t, w, seen, was, 3)
					}
				}
			}
		}
	}
	t.Logf("%d histories", tried)
}

// beginnings are records as the row may meet them.
func beginnings() []Register {
	out := []Register{{}}
	for _, writer := range []int64{earlier - 10, earlier, earlier + 10, beside} {
		for version := range int64(3) {
			out = append(out, storedBy(writer, version+1, hashA), storedBy(writer, version+1, hashB))
		}
	}
	return out
}

// stays lets other imports write, in every order, and counts the histories.
func stays(t *testing.T, w Write, seen Register, was Outcome, steps int) (tried int) {
	t.Helper()
	if _, now := Decide(w, seen); now != was {
		t.Fatalf("%+v expecting version %d was %v and is %v after %s", *w.Rules, w.Expect, was, now, describe(seen))
	}
	if steps == 0 {
		return 1
	}
	for _, by := range []int64{beside, later, later + 1} {
		for _, h := range []Hash{hashA, hashB} {
			tried += stays(t, w, wrote(seen, by, h), was, steps-1)
		}
	}
	return tried
}

// wrote is what a record becomes when another import with the rule to update writes it.
func wrote(r Register, by int64, h Hash) Register {
	if r.Writer > by {
		return r
	}
	e := &Entry{Epoch: by, Row: 1, Before: r.Hash, Written: h[:], VersionBefore: r.Version}
	if !bytes.Equal(r.Hash, h[:]) {
		r.Hash, r.Version, r.Changed = h[:], r.Version+1, by
	}
	r.Writer, r.Last = by, e
	return r
}

func describe(r Register) string {
	return fmt.Sprintf("version %d by %d, changed by %d", r.Version, r.Writer, r.Changed)
}
