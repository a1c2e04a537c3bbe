package importer

import (
	"bytes"
	"slices"
	"time"

	"pintu/internal/dataset"
)

// Hash is the content hash of a record's values. None stands for "there was no record".
type Hash [16]byte

// Write is one valid row on its way into the store.
type Write struct {
	Tenant, Dataset string
	Key             string
	Slot            int
	Epoch           int64
	Row             int64
	Chunk           int
	Hash            Hash
	Fields          []string        // names of the schema, shared by all rows of a chunk
	Values          []dataset.Value // one per field; own memory
	JobID           string
	Now             time.Time
	Rules           *Rules // nil stands for the zero rules
	Expect          int64  // under IfUnchanged: the version that the row was made from, 0 for "must not exist"
}

// OnConflict says what becomes of a row whose key has a record from another job.
type OnConflict string

// The rules for conflicts. The zero value is Update.
const (
	Update      OnConflict = "update"       // it replaces the content
	Skip        OnConflict = "skip"         // it counts as skipped
	Reject      OnConflict = "reject"       // KEY_CONFLICT
	IfUnchanged OnConflict = "if_unchanged" // KEY_CONFLICT unless the record still has the version the row names
)

// Rules are what the rows of one import go by when they meet a record or each other.
type Rules struct {
	OnConflict OnConflict
	LastWins   bool    // of rows with one key the last one stays, not the first
	Work       []int64 // epochs of earlier attempts of the same work, ascending: what they wrote is no conflict
	Beside     []int64 // epochs of the imports that were under way when this one got its slot
	Since      int64   // of a reprocessing: epoch of the import whose input it is; 0 for any other
}

func (w Write) rules() Rules {
	if w.Rules == nil {
		return Rules{}
	}
	return *w.Rules
}

// Entry is what one slot of a record's register says: which row of which import holds the key, and what
// the record was before that import (PROTOCOL P2).
type Entry struct {
	Epoch, Row    int64
	Chunk         int
	Before        []byte // hash before this import; nil when there was no record
	Written       []byte // hash by this import
	VersionBefore int64  // version before this import, or before the first attempt of its work
	UpdatedBefore int64  // ms
}

// Register is what a refused write saw: the content of the record and the entries that matter.
type Register struct {
	Hash    []byte // of the content; nil when there is none
	Version int64
	Writer  int64  // epoch of the import that wrote the content or found it equal last, 0 when none did
	Changed int64  // epoch of the import that changed the content last, 0 when that is not known
	Own     *Entry // entry of the slot that the write is for
	Last    *Entry // entry of the writer of the content
}

// Outcome of one row.
type Outcome int

const (
	Created Outcome = iota
	Updated
	Unchanged
	Duplicate // of a row in the same file that stays
	Skipped   // its record is another job's, and the rule is to leave it alone
	Conflict  // its record is another job's, and the rule is to say so
)

// Action is what a row does next after its write was refused.
type Action int

const (
	Settled  Action = iota // nothing: the outcome is known
	Fenced                 // stop: a later import has this slot, so this one has ended
	Apply                  // write content and entry
	Confirm                // write the entry only: the content is the same already
	Precede                // write the entry only: a later import has written content over it
	Displace               // mark the chunk of the row that has to give way, then take its place
)

// Decide is the whole of what a row concludes from a refused write (PROTOCOL P2, P3). It reads only what
// the write saw; whatever it says to write is conditional on that still being so. An entry of this import
// goes before everything: from then on the record as it was before is the entry's.
func Decide(w Write, seen Register) (Action, Outcome) {
	own, rules := seen.Own, w.rules()
	switch {
	case own != nil && own.Epoch > w.Epoch:
		return Fenced, 0
	case own != nil && own.Epoch == w.Epoch:
		return w.meet(*own, rules)
	case w.conflicts(seen, rules):
		return Settled, rules.conflict()
	case seen.Writer > w.Epoch && seen.Last != nil:
		return Precede, classify(seen.Last.Before, w.Hash[:])
	case bytes.Equal(seen.Hash, w.Hash[:]):
		return Confirm, Unchanged
	}
	return Apply, 0
}

// meet decides against the row of this import that has the key.
func (w Write) meet(own Entry, rules Rules) (Action, Outcome) {
	switch first := w.Row < own.Row; {
	case own.Row == w.Row:
		return Settled, own.outcome()
	case rules.OnConflict == IfUnchanged && w.Expect != own.VersionBefore:
		return Settled, Conflict
	case first != rules.LastWins:
		return Displace, classify(own.Before, w.Hash[:])
	}
	return Settled, Duplicate
}

// conflicts tells whether the record is another job's and the rules keep this row from it. It is asked
// only while no row of this import has the key. A yes stays a yes whatever other imports do meanwhile: a
// row that was quarantined for it can never be applied by a repetition. Under IfUnchanged that is why a
// version that was reached while this work went on counts for nothing, even if it is the one the row names.
func (w Write) conflicts(seen Register, rules Rules) bool {
	switch {
	case seen.Hash == nil:
		return rules.OnConflict == IfUnchanged && w.Expect != 0
	case seen.Writer == w.Epoch || slices.Contains(rules.Work, seen.Writer): // written by this work
		return rules.OnConflict == IfUnchanged && seen.Last != nil && w.Expect != seen.Last.VersionBefore
	case rules.Since != 0 && seen.Changed > rules.Since && !slices.Contains(rules.Work, seen.Changed):
		return true
	case rules.OnConflict == IfUnchanged:
		during := seen.Changed >= w.Epoch || slices.Contains(rules.Beside, seen.Changed) || slices.Contains(rules.Work, seen.Changed)
		return during || w.Expect != seen.Version
	}
	return rules.OnConflict == Skip || rules.OnConflict == Reject
}

// Outright tells that a row replaces whatever it finds: nothing has to be asked about the record.
func (r Rules) Outright() bool {
	return r.Since == 0 && (r.OnConflict == Update || r.OnConflict == "")
}

func (r Rules) conflict() Outcome {
	if r.OnConflict == Skip {
		return Skipped
	}
	return Conflict
}

// VersionBefore is the version that an entry of w's import says was there before, while it has none.
func (w Write) VersionBefore(seen Register) int64 {
	if seen.Last != nil && slices.Contains(w.rules().Work, seen.Writer) {
		return seen.Last.VersionBefore
	}
	return seen.Version
}

// VersionBeforeLast is the version of the record before the import that wrote its content.
func (r Register) VersionBeforeLast() int64 {
	if r.Last == nil || r.Last.outcome() == Unchanged {
		return r.Version
	}
	return r.Version - 1
}

func (e Entry) outcome() Outcome { return classify(e.Before, e.Written) }

func classify(before, now []byte) Outcome {
	switch {
	case before == nil:
		return Created
	case bytes.Equal(before, now):
		return Unchanged
	}
	return Updated
}
