// Package quarantine holds rows that could not be applied: exact bytes, reason, class, attempts. A row
// belongs to the job of its file for ever; it refuses to change that job's status or counters.
package quarantine

import (
	"time"

	"pintu/internal/fault"
	"pintu/internal/id"
)

// State of a quarantined row.
type State string

const (
	Quarantined State = "quarantined"
	Retrying    State = "retrying" // shown while the row's retry job is not over; never stored
	Resolved    State = "resolved"
	Discarded   State = "discarded"
)

// Class says who can mend the row. It is a heuristic and can be overridden by a person.
type Class string

const (
	Data Class = "data" // the payload is wrong: the source must fix it
	Code Class = "code" // the schema or a computed column was not ready for legitimate data
)

// Row is one source row that was rejected. Raw is the bytes of the file, without repair.
type Row struct {
	RowNumber      int64
	Chunk          int
	Line           int64
	Offset         int64
	Raw            []byte // nil when RawKey holds them
	RawKey         string // object with the raw bytes when they do not fit an item
	State          State
	Code           fault.Code
	Class          Class
	Field          string // empty: the row as a whole
	Message        string
	Attempts       int
	DatasetVersion int
	ResolvedBy     string // job id
	RetryJob       id.Job // the last job that took the row to try it again
	AttemptJob     id.Job // the last job whose attempt is counted in Attempts
	Reason         string // why it was discarded
	Rev            int64  // grows with every change; the ETag
	CreatedAt      time.Time
}

// MaxInlineRaw is the size in bytes up to which a raw payload is kept inside the item (400 KB at most,
// with its other attributes).
const MaxInlineRaw = 256 << 10
