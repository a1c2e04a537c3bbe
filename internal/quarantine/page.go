package quarantine

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"pintu/internal/fault"
	"pintu/internal/id"
)

// Filter of a list of rows; empty fields do not filter.
type Filter struct {
	State State
	Code  fault.Code
	Class Class
	Row   int64  // only the row of this number
	Retry id.Job // only rows that this job took to try again
}

func (f Filter) passes(r Row) bool {
	return (f.State == "" || r.State == f.State) && (f.Code == "" || r.Code == f.Code) && (f.Class == "" || r.Class == f.Class) &&
		(f.Retry == "" || r.RetryJob == f.Retry)
}

// Page of a list of rows in row order. NextCursor is empty at the end, and only there.
type Page struct {
	Rows       []Row
	NextCursor string
}

// ETag names this state of the row, without quotes.
func (r Row) ETag() string { return strconv.FormatInt(r.Rev, 10) }

// MarshalJSON writes the row as clients see it. Raw bytes are "raw" when they are UTF-8, else
// "raw_base64"; a payload that lies in the bucket and was not loaded is null in both.
func (r Row) MarshalJSON() ([]byte, error) {
	out := rowJSON{
		RowNumber: r.RowNumber, Line: r.Line, Offset: r.Offset, State: r.State, Code: r.Code, Class: r.Class,
		Field: orNull(r.Field), Message: r.Message, Attempts: r.Attempts, DatasetVersion: r.DatasetVersion,
		ETag: r.ETag(), RetryJob: orNull(string(r.RetryJob)), ResolvedBy: orNull(r.ResolvedBy), DiscardReason: orNull(r.Reason),
	}
	switch {
	case r.RawKey != "":
	case utf8.Valid(r.Raw):
		out.Raw = new(string(r.Raw))
	default:
		out.RawBase64 = r.Raw
	}
	return json.Marshal(out)
}

type rowJSON struct {
	RowNumber      int64      `json:"row_number"`
	Line           int64      `json:"line"`
	Offset         int64      `json:"offset"`
	State          State      `json:"state"`
	Code           fault.Code `json:"code"`
	Class          Class      `json:"class"`
	Field          *string    `json:"field"`
	Message        string     `json:"message"`
	Raw            *string    `json:"raw"`
	RawBase64      []byte     `json:"raw_base64,omitempty"`
	Attempts       int        `json:"attempts"`
	DatasetVersion int        `json:"dataset_version"`
	ETag           string     `json:"etag"`
	RetryJob       *string    `json:"retry_job"`
	ResolvedBy     *string    `json:"resolved_by"`
	DiscardReason  *string    `json:"discard_reason"`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
