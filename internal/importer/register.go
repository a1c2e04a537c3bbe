package importer

import (
	"bytes"
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
}

// Entry is what one slot of a record's register says: which row of which import holds the key, and what
// the record was before that import (PROTOCOL P2).
type Entry struct {
	Epoch, Row    int64
	Chunk         int
	Before        []byte // hash before this import; nil when there was no record
	Written       []byte // hash by this import
	VersionBefore int64
	UpdatedBefore int64 // ms
}

// Register is what a refused write saw: the content of the record and the entries that matter.
type Register struct {
	Hash    []byte // of the content; nil when there is none
	Version int64
	Writer  int64  // epoch of the import that wrote the content, 0 when none did
	Own     *Entry // entry of the slot that the write is for
	Last    *Entry // entry of the writer of the content
}

// Outcome of one row.
type Outcome int

const (
	Created Outcome = iota
	Updated
	Unchanged
	Duplicate // of a smaller row in the same file
)

// Action is what a row does next after its write was refused.
type Action int

const (
	Settled  Action = iota // nothing: the outcome is known
	Fenced                 // stop: a later import has this slot, so this one has ended
	Apply                  // write content and entry
	Confirm                // write the entry only: the content is the same already
	Precede                // write the entry only: a later import has written content over it
	Displace               // mark the chunk of the larger row, then take its place
)

// Decide is the whole of what a row concludes from a refused write (PROTOCOL P2, P3). It reads only what
// the write saw; whatever it says to write is conditional on that still being so.
func Decide(w Write, seen Register) (Action, Outcome) {
	own := seen.Own
	switch {
	case own != nil && own.Epoch > w.Epoch:
		return Fenced, 0
	case own != nil && own.Epoch == w.Epoch && own.Row == w.Row:
		return Settled, own.outcome()
	case own != nil && own.Epoch == w.Epoch && own.Row < w.Row:
		return Settled, Duplicate
	case own != nil && own.Epoch == w.Epoch:
		return Displace, classify(own.Before, w.Hash[:])
	case seen.Writer > w.Epoch && seen.Last != nil:
		return Precede, classify(seen.Last.Before, w.Hash[:])
	case bytes.Equal(seen.Hash, w.Hash[:]):
		return Confirm, Unchanged
	}
	return Apply, 0 // the content changed between two calls
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
