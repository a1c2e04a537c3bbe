package rowio

import "fmt"

// DefaultMaxRecordBytes bounds one record, its record end included.
const DefaultMaxRecordBytes = 1 << 20

// The formats that are read.
const (
	FormatCSV   = "csv"
	FormatJSONL = "jsonl" // one JSON object per line
)

// RecordEnd is the first record end of a file outside quotes. All but
// RecordEndCR are the LF family: they read alike, the name is kept to tell
// mixed files and to write the same end.
type RecordEnd string

const (
	RecordEndLF     RecordEnd = "lf"
	RecordEndCRLF   RecordEnd = "crlf"
	RecordEndCRCRLF RecordEnd = "crcrlf" // two or more CR before the LF
	RecordEndCR     RecordEnd = "cr"
)

// Layout is everything that boundaries and rows of a file depend on. It is
// found once by Inspect, pinned before the first chunk, and small enough to be
// stored with the job.
type Layout struct {
	Format         string    `json:"format"`
	Dialect        Dialect   `json:"dialect"` // every property filled in but optional characters
	RecordEnd      RecordEnd `json:"record_end"`
	MaxRecordBytes int       `json:"max_record_bytes"`
	BOMBytes       int       `json:"bom_bytes"`          // length of the byte order mark that was dropped
	SepLine        bool      `json:"sep_line,omitempty"` // the delimiter comes from a sep= line

	// Header has the trimmed names, without a nameless last column; a nameless
	// column elsewhere is "". Empty when the dialect declares header false. Of JSON
	// Lines it has the names of members found in the first lines, sorted.
	Header []string `json:"header"`
	// Columns is the number of cells a row must have; one empty cell more is
	// tolerated. Without a header it is that of the first record. 0: not checked.
	Columns int `json:"columns"`
	// LooksLike is the delimiter that would make several columns of a header
	// that is one column in the declared dialect, and LooksLikeColumns how many.
	LooksLike        string `json:"looks_like,omitempty"`
	LooksLikeColumns int    `json:"looks_like_columns,omitempty"`

	DataStart Position `json:"data_start"` // behind the header
}

// grammar is a Layout's dialect as bytes; 0 means none.
type grammar struct {
	delim, quote, escape, comment byte
	doubled, skip                 bool
	end, other                    byte // last byte of a record end; the line byte that is none
	hasCR                         bool // record ends are expected to have CR before LF
	lines                         bool // a record is a line, whatever is in it
	max, columns                  int
}

// grammar checks what a stored Layout must hold; a fault is a programming error
// or a Layout of another version.
func (l Layout) grammar() (grammar, error) {
	if l.MaxRecordBytes < 1 {
		return grammar{}, fmt.Errorf("read layout: max_record_bytes %d", l.MaxRecordBytes)
	}
	switch l.Format {
	case FormatCSV:
	case FormatJSONL:
		return grammar{lines: true, end: '\n', hasCR: l.RecordEnd == RecordEndCRLF, max: l.MaxRecordBytes}, nil
	default:
		return grammar{}, fmt.Errorf("read layout: format %q is not supported", l.Format)
	}
	if err := l.Dialect.Validate(); err != nil {
		return grammar{}, fmt.Errorf("read layout: %w", err)
	}
	d := l.Dialect.resolved()
	g := grammar{
		delim: d.Delimiter[0], quote: d.QuoteChar[0],
		escape: optionalByte(d.EscapeChar), comment: optionalByte(d.CommentChar),
		doubled: *d.DoubleQuote, skip: d.SkipInitialSpace,
		end: '\n', other: '\r',
		max: l.MaxRecordBytes, columns: l.Columns,
	}
	switch l.RecordEnd {
	case RecordEndLF:
	case RecordEndCRLF, RecordEndCRCRLF:
		g.hasCR = true
	case RecordEndCR:
		g.end, g.other = '\r', '\n'
	default:
		return grammar{}, fmt.Errorf("read layout: record_end %q", l.RecordEnd)
	}
	return g, nil
}

func optionalByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// recordEndBytes is what a writer puts behind a record of this file.
func (l Layout) recordEndBytes() string {
	switch l.RecordEnd {
	case RecordEndCRLF:
		return "\r\n"
	case RecordEndCRCRLF:
		return "\r\r\n"
	case RecordEndCR:
		return "\r"
	}
	return "\n"
}
