package rowio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// headBytes is the most that Inspect reads: one record of the greatest size
	// and room for what may stand before it.
	headBytes = DefaultMaxRecordBytes + windowBytes
	// maxHeaderBytes keeps a Layout small enough to be stored with a job.
	maxHeaderBytes = 64 << 10
)

var bom = []byte("\xEF\xBB\xBF")

// Inspect looks at the head of a CSV file (little more than 1 MiB of r, which starts
// at the file's first byte) and pins how it is to be read. A file that cannot be
// read at all is refused with a *Problem; other errors are those of r. Names are
// compared with no schema: see Layout.LooksLike for a header that is one column.
func Inspect(r io.Reader, d Dialect) (Layout, []Warning, error) {
	head, err := io.ReadAll(io.LimitReader(r, headBytes+1))
	if err != nil {
		return Layout{}, nil, fmt.Errorf("read head of file: %w", err)
	}
	if err := d.Validate(); err != nil {
		return Layout{}, nil, &Problem{Code: CodeMalformedCSV, Message: "dialect: " + err.Error()}
	}
	whole := len(head) <= headBytes
	head = head[:min(len(head), headBytes)]
	if p := refuseBinary(head, "CSV"); p != nil {
		return Layout{}, nil, p
	}
	in := inspection{head: head, whole: whole, layout: Layout{
		Format: FormatCSV, Dialect: d.resolved(), MaxRecordBytes: DefaultMaxRecordBytes,
		DataStart: Position{Line: 1, Row: 1},
	}}
	in.skipBOM()
	in.takeSepLine()
	if !in.layout.SepLine {
		in.chooseDelimiter(d.Delimiter != "")
	}
	in.layout.RecordEnd = in.recordEnd(in.layout.Dialect)
	if err := in.takeHeader(); err != nil {
		return Layout{}, nil, err
	}
	return in.layout, in.warnings, nil
}

// inspection is the state of Inspect: layout.DataStart moves as the head is read.
type inspection struct {
	head     []byte
	whole    bool // head is the whole file
	layout   Layout
	warnings []Warning
}

func (in *inspection) rest() []byte { return in.head[in.layout.DataStart.Offset:] }

// reading is the layout so far for trying things out on the head, with buffers no
// larger than that needs.
func (in *inspection) reading(d Dialect, end RecordEnd) Layout {
	l := in.layout
	l.Dialect, l.RecordEnd = d, end
	l.MaxRecordBytes = max(1, min(l.MaxRecordBytes, len(in.head)))
	return l
}

func (in *inspection) skipBOM() {
	if bytes.HasPrefix(in.head, bom) {
		in.layout.BOMBytes = len(bom)
		in.layout.DataStart.Offset = int64(len(bom))
	}
}

// takeSepLine obeys a first line like "sep=;", which spreadsheets write and
// read. It wins over a declared delimiter: it is about this very file.
func (in *inspection) takeSepLine() {
	w := in.rest()
	const prefix = "sep="
	if len(w) <= len(prefix) || !strings.EqualFold(string(w[:len(prefix)]), prefix) {
		return
	}
	d := in.layout.Dialect
	d.Delimiter = string(w[len(prefix) : len(prefix)+1])
	n := len(prefix) + 1
	end := n
	for end < len(w) && w[end] == '\r' {
		end++
	}
	if end < len(w) && w[end] == '\n' {
		end++
	} else {
		end = min(end, n+1) // CR alone ends one record
	}
	if end == n && n < len(w) || d.Validate() != nil {
		return
	}
	in.layout.Dialect, in.layout.SepLine = d, true
	in.layout.DataStart.Offset += int64(end)
	if end > n {
		in.layout.DataStart.Line++
	}
}

// recordEnd is the first record end outside quotes of the file read in dialect
// d. When the first record is malformed it is the first line end, as for any
// malformed record.
func (in *inspection) recordEnd(d Dialect) RecordEnd {
	w := in.head[in.layout.BOMBytes:]
	lf, cr := in.firstEnd(w, d, RecordEndLF), in.firstEnd(w, d, RecordEndCR)
	if lf < 0 && cr < 0 {
		lf, cr = bytes.IndexByte(w, '\n'), bytes.IndexByte(w, '\r')
	}
	if cr < 0 || lf >= 0 && lf < cr {
		return RecordEndLF
	}
	k := cr
	for k < len(w) && w[k] == '\r' {
		k++
	}
	switch {
	case k == len(w) || w[k] != '\n':
		return RecordEndCR
	case k-cr == 1:
		return RecordEndCRLF
	}
	return RecordEndCRCRLF
}

// firstEnd is the index of the byte that ends the first record if records end
// as end says, or -1.
func (in *inspection) firstEnd(w []byte, d Dialect, end RecordEnd) int {
	src := newSource(bytes.NewReader(w), in.reading(d, end), Position{}, nil)
	if src.err != nil || len(w) == 0 {
		return -1
	}
	sp, err := src.next()
	if err != nil || sp.flaw != sound || src.buf[sp.n-1] != src.g.end {
		return -1
	}
	return sp.n - 1
}

// takeHeader reads the first record, which is the header if there is one.
func (in *inspection) takeHeader() error {
	l := in.reading(in.layout.Dialect, in.layout.RecordEnd)
	first := NewReader(bytes.NewReader(in.rest()), l, l.DataStart)
	rec, err := first.Next()
	after := first.Position()
	if errors.Is(err, io.EOF) && in.whole {
		return &Problem{Code: CodeEmptyFile, Message: "the file is empty: it has no header and no rows"}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err != nil || !in.whole && after.Offset == int64(len(in.head)) {
		return &Problem{Code: CodeMalformedCSV, Message: fmt.Sprintf("no record ends within the first %d bytes", len(in.head))}
	}
	if !*in.layout.Dialect.Header {
		in.layout.Columns = len(rec.Fields)
		return nil
	}
	if err := headerProblem(rec); err != nil {
		return err
	}
	if err := in.takeNames(rec.Fields); err != nil {
		return err
	}
	in.layout.DataStart = Position{Offset: after.Offset, Line: after.Line, Row: 1}
	return nil
}

// headerProblem refuses a file whose header record cannot be read.
func headerProblem(rec Record) error {
	at := map[string]any{"line": rec.Line, "offset": rec.Offset}
	switch {
	case rec.Bad != nil && rec.Bad.Code == CodeInvalidEncoding:
		at["offset"] = rec.Offset + int64(firstInvalid(rec.Raw))
		return &Problem{CodeInvalidEncoding, "the header is not UTF-8: " + rec.Bad.Message, at}
	case rec.Bad != nil && bytes.IndexByte(rec.Raw, 0) >= 0:
		return &Problem{CodeFileNotText, "the header holds NUL bytes: this is not a text file", at}
	case rec.Bad != nil:
		return &Problem{CodeMalformedCSV, "the header cannot be read: " + rec.Bad.Message, at}
	case len(rec.Raw) > maxHeaderBytes:
		return &Problem{CodeHeaderInvalid, fmt.Sprintf("the header is longer than %d bytes", maxHeaderBytes), at}
	}
	return nil
}

// takeNames keeps the trimmed names and refuses those that cannot be matched.
func (in *inspection) takeNames(cells [][]byte) error {
	names := make([]string, len(cells))
	var trimmed []map[string]any
	for i, c := range cells {
		full := string(c)
		names[i] = strings.TrimFunc(full, isPadding)
		if names[i] != full && names[i] != "" {
			trimmed = append(trimmed, map[string]any{"column": i + 1, "name": names[i], "removed": padding(full)})
		}
	}
	if strings.Join(names, "") == "" {
		return &Problem{Code: CodeHeaderInvalid, Message: "the header has no names", Details: map[string]any{"columns": len(names)}}
	}
	if err := refuseDuplicates(names); err != nil {
		return err
	}
	if last := len(names) - 1; names[last] == "" {
		names = names[:last]
		in.warn(CodeTrailingDelimiter, fmt.Sprintf("column %d has no name; it is ignored while its cells are empty", last+1), map[string]any{"column": last + 1})
	}
	if trimmed != nil {
		in.warn(CodeHeaderTrimmed, "blanks around column names were removed", map[string]any{"columns": trimmed})
	}
	in.layout.Header, in.layout.Columns = names, len(names)
	return nil
}

func (in *inspection) warn(code, message string, details map[string]any) {
	in.warnings = append(in.warnings, Warning{Code: code, Message: message, Details: details})
}

// isPadding: white space, and the characters of no width that exports leave.
func isPadding(r rune) bool {
	return unicode.IsSpace(r) || r == '\u200B' || r == '\uFEFF'
}

// padding lists the code points trimmed off a name, each once.
func padding(s string) []string {
	core := strings.TrimFunc(s, isPadding)
	i := strings.Index(s, core)
	var list []string
	seen := map[rune]bool{}
	for _, r := range s[:i] + s[i+len(core):] {
		if !seen[r] {
			seen[r] = true
			list = append(list, fmt.Sprintf("U+%04X", r))
		}
	}
	return list
}

// refuseDuplicates names every column whose name another one has. Nameless
// columns are no duplicates of each other, and those of RejectWriter may stand
// as often as rows went round: nobody reads them.
func refuseDuplicates(names []string) error {
	at := map[string][]int{}
	for i, n := range names {
		if n != "" && !slices.Contains(RejectColumns, n) {
			at[n] = append(at[n], i+1)
		}
	}
	var list []map[string]any
	var text []string
	for _, n := range names {
		if len(at[n]) > 1 {
			list = append(list, map[string]any{"name": n, "columns": at[n]})
			text = append(text, fmt.Sprintf("%q in columns %s", clip(n), joinInts(at[n])))
			delete(at, n)
		}
	}
	if list == nil {
		return nil
	}
	return &Problem{Code: CodeDuplicateColumns, Message: "a column name occurs more than once: " + strings.Join(text, "; "), Details: map[string]any{"duplicates": list}}
}

func joinInts(list []int) string {
	text := fmt.Sprint(list[0])
	for i, n := range list[1:] {
		if i == len(list)-2 {
			text += " and "
		} else {
			text += ", "
		}
		text += fmt.Sprint(n)
	}
	return text
}

// clip keeps a name short enough for a message.
func clip(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
