package rowio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestInspectRefusesFiles(t *testing.T) {
	wide := strings.Repeat("column,", maxHeaderBytes/7+1) + "z\n"
	tests := []struct {
		name, data, code, message string
	}{
		{"no bytes", "", CodeEmptyFile, "empty"},
		{"mark only", "\xEF\xBB\xBF", CodeEmptyFile, "empty"},
		{"blank lines only", "\r\n\n\r\n", CodeEmptyFile, "empty"},
		{"sep line only", "sep=;\n", CodeEmptyFile, "empty"},
		{"gzip", "\x1F\x8B\x08\x00rest", CodeFileNotText, "gzip"},
		{"zstd", "\x28\xB5\x2F\xFDrest", CodeFileNotText, "zstd"},
		{"zip", "PK\x03\x04rest", CodeFileNotText, "ZIP archive"},
		{"workbook", "PK\x03\x04....xl/workbook.xml", CodeFileNotText, "XLSX"},
		{"old workbook", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1rest", CodeFileNotText, "XLS"},
		{"pdf", "%PDF-1.7\n", CodeFileNotText, "PDF"},
		{"png", "\x89PNG\r\n\x1A\nrest", CodeFileNotText, "PNG"},
		{"jpeg", "\xFF\xD8\xFF\xE0rest", CodeFileNotText, "JPEG"},
		{"utf-16 with a mark", "\xFF\xFEa\x00,\x00", CodeFileNotText, "UTF-16LE"},
		{"utf-16 without", "a\x00,\x00b\x00\n\x00", CodeFileNotText, "UTF-16LE"},
		{"big-endian utf-16 without", "\x00a\x00,\x00b\x00\n", CodeFileNotText, "UTF-16BE"},
		{"zeros", strings.Repeat("\x00\x00\x01\x02", 40), CodeFileNotText, "binary"},
		{"NUL in the header", "id,na\x00me and enough text behind it\n1,2\n", CodeFileNotText, "NUL"},
		{"legacy header", "id,caf\xE9 x\n1,2\n", CodeInvalidEncoding, "windows-1252"},
		{"header never closed", "id,\"name\n1,2\n", CodeMalformedCSV, "unterminated"},
		{"text behind a quoted name", "\"id\"x,name\n1,2\n", CodeMalformedCSV, "text after"},
		{"no record end in sight", strings.Repeat("x", headBytes+10), CodeMalformedCSV, fmt.Sprintf("first %d bytes", headBytes)},
		{"blank lines without end", strings.Repeat("\n", headBytes+10), CodeMalformedCSV, fmt.Sprintf("first %d bytes", headBytes)},
		{"no names", ",,\n1,2,3\n", CodeHeaderInvalid, "no names"},
		{"blank names", " ,\u00A0,\"\"\n1,2,3\n", CodeHeaderInvalid, "no names"},
		{"header too long to keep", wide, CodeHeaderInvalid, "longer than 65536"},
		{"same name twice", "a,b,a,b,a\n", CodeDuplicateColumns, `"a" in columns 1, 3 and 5; "b" in columns 2 and 4`},
		{"same name once trimmed", "a, a\n", CodeDuplicateColumns, `"a" in columns 1 and 2`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Inspect(strings.NewReader(tt.data), Dialect{})
			var p *Problem
			if !errors.As(err, &p) || p.Code != tt.code || !strings.Contains(p.Message, tt.message) {
				t.Fatalf("got %v, want %s with %q", err, tt.code, tt.message)
			}
		})
	}
}

func TestInspectReportsReadErrorsAsTheyAre(t *testing.T) {
	broken := errors.New("connection lost")
	_, _, err := Inspect(iotest.ErrReader(broken), Dialect{})
	var p *Problem
	if !errors.Is(err, broken) || errors.As(err, &p) {
		t.Fatalf("got %v", err)
	}
}

func TestInspectPinsTheLayout(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		name, data string
		dialect    Dialect
		want       Layout // format, limits and dialect defaults are filled in
	}{
		{"mark, blank lines, trimmed names", "\xEF\xBB\xBF\r\n id ,name\r\n1,2\r\n", Dialect{},
			Layout{RecordEnd: RecordEndCRLF, BOMBytes: 3, Header: []string{"id", "name"}, Columns: 2, DataStart: Position{16, 3, 1}}},
		{"newline in a name", "id,\"a\nb\"\n1,2\n", Dialect{},
			Layout{RecordEnd: RecordEndLF, Header: []string{"id", "a\nb"}, Columns: 2, DataStart: Position{9, 3, 1}}},
		{"nameless columns", ",id,,\n", Dialect{},
			Layout{RecordEnd: RecordEndLF, Header: []string{"", "id", ""}, Columns: 3, DataStart: Position{6, 2, 1}}},
		{"header only, no record end", "id,name", Dialect{},
			Layout{RecordEnd: RecordEndLF, Header: []string{"id", "name"}, Columns: 2, DataStart: Position{7, 1, 1}}},
		{"sep line wins over a declared delimiter", "SEP=;\r\nid;a,b\r\n", Dialect{Delimiter: ","},
			Layout{Dialect: Dialect{Delimiter: ";"}, SepLine: true, RecordEnd: RecordEndCRLF, Header: []string{"id", "a,b"}, Columns: 2, DataStart: Position{15, 3, 1}}},
		{"sep line of an old Mac", "sep=|\rid|b\r", Dialect{},
			Layout{Dialect: Dialect{Delimiter: "|"}, SepLine: true, RecordEnd: RecordEndCR, Header: []string{"id", "b"}, Columns: 2, DataStart: Position{11, 3, 1}}},
		{"no sep line", "sep=ab,c\n", Dialect{},
			Layout{RecordEnd: RecordEndLF, Header: []string{"sep=ab", "c"}, Columns: 2, DataStart: Position{9, 2, 1}}},
		{"comments before the header", "# made by hand\nid,b\n", Dialect{CommentChar: "#"},
			Layout{Dialect: Dialect{CommentChar: "#"}, RecordEnd: RecordEndLF, Header: []string{"id", "b"}, Columns: 2, DataStart: Position{20, 3, 1}}},
		{"no header", "\n1,2,3\n", Dialect{Header: &no},
			Layout{Dialect: Dialect{Header: &no}, RecordEnd: RecordEndLF, Columns: 3, DataStart: Position{0, 1, 1}}},
		{"declared comma, looks like semicolon", "a;b;c\n1,5;2;3\n", Dialect{Delimiter: ","},
			Layout{RecordEnd: RecordEndLF, Header: []string{"a;b;c"}, Columns: 1, LooksLike: ";", LooksLikeColumns: 3, DataStart: Position{6, 2, 1}}},
		{"semicolons and decimal commas", "a;b, net;c\n1,5;2,5;3\n1;2,5;3\n", Dialect{},
			Layout{Dialect: Dialect{Delimiter: ";"}, RecordEnd: RecordEndLF, Header: []string{"a", "b, net", "c"}, Columns: 3, DataStart: Position{11, 2, 1}}},
		{"tabs", "a\tb\n1\t2\n", Dialect{},
			Layout{Dialect: Dialect{Delimiter: "\t"}, RecordEnd: RecordEndLF, Header: []string{"a", "b"}, Columns: 2, DataStart: Position{4, 2, 1}}},
		{"one column", "a\n1\n", Dialect{},
			Layout{RecordEnd: RecordEndLF, Header: []string{"a"}, Columns: 1, DataStart: Position{2, 2, 1}}},
		{"record end in quotes does not decide", "\"a\nb\"\rc\r", Dialect{},
			Layout{RecordEnd: RecordEndCR, Header: []string{"a\nb"}, Columns: 1, DataStart: Position{6, 2, 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Format, tt.want.MaxRecordBytes = FormatCSV, DefaultMaxRecordBytes
			if tt.want.Dialect.Header == nil {
				tt.want.Dialect.Header = &yes
			}
			tt.want.Dialect = tt.want.Dialect.resolved()
			got, _, err := Inspect(iotest.HalfReader(strings.NewReader(tt.data)), tt.dialect)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Fatalf("layout (want -, got +):\n%s", d)
			}
			stored, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var back Layout
			if err := json.Unmarshal(stored, &back); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, back); d != "" {
				t.Fatalf("layout stored and read again:\n%s", d)
			}
		})
	}
}

func TestInspectReadsTheHeadOnly(t *testing.T) {
	head := "id,name\n"
	file := &endless{head: head, body: "1,2\n"}
	if _, _, err := Inspect(file, Dialect{}); err != nil {
		t.Fatal(err)
	}
	if file.given > headBytes+1 {
		t.Fatalf("%d bytes read", file.given)
	}
}

func TestTrimmedNamesAreReported(t *testing.T) {
	_, warnings := mustInspect(t, []byte("\u200Bid, name\u00A0 ,ok\n"), Dialect{})
	want := []Warning{{Code: CodeHeaderTrimmed, Message: "blanks around column names were removed", Details: map[string]any{
		"columns": []map[string]any{
			{"column": 1, "name": "id", "removed": []string{"U+200B"}},
			{"column": 2, "name": "name", "removed": []string{"U+0020", "U+00A0"}},
		}}}}
	if d := cmp.Diff(want, warnings); d != "" {
		t.Fatalf("warnings (want -, got +):\n%s", d)
	}
}

func TestDialectNamesWhatItCannotRead(t *testing.T) {
	no := false
	tests := []struct {
		name    string
		dialect Dialect
		want    string // "" = valid
	}{
		{"nothing declared", Dialect{}, ""},
		{"escape that is the quote", Dialect{EscapeChar: `"`}, ""},
		{"two characters", Dialect{Delimiter: "::"}, "delimiter"},
		{"not ASCII", Dialect{Delimiter: "§"}, "delimiter"},
		{"letter", Dialect{QuoteChar: "q"}, "quoteChar"},
		{"line feed", Dialect{Delimiter: "\n"}, "delimiter"},
		{"comment is the delimiter", Dialect{CommentChar: ","}, "commentChar"},
		{"quotes that cannot be written", Dialect{DoubleQuote: &no}, "doubleQuote"},
		{"space twice", Dialect{Delimiter: " ", SkipInitialSpace: true}, "skipInitialSpace"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.dialect.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			_, _, err = Inspect(strings.NewReader("a,b\n"), tt.dialect)
			var p *Problem
			if tt.want != "" && (!errors.As(err, &p) || !strings.Contains(p.Message, tt.want)) {
				t.Fatalf("inspected: %v", err)
			}
		})
	}
}

func TestLayoutOfAnotherFormatIsRefused(t *testing.T) {
	l, _ := mustInspect(t, []byte("a,b\n1,2\n"), Dialect{})
	l.Format = "parquet"
	if _, err := NewReader(strings.NewReader("{}"), l, l.DataStart).Next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("reader: %v", err)
	}
	if _, err := NewSplitter(strings.NewReader("{}"), l, l.DataStart, nil).Next(1); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("splitter: %v", err)
	}
}

// endless is a file without end: head once, then body for ever.
type endless struct {
	head, body string
	at         int
	given      int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := copy(p[n:], e.head[min(e.at, len(e.head)):])
		if k == 0 {
			from := (e.at - len(e.head)) % len(e.body)
			k = copy(p[n:], e.body[from:])
		}
		n += k
		e.at += k
	}
	e.given += int64(n)
	return n, nil
}

func TestInspectGuessesTheSameForAnyReads(t *testing.T) {
	data := bytes.Repeat([]byte("a;b\n1,5;\"x\ny\"\n"), 3)
	whole, _ := mustInspect(t, data, Dialect{})
	byteWise, _, err := Inspect(iotest.OneByteReader(bytes.NewReader(data)), Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole, byteWise); d != "" {
		t.Fatal(d)
	}
}
