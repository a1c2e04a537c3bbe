// Package rowio reads delimited text and JSON Lines as a stream of records whose
// bytes are kept exactly: it looks at the head of a file once (Inspect, InspectLines), cuts the file
// into chunks at record boundaries (Splitter), gives the records of a chunk
// with their row number, physical line and byte offset (Reader), and writes
// the file of rejected rows (RejectWriter).
//
// Where a record ends is decided by one piece of code (source.next), used by
// Splitter and Reader alike, so chunks and whole files cannot disagree. The
// rules it keeps:
//
//   - A quote opens a cell only right after a delimiter or at the start of a
//     record; a quote anywhere else in an unquoted cell is literal. Counting
//     quotes is never enough: one inch sign would move every later border.
//   - The first record end outside quotes decides for the whole file: either
//     the LF family (LF after any number of CR) or CR alone.
//   - A record without an end within Layout.MaxRecordBytes, an open quote at
//     the end of the file and text after a closing quote damage one line only:
//     the reader goes back to the start of the record, gives the bytes up to
//     its first line end as one malformed row and goes on behind it.
//   - Only records of no bytes at all are blank; they are skipped and counted
//     as lines.
//   - In JSON Lines a line feed ends a record and nothing else does; lines of
//     white space alone are blank.
//
// It refuses to repair: no value is trimmed, re-encoded or guessed at, bad rows
// are given with the bytes they have in the file. It knows no schema, no types
// and no storage; whether a line is JSON is for its reader to say. Compressed input and
// encodings other than UTF-8 are not read here; Inspect names what it found instead.
package rowio

// Codes of Problem, RowProblem and Warning; they are part of the HTTP contract.
const (
	CodeEmptyFile        = "EMPTY_FILE"
	CodeFileNotText      = "FILE_NOT_TEXT"
	CodeHeaderInvalid    = "HEADER_INVALID"
	CodeDuplicateColumns = "DUPLICATE_COLUMNS"
	CodeMalformedCSV     = "MALFORMED_CSV"
	CodeMalformedJSONL   = "MALFORMED_JSONL"
	CodeInvalidEncoding  = "INVALID_ENCODING" // of a file (Problem) or of one row (RowProblem)

	CodeMalformedRow     = "MALFORMED_ROW"
	CodeWrongColumnCount = "WRONG_COLUMN_COUNT"

	CodeHeaderTrimmed     = "HEADER_TRIMMED"
	CodeTrailingDelimiter = "TRAILING_DELIMITER"
	CodeMixedRecordEnds   = "MIXED_RECORD_ENDS"
)

// Position names a place between two records.
type Position struct {
	Offset int64 `json:"offset"` // of the next byte, from 0
	Line   int64 `json:"line"`   // physical line of the next byte, from 1
	Row    int64 `json:"row"`    // number of the next data record, from 1; header and blank lines have none
}

// Problem refuses a whole file. It is the only error of this package that is
// the file's fault; every other error came from the reader underneath.
type Problem struct {
	Code    string
	Message string
	Details map[string]any
}

func (p *Problem) Error() string { return p.Code + ": " + p.Message }

// RowProblem says why one row cannot be used. Message holds no bytes of the row.
type RowProblem struct {
	Code    string // CodeMalformedRow, CodeInvalidEncoding or CodeWrongColumnCount
	Message string
}

func (p *RowProblem) Error() string { return p.Code + ": " + p.Message }

// Warning reports what was tolerated in a file.
type Warning struct {
	Code    string
	Message string
	Details map[string]any
}
